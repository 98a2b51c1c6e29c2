"""What a suite's YAML may say: its keys, and the keys of its entries besides plugins and their options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from leakboard.interfaces import AuxiliaryRegime

Seeds = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
Entries = Annotated[list[str | dict[str, Any]], Field(min_length=1)]
REGIMES = get_args(AuxiliaryRegime)
Device = Literal["auto", "cpu", "cuda"]
DEVICES = get_args(Device)


class SuiteFile(BaseModel):
    """What a suite's YAML may say."""

    model_config = ConfigDict(extra="forbid", strict=True)

    description: str = ""
    """What the suite asks, in a line."""
    seeds: Seeds = [0]
    """Of every victim whose entry gives none of its own."""
    datasets: Entries
    """Entries of datasets: each victim is fitted on each of them."""
    victims: Entries
    """Entries of victims."""
    attacks: Entries | Literal["all"]
    """On every victim whose entry gives none of its own; ``all``: whatever attacks what it publishes."""
    threads: Annotated[int, Field(ge=1)] = 1
    """Threads of every cell: part of the suite, since sums in another order give other bits."""
    device: Device = "auto"
    """Where networks compute: ``auto`` is CUDA where torch sees it, else the processor. No part of an identity."""
    timeout: Annotated[float, Field(gt=0)] | None = None
    """Longest time that loading a dataset, fitting a victim, or one attack may take (seconds)."""
    reuse: bool = True
    """Whether ``run`` takes over what is published already; false for a suite that is there to be computed."""
    text_classifier: bool = True
    """Whether to train classifiers on the text itself for every secret, to compare attacks with."""
    gold: str | dict[str, Any] | None = None
    """A victim with word vectors: how near every victim's neighbours of words come to its own is measured."""
    queries: Annotated[list[str], Field(min_length=1)] | None = None
    """The words whose neighbours are compared with the gold model's; null: the eleven of Vu, Tran and Jiang (2019)."""
    projected: list[str] = []
    """Names of victims whose vectors of test texts are drawn in two dimensions (t-SNE), coloured by a secret."""


ENTRY_KEYS: Mapping[str, str] = {
    "name": "Beside the plugin: what its rows are called; otherwise the plugin with the options that tell it apart.",
    "grid": "Among the options of a victim or attack: options with a list of values each; every combination is one.",
    "seeds": "Among the options of a victim: its own seeds, instead of the suite's.",
    "attacks": "Among the options of a victim: entries of its own attacks, instead of the suite's.",
    "auxiliary": f"Among the options of a dataset: the attacker's texts: {', '.join(REGIMES)} or another dataset.",
}
"""What an entry may say besides its plugin and the plugin's options."""
