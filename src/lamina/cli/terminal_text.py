"""Text of others on a terminal.

Law: no note, answer, file name or tool can steer the terminal. What would is shown, escaped.
"""

from rich.cells import cell_len, set_cell_size

from lamina.text.characters import visible as visible


def one_line(text: str, width: int = 0) -> str:
    """`text` on one line of at most `width` columns, if there is one."""
    line = " ".join(visible(text).split())
    if not width or cell_len(line) <= width:
        return line
    return set_cell_size(line, max(1, width - 1)).rstrip() + "…"


def format_bytes(size: int) -> str:
    """A size as people read it."""
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.0f} kB"
