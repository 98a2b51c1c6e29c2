"""Check a plugin's class when a suite is read, before anything is computed with it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, get_args, get_type_hints

from leakboard.errors import nearest
from leakboard.interfaces import Attack, Dataset, FittedVictim, Publication, Victim

BASES: dict[str, type] = {"datasets": Dataset, "victims": Victim, "attacks": Attack}
PUBLICATIONS: tuple[str, ...] = get_args(Publication)
PUBLISHED_BY = {
    "documents": "publish_documents",
    "words": "publish_words",
    "texts": "publish_texts",
    "rewritten_texts": "publish_texts",
    "releases": "mechanism",
}
"""Member of a fitted victim that makes each publication."""


def complaint(cls: type, kind: str) -> str:
    """Return in one line what a plugin's class lacks or has wrong; empty if it is complete."""
    base = BASES[kind]
    if not issubclass(cls, base):
        return f"{cls.__name__} does not derive from {base.__name__}"
    if missing := sorted(getattr(cls, "__abstractmethods__", ())):
        hint = nearest(missing[0], _public(cls))
        return f"{cls.__name__} does not define {missing[0]}, which every {kind[:-1]} has{hint}"
    checks = {"datasets": (), "victims": (_about_publications,), "attacks": (_about_threat,)}[kind]
    return next(filter(None, (check(cls) for check in (_about_needs, *checks))), "")


def _public(cls: type) -> list[str]:
    return [name for name in vars(cls) if not name.startswith("_")]


def _about_needs(cls: Any) -> str:
    if not (cls.threads is None or (type(cls.threads) is int and cls.threads > 0)):
        return f"threads = {cls.threads!r}: allowed is a whole number from 1, or None"
    if not (cls.uses_gpu is None or type(cls.uses_gpu) is bool):
        return f"uses_gpu = {cls.uses_gpu!r}: allowed is True, False or None"
    return ""


def _about_publications(cls: Any) -> str:
    publishes = cls.publishes
    if not isinstance(publishes, tuple) or not publishes or not set(publishes) <= set(PUBLICATIONS):
        wrong = publishes if isinstance(publishes, str) else next((p for p in publishes if p not in PUBLICATIONS), "")
        allowed = f"allowed is a tuple of {', '.join(PUBLICATIONS)}"
        return f"publishes = {publishes!r}: {allowed}{nearest(wrong, PUBLICATIONS)}"
    fitted = _fitted_class(cls)
    for publication in publishes:
        member = PUBLISHED_BY[publication]
        if fitted and getattr(fitted, member) is getattr(FittedVictim, member):
            hint = nearest(member, _public(fitted))
            return f"{fitted.__name__} does not define {member}, but publishes = {publishes!r}{hint}"
    return ""


def _fitted_class(cls: Any) -> Any:
    """Return the class that ``fit`` is annotated to return; None where it is not in the plugin's module."""
    try:
        fitted = get_type_hints(cls.fit).get("return")
    except (NameError, TypeError, AttributeError):  # the annotation is for the type checker alone
        return None
    is_local = isinstance(fitted, type) and issubclass(fitted, FittedVictim) and fitted.__module__ == cls.__module__
    return fitted if is_local else None


def _about_threat(cls: Any) -> str:
    threat = getattr(cls, "threat", None)
    if threat is None:
        return f"{cls.__name__} has no threat: derive it from a threat's base class, as SecretsAttack"
    if isinstance(threat, type):
        return f"threat = {threat.__name__}: a Threat is expected, not its class; write {threat.__name__}()"
    if missing := [name for name in ("name", "needs", "revision", "evaluate") if not hasattr(threat, name)]:
        return f"its threat, {type(threat).__name__}, has no {missing[0]}"
    if threat.needs not in PUBLICATIONS:
        wrong = nearest(threat.needs, PUBLICATIONS)
        return f"its threat needs {threat.needs!r}, which is not one of {', '.join(PUBLICATIONS)}{wrong}"
    return ""


def line_of(part: Any) -> str:
    """Return file and line of a class, function or property, as in ``mine.py:12``; empty where it is unknown."""
    part = inspect.unwrap(getattr(part, "fget", part))
    try:
        return f"{Path(inspect.getsourcefile(part) or '').name}:{inspect.getsourcelines(part)[1]}"
    except (TypeError, OSError):
        return ""
