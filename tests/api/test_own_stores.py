"""Own vector stores, whose encoder a thief knows: links are found, protections are tried, mistakes are one line."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import leakboard
from leakboard.api.untried import not_tried
from leakboard.cli import commands
from leakboard.cli.evaluate import _located
from leakboard.data.readers.tabular import expand
from leakboard.errors import RequestError
from leakboard.site.rendering import cell
from leakboard.suite.names import Names

N, WIDTH = 300, 16
TABLE = np.random.default_rng(1).normal(size=(100, WIDTH)) * np.linspace(2, 0.5, WIDTH)
TEXTS = [" ".join(map(str, row)) for row in np.random.default_rng(0).integers(100, size=(N, 8))]
GENDER = ["f", "m"] * (N // 2)
LINKED = "linked_at_1_percent_false_links"


def encode(texts):
    """Return the mean vectors of the numbers in texts."""
    return np.array([TABLE[list(map(int, text.split()))].mean(0) for text in texts])


def evaluate(vectors, attacks=("linking",), texts=TEXTS, **options):
    return leakboard.evaluate(vectors, texts=texts, attacks=list(attacks), **options)


@pytest.fixture(scope="module")
def report():
    return evaluate(encode(TEXTS), encoder=encode)


class TestPlantedTruth:
    def test_a_store_without_protection_is_linked_by_the_encoder(self, report):
        row = report.table.iloc[0]
        assert (row[LINKED], row["status"]) == (1, "ok")
        assert (row["known_pairs"], row["queries"], row["candidate_texts"], row["stolen_vectors"]) == (0, 0, 270, 270)
        assert report.sentences[0] == (
            "100 % of the stored vectors have their text as first of 270 candidates "
            "(too few vectors to tell how many at 1 % false links; 60 vectors tried)"
        )

    def test_the_tables_have_no_number_about_which_the_sentence_makes_no_claim(self, report, tmp_path):
        shown, (row,) = report.short_table()
        assert row["status"] == "too few vectors to tell how many at 1 % false links"
        assert f"({row['status']}; " in report.sentences[0]
        texts = {column.name: cell(column, row).text for column in shown}
        assert texts["linked_first"] == "1.000"
        assert {name for name, text in texts.items() if text == "too few"} == {
            *(LINKED, "attack_score", "attack_advantage", "empirical_privacy")
        }
        page = report.save(tmp_path / "page.html").read_text("utf-8")
        attacks, _, measures = page.partition("Details</h2>")[2].partition(
            "Everything else that was measured</caption>"
        )
        assert row["status"] in attacks
        assert "linked by the first candidate" in measures
        assert "linked at 1 % false links" not in measures

    def test_the_page_names_the_protection(self, report, tmp_path):
        made = evaluate(encode(TEXTS), encoder=encode, protection="int8")
        pages = [one.save(tmp_path / f"{i}.html").read_text("utf-8") for i, one in enumerate((report, made))]
        assert [re.findall(r"<dt>protection</dt>\s*<dd>(.*?)</dd>", page) for page in pages] == [[], ["int8"]]

    def test_vectors_as_stored_are_compared_with_each_protection_in_order(self, tmp_path):
        noise = {"gaussian": {"sigma": 1.0}}
        made = evaluate(encode(TEXTS), encoder=encode, protection=["rotation", noise])
        names = ["as stored", "rotation", "gaussian(sigma=1.0)"]
        assert list(made.releases) == made.utility["release"].tolist() == names
        linked = made.table.set_index("victim")["linked_first"]
        assert linked.index.tolist() == names
        page = made.save(tmp_path / "page.html").read_text("utf-8")
        details = page[page.index('aria-label="Details"') :]
        assert sorted(names, key=lambda name: details.index(f"<bdi>{name}</bdi>")) == names
        assert linked["as stored"] > 0.9
        assert linked[names[2]] < 0.2
        found = made.differences.set_index("release")
        assert found["secret"].unique().tolist() == ["which text a vector is of"]
        assert all("too few" in reason for reason in found["gives_away"])  # so no gains are compared
        assert found["attack_advantage"].isna().all()
        kept = made.utility.set_index("release")["neighbours_kept"]
        assert np.isnan(kept["as stored"])
        assert kept["rotation"] == pytest.approx(1, abs=0.01)
        assert kept[names[2]] < 0.5

    def test_random_vectors_are_not_linked(self):
        made = evaluate(np.random.default_rng(5).normal(size=(N, WIDTH)), encoder=encode)
        assert made.table.iloc[0][LINKED] < 0.2

    def test_without_an_encoder_nothing_is_linked_or_taken_for_linked(self):
        made = evaluate(encode(TEXTS), ["linking", "presence"], secrets={"gender": GENDER})
        assert not len(made.table)
        assert "the victim has no public encoder that the attacker could know" in made.sentences[0]

    @pytest.mark.slow
    def test_several_releases_meet_the_same_thief(self, tmp_path):
        vectors = encode(TEXTS)
        releases = {"as stored": vectors, "random": np.random.default_rng(5).normal(size=vectors.shape)}
        made = evaluate(releases, encoder=encode, out=tmp_path)
        assert made.table.set_index("victim")["linked_first"]["as stored"] == 1
        assert made.table.set_index("victim")["linked_first"]["random"] < 0.2
        assert np.array_equal(np.load(tmp_path / "encoded.npy"), encode(TEXTS).astype(np.float32))
        again = leakboard.run(tmp_path / "suite.yaml", out=tmp_path / "again")
        assert again.table["attack_score"].equals(made.table["attack_score"])


class TestOtherDimensions:
    def test_a_store_that_was_cut_is_linked(self):
        assert evaluate(encode(TEXTS)[:, :12], encoder=encode).table.iloc[0]["linked_first"] > 0.9

    def test_a_store_of_more_dimensions_is_refused_with_the_reason(self):
        vectors = encode(TEXTS)
        made = evaluate(np.concatenate([vectors, vectors], axis=1), ["linking", "presence"], encoder=encode)
        reason = "alignment: 32 stored dimensions, 16 own ones: only pairs or truncation help"
        assert made.sentences == [f"warning: no results: {name}: {reason}" for name in ("linking", "presence")]

    def test_the_reason_is_told_next_to_other_results(self):
        skipped = SimpleNamespace(status="skipped", attack="linking(pairs=3)", reason="why")
        done = SimpleNamespace(status="ok", attack="attribute_inference", reason="")
        assert not_tried([skipped, done], Names()) == ["linking was not tried: why"]
        assert not_tried([skipped], Names()) == not_tried([done], Names()) == []

    def test_the_release_is_named_if_the_attack_applies_to_another(self):
        skipped = SimpleNamespace(status="skipped", attack="linking", reason="why", victim="precomputed")
        done = SimpleNamespace(status="ok", attack="linking", reason="")
        names = Names({("victim", "precomputed"): "as stored"})
        assert not_tried([skipped, done], names) == ["linking was not tried on 'as stored': why"]

    def test_with_pairs_it_is_linked(self):
        mixed = encode(TEXTS) @ np.random.default_rng(2).normal(size=(WIDTH, 32))
        made = evaluate(mixed, [{"linking": {"pairs": 60}}], encoder=encode)
        assert made.table.iloc[0]["linked_first"] > 0.9
        assert made.table.iloc[0]["known_pairs"] == 60


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder": None, "texts": None}, "secrets: there are none to guess; allowed without them: texts=, to read"),
        ({"texts": None}, "encoder: it has no texts to encode; allowed: an encoder together with texts"),
        ({"encoder": 5}, "encoder: 5 is not allowed: a victim's name, a name with options, or a function of texts"),
        ({"encoder": "sentence"}, r"^encoder: 'sentence' is not allowed.*did you mean 'sentence_encoder'"),
        ({"encoder": lambda texts: np.eye(3)}, r"encoder\(texts\): 3 rows, but there are 300 texts"),
        ({"encoder": lambda texts: np.full((N, 2), np.nan)}, r"encoder\(texts\): row 0: nan in column 0; 300 rows"),
        ({"encoder": lambda texts: texts}, r"encoder\(texts\): .* of shape \(300,\) is not allowed: numbers of shape"),
        ({"protection": ["int8", "int8"]}, "protection: int8, int8: one is named twice; allowed: each once"),
        (
            {"protection": ["rotation", "int8"], "vectors": {"int8": encode(TEXTS)}},
            "^vectors: 'int8' names the release and a protection; allowed: another name for the release$",
        ),
        (
            {"protection": "int8", "vectors": {"a": encode(TEXTS), "b": encode(TEXTS)}},
            "vectors: 2 releases are given with protection; allowed: one release",
        ),
        ({"protection": 3}, "protection: 3 is not allowed"),
        ({"protection": "rotatio"}, r"^protection: 'rotatio' is not allowed.*did you mean 'rotation'"),
        (
            {"protection": {"scale_and_perturb": {"beta": 0}}},
            "scale_and_perturb.beta: 0 is not allowed: input should be",
        ),
        (
            {"protection": {"product_quantisation": {"subvectors": 5}}},
            r"product_quantisation.subvectors: 5 is not allowed with 16 dimensions \(allowed: 1, 2, 4, 8, 16\)",
        ),
        ({"vectors": np.ones((N, 3))}, "all 300 vectors are the same"),
        ({"vectors": encode(TEXTS[:1]), "texts": TEXTS[:1]}, "1 different texts cannot be divided into train, dev"),
        ({"texts": [" "] * N}, "texts: row 0: it is empty"),
    ],
)
def test_mistakes_are_one_line(options, message):
    with pytest.raises(RequestError, match=message) as refused:
        evaluate(**{"vectors": encode(TEXTS), "encoder": encode, **options})
    assert "\n" not in str(refused.value)


def test_duplicated_vectors_work():
    made = evaluate(np.repeat(encode(TEXTS[:100]), 3, axis=0), encoder=encode)
    assert len(made.records) == 1
    assert made.records[0].status == "ok"


class TestCommand:
    @pytest.fixture
    def call(self, tmp_path, monkeypatch):
        """Return a function that calls `evaluate` on a table and its vectors."""
        monkeypatch.chdir(tmp_path)
        pd.DataFrame({"text": TEXTS, "gender": GENDER}).to_csv("rows.csv", index=False)
        np.save("stored.npy", encode(TEXTS))
        np.save("known.npy", encode(TEXTS)[:, ::-1])

        def call(*words):
            given = ["evaluate", "rows.csv", "--vectors", "stored.npy", "--attacks", "linking", *words]
            return CliRunner().invoke(commands.app, given)

        return call

    @pytest.mark.slow
    def test_a_second_file_stands_for_the_encoder(self, call):
        result = call("--text", "text", "--encoded", "known.npy")
        assert result.exit_code == 0
        assert "of the stored vectors have their text as first of 270 candidates" in result.output
        assert "encoded: " in result.output

    def test_texts_alone_are_read_and_their_folder_is_private(self, call, tmp_path):
        result = call("--text", "text", "--attacks", "nearest_text", "--out", "new")
        assert result.exit_code == 0
        assert "recovers words with an F1 of" in result.output
        assert "new/suite/sentences.csv: tried texts next to what attacks read, for you alone" in result.output
        assert len(pd.read_csv(tmp_path / "new" / "suite" / "sentences.csv")) == 20
        assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700

    def test_the_kept_suite_finds_a_local_store_from_any_folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "store").mkdir()
        local, server = "chroma:store#reviews", "qdrant:http://localhost:6333#reviews"
        assert _located("TABLE", local, expand(local)) == f"chroma:{tmp_path}/store#reviews"
        assert _located("TABLE", server, expand(server)) == server

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ((), "--secrets: missing; allowed without it: --entities, or --text, to read texts from vectors"),
            (("--text", "text", "--risk", "risk.csv"), "--risk risk.csv: no secret is guessed; allowed: together with"),
            (
                ("--encoder", "sentence_encoder"),
                "--text: missing; --encoder and --encoded need the column of the texts",
            ),
            (("--text", "text", "--encoder", "[1]"), "--encoder [1]: allowed is a name, or one with options"),
            (("--text", "text", "--encoder", "{a"), "--encoder {a: allowed is a name, or one with options"),
            (("--text", "text", "--encoded", "no.npy"), "--encoded no.npy: no such file"),
        ],
    )
    def test_mistakes_are_one_line(self, call, words, message):
        error = call(*words).exception
        assert isinstance(error, RequestError)
        assert str(error).startswith(message)
