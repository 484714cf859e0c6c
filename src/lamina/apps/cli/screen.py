"""Where the chat is shown: a terminal that can be redrawn, or two plain streams.

Laws: on a terminal all goes to one place, in colours. Without one, standard output holds what was
asked for and standard error what is said about it. Everything is escaped on its way out.
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
    """A line that is ready for the terminal, with its colours; it knows how wide it is."""

    __slots__ = ()

    @property
    def width(self) -> int:
        return cell_len(_COLOURS.sub("", self))

    @property
    def is_blank(self) -> bool:
        return not _COLOURS.sub("", self).strip()


class SafeRenderable:
    """Anything that can be drawn, without what would steer the terminal. Escaping what goes in is
    not enough: Markdown makes control characters of entities."""

    def __init__(self, inner: ConsoleRenderable) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._inner, options):
            if segment.control:
                continue
            yield Segment(visible(segment.text), segment.style)


class Screen:
    """`out` is what was asked for, `err` what is said about it; on a terminal both are one."""

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
        """Says something about what happens."""
        self.err.print(SafeRenderable(Text(visible(text), style=style)), soft_wrap=not self.live)

    def warn(self, text: str) -> None:
        self.tell(f"! {text}", "yellow")

    def fail(self, text: str) -> None:
        self.tell(f"error: {text}", "red")

    def show(self, what: ConsoleRenderable | str) -> None:
        """Shows what was asked for."""
        shown = Text(visible(what)) if isinstance(what, str) else what
        self.write("".join(f"{line}\n" for line in self.draw(shown)))

    def stream(self, text: str) -> None:
        """Goes on with a text where nothing can be redrawn."""
        self.write(visible(text))

    def draw(self, what: ConsoleRenderable) -> list[ScreenLine]:
        """The lines that `what` would be, without blank ones around them."""
        with self.out.capture() as capture:
            self.out.print(SafeRenderable(what))
        lines = [ScreenLine(line.rstrip()) for line in capture.get().split("\n")]
        while lines and lines[-1].is_blank:
            lines.pop()
        while lines and lines[0].is_blank:
            lines.pop(0)
        return lines

    def write(self, text: str) -> None:
        """Sends text to the terminal as it is, in one write."""
        self.out.file.write(text)
        self.out.file.flush()


def open_screen() -> Screen:
    """The terminal, if there is one on both sides; else plain streams."""
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            # A terminal of another encoding gets what it can show.
            reconfigure(errors="backslashreplace")
    out = Console(highlight=False, markup=False, emoji=False)
    if sys.stdin.isatty() and out.is_terminal and not out.is_dumb_terminal:
        return Screen(out, live=True)
    return plain_screen()


def open_page() -> Screen:
    """Standard output for something that is drawn once."""
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
    """While the block runs, keys are not echoed into what is drawn; they wait for the next prompt.
    Ctrl-C stays a signal."""
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
    """A blank line and a table; nothing without rows."""
    table = make_table(*columns, right=right)
    for row in rows:
        table.add_row(*row)
    return [Text(), table] if rows else []


def make_table(*columns: str, right: Iterable[str] = (), **options: Any) -> Table:
    """A table without lines. What must be compared stands at the right and is never folded."""
    table = Table(**{"box": None, "pad_edge": False, **options})
    for name in columns:
        justify: Literal["left", "right"] = "right" if name in right else "left"
        table.add_column(name, justify=justify, overflow="fold", no_wrap=name in right)
    return table


def can_ask(console: Console) -> bool:
    """Whether there is a person at a terminal who sees what is printed."""
    return (
        console.is_terminal
        and sys.stdin is not None
        and sys.stdin.isatty()
        and (sys.platform == "win32" or os.access("/dev/tty", os.R_OK))
    )
