"""Hold a plugin while it is checked: its example, fitted or evaluated once for all checks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from leakboard.conformance import subprocess_check
from leakboard.conformance.promises import NotChecked, expect
from leakboard.conformance.stand_ins import corpus_for
from leakboard.conformance.watched import VictimSides, WatchedAttack, example, run_watched
from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, FittedVictim
from leakboard.suite.form import line_of
from leakboard.suite.registry import BrokenPlugin, Listing, Registry
from leakboard.threats.threat import AttackResult

MISSING_FILE = ("cannot be fetched", "nltk.downloader")
"""Parts of the error messages about a missing public file, or a missing model that a dataset needs."""


class Subject:
    """A plugin that is checked; all its checks share one example."""

    def __init__(self, listing: Listing, group: Group):
        self.listing, self.group = listing, group
        self.name = f"{listing.kind}/{listing.name}"

    @cached_property
    def cls(self) -> Any:
        """The plugin's class."""
        return self.group.registry.load(self.listing.kind, self.listing.name)

    @property
    def line(self) -> str:
        """File and line of the plugin's class; line 1 if the class cannot be loaded."""
        try:
            return line_of(self.cls)
        except BrokenPlugin:
            return f"{Path(self.listing.origin).name}:1"

    def example(self) -> Any:
        """Return a new example of the plugin."""
        return example(self.group.registry, self.listing.kind, self.listing.name, self.group.folder)

    @cached_property
    def plugin(self) -> Any:
        """The example that the checks share."""
        return self.example()

    @cached_property
    def corpus(self) -> Corpus:
        """The corpus that a dataset's example loads, or that a victim's example is fitted on.

        Raises:
            NotChecked: the dataset's public file is not on this computer.
        """
        if self.listing.kind == "victims":
            return corpus_for(self.plugin)
        try:
            loaded: Corpus = self.plugin.load()
        except RequestError as error:
            if not any(part in str(error) for part in MISSING_FILE):
                raise
            raise NotChecked(f"its public file, or a model that it needs, is not on this computer: {error}") from None
        return loaded

    @cached_property
    def fitted(self) -> FittedVictim:
        """A victim's fitted example."""
        fitted: FittedVictim = self.plugin.fit(self.corpus.only("train", "dev"), 0)
        return fitted

    @cached_property
    def attacked(self) -> tuple[WatchedAttack, AttackResult]:
        """An attack's example after its evaluation, and the result."""
        return run_watched(self.plugin, self.group.sides(self.plugin))

    def expect_same_in_subprocess(self, digest: str, part: Any) -> None:
        """Compare with the example's result in another process, where Python salts hashes of text differently.

        Args:
            digest: digest of the result in this process.
            part: the method of the plugin that made the result.

        Raises:
            Broken: the other process gives another result, or none.
        """
        answer = self.group.subprocess_answers[self.name]
        expect(not answer.failure, f"in another process: {answer.failure}", part)
        expect(
            answer.digest == digest, "another process, after another fit, gives another result for the same seed", part
        )


class Group:
    """Plugins that are checked together.

    Args:
        registry: finds the plugins.
        listings: the plugins.
        folder: for files of examples.
        taken: names of LeakBoard's columns, which no threat's column may have.
        environment: variables for the other process.

    Raises:
        RuntimeError: the other process ended early (only from ``subprocess_answers`` and ``subprocess_imports``).
    """

    def __init__(
        self,
        registry: Registry,
        listings: Sequence[Listing],
        folder: Path,
        taken: Collection[str] = (),
        **environment: str,
    ):
        self.registry, self.folder, self.taken, self.environment = registry, folder, taken, environment
        self.subjects = {subject.name: subject for subject in (Subject(listing, self) for listing in listings)}

    @cached_property
    def sides(self) -> VictimSides:
        """The victims that attacks meet."""
        return VictimSides(self.registry, self.folder)

    @cached_property
    def subprocess_answers(self) -> dict[str, subprocess_check.Answer]:
        """The result of every plugin's example in another process."""
        files = self.folder / "subprocess"
        return subprocess_check.ask_answers(self.registry, [*self.subjects], files, self.environment)

    @cached_property
    def subprocess_imports(self) -> tuple[dict[str, list[str]], list[str]]:
        """The side effects of importing each plugin in another process, and the files that are left."""
        return subprocess_check.ask_imports(self.registry, [*self.subjects], self.folder / "home", self.environment)
