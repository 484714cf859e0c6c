"""Bytes of a file to JSON objects, line by line.

Laws: every line that is not blank becomes a record, and one that is not a JSON object also becomes
a problem with its number. A line of several records becomes all of them, and a problem. What comes
out can be stored: no lone surrogates, no numbers that JSON has no word for, nothing nested deeper
than `DEPTH`.
"""

import json
from collections.abc import Sequence
from functools import cached_property
from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct

from lamina.adapters.formats.imported_session import ImportProblem
from lamina.adapters.formats.json_fields import Object, parse_moment
from lamina.adapters.formats.line_pieces import head_of, split_line
from lamina.core.codec import mend_text

# Deeper than any real file; the encoder's own limit is about nine times that.
DEPTH = 100
_BLANK = b" \t\r\x00"
_REPLACED = "bytes that are not UTF-8, or NUL bytes, were replaced"


class JsonLine(Struct, frozen=True, kw_only=True):
    """One JSON object, the line it stands on and its place among the records of the file."""

    number: int
    index: int
    value: Object

    @property
    def at(self) -> float | None:
        return parse_moment(self.value.get("timestamp"))


class UnreadLine(Struct, frozen=True, kw_only=True):
    """A line, or a part of one, that is not a JSON object: its text, or the value it holds
    instead."""

    number: int
    index: int
    data: Any


LineRecord = JsonLine | UnreadLine


class JsonLinesFile(Struct, frozen=True, kw_only=True):
    """A file as records, in order."""

    records: tuple[LineRecord, ...]
    problems: tuple[ImportProblem, ...]

    @property
    def lines(self) -> tuple[JsonLine, ...]:
        return tuple(record for record in self.records if isinstance(record, JsonLine))


def read_lines(data: bytes) -> JsonLinesFile:
    """The records of a file of JSON lines, whatever state it is in."""
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
    """The records of the lines so far, and what is to be said of them."""

    def __init__(self, values: Sequence[tuple[Any, tuple[str, ...]] | ValueError | None]) -> None:
        self.records: list[LineRecord] = []
        self.problems: list[ImportProblem] = []
        self._values = values

    @cached_property
    def _heads(self) -> set[tuple[str, ...]]:
        """How whole records of this file begin."""
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
        """Adds what a line holds that is not one JSON value: glued records, whole and torn, or
        nothing that can be read."""
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
    """A JSON value that can be stored, and what had to be mended for that.

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
    """The time of the first line that has one."""
    return next((line.at for line in lines if line.at is not None), 0.0)
