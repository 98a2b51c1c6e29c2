"""Shared artefacts are computed once: states of frozen layers, inputs of releases, attackers' own models."""

import functools
import json
import os
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

import leakboard
from leakboard.models import frozen_states
from leakboard.models.bert_layers import BertLayers
from leakboard.models.transformer import TransformerEncoder
from leakboard.pipeline.publications import victim_and_attacker_corpus
from leakboard.pipeline.repetition import REORDERED
from leakboard.pipeline.shared import Shared
from leakboard.pipeline.stages import Stages
from leakboard.store import Store
from leakboard.suite.registry import Registry
from leakboard.suite.suites import find_suite, load_suite
from leakboard.victims.word2vec import Word2Vec

CORPUS = {"generated_reviews": {"users": 40}}
TEXTS = 200
"""Number of texts in the corpus, all different."""


@pytest.fixture
def passes(monkeypatch):
    """Count how often each text passes the frozen layers and the upper ones. Every task starts with empty memory."""
    counts = {"frozen": Counter(), "upper": Counter()}
    lower, forward, begin = BertLayers.lower, TransformerEncoder.forward, Stages.__init__

    def counted_lower(parts, ids, mask):
        lengths = mask.sum(1).tolist()
        counts["frozen"].update(tuple(row[:length].tolist()) for row, length in zip(ids, lengths, strict=True))
        return lower(parts, ids, mask)

    def counted_forward(encoder, prepared):
        if not encoder.training:
            counts["upper"].update(tuple(entry.encoding.ids) for entry in prepared)
        return forward(encoder, prepared)

    def begin_anew(*given):
        frozen_states.clear()
        begin(*given)

    monkeypatch.setattr(BertLayers, "lower", counted_lower)
    monkeypatch.setattr(TransformerEncoder, "forward", counted_forward)
    monkeypatch.setattr(Stages, "__init__", begin_anew)
    yield counts
    frozen_states.clear()


@pytest.fixture
def last_layer(tiny_bert):
    """Return a tiny BERT whose last layer is trained for an epoch."""
    return {"bert": {"epochs": 1, "learning_rate": 0.001, "train_layers": 1, "checkpoint": str(tiny_bert)}}


@pytest.fixture
def suite(last_layer):
    """Return a suite of a victim without noise, and of two releases of one fit."""
    noisy = {"encoder": last_layer, "training": "standard", "epsilon": 1}
    return {
        "datasets": [CORPUS],
        "seeds": [0, 1],
        "text_classifier": False,
        "victims": [last_layer, {"dpnr": noisy}, {"dpnr": noisy | {"calibration": "l1"}}],
        "attacks": [{"entity_presence": {"portfolio": "logistic", "observations": 2}}],
    }


@pytest.mark.slow
def test_every_text_passes_frozen_layers_once(suite, passes, tmp_path):
    """No victim, seed or attack repeats a pass, nor does the next run, but for a few texts in another order."""
    leakboard.run(suite, out=tmp_path)
    assert len(passes["frozen"]) == TEXTS
    assert sum(count > 1 for count in passes["frozen"].values()) <= REORDERED
    before = {part: counts.copy() for part, counts in passes.items()}
    again = {"attribute_inference": {"portfolio": "logistic", "observations": 2}}
    noisy = suite["victims"][1:]
    leakboard.run({**suite, "victims": noisy, "attacks": [again]}, out=tmp_path)
    assert passes["frozen"] == before["frozen"]
    assert passes["upper"] - before["upper"] == Counter()  # attacks share the vectors that a mechanism is given


@pytest.mark.slow
def test_states_of_randomly_hidden_texts_are_not_kept(suite, last_layer, passes, tmp_path):
    hiding = {"encoder": last_layer, "training": "standard", "epsilon": 1, "mu": 0.9}
    leakboard.run({**suite, "victims": [{"dpnr": hiding}], "seeds": [0]}, out=tmp_path)
    assert sum(passes["frozen"].values()) > 2 * TEXTS
    kept = {path.name.rpartition("-")[0] for path in (tmp_path / ".cache" / "arrays").iterdir()}
    assert kept == {"generated-reviews-states"}
    assert len(list((tmp_path / ".cache" / "arrays").iterdir())) == 2  # train and dev, which it is fitted on


def test_sharing_changes_no_number(suite, passes, tmp_path, monkeypatch):
    suite |= {"victims": suite["victims"][:2], "seeds": [0]}
    shared = leakboard.run(suite, out=tmp_path / "shared").table
    for module in ("models.frozen_states", "threats.published"):
        monkeypatch.setattr(f"leakboard.{module}.shared_array", lambda *_: None)
    alone = leakboard.run(suite, out=tmp_path / "alone").table
    assert not list((tmp_path / "alone" / ".cache").glob("arrays/*"))
    assert alone.equals(shared)


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "models"), [([0], 2), ([0, 1], 4)])
def test_attacks_that_train_the_same_model_share_it(seeds, models, monkeypatch, tmp_path):
    """Each seed has one model of the victim and one of the attacker. The two attacks differ only in their search."""
    fitted, fit = [], Word2Vec.fit

    @functools.wraps(fit)
    def counted(*given):
        fitted.append(given)
        return fit(*given)

    monkeypatch.setattr(Word2Vec, "fit", counted)
    suite = {
        "datasets": [CORPUS],
        "seeds": seeds,
        "text_classifier": False,
        "victims": [{"word2vec": {"epochs": 1, "vector_size": 8}}],
        "attacks": [{"nearest_neighbour": {"align": "anchors", "anchors": count}} for count in (5, 10)],
    }
    table = leakboard.run(suite, out=tmp_path).table
    assert len(table) == 2
    assert not table["status"].str.startswith("failed").any()
    assert len(fitted) == models


