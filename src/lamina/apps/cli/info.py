"""`lamina info`: what is installed, and where everything is.

Law: a path and a command are never folded, so that they can be copied; all else fits 80 columns.
"""

import textwrap
from collections.abc import Iterator, Sequence

from lamina.apps.cli.installation import Installation
from lamina.apps.cli.terminal_text import format_bytes, visible

WIDTH = 80
GAP = 2


def render_info(info: Installation) -> str:
    return visible("\n".join(_lines(info)))


def _lines(info: Installation) -> Iterator[str]:
    yield _fold(f"lamina {info.lamina}, Python {info.python}, {info.platform}")
    yield f"installed in {info.environment}"
    yield ""
    width = max(len(place.what) for place in info.places)
    for place in info.places:
        size = "-" if place.bytes is None else format_bytes(place.bytes)
        yield f"{place.what:<{width}}  {size:>9}  {place.path}"
    yield ""
    sessions, workspaces = _count(info.sessions, "session"), _count(info.workspaces, "workspace")
    yield f"{sessions} in {workspaces}, store: {info.store}"
    yield from (f"! not counted: {problem}" for problem in info.problems)
    yield f"default target: {info.target}"
    yield _fold(f"keys in the environment: {', '.join(info.keys) or 'none'}", indent=2)
    yield ""
    width = max(len(extra.extra) for extra in info.extras) + GAP
    for extra in info.extras:
        state = f"missing {', '.join(extra.missing)}" if extra.missing else "here"
        yield _fold(f"{extra.extra:<{width}}{', '.join(extra.uses)}: {state}", indent=width)
        if extra.hint:
            yield f"{'':<{width}}{extra.hint}"
    if info.packages:
        yield "\npackages:"
        yield from _arrange([f"{name} {number}" for name, number in info.packages.items()])


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _fold(line: str, indent: int = 0) -> str:
    return textwrap.fill(
        line, WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False, break_long_words=False,
    )  # fmt: skip


def _arrange(cells: Sequence[str]) -> Iterator[str]:
    """The cells in columns, to be read downwards."""
    width = max(map(len, cells)) + GAP
    columns = max(1, WIDTH // width)
    rows = -(-len(cells) // columns)
    for row in range(rows):
        yield "".join(f"  {cell:<{width - GAP}}" for cell in cells[row::rows]).rstrip()
