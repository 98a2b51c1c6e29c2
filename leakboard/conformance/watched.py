"""An attack at work under observation: the victim that it meets, and what it is asked and answers."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leakboard.conformance.expect import expect
from leakboard.conformance.stand_ins import Tabled, corpus_for
from leakboard.conformance.values import digest
from leakboard.interfaces import Attack, Victim
from leakboard.suite.registry import Registry
from leakboard.threats.threat import AttackResult, VictimSide


def make_side(victim: Victim) -> VictimSide:
    """Return the side of a victim, fitted on its corpus and published."""
    from leakboard.pipeline.publications import fit, publish
    from leakboard.randomness import Streams

    whole = corpus_for(victim)
    streams = Streams(0, whole.name, type(victim).__name__, "attack", "cell")
    fitted = fit(victim, whole, streams)
    return VictimSide(whole, whole, victim, lambda: fitted, publish(victim, fitted, whole, streams), streams)


def example(registry: Registry, kind: str, name: str, folder: Path) -> Any:
    """Return a plugin's small example of itself, whose files are in a folder of its own."""
    own_folder = Path(folder) / kind / name
    own_folder.mkdir(parents=True, exist_ok=True)
    return registry.load(kind, name).example(own_folder)


class Sides:
    """Gives each attack the first victim's side that it applies to: the suite's own, else a plugin's example."""

    def __init__(self, registry: Registry, folder: Path):
        self.makers: dict[str, Callable[[], Victim]] = {
            "the suite's own": Tabled,
            "the suite's own, with a claim": lambda: Tabled(epsilon=1.0),
        }
        for listing in registry.listings("victims"):
            if not listing.problem:
                self.makers[listing.origin] = functools.partial(example, registry, "victims", listing.name, folder)
        self.victim = functools.cache(lambda name: self.makers[name]())
        self.side = functools.cache(lambda name: make_side(self.victim(name)))

    def __call__(self, attack: Attack) -> VictimSide:
        """Return the side.

        Raises:
            LookupError: says of each victim why not.
        """
        reasons: dict[str, str] = {}
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

    def __init__(self, attack: Attack):
        self._attack = attack
        self.calls: list[tuple[tuple[Any, ...], Any]] = []
        """Every call of what was fitted: its arguments and its answer."""
        self.learned: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._attack, name)

    def fit(self, view: Any, seed: int) -> Any:
        """Fit the attack on its view, and return what it learned, watched."""
        before = digest(view)
        self.view_is_whole = lambda: digest(view) == before
        self.learned = self._attack.fit(view, seed)
        return self._watch(self.learned)

    def _watch(self, learned: Any) -> Any:
        if callable(learned):
            return functools.partial(self._ask, learned)
        parts = {field.name: getattr(learned, field.name) for field in dataclasses.fields(learned)}
        watched = {name: functools.partial(self._ask, part) for name, part in parts.items() if callable(part)}
        return dataclasses.replace(learned, **watched)

    def _ask(self, answer: Callable[..., Any], *inputs: Any) -> Any:
        before = digest(inputs)
        first, again = answer(*inputs), answer(*inputs)
        expect(digest(inputs) == before, "it writes into what it is shown", answer)
        expect(digest(first) == digest(again), "it answers the same question otherwise", answer)
        self.calls.append((inputs, first))
        return first


def attacked(attack: Attack, side: VictimSide) -> tuple[Watched, AttackResult]:
    """Return the watched attack, and what it reached.

    Raises:
        Broken: it writes into what it is shown, or answers the same question otherwise.
    """
    watched = Watched(attack)
    result = attack.threat.evaluate(watched, side)
    expect(watched.view_is_whole(), "it writes into its view", type(attack).fit)
    return watched, result


def answers(watched: Watched, result: AttackResult) -> list[Any]:
    """Return what an attack gave as plain values: what it learned, its answers, and its result."""
    return [plain(watched.learned), [answer for _, answer in watched.calls], result]


def plain(learned: Any) -> dict[str, Any]:
    """Return what fitting an attack gave, without its functions."""
    parts = {} if callable(learned) else {f.name: getattr(learned, f.name) for f in dataclasses.fields(learned)}
    return {name: part for name, part in parts.items() if not callable(part)}
