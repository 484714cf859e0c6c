"""Logs of requests: one body per line, alone or with its answer.

Laws: a request that extends an earlier one continues its path, and only what is new is written. One
that departs from the earlier messages is a branch from the last message they share; if they share
none, a branch from the header. A system prompt or tools that changed are a transform with a reason.
The parameters of each request, and what its answer says besides the message, are kept as data.
"""

from typing import Any

from msgspec import Struct

from lamina.adapters.formats.content import ForeignMessage
from lamina.adapters.formats.imported_session import ImportedSession
from lamina.adapters.formats.json_lines import (
    JsonLine,
    JsonLinesFile,
    Object,
    UnreadLine,
    first_moment,
    object_in,
    parse_json,
    parse_moment,
    without,
)
from lamina.adapters.formats.request_bodies import (
    AnswerBody,
    RequestBody,
    looks_like_body,
    message_identity,
    read_answer_body,
    read_body,
    read_stream,
)
from lamina.adapters.formats.session_builder import SessionBuilder
from lamina.core.values.entry import MessageEntry, TransformEntry
from lamina.core.values.patch import Patch, PatchOp, SystemPartsReplace, ToolsReplace

SOURCE = "request_log"


class _Request(Struct, frozen=True, kw_only=True):
    """One line of the log, unwrapped."""

    body: Object
    response: Object
    at: float | None
    rest: Object


def looks_like_request_log(value: Object) -> bool:
    if isinstance(value.get("request"), dict):
        return _unwrap(value) is not None
    return looks_like_body(value)


def _unwrap(value: Object) -> _Request | None:
    request = object_in(value, "request")
    if not request:
        if not looks_like_body(value):
            return None
        return _Request(body=value, response={}, at=parse_moment(value.get("timestamp")), rest={})
    body = request.get("body", request.get("body_raw"))
    if isinstance(body, str):
        body = _parse(body)
    if not isinstance(body, dict) or not looks_like_body(body):
        return None
    rest = without(value, "request", "response")
    if around := without(request, "body", "timestamp"):
        rest["request"] = around
    at = parse_moment(request.get("timestamp")) or parse_moment(value.get("timestamp"))
    return _Request(body=body, response=object_in(value, "response"), at=at, rest=rest)


def _parse(text: str) -> Any:
    try:
        return parse_json(text.encode("utf-8", "replace"))[0]
    except ValueError:
        return None


def import_request_log(file: JsonLinesFile, session: str) -> ImportedSession:
    """The conversations of a log, as branches of one session."""
    first = next((request for line in file.lines if (request := _unwrap(line.value))), None)
    at = (first.at if first else None) or first_moment(file.lines)
    draft = SessionBuilder(session=session, source=SOURCE)
    # The first request says what the header holds; its problems are reported when it is placed.
    opening = read_body(first.body, draft, 0) if first else None
    builder = SessionBuilder(
        session=session,
        source=SOURCE,
        at=at,
        system=opening.system if opening else (),
        tools=opening.tools if opening else (),
        problems=file.problems,
    )
    importer = _Importer(builder)
    for record in file.records:
        if isinstance(record, UnreadLine):
            builder.keep_unread_line(record)
        else:
            importer.add(record)
    return builder.finish(importer.leaf)


