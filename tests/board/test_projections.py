"""Test the projection of vectors to two dimensions, and that a published projection outlives its vectors."""

import shutil

import numpy as np
import pytest

from leakboard.board.projections import PROJECTIONS_FILE, project, read_projections
from leakboard.site.charts import key, projections
from leakboard.site.content import make_board
from leakboard.suite.yaml_files import read_yaml


def share_of_like_neighbours(points, classes):
    """Return the share of points whose nearest neighbour has the same class."""
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    return np.mean(classes[distances.argmin(1)] == classes)


@pytest.mark.slow
def test_separate_groups_stay_separate_and_mixed_groups_stay_mixed():
    rng, classes = np.random.default_rng(0), np.arange(60) % 2
    separate = rng.normal(size=(60, 16)) + 12 * classes[:, None]
    mixed = rng.normal(size=(60, 16))
    assert share_of_like_neighbours(project(separate.astype(np.float32)), classes) == 1
    assert share_of_like_neighbours(project(mixed.astype(np.float32)), classes) < 0.75  # 0.5 and 4 standard errors


def test_the_same_vectors_give_the_same_points():
    vectors = np.random.default_rng(1).normal(size=(40, 8)).astype(np.float32)
    points = project(vectors)
    assert points.shape == (40, 2)
    assert (points == project(vectors)).all()


@pytest.fixture
def projected(copied, output_of):
    """Return a copy of the finished bench, published with a projection of one victim."""
    copied.suite(**read_yaml(copied.folder / "tiny.yaml") | {"projected": ["hashed"]})
    output_of(*copied.arguments("publish"))
    return copied


def test_a_projection_has_a_row_for_each_text(projected):
    home = projected.folder / "tiny"
    (((dataset, victim), rows),) = read_projections(home).items()
    assert (dataset, victim) == ("letters", "hashed")
    assert len({(row["x"], row["y"]) for row in rows}) == len(rows) > 50
    assert {row["seed"] for row in rows} == {0}
    assert len({row["value"] for row in rows}) == 2
    ((title, figure),) = projections(make_board("tiny", "", [], home, home))
    assert (title, sum(len(trace["x"]) for trace in figure["data"])) == ("hashed", len(rows))
    assert set(key([(title, figure)])) == {f"{rows[0]['secret']}: {row['value']}" for row in rows}


def test_a_published_projection_is_kept_without_the_vectors(projected, output_of):
    published = (projected.folder / "tiny" / PROJECTIONS_FILE).read_bytes()
    shutil.rmtree(projected.out)
    output_of(*projected.arguments("publish"))
    assert (projected.folder / "tiny" / PROJECTIONS_FILE).read_bytes() == published


def test_an_unknown_victim_is_refused(bench, refusal):
    bench.suite(projected=["hashd"])
    message = "projected: no victim is called 'hashd' (there are: hashed); did you mean 'hashed'?"
    assert message in refusal(*bench.arguments("run"))
