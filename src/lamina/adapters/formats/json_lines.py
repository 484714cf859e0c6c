"""Reads JSON written by other programs: file lines into objects, and fields that may contain
anything.

Laws: every line that is not blank becomes a record, and one that is not a JSON object also becomes
a problem with its number. A line with several records becomes all of them and one problem: its
pieces joined are the line without the blanks between them, and everything in a truncated record is
part of its text, unless it begins as this file's records do. The results can be stored: no lone
surrogates, no numbers that JSON cannot express, nothing nested deeper than `DEPTH`. Reading a field
never raises: a value of an unexpected type counts as missing, and remains in the result of
`without`.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct

from lamina.adapters.formats.imported_session import ImportProblem
from lamina.core.codec import mend_text

Object = dict[str, Any]

# The largest plausible value of a counter.
MAX_COUNT = 2**53


def text_in(value: Mapping[str, Any], *keys: str) -> str:
    """Return the first of these fields that is a non-empty string; else an empty string."""
    for key in keys:
        field = value.get(key)
        if isinstance(field, str) and field:
            return field
    return ""


def count_in(value: Mapping[str, Any], *keys: str) -> int:
    """Return the first of these fields that is a plausible count; else 0."""
    for key in keys:
        number = value.get(key)
        if isinstance(number, int | float) and not isinstance(number, bool):
            return int(number) if 0 <= number <= MAX_COUNT else 0
    return 0


def object_in(value: Mapping[str, Any], key: str) -> Object:
    field = value.get(key)
    return field if isinstance(field, dict) else {}


def list_in(value: Mapping[str, Any], key: str) -> list[Any]:
    field = value.get(key)
    return field if isinstance(field, list) else []


# Fields that are read as types other than string. A field of any other type was not understood,
# whatever its name.
_ANY = frozenset(("content", "arguments", "input", "output", "data", "display", "image_url", "body",
                  "body_raw", "system", "instructions", "error", "result"))  # fmt: skip
_OBJECTS = frozenset(("message", "usage", "payload", "source", "info", "request", "response",
                      "action", "base_instructions", "state", "function"))  # fmt: skip
_LISTS = frozenset(("messages", "parts", "tools", "patch", "replacement_history", "tool_calls",
                    "toolRequests", "choices"))  # fmt: skip
_FLAGS = frozenset(("is_error", "isError", "success"))


def without(value: Mapping[str, Any], *keys: str) -> Object:
    """Return an object without the fields that were understood."""
    return {key: field for key, field in value.items() if key not in keys or not _fits(key, field)}


def _fits(key: str, value: Any) -> bool:
    if value is None or key in _ANY:
        return True
    if key == "timestamp":
        return parse_moment(value) is not None
    if key in _OBJECTS or key in _LISTS:
        return isinstance(value, dict if key in _OBJECTS else list)
    return isinstance(value, bool if key in _FLAGS else str)


def parse_moment(value: Any) -> float | None:
    """Convert an ISO time or a number of milliseconds or seconds to seconds since 1970."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e15:
        return float(value) / 1000 if value > 1e11 else float(value)
    return None


# Where a record can begin: not where the grammar expects a value, which would be nested.
_START = re.compile(r'(?<![:,\[])(?<![:,\[] )\{\s*"')
_VALUE = re.compile(r'[:,\[]\s*(?=\{\s*"([^"]*)")')
# The beginning of a record whose first quote closes a string truncated before it.
_AFTER_STRING = re.compile(r'\{\s*"$')
# After this many false starts the rest of a line is text, which limits the cost of hostile lines.
_TRIES = 100
# This many names distinguish a record from the objects nested in records.
_HEAD = 3

_decoder = json.JSONDecoder(strict=False)


class LinePiece(Struct, frozen=True):
    text: str
    is_object: bool


def head_of(value: dict[str, object]) -> tuple[str, ...]:
    """Return the first names in an object."""
    return tuple(value)[:_HEAD]


def split_line(line: str, heads: Collection[tuple[str, ...]]) -> list[LinePiece]:
    """Split a line into pieces. `heads` are the first names of whole records in the same file."""
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
    """Return the whole objects at the beginning of a line, and the rest as one piece. The time is
    linear in the line's length, whatever its content."""
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
    """Return where the object that begins at `start` ends (None if it does not), and where parsing
    stopped."""
    if not line.startswith("{", start):
        return None, start
    try:
        _, end = _decoder.raw_decode(line, start)
    except json.JSONDecodeError as error:
        return None, error.pos
    except (RecursionError, ValueError):
        # Nested too deeply, or a number with thousands of digits.
        return None, start
    return end, end


