"""Indexing progress, if it takes long: a bar, or a few plain lines where nothing can be redrawn. It
appears when there is something to report, and disappears when the work is done."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

from rich.console import Console
from rich.errors import LiveError
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar

from lamina.apps.cli.terminal_text import print_note

# From this many chunks on, a bar is shown: a few tenths of a second.
LONG = 64
# Where nothing can be redrawn, a line is written at these shares.
SHARES = (0.25, 0.5, 0.75)


Step = TypeVar("Step")


def track(steps: Sequence[Step], description: str, many: int) -> Iterator[Step]:
    """Yield the steps one by one, with a bar on a terminal if there are `many`."""
    is_quiet = len(steps) < many or not sys.stderr.isatty()
    with Bar(transient=True, disable=is_quiet, console=Console(stderr=True)) as progress:
        yield from progress.track(steps, description=description)


def make_bar(console: Console, *figures: ProgressColumn) -> Bar:
    """A bar with a description, its own figures, and the remaining time."""
    columns = (TextColumn("{task.description}"), BarColumn(), *figures, TimeRemainingColumn())
    return Bar(*columns, console=console, transient=True)


class IndexProgress:
    """Called with the number of finished chunks and the total whenever something is indexed.
    `doing` and `what` name other work. With `at_most`, the total is an upper bound: the work may
    end at any time, so no shares are shown."""

    def __init__(
        self,
        console: Console,
        doing: str = "indexing",
        what: str = "chunks",
        *,
        at_most: bool = False,
    ) -> None:
        self._console = console
        self._at_most = at_most
        self._doing, self._what = doing, what
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        # The last share that was written.
        self._share = -1.0

    def __call__(self, done: int, total: int) -> None:
        if done >= total:
            self.stop()
        elif self._console.is_terminal and total >= LONG:
            self._draw(done, total)
        elif not self._console.is_terminal and total >= LONG * 4:
            self._say(done, total)

    def stop(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
        self._bar = self._task = None
        self._share = -1.0

    def _draw(self, done: int, total: int) -> None:
        if self._bar is None or self._task is None:
            self._bar = make_bar(self._console, MofNCompleteColumn())
            self._task = self._bar.add_task(self._doing, total=total)
            # Another live display is on the screen, and only one is possible.
            with suppress(LiveError):
                self._bar.start()
        self._bar.update(self._task, completed=done, total=total)

    def _say(self, done: int, total: int) -> None:
        share = max((share for share in SHARES if done >= share * total), default=0.0)
        is_first = self._share < 0
        if share <= self._share or (self._at_most and not is_first):
            return
        self._share = share
        # The first line always says what the work is, whatever its share.
        up_to = "up to " if self._at_most else ""
        label = f"{self._doing} {up_to}{total:,} {self._what}"
        print_note(self._console, label if is_first else f"{share:.0%}")
