"""Evaluate an attack on a victim, and record the questions to the fitted attack with its answers."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from leakboard.conformance.promises import expect
from leakboard.conformance.stand_ins import Tabled, corpus_for
from leakboard.conformance.values import digest
from leakboard.interfaces import Attack, Victim
from leakboard.suite.registry import Registry
from leakboard.threats.threat import AttackResult, VictimSide


def make_side(victim: Victim, salt: str = "") -> VictimSide:
    """Fit a victim on its corpus, publish with salted streams, and return its side."""
    from leakboard.pipeline.publications import fit, publish
    from leakboard.randomness import Streams

    corpus = corpus_for(victim)
    streams = Streams(0, corpus.name, type(victim).__name__, "attack", "cell", salt)
    fitted = fit(victim, corpus, streams)
    published = publish(victim, lambda: fitted, corpus, streams)
    return VictimSide(corpus, corpus, victim, lambda: fitted, published, streams)


def example(registry: Registry, kind: str, name: str, folder: Path) -> Any:
    """Return a plugin's example, with a folder for its files."""
    files = Path(folder) / kind / name
    files.mkdir(parents=True, exist_ok=True)
    return registry.load(kind, name).example(files)


class VictimSides:
    """Finds a victim for each attack: the stand-in of this package if the attack applies to it, else a plugin."""

    def __init__(self, registry: Registry, folder: Path):
        self.makers: dict[str, Callable[[], Victim]] = {
            "the stand-in": Tabled,
            "the stand-in with a claim": lambda: Tabled(epsilon=1.0),
        }
        for listing in registry.listings("victims"):
            if not listing.problem:
                self.makers[listing.origin] = functools.partial(example, registry, "victims", listing.name, folder)
        self.victim = functools.cache(lambda name: self.makers[name]())
        self.side = functools.cache(lambda name, salt: make_side(self.victim(name), salt))

    def __call__(self, attack: Attack, salt: str = "") -> VictimSide:
        """Return the side of the first victim that the attack applies to, with salted streams.

        Raises:
            LookupError: the attack applies to no victim; the message has the reasons.
        """
        reasons: dict[str, str] = {}
        for name in self.makers:
            if attack.threat.needs not in self.victim(name).publishes:
                reasons[name] = f"publishes no {attack.threat.needs}"
                continue
            side = self.side(name, salt)
            reasons[name] = attack.threat.why_not_applicable(attack, side.corpus, side.published)
            if not reasons[name]:
                return side
        raise LookupError(f"no victim can be attacked by {type(attack).__name__}: {reasons}")


class WatchedAttack:
    """An attack that records the calls of its fitted object, and checks that these change no inputs."""

    def __init__(self, attack: Attack):
        self._attack = attack
        self.calls: list[tuple[tuple[Any, ...], Any]] = []
        """Arguments and answer of every call of the fitted attack."""
        self.learned: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._attack, name)

    def fit(self, view: Any, seed: int) -> Any:
        """Fit the attack on its view, and return the fitted attack, watched."""
        self._view, self._view_digest = view, digest(view)
        self.learned = self._attack.fit(view, seed)
        if callable(self.learned):
            return functools.partial(self._ask, self.learned)
        functions = {name: part for name, part in _fields(self.learned).items() if callable(part)}
        watched = {name: functools.partial(self._ask, function) for name, function in functions.items()}
        return dataclasses.replace(self.learned, **watched)

    def _ask(self, function: Callable[..., Any], *inputs: Any) -> Any:
        before = digest(inputs)
        first, second = function(*inputs), function(*inputs)
        expect(digest(inputs) == before, "it writes into its inputs", function)
        expect(digest(first) == digest(second), "it gives another answer to the same question", function)
        self.calls.append((inputs, first))
        return first

    def expect_unchanged_view(self) -> None:
        """Raise `Broken` if the attack has written into its view."""
        expect(digest(self._view) == self._view_digest, "it writes into its view", type(self._attack).fit)


def with_other_secrets(side: VictimSide, split: str = "test") -> VictimSide:
    """Return the side of a victim with each secret and label of a split's texts replaced by the next class.

    The publications stay as they are.
    """
    labels = ["label"] if side.corpus.has_labels else []
    names = [*(secret.name for secret in side.corpus.secrets), *labels]
    return _recoded(side, split, names, lambda codes, classes: [(code + 1) % classes for code in codes])


def with_shuffled_dev(side: VictimSide) -> VictimSide:
    """Return the side of a victim with the secrets of the dev texts in another order; publications stay as they are."""
    order = np.random.default_rng(0).permutation(len(side.corpus.splits["dev"]))
    names = [secret.name for secret in side.corpus.secrets]
    return _recoded(side, "dev", names, lambda codes, _: [codes[row] for row in order])


def _recoded(
    side: VictimSide, split: str, names: Iterable[str], change: Callable[[list[int], int], list[int]]
) -> VictimSide:
    """Return the side of a victim with other codes of columns; ``change`` takes the codes and the number of classes."""
    rows = side.corpus.splits[split]
    for name in names:
        feature, codes = rows.features[name], change(list(rows[name]), len(side.corpus.values(name)))
        rows = rows.remove_columns(name).add_column(name, codes).cast_column(name, feature)
    splits = type(side.corpus.splits)({**side.corpus.splits, split: rows})
    return dataclasses.replace(side, corpus=dataclasses.replace(side.corpus, splits=splits))


def run_watched(attack: Attack, side: VictimSide) -> tuple[WatchedAttack, AttackResult]:
    """Evaluate an attack on a victim; return the watched attack and the result.

    Raises:
        Broken: the attack writes into its view or its inputs, or gives another answer to the same question.
    """
    from leakboard.pipeline.attacking import require_expected

    watched = WatchedAttack(attack)
    result = attack.threat.evaluate(watched, side)
    require_expected(attack, result)
    watched.expect_unchanged_view()
    return watched, result


def answers(watched: WatchedAttack, result: AttackResult) -> list[Any]:
    """Return the values that an attack gave: the fields that it learned (no functions), its answers, its result."""
    fields = {} if callable(watched.learned) else _fields(watched.learned)
    learned = {name: part for name, part in fields.items() if not callable(part)}
    return [learned, [answer for _, answer in watched.calls], result]


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
