"""Plain text that every face writes alike."""

from typing import Any

import msgspec


def format_json(value: Any) -> str:
    """JSON as it is printed and written to files: indented, for people and machines."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def shorten(line: str, width: int) -> str:
    """A line of at most `width` characters."""
    return line if len(line) <= width else f"{line[: width - 1]}…"
