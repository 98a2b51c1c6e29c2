"""What every plugin is asked, in this process or in another: run as a program it answers for all of them at once.

python conformance.py answers PLACES.json > {"victims/word2vec": ["sha256", {"floats": [...], ...}], ...}
python conformance.py imports             > {"victims/word2vec": ["what importing it did"], ...}
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sys
from pathlib import Path

import numpy as np
import pins

from leakboard.interfaces import SecretGuesses
from leakboard.suite.options import build, field_names
from leakboard.suite.plugins import KINDS, Registry

SMALL = {
    "batch_size": 16,
    "sentences": 20,
    "canaries": 40,
    "steps": 10,
    "expected_batch_size": 50,
    "checkpoint": "{tiny_bert}",
    "draws": 2000,
    "epochs": 1,
    "hidden": 8,
    "max_tokens": 32,
    "min_count": 2,
    "passes": 1,
    "precision": "float32",
    "texts_per_user": 3,
    "topics": 2,
    "users": 40,
    "vector_size": 8,
}
"""Values for every plugin that has an option of this name, so that examples stay small."""

REQUIRED = {
    "datasets/table": {"path": "{table}", "label": "label", "secrets": ["age"], "entities": ["person"]},
    "victims/precomputed": {"vectors": "{vectors}"},
    "victims/adversarial": {"encoder": {"embedding_bag": {"epochs": 1}}, "method": "multidetasking"},
    "victims/dp_word2vec": {"noise_multiplier": 1.0, "vocabulary_noise": 0.5},
    "victims/dp_word2vec_as_published": {"variant": "released_code", "noise_multiplier": 5.0, "vocabulary_noise": 0.5},
    "victims/dpnr": {"encoder": {"embedding_bag": {"epochs": 1}}, "epsilon": 1.0},
    "victims/mechanism": {"name": "laplace", "epsilon": 1.0},
}
"""Examples of options that have no default. Braces name a file that the suite writes."""


def example(kind, name, places, cls=None):
    """Return a plugin, or another class in its place, with its example options."""
    cls = cls or Registry().load(kind, name)
    options = {key: value for key, value in SMALL.items() if key in field_names(cls)}
    options |= REQUIRED.get(f"{kind}/{name}", {})
    filled = {key: v.format(**places) if isinstance(v, str) else v for key, v in options.items()}
    return build(cls, filled, f"{kind}/{name} in tests/conformance.py")


def corpus(victim=""):
    """Return the corpus that plugins are tried on: labels, attributes, entities; vectors for bare mechanisms."""
    from leakboard.datasets.generated_reviews import GeneratedReviews
    from leakboard.datasets.zeros_and_ones import ZerosAndOnes

    if victim == "mechanism":
        return ZerosAndOnes(dimension=4).load()
    return GeneratedReviews(users=40, texts_per_user=3, leak=1.0).load()


def scene(given, epsilon=None):
    """Return an attacker's scene on a victim that publishes documents and words, and with an epsilon releases."""
    from leakboard.pipeline.fitting import Names, fit
    from leakboard.pipeline.publications import publish
    from leakboard.pipeline.scene import Scene
    from leakboard.victims.word2vec import Word2Vec

    names = Names(0, given.name, "word2vec", "attack")
    victim = Word2Vec(vector_size=8, min_count=2, epsilon=epsilon)
    fitted = fit(victim, given, names)
    return Scene(given, given, victim, lambda: fitted, publish(victim, fitted, given, names))


def view(attack, given, names=None):
    """Return what the attack may see of a scene."""
    from leakboard.pipeline.fitting import Names
    from leakboard.pipeline.scene import candidates
    from leakboard.pipeline.scene import view as seen_by

    names = names or Names(0, given.corpus.name, "word2vec", "attack")
    return seen_by(attack, given, names, set(), candidates(attack, given, names))


def challenge(attack, given):
    """Return the published vectors that the attack is to guess from."""
    return given.published.documents["test"] if attack.needs == "documents" else given.published.words.vectors


def digest(value):
    """Return the SHA-256 of arrays, lists, mappings and dataclasses, to the last bit."""
    h = hashlib.sha256()

    def add(item):
        if isinstance(item, np.ndarray):
            h.update(f"{item.dtype}{item.shape}".encode() + np.ascontiguousarray(item).tobytes())
        elif dataclasses.is_dataclass(item):
            add({field.name: getattr(item, field.name) for field in dataclasses.fields(item)})
        elif isinstance(item, dict):
            for key in sorted(item):
                add([key, item[key]])
        elif isinstance(item, list | tuple):
            for part in item:
                add(part)
        else:
            h.update(repr(item).encode())
        h.update(b";")

    add(value)
    return h.hexdigest()


