"""What is checked: a plugin with its example, and what the checks of several plugins share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from leakboard.conformance import elsewhere
from leakboard.conformance.expect import NotChecked
from leakboard.conformance.stand_ins import corpus_for
from leakboard.conformance.watched import Sides, Watched, attacked, example
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, FittedVictim
from leakboard.suite.form import line_of
from leakboard.suite.registry import BrokenPlugin, Listing, Registry
from leakboard.threats.threat import AttackResult

UNREACHABLE = ("cannot be fetched", "nltk.downloader")
"""What a dataset says whose public file, or a model that it needs, is not here."""


class Subject:
    """A plugin that is checked; its example is fitted, loaded or evaluated once for all of its checks."""

    def __init__(self, listing: Listing, group: Group):
        self.listing, self.group = listing, group
        self.name = f"{listing.kind}/{listing.name}"

    @cached_property
    def cls(self) -> Any:
        """Its class."""
        return self.group.registry.load(self.listing.kind, self.listing.name)

    @property
    def line(self) -> str:
        """File and line of its class, or of the file where it cannot be loaded."""
        try:
            return line_of(self.cls)
        except BrokenPlugin:
            return f"{Path(self.listing.origin).name}:1"

    def example(self) -> Any:
        """Return a new example of itself."""
        return example(self.group.registry, self.listing.kind, self.listing.name, self.group.folder)

    @cached_property
    def plugin(self) -> Any:
        """The example that the checks share."""
        return self.example()

    @cached_property
    def corpus(self) -> Corpus:
        """What a dataset's example loads, or what a victim's is fitted on.

        Raises:
            NotChecked: the dataset's public file is not here.
        """
        if self.listing.kind == "victims":
            return corpus_for(self.plugin)
        try:
            loaded: Corpus = self.plugin.load()
        except RequestError as error:
            if not any(reason in str(error) for reason in UNREACHABLE):
                raise
            raise NotChecked(f"its public file, or a model that it needs, is not here: {error}") from None
        return loaded

    @cached_property
    def fitted(self) -> FittedVictim:
        """A victim's fitted example."""
        fitted: FittedVictim = self.plugin.fit(self.corpus.only("train", "dev"), 0)
        return fitted

    @cached_property
    def attacked(self) -> tuple[Watched, AttackResult]:
        """An attack's example at work, and what it reached."""
        return attacked(self.plugin, self.group.sides(self.plugin))


class Group:
    """Plugins that are checked together.

    Raises:
        RuntimeError: of `elsewhere` and `imported`: the other process ended early.
    """

    def __init__(self, registry: Registry, listings: Sequence[Listing], folder: Path, **surroundings: str):
        self.registry, self.folder, self.surroundings = registry, folder, surroundings
        self.subjects = {subject.name: subject for subject in (Subject(listing, self) for listing in listings)}

    @cached_property
    def sides(self) -> Sides:
        """The victims that attacks meet."""
        return Sides(self.registry, self.folder)

    @cached_property
    def elsewhere(self) -> dict[str, elsewhere.Answer]:
        """What every plugin makes of its example in another process."""
        files = self.folder / "elsewhere"
        return elsewhere.ask_answers(self.registry, [*self.subjects], files, self.surroundings)

    @cached_property
    def imported(self) -> tuple[dict[str, list[str]], list[str]]:
        """What importing each plugin does in another process, and the files that this leaves."""
        return elsewhere.ask_imports(self.registry, [*self.subjects], self.folder / "home", self.surroundings)
