"""Text of others on a terminal.

Law: no note, answer, file name or tool can steer the terminal. What would is shown, escaped.
"""

import re

from rich.cells import cell_len, set_cell_size

# Control characters but line break and tab; marks that turn the direction of what follows; halves
# of characters, which no terminal can be sent.
_STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """`text` with what steers a terminal written as an escape."""
    return _STEERS.sub(_escape, text.replace("\r\n", "\n"))


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def one_line(text: str, width: int = 0) -> str:
    """`text` on one line of at most `width` columns, if there is one."""
    line = " ".join(visible(text).split())
    if not width or cell_len(line) <= width:
        return line
    return set_cell_size(line, max(1, width - 1)).rstrip() + "…"


def format_bytes(size: int) -> str:
    """A size as people read it."""
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.0f} kB"
