"""What disks, editors and crashes do to a journal. Every damage is bytes in, bytes out."""

import re
from collections.abc import Callable, Mapping
from json import dumps, loads
from typing import Any
from zlib import crc32

Damaging = Callable[[bytes], bytes]


def line_with(line: bytes, **fields: Any) -> bytes:
    """The line with other fields, and a checksum that is right."""
    entry: dict[str, Any] = loads(line)
    del entry["sum"]
    behind = {name: entry.pop(name) for name in ("more", "skip") if name in entry}
    entry |= fields
    ordered = {name: entry[name] for name in sorted(entry)} | behind
    body = dumps(ordered, ensure_ascii=False, separators=(",", ":")).encode()[:-1]
    return b'%b,"sum":"%08x"}' % (body, crc32(body))


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines()


def _joined(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _find(lines: list[bytes], kind: str, nth: int = 0) -> int:
    """The place of the nth line of a kind."""
    mark = f'"type":"{kind}"'.encode()
    return [index for index, line in enumerate(lines) if mark in line][nth]


def torn(data: bytes) -> bytes:
    return data[:-40]


def flipped(data: bytes) -> bytes:
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def lost_line(data: bytes) -> bytes:
    lines = _lines(data)
    del lines[len(lines) // 2]
    return _joined(lines)


def glued(data: bytes) -> bytes:
    at = data.index(b"\n", len(data) // 2)
    return data[:at] + data[at + 1 :]


def wrong_checksum(data: bytes) -> bytes:
    lines = _lines(data)
    at = _find(lines, "message", 1)
    lines[at] = re.sub(rb'"sum":"[0-9a-f]{8}"', b'"sum":"00000000"', lines[at])
    return _joined(lines)


def no_checksum(data: bytes) -> bytes:
    lines = _lines(data)
    at = _find(lines, "request", 1)
    lines[at] = re.sub(rb',"sum":"[0-9a-f]{8}"', b"", lines[at])
    return _joined(lines)


def missing_parent(data: bytes) -> bytes:
    lines = _lines(data)
    at = _find(lines, "message", 2)
    lines[at] = line_with(lines[at], parent="0fffff")
    return _joined(lines)


def lost_header(data: bytes) -> bytes:
    return _joined(_lines(data)[1:])


def typed_settings(data: bytes) -> bytes:
    """A header as earlier versions wrote it: its settings are as they were typed."""
    first, *rest = _lines(data)
    typed = {"guide_search": "conservative", "strip_turns": 2.5}
    return _joined([line_with(first, settings=loads(first)["settings"] | typed), *rest])


def lost_item(data: bytes) -> bytes:
    lines = _lines(data)
    del lines[_find(lines, "item")]
    return _joined(lines)


def lost_reply(data: bytes) -> bytes:
    lines = _lines(data)
    del lines[_find(lines, "reply")]
    return _joined(lines)


def lost_question(data: bytes) -> bytes:
    lines = _lines(data)
    del lines[_find(lines, "message")]
    return _joined(lines)


def lost_result(data: bytes) -> bytes:
    """The message with the results of calls is gone."""
    lines = _lines(data)
    at = next(i for i, line in enumerate(lines) if b'"role":"tool"' in line)
    del lines[at]
    return _joined(lines)


def incomplete_write(data: bytes) -> bytes:
    """The last write has only its first line."""
    lines = _lines(data)
    at = max(i for i, line in enumerate(lines) if b',"more":' in line)
    return _joined(lines[: at + 1])


def duplicated(data: bytes) -> bytes:
    lines = _lines(data)
    at = _find(lines, "reply")
    return _joined([*lines, lines[at]])


def conflicting(data: bytes) -> bytes:
    """Two lines of one id that say different things."""
    lines = _lines(data)
    at = _find(lines, "reply")
    return _joined([*lines, line_with(lines[at], stop="otherwise")])


def with_nuls(data: bytes) -> bytes:
    return data + b"\0" * 64


def with_crlf(data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


def no_final_newline(data: bytes) -> bytes:
    return data[:-1]


def with_rubbish(data: bytes) -> bytes:
    lines = _lines(data)
    return _joined([*lines[:4], b"", b"<<<<<<< HEAD", *lines[4:]])


def inapplicable(data: bytes) -> bytes:
    """A patch whose line is sound and that cannot be applied."""
    lines = _lines(data)
    at = _find(lines, "context_transform", -1)
    op = {"op": "results_replace", "message": "nobody", "reason": "why", "results": []}
    lines[at] = line_with(lines[at], patch={"display": None, "ops": [op]})
    return _joined(lines)


def later_format(data: bytes) -> bytes:
    lines = _lines(data)
    return _joined([line_with(lines[0], format=99), *lines[1:]])


def other_renderer(data: bytes) -> bytes:
    lines = _lines(data)
    return _joined([line_with(lines[0], renderer=99), *lines[1:]])


DAMAGES: Mapping[str, Damaging] = {
    "torn": torn,
    "typed-settings": typed_settings,
    "flipped": flipped,
    "lost-line": lost_line,
    "glued": glued,
    "wrong-checksum": wrong_checksum,
    "no-checksum": no_checksum,
    "missing-parent": missing_parent,
    "lost-header": lost_header,
    "lost-item": lost_item,
    "lost-reply": lost_reply,
    "lost-question": lost_question,
    "lost-result": lost_result,
    "incomplete-write": incomplete_write,
    "duplicated": duplicated,
    "conflicting": conflicting,
    "nuls": with_nuls,
    "crlf": with_crlf,
    "no-final-newline": no_final_newline,
    "rubbish": with_rubbish,
    "inapplicable": inapplicable,
    "later-format": later_format,
    "other-renderer": other_renderer,
}
