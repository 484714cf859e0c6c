"""A line that is not one JSON value, in pieces: whole objects, and text between them.

A writer that loses a line end glues its next record to the one before, which may itself be cut off.
Laws: the pieces, put together, are the line less the blanks between them. Whatever a cut-off record
holds is part of its text, also a whole object, unless that begins as the records of the file do.
"""

import json
import re
from collections.abc import Collection, Iterator
from itertools import islice

from msgspec import Struct

# Where a record can begin: not where the grammar expects a value, for there it would be held.
_START = re.compile(r'(?<![:,\[])(?<![:,\[] )\{\s*"')
_VALUE = re.compile(r'[:,\[]\s*(?=\{\s*"([^"]*)")')
# The beginning of a record whose first quote closes a string that was cut off before it.
_AFTER_STRING = re.compile(r'\{\s*"$')
# After so many false starts the rest of a line is text: a hostile one costs no more.
_TRIES = 100
# So many names tell a record from what records hold.
_HEAD = 3

_decoder = json.JSONDecoder(strict=False)


class LinePiece(Struct, frozen=True):
    text: str
    is_object: bool


def head_of(value: dict[str, object]) -> tuple[str, ...]:
    """The names that an object begins with."""
    return tuple(value)[:_HEAD]


def split_line(line: str, heads: Collection[tuple[str, ...]]) -> list[LinePiece]:
    """The pieces of a line. `heads` are those of whole records of the same file."""
    pieces: list[LinePiece] = []
    position = 0
    while position < len(line):
        end, failure = _object_end(line, position)
        if end is None:
            starts = islice(_starts(line, position, failure), _TRIES)
            end = next((start for start in starts if _stands_alone(line, start)), len(line))
            held = _held_record(line, position, end, heads)
            pieces.append(LinePiece(line[position:held].rstrip(), is_object=False))
            position = held
        if position < end:
            pieces.append(LinePiece(line[position:end].rstrip(), is_object=True))
        position = _behind_blanks(line, end)
    return pieces


def leading_objects(line: str, most: int | None = None) -> list[LinePiece]:
    """The whole objects that a line begins with, and the rest of it as one piece; this takes time
    that grows with the line, whatever it holds."""
    pieces: list[LinePiece] = []
    position = _behind_blanks(line, 0)
    while position < len(line) and (most is None or len(pieces) < most):
        end, _ = _object_end(line, position)
        if end is None:
            pieces.append(LinePiece(line[position:], is_object=False))
            break
        pieces.append(LinePiece(line[position:end], is_object=True))
        position = _behind_blanks(line, end)
    return pieces


def _object_end(line: str, start: int) -> tuple[int | None, int]:
    """Where the object that begins at `start` ends; None if none does, and where that shows."""
    if not line.startswith("{", start):
        return None, start
    try:
        _, end = _decoder.raw_decode(line, start)
    except json.JSONDecodeError as error:
        return None, error.pos
    except (RecursionError, ValueError):
        # Nested too deep, or a number of thousands of digits.
        return None, start
    return end, end


def _behind_blanks(line: str, position: int) -> int:
    while position < len(line) and line[position].isspace():
        position += 1
    return position


def _starts(line: str, torn: int, failure: int) -> Iterator[int]:
    """Where the record behind a torn one may begin, likely places first."""
    if failure > torn and line.startswith("{", failure):
        yield failure
    if match := _AFTER_STRING.search(line, torn + 1, failure):
        yield match.start()
    for match in _START.finditer(line, failure + 1):
        yield match.start()


def _stands_alone(line: str, start: int) -> bool:
    """Whether a whole object begins at `start`, with nothing behind it but the next one."""
    end, _ = _object_end(line, start)
    if end is None:
        return False
    behind = _behind_blanks(line, end)
    return behind == len(line) or line[behind] == "{"


def _held_record(line: str, torn: int, end: int, heads: Collection[tuple[str, ...]]) -> int:
    """Where a record of the file begins that stands at the end of a torn one in the place of a
    value; `end`, if none does."""
    text = line[torn:end].rstrip()
    if not text.endswith("}"):
        return end
    first_names = {head[0] for head in heads if head}
    starts = (match.end() for match in _VALUE.finditer(text) if match[1] in first_names)
    for start in islice(starts, _TRIES):
        held_end, _ = _object_end(text, start)
        if held_end == len(text) and head_of(json.loads(text[start:], strict=False)) in heads:
            return torn + start
    return end
