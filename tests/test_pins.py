"""The engine's stages and scorers give their pinned numbers, and a changed result fails with its name.

The conformance suite compares the plugins: it evaluates their examples anyway.
"""

import ast
import dataclasses
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pins
import pytest

from leakboard import metrics
from leakboard.conformance import stand_ins
from leakboard.conformance.values import content
from leakboard.data.corpora import build_corpus
from leakboard.interfaces import FittedVictim, PublishedWords, Secret, Victim
from leakboard.metrics import baselines
from leakboard.metrics.agreement import agreement_metrics, cosine_metrics
from leakboard.metrics.audits import bound_metrics, canary_metrics, curve_metrics, sanity_metric
from leakboard.metrics.fairness import widest_gaps
from leakboard.metrics.link_scores import Links, link_metrics
from leakboard.metrics.member_scores import membership_metrics, text_only_area
from leakboard.metrics.near_copies import near_copy_metrics
from leakboard.metrics.neighbours import neighbour_metrics
from leakboard.metrics.regression import regression_metrics
from leakboard.metrics.retrieval import retrieval_metrics
from leakboard.metrics.row_match import row_match_metrics
from leakboard.metrics.sanitised_scores import sanitised_metrics, sensitive_kinds
from leakboard.metrics.secret_scores import dev_metrics, secret_metrics
from leakboard.metrics.sensitive_words import word_classes
from leakboard.metrics.task import task_metrics
from leakboard.metrics.text_scores import text_metrics
from leakboard.metrics.word_scores import WordGuesses, word_metrics
from leakboard.pipeline.publications import fit, publish, victim_and_attacker_corpus
from leakboard.privacy.auditing.curve import trade_off_bound
from leakboard.randomness import Streams
from leakboard.suite import revisions
from leakboard.suite.code import revision
from leakboard.suite.options import always_named, describe
from leakboard.suite.registry import FOLDERS, Registry
from leakboard.threats.threat import known_threats, threat_named
from leakboard.victims._protections import PROTECTIONS
from leakboard.victims.embedding_bag import EmbeddingBag
from leakboard.victims.precomputed import Precomputed

WORDS = [f"w{i}" for i in range(60)]
STREAMS = Streams(0, "made", "victim", "attack", "label")


def corpus():
    """Return 40 texts a split by 10 authors each, with an attribute, an entity and a numeric target."""
    rng, frames = np.random.default_rng(0), {}
    for number, split in enumerate(("train", "dev", "test")):
        codes = rng.integers(0, [[2], [3], [2]], (3, 40))
        texts = [" ".join([*rng.choice(WORDS, 5), f"is{codes[1, i]}", f"row{40 * number + i}"]) for i in range(40)]
        users = [f"{split}{i // 4}" for i in range(40)]
        score = np.repeat(rng.normal(size=10), 4)
        columns = {"text": texts, "row": np.arange(40) + 40 * number, "user": users, "score": score}
        frames[split] = pd.DataFrame(columns | dict(zip(("label", "age", "person"), codes, strict=True)))
    secrets = [
        Secret("age", ("young", "middle", "old"), "attribute"),
        Secret("person", ("absent", "present"), "entity"),
    ]
    return build_corpus("made", frames, secrets, ("no", "yes"), numeric_targets=("score",))


def secrets(kind):
    scored, rng = corpus(), np.random.default_rng(1)
    chosen = [secret for secret in scored.secrets if secret.kind == kind]
    scores = {s.name: rng.normal(size=(40, len(s.values))).astype(np.float32) for s in chosen}
    by_text = np.stack([rng.integers(0, len(s.values), 40) for s in chosen], axis=1)
    size = len(scored.splits["dev"])
    on_dev = {s.name: rng.normal(size=(size, len(s.values))).astype(np.float32) for s in chosen}
    return [*secret_metrics(scored, chosen, scores, by_text), *dev_metrics(scored, chosen, on_dev)]


def words():
    rng = np.random.default_rng(2)
    ranked = np.stack([rng.permutation(60)[:5] for _ in WORDS])
    ranked[::3, 1] = np.arange(60)[::3]
    guesses = WordGuesses(WORDS, ranked, rng.random((60, 5)).astype(np.float32))
    return word_metrics(guesses, WORDS, WORDS[:20], None)


