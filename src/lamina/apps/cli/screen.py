"""Where the chat appears: a terminal that can be redrawn, or two plain streams.

Laws: on a terminal, everything goes to one place, in colour. Otherwise requested output goes to
standard output and messages about it to standard error. Everything is escaped on its way out.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from lamina.apps.cli.terminal_text import visible

_COLOURS = re.compile("\x1b\\[[0-9;]*m")
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


class ScreenLine(str):
    """A line ready for the terminal, with its colours and its width."""

    __slots__ = ()

    @property
    def width(self) -> int:
        return cell_len(_COLOURS.sub("", self))

    @property
    def is_blank(self) -> bool:
        return not _COLOURS.sub("", self).strip()


class SafeRenderable:
    """A renderable without anything that would steer the terminal. Escaping its input is not
    enough: Markdown turns entities into control characters."""

    def __init__(self, inner: ConsoleRenderable) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._inner, options):
            if segment.control:
                continue
            yield Segment(visible(segment.text), segment.style)


class Screen:
    """`out` is for requested output, `err` for messages about it; on a terminal they are the
    same."""

    def __init__(self, out: Console, err: Console | None = None, *, live: bool) -> None:
        self.out = out
        self.err = err or out
        self.live = live

    @property
    def width(self) -> int:
        return self.out.width

    @property
    def height(self) -> int:
        return self.out.height

    def tell(self, text: str, style: str = "dim") -> None:
        """Print a message about what is happening."""
        self.err.print(SafeRenderable(Text(visible(text), style=style)), soft_wrap=not self.live)

    def warn(self, text: str) -> None:
        self.tell(f"! {text}", "yellow")

    def fail(self, text: str) -> None:
        self.tell(f"error: {text}", "red")

    def show(self, what: ConsoleRenderable | str) -> None:
        """Print requested output."""
        shown = Text(visible(what)) if isinstance(what, str) else what
        self.write("".join(f"{line}\n" for line in self.draw(shown)))

    def stream(self, text: str) -> None:
        """Continue a text where nothing can be redrawn."""
        self.write(visible(text))

    def draw(self, what: ConsoleRenderable) -> list[ScreenLine]:
        """Render `what` to lines, without blank lines around them."""
        with self.out.capture() as capture:
            self.out.print(SafeRenderable(what))
        lines = [ScreenLine(line.rstrip()) for line in capture.get().split("\n")]
        while lines and lines[-1].is_blank:
            lines.pop()
        while lines and lines[0].is_blank:
            lines.pop(0)
        return lines

    def write(self, text: str) -> None:
        """Write raw text to the terminal, in one write."""
        self.out.file.write(text)
        self.out.file.flush()


def open_screen() -> Screen:
    """Return the terminal if both input and output are one, else plain streams."""
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            # A terminal with another encoding gets what it can show.
            reconfigure(errors="backslashreplace")
    out = Console(highlight=False, markup=False, emoji=False)
    if sys.stdin.isatty() and out.is_terminal and not out.is_dumb_terminal:
        return Screen(out, live=True)
    return plain_screen()


def open_page() -> Screen:
    """Return standard output, for something that is drawn once."""
    return Screen(Console(highlight=False, markup=False, emoji=False), live=False)


def plain_screen() -> Screen:
    def plain(stderr: bool) -> Console:
        return Console(
            stderr=stderr, color_system=None, force_terminal=False, highlight=False,
            markup=False, emoji=False,
        )  # fmt: skip

    return Screen(plain(False), plain(True), live=False)


@contextmanager
def quiet_keys(screen: Screen) -> Iterator[None]:
    """Keep keys from being echoed into the screen while the block runs; they wait for the next
    prompt. Ctrl-C stays a signal."""
    if not screen.live:
        yield
        return
    try:
        import termios
    except ImportError:  # Windows
        yield
        return
    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)
    quiet = [*before]
    quiet[3] &= ~termios.ECHO
    termios.tcsetattr(handle, termios.TCSANOW, quiet)
    screen.write(HIDE)
    try:
        yield
    finally:
        # The terminal may be gone by now.
        with suppress(OSError, termios.error):
            screen.write(SHOW)
            termios.tcsetattr(handle, termios.TCSANOW, before)


def table_below(
    columns: Sequence[str], rows: Sequence[Sequence[RenderableType]], right: Sequence[str] = ()
) -> list[ConsoleRenderable]:
    """A blank line and a table; empty without rows."""
    table = make_table(*columns, right=right)
    for row in rows:
        table.add_row(*row)
    return [Text(), table] if rows else []


def make_table(*columns: str, right: Iterable[str] = (), **options: Any) -> Table:
    """A table without rules. Columns to be compared are right-aligned and never wrapped."""
    table = Table(**{"box": None, "pad_edge": False, **options})
    for name in columns:
        justify: Literal["left", "right"] = "right" if name in right else "left"
        table.add_column(name, justify=justify, overflow="fold", no_wrap=name in right)
    return table


def can_ask(console: Console) -> bool:
    """Whether a person at a terminal sees what is printed."""
    return (
        console.is_terminal
        and sys.stdin is not None
        and sys.stdin.isatty()
        and (sys.platform == "win32" or os.access("/dev/tty", os.R_OK))
    )
