"""What every plugin is asked, in this process or in another: run as a program it answers for all of them at once.

python conformance.py answers FOLDER > {"victims/word2vec": ["sha256", {"floats": [...], ...}], ...}
python conformance.py imports        > {"victims/word2vec": ["what importing it did"], ...}

It knows no plugin by name: each gives a small example of itself, and an attack meets the first victim that publishes
what its threat needs and that the threat applies to.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import sys
from pathlib import Path

import numpy as np
import pins

from leakboard.interfaces import Corpus, Secret
from leakboard.suite.registry import KINDS, Registry, load_file

TINY = Path(__file__).parent / "tiny" / "tabled.py"
"""The suite's own victim: it publishes all that there is to publish."""
PERSONS = ("anna", "otto")


def example(kind, name, folder):
    """Return a plugin's small example of itself, whose files are in a folder of its own."""
    own_folder = Path(folder) / kind / name
    own_folder.mkdir(parents=True, exist_ok=True)
    return Registry().load(kind, name).example(own_folder)


@functools.cache
def corpus():
    """Return 120 texts by 40 users with a label, an attribute and two entities, all of which show in the words."""
    import pandas as pd

    from leakboard.data.corpora import build_corpus

    rng = np.random.default_rng(0)
    names = [f"{first}{second}" for first in "bdfglmnprst" for second in ("an", "ell", "ik", "on", "ura", "yt")]
    frequent = 1 / np.arange(1, len(names) + 1)
    rows = []
    for user in range(40):
        age = int(rng.integers(3))
        for _ in range(3):
            label, *persons = (int(rng.random() < share) for share in (0.5, 0.4, 0.2))
            shown = [("dull", "fine")[label], ("young", "ripe", "old")[age]]
            shown += [name for name, is_present in zip(PERSONS, persons, strict=True) if is_present]
            text = " ".join([*shown, *rng.choice(names, 12, p=frequent / frequent.sum()), f"text{len(rows)}."])
            values = {"label": label, "age": age} | dict(zip(PERSONS, persons, strict=True))
            rows.append({"text": text, "row": len(rows), "user": f"user {user}", **values})
    frame = pd.DataFrame(rows)
    splits = {"train": frame[:72], "dev": frame[72:90], "test": frame[90:]}
    secrets = [Secret("age", ("young", "ripe", "old"), "attribute")]
    secrets += [Secret(name, ("absent", "present"), "entity") for name in PERSONS]
    return build_corpus("conformance", splits, secrets, ("dull", "fine"))


def side(victim):
    """Return the side of a victim, fitted on its corpus and published."""
    from leakboard.pipeline.fitting import fit
    from leakboard.pipeline.publications import publish
    from leakboard.randomness import Streams
    from leakboard.threats.threat import VictimSide

    whole = victim.example_corpus() or corpus()
    streams = Streams(0, whole.name, type(victim).__name__, "attack", "cell")
    fitted = fit(victim, whole, streams)
    return VictimSide(whole, whole, victim, lambda: fitted, publish(victim, fitted, whole, streams), streams)


class Sides:
    """Gives each attack the first victim's side that it applies to: the suite's own, else a plugin's example."""

    def __init__(self, folder):
        tiny = load_file(TINY)
        self.makers = {"the suite's own": tiny, "the suite's own, with a claim": lambda: tiny(epsilon=1.0)}
        for listing in Registry().listings("victims"):
            if not listing.problem:
                self.makers[listing.origin] = functools.partial(example, "victims", listing.name, folder)
        self.victim = functools.cache(lambda name: self.makers[name]())
        self.side = functools.cache(lambda name: side(self.victim(name)))

    def __call__(self, attack):
        """Return the side.

        Raises:
            LookupError: says of each victim why not.
        """
        reasons = {}
        for name in self.makers:
            if attack.threat.needs not in self.victim(name).publishes:
                reasons[name] = f"publishes no {attack.threat.needs}"
                continue
            side = self.side(name)
            reasons[name] = attack.threat.why_not_applicable(attack, side.corpus, side.published)
            if not reasons[name]:
                return side
        raise LookupError(f"no victim can be attacked by {type(attack).__name__}: {reasons}")