class _Importer:
    def __init__(self, builder: SessionBuilder) -> None:
        self.builder = builder
        self.leaf: str | None = None
        # A tree of all messages, each below the one before it. A node is a number; the next message
        # goes behind its entry.
        self.children: dict[tuple[int, str], int] = {}
        self.places: list[str] = [builder.root]
        self.rests: list[Any] = [None]

    def add(self, line: JsonLine) -> None:
        builder, number = self.builder, line.number
        request = _unwrap(line.value)
        if request is None:
            builder.report(number, "unknown_type", "not a request body; kept as data")
            builder.keep_data("line", line.value, line=number, parent=self.leaf)
            return
        body = read_body(request.body, builder, number)
        nodes = self._walk(body.messages)
        node, known_count = nodes[-1], len(nodes) - 1
        place = self._set_up(builder.tail(self.places[node]), body, request.at, number)
        for message in body.messages[known_count:]:
            node, place = self._write_message(node, place, message, request.at, number)
        params = body.params | request.rest
        if again := self._changed_fields(nodes, body.messages):
            params["messages"] = again
        place = builder.keep_data("request", params, at=request.at, line=number, parent=place)
        self.leaf = self._answer(node, place, request, number)

    def _walk(self, messages: tuple[ForeignMessage, ...]) -> list[int]:
        """The nodes of the leading messages that are known already, from the root on."""
        nodes = [0]
        for message in messages:
            node = self.children.get((nodes[-1], message_identity(message)))
            if node is None:
                break
            nodes.append(node)
        return nodes

    def _changed_fields(self, nodes: list[int], messages: tuple[ForeignMessage, ...]) -> Object:
        """Fields of known messages that differ now, as cache markers do."""
        return {
            str(index): message.rest
            for index, (node, message) in enumerate(zip(nodes[1:], messages, strict=False))
            if message.rest and message.rest != self.rests[node]
        }

    def _write_message(
        self,
        node: int,
        place: str,
        message: ForeignMessage,
        at: float | None,
        line: int,
        **fields: Any,
    ) -> tuple[int, str]:
        place = self.builder.put(
            place, MessageEntry, at=at, line=line, raw=message.rest, message=message.message,
            rest=message.rest, **fields,
        )  # fmt: skip
        new_node = len(self.places)
        self.places.append(place)
        self.rests.append(message.rest)
        self.children[node, message_identity(message)] = new_node
        return new_node, place

    def _set_up(self, place: str, body: RequestBody, at: float | None, line: int) -> str:
        """The position behind `place` with this request's system prompt, tools and model."""
        builder = self.builder
        envelope = builder.state(place).envelope
        ops: list[PatchOp] = []
        if envelope.system != body.system:
            reason = "the system prompt changed in the log"
            ops.append(SystemPartsReplace(parts=body.system, reason=reason))
        if envelope.tools != body.tools:
            ops.append(ToolsReplace(tools=body.tools, reason="the tools changed in the log"))
        if ops:
            place = builder.put(
                place, TransformEntry, at=at, line=line, raw=None,
                transformer=f"{SOURCE}.changed", patch=Patch(ops=tuple(ops)),
            )  # fmt: skip
        return builder.use_model(place, body.target, at=at, line=line)

    def _answer(self, node: int, place: str, request: _Request, line: int) -> str:
        builder, response = self.builder, request.response
        if not response:
            return place
        answer = self._read_answer(response, line)
        if answer is None:
            if response.get("body") is not None or response.get("body_raw") is not None:
                builder.report(line, "no_answer", "the response holds no answer; kept as data")
            return builder.keep_data("response", response, line=line, parent=place)
        earlier_node = self.children.get((node, message_identity(answer.message)))
        if earlier_node is not None:  # the same question got the same answer before
            return builder.keep_data(
                "response", response, line=line, parent=self.places[earlier_node]
            )
        around = without(response, "body", "body_raw") | {"body": answer.params}
        rest = {"response": around, "message": answer.message.rest}
        message = ForeignMessage(message=answer.message.message, rest=rest)
        fields = {"usage": answer.usage, "model": answer.model}
        return self._write_message(node, place, message, request.at, line, **fields)[1]

    def _read_answer(self, response: Object, line: int) -> AnswerBody | None:
        body: Any = response.get("body")
        if body is None:
            body = response.get("body_raw")
        if isinstance(body, str):
            value = _parse(body)
            if not isinstance(value, dict):
                stream = read_stream(body)
                if stream and stream.unread_events:
                    detail = f"{stream.unread_events} events of the stream could not be read"
                    self.builder.report(line, "unreadable_events", detail)
                value = stream.body if stream else None
            body = value
        status = response.get("status_code")
        is_error = isinstance(status, int) and status >= 400
        if not isinstance(body, dict) or is_error:
            return None
        return read_answer_body(body, self.builder, line)
