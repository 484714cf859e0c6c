"""Bytes of a file to JSON objects, line by line.

Laws: every line that is not blank becomes a record, and one that is not a JSON object also becomes
a problem with its number. What comes out can be stored: no lone surrogates, no numbers that JSON
has no word for, nothing nested deeper than `DEPTH`.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct

from lamina.codec import mend_text
from lamina.formats.imported_session import ImportProblem

Object = dict[str, Any]

# Deeper than any real file; the encoder's own limit is about nine times that.
DEPTH = 100
_BLANK = b" \t\r\x00"
_MAX_COUNT = 2**53


class JsonLine(Struct, frozen=True, kw_only=True):
    """One JSON object and the line it stands on."""

    number: int
    value: Object


class UnreadLine(Struct, frozen=True, kw_only=True):
    """A line that is no JSON object: its text, or the value it is instead."""

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
    data, told = _as_utf8(data)
    if told:
        problems.append(ImportProblem(line=None, what="encoding", detail=told))
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
            torn = number == len(pieces)
            detail = "the file ends in the middle of it" if torn else str(error)
            problems.append(
                ImportProblem(line=number, what="torn" if torn else "unreadable", detail=detail)
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
    cleaned = _clean(value, notes)
    return cleaned, tuple(dict.fromkeys(notes))


def _check_depth(value: Any) -> None:
    level, depth = [value], 0
    while level:
        if depth > DEPTH:
            raise ValueError(f"nested deeper than {DEPTH} levels")
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                inner.extend(each.values())
            elif isinstance(each, list):
                inner.extend(each)
        level, depth = inner, depth + 1


def _clean(value: Any, notes: list[str]) -> Any:
    match value:
        case str():
            mended = mend_text(value)
            if mended is not value and mended != value:
                notes.append("lone surrogates were replaced")
            return mended
        case dict():
            return {_clean(key, notes): _clean(each, notes) for key, each in value.items()}
        case list():
            return [_clean(each, notes) for each in value]
        case float() if not isfinite(value):
            notes.append("a number out of range became text")
            return str(value)
        case _:
            return value


# -- fields of objects that may hold anything ----------------------------------------------------


def text_in(value: Mapping[str, Any], *keys: str) -> str:
    """The first of these fields that is a text and not empty; else an empty one."""
    for key in keys:
        found = value.get(key)
        if isinstance(found, str) and found:
            return found
    return ""


def count_in(value: Mapping[str, Any], *keys: str) -> int:
    """The first of these fields that is a number a counter can have; else 0."""
    for key in keys:
        found = value.get(key)
        if isinstance(found, int | float) and not isinstance(found, bool):
            return int(found) if 0 <= found <= _MAX_COUNT else 0
    return 0


def object_in(value: Mapping[str, Any], key: str) -> Object:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def list_in(value: Mapping[str, Any], key: str) -> list[Any]:
    found = value.get(key)
    return found if isinstance(found, list) else []


# The forms in which fields are read, where that is not a text. A field of another form was not
# understood, whatever its name.
_ANY = frozenset(("content", "arguments", "input", "output", "data", "display", "image_url", "body",
                  "body_raw", "system", "instructions", "error", "result"))  # fmt: skip
_OBJECTS = frozenset(("message", "usage", "payload", "source", "info", "request", "response",
                      "action", "base_instructions", "state", "function"))  # fmt: skip
_LISTS = frozenset(("messages", "parts", "tools", "patch", "replacement_history", "tool_calls",
                    "toolRequests", "choices"))  # fmt: skip
_FLAGS = frozenset(("is_error", "isError", "success"))


def without(value: Mapping[str, Any], *keys: str) -> Object:
    """What is left of an object once the fields that were understood are taken away."""
    return {key: each for key, each in value.items() if key not in keys or not _fits(key, each)}


def _fits(key: str, value: Any) -> bool:
    if value is None or key in _ANY:
        return True
    if key == "timestamp":
        return parse_moment(value) is not None
    if key in _OBJECTS or key in _LISTS:
        return isinstance(value, dict if key in _OBJECTS else list)
    return isinstance(value, bool if key in _FLAGS else str)


def parse_moment(value: Any) -> float | None:
    """Seconds since 1970 of an ISO time, or of a number of milliseconds or seconds."""
    if isinstance(value, str):
        try:
            parsed = datetime.fromisoformat(value.strip())
            return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e15:
        return float(value) / 1000 if value > 1e11 else float(value)
    return None


def first_moment(lines: Sequence[JsonLine], key: str = "timestamp") -> float:
    """The time of the first line that has one."""
    found = (parse_moment(line.value.get(key)) for line in lines)
    return next((at for at in found if at is not None), 0.0)