class Watched:
    """An attack in whose place a threat is evaluated, to see that it keeps to what every attack promises.

    What it is shown stays as it is, and the same question has the same answer.
    """

    def __init__(self, attack):
        self._attack = attack
        self.calls = []
        """Every call of what was fitted: its arguments and its answer."""
        self.learned = None

    def __getattr__(self, name):
        return getattr(self._attack, name)

    def fit(self, view, seed):
        before = digest(view)
        self.view_is_whole = lambda: digest(view) == before
        self.learned = self._attack.fit(view, seed)
        return self._watch(self.learned)

    def _watch(self, learned):
        if callable(learned):
            return functools.partial(self._ask, learned)
        parts = {field.name: getattr(learned, field.name) for field in dataclasses.fields(learned)}
        watched = {name: functools.partial(self._ask, part) for name, part in parts.items() if callable(part)}
        return dataclasses.replace(learned, **watched)

    def _ask(self, answer, *inputs):
        before = digest(inputs)
        first, again = answer(*inputs), answer(*inputs)
        assert digest(inputs) == before, "it writes into what it is shown"
        assert digest(first) == digest(again), "it answers the same question otherwise"
        self.calls.append((inputs, first))
        return first


def attacked(attack, side):
    """Return the watched attack, and what it reached."""
    watched = Watched(attack)
    result = attack.threat.evaluate(watched, side)
    assert watched.view_is_whole(), "it writes into its view"
    return watched, result


def answers(attack, side):
    """Return what a newly fitted attack gives as plain values: what it learned, its answers, and its result."""
    watched, result = attacked(attack, side)
    return [plain(watched.learned), [answer for _, answer in watched.calls], result]


def plain(learned):
    """Return what fitting an attack gave, without its functions."""
    parts = {} if callable(learned) else {f.name: getattr(learned, f.name) for f in dataclasses.fields(learned)}
    return {name: part for name, part in parts.items() if not callable(part)}


def digest(value):
    """Return the SHA-256 of arrays, lists, mappings, corpora and dataclasses, to the last bit, functions left out."""
    h = hashlib.sha256()

    def add(item):
        if isinstance(item, np.ndarray):
            h.update(f"{item.dtype}{item.shape}".encode() + np.ascontiguousarray(item).tobytes())
        elif isinstance(item, Corpus):
            add(content(item))
        elif callable(item):
            pass
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


def arrays(value):
    """Return every array in lists, mappings and dataclasses."""
    if isinstance(value, np.ndarray):
        return [value]
    if dataclasses.is_dataclass(value):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else []
    return [found for part in parts for found in arrays(part)]


def mappings(value):
    """Return a mapping itself, and those that a dataclass holds."""
    parts = vars(value).values() if dataclasses.is_dataclass(value) else [value]
    return [part for part in parts if isinstance(part, dict)]


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
            result.append(fitted.predict(vectors))
    if "words" in victim.publishes:
        result.append(fitted.publish_words(texts, np.random.default_rng(seed)))
    return result


def answer(kind, name, folder, sides):
    """Return what a plugin makes of its example."""
    import torch

    plugin = example(kind, name, folder)
    if kind == "datasets":
        return content(plugin.load())
    torch.manual_seed(12345)  # whatever came before must not matter
    np.random.seed(12345)
    if kind == "victims":
        tried = plugin.example_corpus() or corpus()
        return published(plugin, plugin.fit(tried.only("train", "dev"), 0), tried)
    return answers(plugin, sides(plugin))


def _answers(folder):
    """Return digest and pins of every plugin's answer, or why it has none."""
    sides, result = Sides(folder), {}
    for kind in KINDS:
        for listing in Registry().listings(kind):
            if not listing.problem:
                try:
                    made = answer(kind, listing.name, folder, sides)
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
                try:
                    registry.load(kind, listing.name)
                except Exception as error:  # fails this plugin's own test
                    seen.append(str(error))
            result[f"{kind}/{listing.name}"] = list(seen)
    return result


if __name__ == "__main__":
    print(json.dumps(_answers(sys.argv[2]) if sys.argv[1] == "answers" else _imports()))
