"""Vectors drawn in two dimensions: groups that lie apart stay apart, and a published picture is kept or made again."""

import shutil

import numpy as np
import pytest

from leakboard.board.projections import FILE, project, read_projections
from leakboard.site.charts import key, projections
from leakboard.site.content import make_board
from leakboard.suite.yaml_files import read_yaml


def share_of_like_neighbours(points, classes):
    """Return how often the nearest other point has the same class."""
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    return np.mean(classes[distances.argmin(1)] == classes)


def test_groups_that_lie_apart_stay_apart_and_noise_mixes_them():
    rng, classes = np.random.default_rng(0), np.arange(60) % 2
    apart = rng.normal(size=(60, 16)) + 12 * classes[:, None]
    mixed = rng.normal(size=(60, 16))
    assert share_of_like_neighbours(project(apart.astype(np.float32)), classes) == 1
    assert share_of_like_neighbours(project(mixed.astype(np.float32)), classes) < 0.75  # 0.5 and 4 standard errors


def test_the_same_vectors_give_the_same_points():
    vectors = np.random.default_rng(1).normal(size=(40, 8)).astype(np.float32)
    points = project(vectors)
    assert points.shape == (40, 2)
    assert (points == project(vectors)).all()


@pytest.fixture
def projected(copied, command_line):
    """Return a copy of the finished bench, published with one victim projected."""
    copied.suite(**read_yaml(copied.folder / "tiny.yaml") | {"projected": ["hashed"]})
    code, out, _ = command_line(*copied.arguments("publish"))
    assert code == 0, out
    return copied


def test_what_a_suite_wants_projected_is_published_a_row_a_text(projected):
    home = projected.folder / "tiny"
    ((dataset, victim), rows), *others = read_projections(home).items()
    assert ((dataset, victim), others) == (("letters", "hashed"), [])
    assert len({(row["x"], row["y"]) for row in rows}) == len(rows) > 50
    assert {row["seed"] for row in rows} == {0}
    assert len({row["value"] for row in rows}) == 2
    board = make_board("tiny", "", [], home, home)
    ((title, figure),) = projections(board)
    assert (title, sum(len(trace["x"]) for trace in figure["data"])) == ("hashed", len(rows))
    assert set(key([(title, figure)])) == {f"{rows[0]['secret']}: {row['value']}" for row in rows}


def test_the_published_picture_is_kept_where_the_vectors_are_gone(projected, command_line):
    published = (projected.folder / "tiny" / FILE).read_bytes()
    shutil.rmtree(projected.out)
    assert command_line(*projected.arguments("publish"))[0] == 0
    assert (projected.folder / "tiny" / FILE).read_bytes() == published


def test_a_name_that_no_victim_has_is_refused(bench, command_line):
    bench.suite(projected=["hashd"])
    code, _, err = command_line(*bench.arguments("run"))
    assert (code, err.count("\n")) == (2, 1)
    assert "projected: no victim is called 'hashd' (there are: hashed); did you mean 'hashed'?" in err
