"""Text on a terminal: text by others, made harmless, and lines wrapped to the terminal's width.

Laws: no note, answer, file name or tool can steer the terminal; control characters are shown,
escaped. A name cannot start a new line. Lines break between words, and text in a column continues
in that column. Nothing is cut, and a path in a sentence is never broken, so that it can be copied.
Without a terminal a line stays a line.
"""

import os
import re
import sys
from typing import IO, TYPE_CHECKING

import typer
from rich.cells import cell_len, set_cell_size

from lamina.core.text.characters import visible as visible

if TYPE_CHECKING:
    from rich.console import Console


def one_line(text: str, width: int = 0) -> str:
    """Return `text` on one line, of at most `width` columns if that is not 0."""
    # A text cut from a file may end within a line ending.
    line = " ".join(visible(text.removesuffix("\r")).split())
    if not width or cell_len(line) <= width:
        return line
    return set_cell_size(line, max(1, width - 1)).rstrip() + "…"


def visible_name(name: str) -> str:
    """Return a name on one line, with line breaks and control characters escaped."""
    return visible(name).replace("\n", "\\x0a")


def format_bytes(size: int) -> str:
    """Return a size in readable units."""
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.0f} kB"


# Two or more spaces precede a column.
_COLUMN = re.compile(r" {2,}(?=\S)")
_WORD = re.compile(r"\s*\S+")
_INDENT = re.compile(r" *")
# The indentation of a sentence's further lines.
HANG = 2
# From this indentation on, text is a column, whose long words are broken.
SENTENCE = 4
FENCE = "```"


def print_text(text: str, *, err: bool = False) -> None:
    """Print a text for people."""
    width = terminal_width(sys.stderr if err else None)
    typer.echo(wrap_text(text, width) if width else text, err=err)


def print_note(console: "Console", text: str, style: str = "") -> None:
    """Print one line to a console, wrapped if necessary."""
    shown = fit_text(console, text)
    console.print(shown, style=style, markup=False, highlight=False, soft_wrap=True)


def print_labelled(console: "Console", label: str, text: str, style: str) -> None:
    """Print a line that begins with a styled label."""
    from rich.text import Text

    shown = Text(fit_text(console, f"{label}{text}"))
    shown.stylize(style, 0, len(label))
    console.print(shown, soft_wrap=True, highlight=False)


def fit_text(console: "Console", text: str) -> str:
    """Wrap a text to a console's width, if that is a terminal."""
    return wrap_text(text, console.width) if console.is_terminal else text


def wrap_text(text: str, width: int) -> str:
    """Wrap a text to `width` columns, except between fences: that text was written by others."""
    lines: list[str] = []
    is_fenced = False
    for line in text.split("\n"):
        is_fence = line.startswith(FENCE)
        is_fenced ^= is_fence
        lines += [line] if is_fence or is_fenced else wrap_line(line, width)
    return "\n".join(lines)


def wrap_line(line: str, width: int) -> list[str]:
    """Wrap a line to lines of at most `width` columns."""
    from rich.cells import cell_len, chop_cells

    line = line.expandtabs()
    if cell_len(line) <= width:
        return [line]
    hang = _hang(line, width)
    lines: list[str] = []
    current = ""
    for word in _WORD.findall(line):
        is_broken = hang > SENTENCE and cell_len(word.lstrip()) > width - hang
        if current.strip() and not is_broken and cell_len(current + word) > width:
            lines.append(current)
            current = " " * hang + word.lstrip()
        else:
            current += word
        if is_broken and cell_len(current) > width:
            first, *rest = chop_cells(current, width)
            parts = chop_cells("".join(rest), width - hang)
            *done, current = [first, *(" " * hang + part for part in parts)]
            lines += done
    return [*lines, current]


def _hang(line: str, width: int) -> int:
    """The indentation of a line's continuation: its last column, if that leaves room for text."""
    from rich.cells import cell_len

    indent = _INDENT.match(line)
    start = indent.end() if indent else 0
    columns = [cell_len(line[: gap.end()]) for gap in _COLUMN.finditer(line, start)]
    return max((column for column in columns if column <= width // 2), default=start + HANG)


def terminal_width(stream: IO[str] | None = None) -> int:
    """Return the width of a stream's terminal, by default standard output's; 0 without one."""
    stream = sys.stdout if stream is None else stream
    if not stream.isatty():
        return 0
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdigit() and int(wanted):
        return int(wanted)
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 0
