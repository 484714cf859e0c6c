"""Text of others on a terminal.

Laws: no note, answer, file name or tool can steer the terminal; what would is shown, escaped. A
name cannot begin a line of its own.
"""

from rich.cells import cell_len, set_cell_size

from lamina.core.text.characters import visible as visible


def one_line(text: str, width: int = 0) -> str:
    """`text` on one line of at most `width` columns, if there is one."""
    # A text that was cut out of a file may end within a line ending.
    line = " ".join(visible(text.removesuffix("\r")).split())
    if not width or cell_len(line) <= width:
        return line
    return set_cell_size(line, max(1, width - 1)).rstrip() + "…"


def visible_name(name: str) -> str:
    """A name as it is, on one line: what would break it is shown, escaped."""
    return visible(name).replace("\n", "\\x0a")


def format_bytes(size: int) -> str:
    """A size as people read it."""
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.0f} kB"
