"""Bytes of a file to JSON objects, line by line.

Laws: every line that is not blank becomes a record, and one that is not a JSON object also becomes
a problem with its number. What comes out can be stored: no lone surrogates, no numbers that JSON
has no word for, nothing nested deeper than `DEPTH`.
"""

import json
from collections.abc import Sequence
from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct

from lamina.codec import mend_text
from lamina.formats.imported_session import ImportProblem
from lamina.formats.json_fields import Object, parse_moment

# Deeper than any real file; the encoder's own limit is about nine times that.
DEPTH = 100
_BLANK = b" \t\r\x00"


class JsonLine(Struct, frozen=True, kw_only=True):
    """One JSON object and the line it stands on."""

    number: int
    value: Object

    @property
    def at(self) -> float | None:
        return parse_moment(self.value.get("timestamp"))


class UnreadLine(Struct, frozen=True, kw_only=True):
    """A line that is not a JSON object: its text, or the value it holds instead."""

    number: int
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
    records: list[LineRecord] = []
    problems: list[ImportProblem] = []
    data, encoding_note = _as_utf8(data)
    if encoding_note:
        problems.append(ImportProblem(line=None, what="encoding", detail=encoding_note))
    pieces = data.split(b"\n")
    for number, raw in enumerate(pieces, 1):
        piece = raw.strip(_BLANK)
        if not piece:
            if b"\x00" in raw:
                detail = f"{raw.count(0)} NUL bytes and nothing else"
                problems.append(ImportProblem(line=number, what="nul_bytes", detail=detail))
            continue
        try:
            value, notes = parse_json(piece)
        except ValueError as error:
            is_torn = number == len(pieces)
            detail = "the file ends in the middle of it" if is_torn else str(error)
            problems.append(
                ImportProblem(line=number, what="torn" if is_torn else "unreadable", detail=detail)
            )
            records.append(UnreadLine(number=number, data=readable_text(piece)))
            continue
        problems += [ImportProblem(line=number, what="mended", detail=note) for note in notes]
        if isinstance(value, dict):
            records.append(JsonLine(number=number, value=value))
        else:
            detail = f"a {type(value).__name__} stands where an object should"
            problems.append(ImportProblem(line=number, what="not_an_object", detail=detail))
            records.append(UnreadLine(number=number, data=value))
    return JsonLinesFile(records=tuple(records), problems=tuple(problems))


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
        notes.append("bytes that are not UTF-8, or NUL bytes, were replaced")
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