def texts():
    scored = corpus()
    guessed = [" ".join([*text.split()[2:], "w1"]) for text in scored.texts("test")]
    truth, rng = scored.texts("test"), np.random.default_rng(13)
    agreement = agreement_metrics(guessed, truth, True, None, word_classes(truth, scored.texts("train")), rng)
    vectors = rng.normal(size=(2, 40, 8)).astype(np.float32)
    return [*text_metrics(guessed, True, scored), *agreement, *cosine_metrics(*vectors, rng)]


def members():
    rng = np.random.default_rng(3)
    truth = np.arange(400) % 2 == 0
    return membership_metrics(rng.normal(size=400) + 0.5 * truth, truth, np.arange(400) // 4)


def releases():
    mechanism = SimpleNamespace(
        dimension=2,
        epsilon=1.0,
        delta=1e-5,
        release=lambda values, generator: values + generator.laplace(0.0, 1.0, values.shape),
    )
    rng = STREAMS.stream("claim")
    scores = np.linspace(0, 2, 1000), np.linspace(-1, 1, 1000)
    curve = trade_off_bound(*scores, np.linspace(0, 1, 5), 0.05)
    rows = [*bound_metrics(900, 400, (1000, 1000), 1e-5), *curve_metrics(curve, 1000)]
    return [*rows, sanity_metric(mechanism, 2_000, rng)]


def links():
    rng = np.random.default_rng(11)
    truth = np.where(np.arange(300) < 150, rng.permutation(300), -1)
    ranked = np.where(rng.random((300, 12)) < 0.2, truth[:, None].clip(0), rng.integers(300, size=(300, 12)))
    scores = np.sort(rng.normal(size=(300, 12)) + 2.0 * (truth >= 0)[:, None])[:, ::-1]
    return link_metrics(Links(ranked, scores.astype(np.float32)), truth, 300)


def sanitised_words():
    rng, scored = np.random.default_rng(13), corpus()
    truth = [text.split() for text in scored.texts("test")]
    published, read = ([[w if rng.random() < p else "w1" for w in text] for text in truth] for p in (0.3, 0.6))
    kinds = sensitive_kinds(["w3"], dict.fromkeys(WORDS, 9))
    return sanitised_metrics(read, truth, published, "w2", kinds, np.arange(40) // 4)


def presence():
    rng = np.random.default_rng(12)
    stored = rng.random(200) < 0.5
    candidates = [" ".join(rng.choice(WORDS[: 30 + 20 * member], 6)) for member in stored]
    scores, authors = rng.normal(size=200) + stored, np.arange(200) // 2
    return [*membership_metrics(scores, stored, authors), text_only_area(candidates, stored, authors)]


def canaries():
    rng = np.random.default_rng(4)
    planted = rng.random(300) < 0.5
    return canary_metrics(rng.normal(size=300) + 3.0 * planted, planted, 1e-5, 2)


def documents():
    vectors = np.random.default_rng(5).normal(size=(3, 40, 4)).astype(np.float32)
    return dict(zip(("train", "dev", "test"), vectors, strict=True))


def utility():
    rng, scored = np.random.default_rng(5), corpus()
    rng.normal(size=(3, 40, 4))  # those of `documents`
    tables = [PublishedWords(WORDS, rng.normal(size=(60, 4)).astype(np.float32)) for _ in range(2)]
    return [
        *task_metrics(scored, rng.integers(0, 2, 40), rng.dirichlet(np.ones(2), 40).astype(np.float32)),
        *retrieval_metrics(rng.integers(1, 20, 40), np.arange(40) // 2),
        *regression_metrics(scored, documents()),
        *neighbour_metrics(*tables, queries=WORDS[:9], k=10),
        *large_groups(),
    ]


def large_groups():
    groups, predicted, labels = np.random.default_rng(6).integers(0, [[3], [2], [2]], (3, 400))
    return widest_gaps({"age": groups}, predicted, labels, np.arange(400) // 2)


SCORERS = {
    "secrets": lambda: [*secrets("attribute"), *secrets("entity")],
    "words": words,
    "texts": texts,
    "membership": members,
    "linking": links,
    "presence": presence,
    "sanitised_words": sanitised_words,
    "releases": releases,
    "canaries": canaries,
}
"""For the identity of each threat, a function that makes its metrics from fixed answers."""


THREATS = {threat.identity or threat.name: threat for threat in map(threat_named, known_threats())}


class Spy(Victim, FittedVictim):
    """A victim that records what it is fitted on, and publishes numbers from its random stream."""

    def fit(self, corpus, seed):
        self.seen = [sorted(corpus.splits), list(corpus.texts("train")), seed, np.random.random(3)]
        return self

    def publish_documents(self, texts, rng):
        return rng.random((len(texts), 3)).astype(np.float32)

    def predict(self, vectors):
        return (vectors[:, 0] > 0.5).astype(np.int64)


def halves():
    return [
        [None if side is None else content(side) for side in victim_and_attacker_corpus(corpus(), kind, 0)]
        for kind in ("within", "overlap", "disjoint", None)
    ]


STAGES = {
    "CORPUS": halves,
    "FIT": lambda: fit(Spy(), corpus(), STREAMS).seen,
    "PUBLISH": lambda: publish(Spy(), Spy, corpus(), STREAMS),
    "TEXT_CLASSIFIERS": lambda: [baselines.from_text(corpus(), [secret], seed=0) for secret in corpus().secrets],
    "UTILITY": utility,
}


@pytest.mark.parametrize("threat", SCORERS)
def test_the_scoring_of_every_threat_is_pinned(threat):
    summary = pins.summary(SCORERS[threat]())
    where = f"revision of {THREATS[threat].__name__} in leakboard/threats/"
    assert not pins.complaint(f"scoring/{threat}", THREATS[threat].revision, summary, where)


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_is_pinned(stage):
    summary = pins.summary(STAGES[stage]())
    where = f"{stage} in leakboard/suite/revisions.py"
    assert not pins.complaint(f"stages/{stage}", getattr(revisions, stage), summary, where)


OWN_VECTORS = "scoring/own_vectors"


def test_the_measures_of_own_vectors_are_pinned():
    summary = pins.summary([*row_match_metrics(corpus(), documents()), *near_copy_metrics(documents())])
    where = "revision of victims/precomputed"
    assert not pins.complaint(OWN_VECTORS, revision(Precomputed), summary, where)


def test_no_revision_and_no_scorer_is_left_out():
    assert set(STAGES) == {name for name, value in vars(revisions).items() if isinstance(value, int)}
    assert set(SCORERS) == set(THREATS), "a threat of leakboard/threats/ has no entry in SCORERS of this file"
    trees = [ast.parse(path.read_text("utf-8")) for path in Path(metrics.__file__).parent.glob("*.py")]
    functions = [node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef) and node.returns]
    scorers = {node.name for node in functions if ast.unparse(node.returns) == "list[Metric]"}
    called = {name for tree in trees for name in _called(tree)}
    pinned = _called(ast.parse(Path(__file__).read_text("utf-8")))
    assert {"word_metrics", "secret_metrics"} <= scorers - called <= pinned


def _called(tree):
    return {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}


OF_PROTECTIONS = {
    "scale_and_perturb": {"beta": 0.5},
    "gaussian": {"sigma": 0.1},
    "metric_laplace": {"epsilon": 50.0},
    "purkayastha": {"epsilon": 50.0},
    "truncation": {"dimensions": 5},
}
"""Options of the protections that have no default."""
PLUGINS = [(kind, listing.name) for kind in FOLDERS for listing in Registry().listings(kind)]


@pytest.mark.parametrize(("kind", "name"), PLUGINS, ids=lambda part: part)
def test_the_defaults_of_every_plugin_are_pinned(kind, name):
    cls = Registry().load(kind, name)
    defaults = {option.name: option.default for option in describe(cls) if option.name not in always_named(cls)}
    assert not pins.complaint_about_defaults(f"{kind}/{name}", revision(cls), defaults)


@pytest.mark.parametrize("name", PROTECTIONS)
def test_every_protection_and_its_defaults_are_pinned(name):
    recipe = PROTECTIONS[name](**OF_PROTECTIONS.get(name, {}))
    vectors = np.random.default_rng(7).normal(size=(300, 32)).astype(np.float32)
    fitted = recipe.fit(vectors, np.random.default_rng(8))
    publish = fitted.protect, fitted.protect_query
    summary = pins.summary([call(vectors, np.random.default_rng(9)) for call in publish])
    assert not pins.complaint(f"protections/{name}", revision(type(recipe)), summary)
    defaults = {option.name: option.default for option in describe(type(recipe))}
    assert not pins.complaint_about_defaults(f"protections/{name}", revision(type(recipe)), defaults)


def test_no_pins_of_removed_parts_are_left():
    plugins = [f"{kind}/{name}" for kind, name in PLUGINS]
    plugins += [f"protections/{name}" for name in PROTECTIONS]
    plugins += [f"defaults/{plugin}" for plugin in plugins]
    engine = [*(f"scoring/{name}" for name in SCORERS), *(f"stages/{name}" for name in STAGES)]
    assert pins.forget([*plugins, *engine, OWN_VECTORS]) == set()


class TestComplaints:
    """A changed result is reported with its name; another processor's last bits are not."""

    NUMBERS = np.random.default_rng(0).normal(size=(30, 4))

    @pytest.fixture(autouse=True)
    def pinned(self, tmp_path, monkeypatch):
        monkeypatch.setattr(pins, "FILE", tmp_path / "pins.json")
        monkeypatch.setattr(pins, "IS_WRITING", True)
        pins.complaint("victims/v", 1, pins.summary([self.NUMBERS, "a"]))
        monkeypatch.setattr(pins, "IS_WRITING", False)

    def test_a_changed_default_is_reported_and_a_new_option_asks_for_pins_alone(self, monkeypatch):
        monkeypatch.setattr(pins, "IS_WRITING", True)
        pins.complaint_about_defaults("victims/v", 1, {"epochs": "5", "rate": "0.1"})
        monkeypatch.setattr(pins, "IS_WRITING", False)
        messages = {
            "": {"epochs": "5", "rate": "0.1"},
            "the default of victims/v.epochs changed: raise its revision, then run `make pins`": {"epochs": "6"},
            "the options or the revision of victims/v are others: run `make pins`": {"epochs": "5", "width": "3"},
        }
        for message, defaults in messages.items():
            assert pins.complaint_about_defaults("victims/v", 1, defaults) == message
        assert "raise" not in pins.complaint_about_defaults("victims/v", 2, {"epochs": "6"})

    def complaint(self, *value, revision=1):
        return pins.complaint("victims/v", revision, pins.summary([*value]))

    def test_last_bits_are_not_reported(self):
        assert self.complaint(self.NUMBERS.astype(np.float32), "a") == ""
        assert self.complaint(self.NUMBERS * (1 + 5e-4), "a") == ""

    @pytest.mark.parametrize(
        "change",
        [
            lambda numbers: (numbers * 1.01, "a"),
            lambda numbers: (numbers + 0.01, "a"),
            lambda numbers: (numbers[:-1], "a"),
            lambda numbers: (numbers[::-1], "a"),
            lambda numbers: (numbers, "b"),
            lambda numbers: (numbers, "a", 1),
        ],
    )
    def test_changes_are_reported(self, change):
        expected = "the results of victims/v changed: raise its revision, then run `make pins`"
        assert self.complaint(*change(self.NUMBERS)) == expected

    def test_a_raised_revision_asks_for_new_pins(self):
        assert self.complaint(self.NUMBERS, "a", revision=2) == "the revision of victims/v is another: run `make pins`"
        assert pins.complaint("victims/w", 1, {}) == "victims/w has no pins: run `make pins`"

    def test_written_texts_may_differ_in_a_word(self):
        texts = ["so it goes", "and on it goes"] * 50
        pinned, near = pins.summary(texts), pins.summary([*texts[:-1], "and so it goes"])
        assert pins.agree(pinned, near, written=True)
        assert not pins.agree(pinned, near)
        assert not pins.agree(pinned, pins.summary([text[:-1] for text in texts]), written=True)

    def test_writing_keeps_numbers_within_the_tolerance(self, monkeypatch, capsys):
        before = pins.FILE.read_bytes()
        monkeypatch.setattr(pins, "IS_WRITING", True)
        assert self.complaint(self.NUMBERS * (1 + 5e-4), "a") == ""
        assert pins.FILE.read_bytes() == before
        assert self.complaint(self.NUMBERS * 2, "a") == ""
        assert pins.FILE.read_bytes() != before
        assert "victims/v: pinned anew under the same revision 1" in capsys.readouterr().out


def test_a_changed_learning_rate_is_reported_with_the_plugins_name(tmp_path, monkeypatch):
    monkeypatch.setattr(pins, "IS_WRITING", False)
    plugin, corpus = EmbeddingBag.example(tmp_path), stand_ins.corpus()

    def complaint(rate):
        changed = dataclasses.replace(plugin, learning_rate=rate)
        published = stand_ins.published(changed, changed.fit(corpus.only("train", "dev"), 0), corpus)
        return pins.complaint("victims/embedding_bag", plugin.__leakboard_revision__, pins.summary(published))

    assert complaint(plugin.learning_rate) == ""
    expected = "the results of victims/embedding_bag changed: raise its revision, then run `make pins`"
    assert complaint(1.1 * plugin.learning_rate) == expected