def _behind_blanks(line: str, position: int) -> int:
    while position < len(line) and line[position].isspace():
        position += 1
    return position


def _starts(line: str, torn: int, failure: int) -> Iterator[int]:
    """Yield where the record after a torn one may begin, likely positions first."""
    if failure > torn and line.startswith("{", failure):
        yield failure
    if match := _AFTER_STRING.search(line, torn + 1, failure):
        yield match.start()
    for match in _START.finditer(line, failure + 1):
        yield match.start()


def _stands_alone(line: str, start: int) -> bool:
    """Return whether a whole object begins at `start`, directly followed by the next one or the
    end."""
    end, _ = _object_end(line, start)
    if end is None:
        return False
    behind = _behind_blanks(line, end)
    return behind == len(line) or line[behind] == "{"


def _held_record(line: str, torn: int, end: int, heads: Collection[tuple[str, ...]]) -> int:
    """Return where one of the file's records begins that follows a torn one in a value's position;
    `end` if there is none."""
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


# Deeper than any real file; the encoder's own limit is about nine times that.
DEPTH = 100
_BLANK = b" \t\r\x00"
_REPLACED = "bytes that are not UTF-8, or NUL bytes, were replaced"


class JsonLine(Struct, frozen=True, kw_only=True):
    """One JSON object, its line, and its index among the records of the file."""

    number: int
    index: int
    value: Object

    @property
    def at(self) -> float | None:
        return parse_moment(self.value.get("timestamp"))


class UnreadLine(Struct, frozen=True, kw_only=True):
    """A line, or part of one, that is not a JSON object: its text, or its other value."""

    number: int
    index: int
    data: Any


LineRecord = JsonLine | UnreadLine


class JsonLinesFile(Struct, frozen=True, kw_only=True):
    """A file's records, in order."""

    records: tuple[LineRecord, ...]
    problems: tuple[ImportProblem, ...]

    @property
    def lines(self) -> tuple[JsonLine, ...]:
        return tuple(record for record in self.records if isinstance(record, JsonLine))


def read_lines(data: bytes) -> JsonLinesFile:
    """Read the records in a JSON Lines file, whatever its state."""
    data, encoding_note = _as_utf8(data)
    raw_lines = data.split(b"\n")
    lines = [raw.strip(_BLANK) for raw in raw_lines]
    values = [_parse_line(line) if line else None for line in lines]
    reader = _Reader(values)
    if encoding_note:
        reader.report(None, "encoding", encoding_note)
    for number, (raw, line, value) in enumerate(zip(raw_lines, lines, values, strict=True), 1):
        if isinstance(value, ValueError):
            reader.add_pieces(number, line, str(value), is_last=number == len(lines))
        elif value is not None:
            reader.add(number, *value)
        elif b"\x00" in raw:
            reader.report(number, "nul_bytes", f"{raw.count(0)} NUL bytes and nothing else")
    return JsonLinesFile(records=tuple(reader.records), problems=tuple(reader.problems))


def _parse_line(line: bytes) -> tuple[Any, tuple[str, ...]] | ValueError:
    try:
        return parse_json(line)
    except ValueError as error:
        return error