def content(given):
    """Return everything in a corpus, for its digest."""
    rows = {split: {name: list(part[name]) for name in part.column_names} for split, part in given.splits.items()}
    return [given.name, list(given.secrets), rows, dict(given.checks)]


def published(victim, fitted, given, seed=0):
    """Return everything that a fitted victim publishes of the test texts, and its predictions."""
    texts, result = given.texts("test"), []
    if "documents" in victim.publishes:
        vectors = fitted.publish_documents(texts, np.random.default_rng(seed))
        result.append(vectors)
        if given.has_labels:
            result.append(np.asarray(fitted.predict(vectors)))
    if "words" in victim.publishes:
        result.append(fitted.publish_words(texts, np.random.default_rng(seed)))
    return result


def guesses(attack, given):
    """Return the guesses of a newly fitted attack as plain values; of an audit what it tells of some releases."""
    seen = view(attack, given)
    fitted = attack.fit(seen, 0)
    if attack.target == "membership":
        return fitted.guess_members(given.published.words)
    if attack.target == "claim":
        return planted(fitted, given) if hasattr(fitted, "canaries") else told(fitted)
    found = fitted.guess(challenge(attack, given).copy())
    return dict(found.scores) if isinstance(found, SecretGuesses) else found


def planted(fitted, given):
    """Return an audit's canaries, and what it makes of the published table."""
    return [[list(unit) for unit in fitted.canaries], np.asarray(fitted.score(given.published.words))]


def told(fitted):
    """Return everything about an audit's event, and whether it holds for the same thousand outputs."""
    outputs, event = np.random.default_rng(0).normal(0.5, 1.0, (1000, 8)), fitted.distinguisher
    return [event.first, event.second, event.draws, event.note, event.holds(outputs), fitted.repeats]


def scenes():
    """Return a function that gives each attack its scene: audits of what is published need a victim with a claim."""
    plain, private = scene(corpus()), scene(corpus(), 1.0)
    text = {"claim": private}
    return lambda attack: plain if hasattr(attack, "audits") else text.get(getattr(attack, "target", ""), plain)


def answer(kind, name, places, given):
    """Return what a plugin makes of its example."""
    import torch

    plugin = example(kind, name, places)
    if kind == "datasets":
        return content(plugin.load())
    torch.manual_seed(12345)  # whatever came before must not matter
    if kind == "victims":
        tried = corpus(name) if name == "mechanism" else given(plugin).corpus
        return published(plugin, plugin.fit(tried.only("train", "dev"), 0), tried)
    return guesses(plugin, given(plugin))


def _answers(places):
    """Return digest and pins of every plugin's answer, or why it has none."""
    given, result = scenes(), {}
    for kind in KINDS:
        for listing in Registry().listings(kind):
            if not listing.problem:
                try:
                    made = answer(kind, listing.name, places, given)
                    result[f"{kind}/{listing.name}"] = digest(made), pins.summary(made)
                except Exception as error:  # told by the plugin's own test
                    result[f"{kind}/{listing.name}"] = f"{type(error).__name__}: {error}", None
    return result


def _imports():
    """Import every plugin in turn and note every file written, folder made, socket used and variable set."""
    seen = []

    def hook(event, args):
        if event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            path = Path(os.fsdecode(args[0]) if isinstance(args[0], bytes) else str(args[0]))
            if path != Path(os.devnull) and Path.home() not in path.parents:  # what stays at home is found there
                seen.append(f"wrote {path}")
        elif event in ("os.mkdir", "os.putenv", "os.unsetenv", "socket.connect", "socket.getaddrinfo"):
            seen.append(f"{event} {args[0]!r}")

    sys.addaudithook(hook)
    result, registry = {}, Registry()
    for kind in KINDS:
        for listing in registry.listings(kind):
            seen.clear()
            if not listing.problem:
                registry.load(kind, listing.name)
            result[f"{kind}/{listing.name}"] = list(seen)
    return result


if __name__ == "__main__":
    places = json.loads(Path(sys.argv[2]).read_text()) if sys.argv[1] == "answers" else {}
    print(json.dumps(_answers(places) if places else _imports()))
