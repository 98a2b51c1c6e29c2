"""Why a victim cannot be fitted on a corpus, or an attack cannot meet it: what both say, and a lack of texts."""

from __future__ import annotations

from leakboard.interfaces import Attack, Corpus, Victim
from leakboard.threats.publications import Publications

NO_TEXTS = "the corpus has no texts"


def why_no_fit(victim: Victim, corpus: Corpus) -> str:
    """Return why a victim cannot be fitted on a corpus, or an empty string."""
    if victim.encodes_texts and not corpus.has_texts:
        return NO_TEXTS
    return victim.why_not_applicable(corpus)


def why_no_attack(attack: Attack, corpus: Corpus, auxiliary: Corpus, published: Publications | None) -> str:
    """Return why an attack cannot meet a corpus, or what was published of it, or an empty string.

    Args:
        attack: the attacker.
        corpus: the victim's.
        auxiliary: the attacker's own.
        published: None before the victim is fitted, when only the corpora are checked.
    """
    if attack.threat.reads_texts and not (corpus.has_texts and auxiliary.has_texts):
        return NO_TEXTS
    reason: str = attack.threat.why_not_applicable(attack, corpus, published)
    return reason