class _Reader:
    """Collects records and problems line by line."""

    def __init__(self, values: Sequence[tuple[Any, tuple[str, ...]] | ValueError | None]) -> None:
        self.records: list[LineRecord] = []
        self.problems: list[ImportProblem] = []
        self._values = values

    @cached_property
    def _heads(self) -> set[tuple[str, ...]]:
        """The beginnings of whole records in this file."""
        values = (value[0] for value in self._values if isinstance(value, tuple))
        return {head_of(value) for value in values if isinstance(value, dict)}

    def report(self, number: int | None, what: str, detail: str) -> None:
        self.problems.append(ImportProblem(line=number, what=what, detail=detail))

    def add(self, number: int, value: Any, notes: tuple[str, ...]) -> None:
        for note in notes:
            self.report(number, "mended", note)
        if isinstance(value, dict):
            self.records.append(JsonLine(number=number, index=len(self.records), value=value))
            return
        detail = f"a {type(value).__name__} stands where an object should"
        self.report(number, "not_an_object", detail)
        self.records.append(UnreadLine(number=number, index=len(self.records), data=value))

    def add_pieces(self, number: int, line: bytes, error: str, *, is_last: bool) -> None:
        """Add the pieces of a line that is not one JSON value: joined records, whole and torn, or
        unreadable text."""
        text = readable_text(line)
        pieces = split_line(text, self._heads)
        whole_count = sum(piece.is_object for piece in pieces)
        if not whole_count or len(pieces) == 1:
            self._add_text(number, text, error, is_torn=is_last)
            return
        torn_count = len(pieces) - whole_count
        detail = f"{whole_count} records on one line; all of them were read"
        if torn_count:
            detail = (
                f"{whole_count} whole and {torn_count} torn on one line; what is whole was read"
            )
        self.report(number, "glued", detail)
        if text.encode("utf-8") != line:
            self.report(number, "mended", _REPLACED)
        for piece in pieces:
            try:
                if not piece.is_object:
                    raise ValueError("not a whole record; kept as its text")
                self.add(number, *parse_json(piece.text.encode("utf-8")))
            except ValueError as piece_error:
                is_torn = is_last and piece is pieces[-1]
                self._add_text(number, piece.text, str(piece_error), is_torn=is_torn)

    def _add_text(self, number: int, text: str, error: str, *, is_torn: bool) -> None:
        detail = "the file ends in the middle of it" if is_torn else error
        self.report(number, "torn" if is_torn else "unreadable", detail)
        self.records.append(UnreadLine(number=number, index=len(self.records), data=text))


def _as_utf8(data: bytes) -> tuple[bytes, str]:
    if data.startswith(b"\xef\xbb\xbf"):
        return data[3:], ""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):  # what PowerShell's `>` writes
        return data.decode("utf-16", "replace").encode("utf-8", "replace"), "read as UTF-16"
    return data, ""


def readable_text(piece: bytes) -> str:
    return piece.replace(b"\x00", b"").decode("utf-8", "replace")


def parse_json(piece: bytes) -> tuple[Any, tuple[str, ...]]:
    """Parse a JSON value so that it can be stored, and return the repairs made.

    Raises:
        ValueError: it is not JSON, or nested too deep.
    """
    try:
        value = msgspec.json.decode(piece)
        if piece.count(b"[") + piece.count(b"{") > DEPTH:
            _check_depth(value)
        return value, ()
    except RecursionError:
        raise ValueError(f"nested deeper than {DEPTH} levels") from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        pass  # not for a strict reader
    notes: list[str] = []
    text = readable_text(piece)
    if text.encode("utf-8") != piece:
        notes.append(_REPLACED)
    try:
        # Two readers in one: `strict` would refuse raw control characters inside strings.
        value = json.loads(text, strict=False, parse_constant=str)
        _check_depth(value)
    except RecursionError:
        raise ValueError(f"nested deeper than {DEPTH} levels") from None
    return _clean(value, notes), tuple(dict.fromkeys(notes))


def parse_text(text: str) -> Any:
    """Parse a string as JSON; None if it is not JSON."""
    try:
        return parse_json(text.encode("utf-8", "replace"))[0]
    except ValueError:
        return None


def _check_depth(value: Any) -> None:
    level, depth = [value], 0
    while level:
        if depth > DEPTH:
            raise ValueError(f"nested deeper than {DEPTH} levels")
        inner: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                inner.extend(node.values())
            elif isinstance(node, list):
                inner.extend(node)
        level, depth = inner, depth + 1


def _clean(value: Any, notes: list[str]) -> Any:
    match value:
        case str():
            text = mend_text(value)
            if text is not value and text != value:
                notes.append("lone surrogates were replaced")
            return text
        case dict():
            return {_clean(key, notes): _clean(inner, notes) for key, inner in value.items()}
        case list():
            return [_clean(inner, notes) for inner in value]
        case float() if not isfinite(value):
            notes.append("a number out of range became text")
            return str(value)
        case _:
            return value


def first_moment(lines: Sequence[JsonLine]) -> float:
    """Return the time of the first line that has one."""
    return next((line.at for line in lines if line.at is not None), 0.0)
