"""Show progress by cell and stage, live on a terminal and a line a stage elsewhere, with an estimate of the rest."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


class RunProgress:
    """Shows the cells that run, the stage of each, and about how long the rest takes."""

    def __init__(self, console: Console):
        self.console = console

    def begin(self, kinds: dict[str, str], processes: int) -> RunProgress:
        """Prepare the display.

        Args:
            kinds: kind of each task (its plugin), by the task's name: tasks of a kind take about equally long.
            processes: number of tasks of one thread that may run at once.
        """
        self.kinds, self.processes = kinds, processes
        self.left = Counter(kinds.values())
        self.done = 0
        self.seconds: dict[str, tuple[float, int]] = {}
        self.live = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[stage]}", markup=False),
            TimeElapsedColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
            transient=True,
        )
        self.total = self.live.add_task("run", total=len(kinds), stage="")
        self.lines: dict[str, int] = {}
        self.has_rivals = False
        return self

    def __enter__(self) -> RunProgress:
        self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def listen(self, name: str, event: str, text: str) -> None:
        """Take in an event of a task."""
        if event == "warning":
            self.print(f"warning: {name}: {text}")
        elif event == "reserved" and not self.has_rivals:
            self.has_rivals = True
            self.print(f"another run in this folder ({text}) shares the work")
        elif event == "start" and name not in self.lines:
            self.lines[name] = self.live.add_task(f"  {name}", total=None, stage="")
        elif name in self.lines:
            self.live.update(self.lines[name], stage=text)  # type: ignore[arg-type]

    def end(self, name: str, seconds: float, failure: str, skipped: str = "") -> None:
        """Count a task as ended, and say so, or why it failed or was skipped."""
        kind = self.kinds[name]
        self.left[kind] -= 1
        self.done += 1
        if not failure and not skipped and seconds:
            total, ended = self.seconds.get(kind, (0.0, 0))
            self.seconds[kind] = total + seconds, ended + 1
        if name in self.lines:
            self.live.remove_task(self.lines.pop(name))  # type: ignore[arg-type]
        self.live.update(self.total, advance=1, stage=self.estimate())
        count, rest = f"[{self.done}/{len(self.kinds)}] ", self.estimate()
        if failure or skipped:
            self.print(f"{count}{name}: {f'failed: {failure}' if failure else f'skipped: {skipped}'}{rest}")
        else:
            rest = f": done in {seconds:.1f} s{rest}"
            self.print(f"{count}{_shortened(name, self.console.width - len(count + rest))}{rest}")

    def estimate(self) -> str:
        """Return about how long the remaining tasks take, from finished tasks of the same kind."""
        if self.done == len(self.kinds) or not self.seconds:
            return ""
        overall = sum(total for total, _ in self.seconds.values()) / sum(count for _, count in self.seconds.values())
        means = {kind: total / count for kind, (total, count) in self.seconds.items()}
        left = sum(means.get(kind, overall) * count for kind, count in self.left.items()) / self.processes
        return f", about {left / 60:.0f} min left" if left >= 90 else f", about {left:.0f} s left"

    def print(self, line: str) -> None:
        """Print a line above the live display."""
        self.console.print(line, markup=False, highlight=False)


def _shortened(name: str, width: int) -> str:
    """Return a name without its middle where it is longer than ``width`` characters."""
    left = max(width, 9) // 2
    return name if len(name) <= width else f"{name[:left]}…{name[1 + left - max(width, 9) :]}"
