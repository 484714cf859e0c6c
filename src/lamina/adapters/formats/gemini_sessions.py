"""Sessions as Gemini CLI stores them: one JSON document, or one record a line.

Laws: a document is `{sessionId, messages}`; in the newer form the first line is what the document
has besides its messages, each message is a line, the last line of an id counts, `$set` changes what
stands above, and `$rewindTo` takes back the message it names and all behind it.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from lamina.adapters.formats.json_fields import Object, count_in, text_in
from lamina.adapters.formats.json_lines import JsonLine
from lamina.core.values.usage import Usage

TYPES = ("user", "gemini", "info", "error", "warning")


class GeminiRecord(Struct, frozen=True, kw_only=True):
    """A message as it is stored, and the line it stands on."""

    line: int
    value: Object


class GeminiSession(Struct, frozen=True, kw_only=True):
    """What a session says of itself, and on which line, its messages, and everything else: what
    was taken back or written anew, and the lines that say so."""

    info: Object
    line: int | None
    records: tuple[GeminiRecord, ...]
    others: tuple[GeminiRecord, ...] = ()

    @property
    def id(self) -> str:
        return text_in(self.info, "sessionId")


def looks_like_gemini(value: Object) -> bool:
    """Whether an object is such a session, or a line of one."""
    if "sessionId" in value and ("projectHash" in value or "startTime" in value):
        return "uuid" not in value
    if "$set" in value or "$rewindTo" in value:
        return True
    is_message = value.get("type") in TYPES and "id" in value and "timestamp" in value
    return is_message and "content" in value and "uuid" not in value and "payload" not in value


def read_gemini_session(lines: Sequence[JsonLine]) -> GeminiSession:
    """The session that these lines make."""
    reader = _Reader()
    for line in lines:
        reader.add(line)
    return GeminiSession(
        info=reader.info,
        line=reader.line,
        records=tuple(reader.records.values()),
        others=tuple(reader.others),
    )


class _Reader:
    def __init__(self) -> None:
        self.info: Object = {}
        self.line: int | None = None
        self.records: dict[str, GeminiRecord] = {}
        self.others: list[GeminiRecord] = []

    def add(self, line: JsonLine) -> None:
        value = line.value
        if value.get("type") in TYPES:
            self._put(GeminiRecord(line=line.number, value=value))
        elif isinstance(value.get("sessionId"), str) and self.line is None:
            self.line = line.number
            self._change(line.number, value)
        else:
            # What changes the lines above is kept as well as done.
            self.others.append(GeminiRecord(line=line.number, value=value))
            if isinstance(value.get("$set"), dict):
                self._change(line.number, value["$set"])
            elif isinstance(value.get("$rewindTo"), str):
                self._rewind(value["$rewindTo"])

    def _change(self, line: int, fields: Object) -> None:
        messages = fields.get("messages")
        self.info |= {key: field for key, field in fields.items() if key != "messages"}
        if not isinstance(messages, list):
            if messages is not None:
                self.info["messages"] = messages
            return
        self.others += self.records.values()
        self.records = {}
        for message in messages:
            self._put(GeminiRecord(line=line, value=_as_object(message)))

    def _put(self, record: GeminiRecord) -> None:
        own = text_in(record.value, "id") or f"#{record.line}.{len(self.records)}"
        if (earlier := self.records.get(own)) is not None:
            self.others.append(earlier)
        self.records[own] = record

    def _rewind(self, name: str) -> None:
        names = [*self.records]
        start = names.index(name) if name in names else len(names)
        self.others += [self.records.pop(own) for own in names[start:]]


def _as_object(value: Any) -> Object:
    return value if isinstance(value, dict) else {"content": value}


def read_gemini_usage(tokens: Object) -> Usage | None:
    """What an answer counts, whose input includes what was cached."""
    if not tokens:
        return None
    return Usage(
        input=count_in(tokens, "input"),
        cached=count_in(tokens, "cached"),
        output=count_in(tokens, "output") + count_in(tokens, "thoughts"),
        cache_reported="cached" in tokens,
    )