@pytest.mark.slow
def test_models_of_attacks_with_other_texts_are_not_shared(tmp_path):
    """A membership attack leaves its candidates out of its own texts, and its options choose the candidates."""
    units = (("document", 40), ("user", 10))
    attacks = [{"membership_inference": {"unit": unit, "candidates": count}} for unit, count in units]
    suite = {"datasets": [CORPUS], "seeds": [0], "victims": [{"word2vec": {"epochs": 3, "vector_size": 8}}]}
    together = leakboard.run(suite | {"attacks": attacks}, out=tmp_path / "together").table
    again = leakboard.run(suite | {"attacks": attacks[::-1]}, out=tmp_path / "again").table
    assert len(list((tmp_path / "together" / ".cache" / "shadows").iterdir())) == 2
    alone = [leakboard.run(suite | {"attacks": [one]}, out=tmp_path / str(i)).table for i, one in enumerate(attacks)]
    expected = sorted(table["attack_score"].item() for table in alone)
    assert sorted(together["attack_score"]) == sorted(again["attack_score"]) == expected


@pytest.mark.slow
def test_force_makes_shared_artefacts_anew(suite, tmp_path):
    """Code, libraries or the device may have changed without another revision."""
    suite |= {"victims": suite["victims"][1:2], "seeds": [0]}
    attack = {"nearest_neighbour": {"align": "anchors", "anchors": 5}}
    suite["victims"].append({"word2vec": {"epochs": 1, "vector_size": 8, "attacks": [attack]}})

    def made():
        folders = [path for kind in ("arrays", "shadows") for path in (tmp_path / ".cache" / kind).iterdir()]
        return {path.name: (path / "checksums.json").stat().st_mtime_ns for path in folders}

    leakboard.run(suite, out=tmp_path)
    before = made()
    leakboard.run(suite, out=tmp_path, force=True)
    after = made()
    inputs = {name for name in before if "inputs" in name}  # of the victim as it was fitted before
    assert len(inputs) == 3
    assert len(before) == 7
    assert set(after) - set(before) != set()
    assert all(after[name] > before[name] for name in set(before) - inputs)


def test_one_of_two_processes_makes_an_artefact(tmp_path):
    """The other one waits. Reading an array counts as use, so that the store keeps it."""
    made, together = [], threading.Barrier(2)
    job = SimpleNamespace(code={}, cell=SimpleNamespace(source=SimpleNamespace(corpus=SimpleNamespace(name="c"))))
    shared = Shared(job, Store(tmp_path), pytest.fail, list, list)

    def make():
        made.append(threading.get_ident())
        together.wait(60)
        return np.arange(3.0, dtype=np.float32)

    def obtain():
        return shared._array("states", {"layers": "a"}, make).tolist()

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(obtain)
        while not (made or first.done()):
            time.sleep(0.01)
        second = pool.submit(obtain)
        while not (second.running() or second.done()):
            time.sleep(0.01)
        together.wait(60)
        assert first.result(60) == second.result(60) == [0, 1, 2]
    (path,) = (tmp_path / "arrays").iterdir()
    os.utime(path, (0, 0))
    obtain()
    assert time.time() - path.stat().st_mtime < 3600
    assert len(made) == 1


def small(name, encoder):
    """Return a published suite on a small corpus, with a tiny encoder and one seed, without hidden words."""

    def changed(value):
        if isinstance(value, dict):
            return encoder if "bert" in value else {key: changed(entry) for key, entry in value.items()}
        return [changed(entry) for entry in value] if isinstance(value, list) else value

    suite = changed(yaml.safe_load(find_suite(name).read_text()))
    kept = [entry for entry in suite["victims"] if "mu" not in entry.get("dpnr", {}).get("grid", {})]
    named = {json.dumps({**entry, "name": ""}, sort_keys=True): entry for entry in kept}  # one encoder
    suite["victims"] = list(named.values())
    suite.pop("projected", None)
    return suite | {"datasets": [CORPUS], "seeds": [0], "text_classifier": False}


def sizes_of_sets(suite):
    """Return the numbers of texts in the victim's splits, and in the attacker's splits that differ from them."""
    (source,) = load_suite(suite, Registry()).sources
    victims, attackers = victim_and_attacker_corpus(source.corpus.build(Registry()).load(), source.regime, 0)
    sets = {
        side: {tuple(part.texts(split)) for split in part.splits} for side, part in (("v", victims), ("a", attackers))
    }
    return sum(map(len, sets["v"])), sum(map(len, sets["a"] - sets["v"]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "only", "attackers"),
    [("demo", {}, True), ("ag", {}, True), ("dpnr", {"attack": "entity_presence"}, False)],
    ids=["demo", "ag", "dpnr without audits, which ask about texts of their own"],
)
def test_texts_of_a_published_suite_pass_frozen_layers_once_a_set(
    name, only, attackers, last_layer, passes, tmp_path, monkeypatch
):
    """Each set of texts is divided into batches by itself, which decide the rounding.

    Left out: the few texts that are published again in another order, and the texts that attacks wrote.
    """
    monkeypatch.setattr("leakboard.pipeline.publications.find_faults", lambda *_: ())
    monkeypatch.setattr("leakboard.threats.texts._reencoded", lambda *_: ())
    suite = small(name, last_layer)
    leakboard.run(suite, out=tmp_path, only=only)
    times = {kind: dict(Counter(counts.values())) for kind, counts in passes.items()}
    print(f"{name}: how many texts passed how often: frozen layers {times['frozen']}, the others {times['upper']}")
    of_victims, of_attackers = sizes_of_sets(suite)
    assert sum(passes["frozen"].values()) == of_victims + of_attackers * attackers
