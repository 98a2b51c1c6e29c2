"""Warn of what attacks on own vectors did not try: secrets without a result, and attacks that do not apply."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leakboard.pipeline.records import Record

ATTACKS = ("linking", "presence")
"""Attacks that an encoder adds."""


def not_attacked(secrets: Iterable[str], records: Iterable[Record]) -> list[str]:
    """Return a warning for each secret without a result.

    If no attack has any result, return none: each of them has its own warning.
    """
    records = list(records)
    others = ("failed", "skipped")
    way_out = "" if any(record.status in others for record in records) else "; allowed: attacks: all"
    guessed = {secret for record in records if record.status == "ok" for secret in record.secrets}
    missed = [secret for secret in secrets if secret not in guessed] if guessed else []
    return [f"{secret} was not attacked: no attack that guesses it has a result{way_out}" for secret in missed]


def not_tried(records: Iterable[Record]) -> list[str]:
    """Return a line for each attack on stores that does not apply, with the reason.

    If no attack applies, there is none: the report has the reasons of all.
    """
    records = list(records)
    skipped = [r for r in records if r.status == "skipped"] if any(r.status == "ok" for r in records) else []
    lines = {record.attack.partition("(")[0]: record.reason for record in reversed(skipped)}
    return [f"{name} was not tried: {lines[name]}" for name in ATTACKS if name in lines]
