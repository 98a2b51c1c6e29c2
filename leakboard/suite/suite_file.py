"""Define the keys of a suite's YAML file, and the keys that its entries have besides options of plugins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from leakboard.interfaces import AuxiliaryRegime

Seeds = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
Entries = Annotated[list[str | dict[str, Any]], Field(min_length=1)]
VictimNames = Annotated[list[str], Field(min_length=1)]
REGIMES = get_args(AuxiliaryRegime)
Device = Literal["auto", "cpu", "cuda"]
DEVICES = get_args(Device)
UtilityName = Literal["task", "search"]


class SuiteFile(BaseModel):
    """The content of a suite's YAML file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    description: str = ""
    """The question of the suite, in a line."""
    seeds: Seeds = [0]
    """Seeds of every victim without seeds in its entry."""
    datasets: Entries
    """Entries of datasets: each victim is fitted on each of them, unless the entry has ``victims``."""
    victims: Entries
    """Entries of victims."""
    attacks: Entries | Literal["all"]
    """Attacks on every victim without attacks in its entry; ``all``: every attack on what the victim publishes."""
    threads: Annotated[int, Field(ge=1)] = 1
    """Threads of every cell: part of the identity, since sums in another order give other bits."""
    device: Device = "auto"
    """Where networks compute: ``auto`` is CUDA where torch sees it, else the processor. No part of an identity."""
    timeout: Annotated[float, Field(gt=0)] | None = None
    """Longest time that loading a dataset, fitting a victim, or one attack may take (seconds)."""
    reuse: bool = True
    """Whether ``run`` takes over published results; false computes them again."""
    text_classifier: bool = True
    """Whether to train classifiers on the text itself for every secret, to compare attacks with."""
    gold: str | dict[str, Any] | None = None
    """A victim with word vectors: the words next to each query are compared between every victim and this one."""
    queries: Annotated[list[str], Field(min_length=1)] | None = None
    """Words whose neighbours are compared with the gold model's; null: the eleven of Vu, Tran and Jiang (2019)."""
    utility: UtilityName = "task"
    """What pages weigh against privacy: accuracy of the task, or how well ``search`` finds texts (recall@10)."""
    undefended: list[str] = []
    """Names of victims without a defence. Each victim below one is compared with the last one (`neighbours.csv`)."""
    projected: list[str] = []
    """Names of victims to draw: their vectors of test texts in two dimensions (t-SNE), coloured by a secret."""


ENTRY_KEYS: Mapping[str, str] = {
    "name": "Next to the plugin: the name of its rows; without it, the plugin with the options that differ.",
    "grid": "Among the options of a victim or attack: a list of values for each option that varies. "
    "Each combination becomes one victim or attack.",
    "seeds": "Among the options of a victim: its seeds, instead of the suite's.",
    "attacks": "Among the options of a victim or dataset: entries of attacks, instead of the suite's. Where both have "
    "some, those of the dataset count.",
    "victims": "Among the options of a dataset: names of the suite's victims that are fitted on it, instead of all.",
    "auxiliary": f"Among the options of a dataset: the attacker's texts: {', '.join(REGIMES)} or another dataset.",
}
"""Keys of an entry besides its plugin and the plugin's options."""
