"""Imports request logs: one body per line, alone or with its answer.

Laws: a request that extends an earlier one continues its path, and only new messages are written. A
request that differs from the earlier messages is a branch from the last message they share, or from
the header if they share none. A changed system prompt or tool list is a transform with a reason.
Each request's parameters, and the answer's fields besides the message, are kept as data.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.formats.content import (
    ForeignMessage,
    provider_of,
    read_openai_usage,
    read_usage,
)
from lamina.adapters.formats.imported_session import ImportedSession
from lamina.adapters.formats.json_lines import (
    JsonLine,
    JsonLinesFile,
    Object,
    UnreadLine,
    count_in,
    first_moment,
    object_in,
    parse_moment,
    parse_text,
    text_in,
    without,
)
from lamina.adapters.formats.request_bodies import (
    AnswerBody,
    RequestBody,
    looks_like_body,
    message_identity,
    parse_answer,
    read_answer_body,
    read_body,
)
from lamina.adapters.formats.session_builder import SessionBuilder
from lamina.core.values.entry import MessageEntry, TransformEntry
from lamina.core.values.patch import Patch, PatchOp, SystemPartsReplace, ToolsReplace
from lamina.core.values.usage import Usage

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
    body = as_body(request.get("body", request.get("body_raw")))
    if not looks_like_body(body):
        return None
    rest = without(value, "request", "response")
    if around := without(request, "body", "timestamp"):
        rest["request"] = around
    at = parse_moment(request.get("timestamp")) or parse_moment(value.get("timestamp"))
    return _Request(body=body, response=object_in(value, "response"), at=at, rest=rest)


def import_request_log(file: JsonLinesFile, session: str) -> ImportedSession:
    """Import a log's conversations as branches of one session."""
    first = next((request for line in file.lines if (request := _unwrap(line.value))), None)
    at = (first.at if first else None) or first_moment(file.lines)
    draft = SessionBuilder(session=session, source=SOURCE)
    # The first request determines the header; its problems are reported when it is placed.
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
        # A tree of all messages, each below its predecessor. A node is a number; the next message
        # is placed after its entry.
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
        """Return the nodes of the leading messages that are already known, starting at the root."""
        nodes = [0]
        for message in messages:
            node = self.children.get((nodes[-1], message_identity(message)))
            if node is None:
                break
            nodes.append(node)
        return nodes

    def _changed_fields(self, nodes: list[int], messages: tuple[ForeignMessage, ...]) -> Object:
        """Return fields of known messages that differ now, such as cache markers."""
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
        """Return the position after `place` with this request's system prompt, tools and model."""
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
        if earlier_node is not None:  # an identical question already has this answer
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
            answer = parse_answer(body)
            if answer and answer.unread_events:
                detail = f"{answer.unread_events} events of the stream could not be read"
                self.builder.report(line, "unreadable_events", detail)
            body = answer.body if answer else None
        status = response.get("status_code")
        is_error = isinstance(status, int) and status >= 400
        if not isinstance(body, dict) or is_error:
            return None
        return read_answer_body(body, self.builder, line)


# -- request data in a line ------------------------------------------------------------------------

_SESSION_KEYS = (
    "session", "session_id", "sessionId", "conversation_id", "thread_id", "trace_id",
    "litellm_session_id",
)  # fmt: skip
_AGENT_KEYS = ("agent", "agent_id", "agentId")


class LoggedRequest(Struct, frozen=True, kw_only=True):
    """The data that the doctor reads from a line; `body` is empty if the line contains only
    usage."""

    body: Object
    answer: Object
    usage: Usage
    # The vendor's figures, from which the usage is derived.
    figures: Object
    provider: str
    model: str
    at: float | None
    ended: float | None
    session: str = ""
    agent: str = ""
    id: str = ""


def unwrap_line(value: Object) -> LoggedRequest | None:
    """Unwrap a log line; None if it contains neither a body with usage nor usage alone."""
    if "startTime" in value and ("custom_llm_provider" in value or "call_type" in value):
        return _unwrap_litellm(value)
    request, response = object_in(value, "request"), object_in(value, "response")
    body = as_body(value.get("body")) or as_body(request.get("body", request.get("body_raw")))
    body = body or as_body(request) or as_body(value)
    answer = _as_answer(response.get("body", response.get("body_raw"))) or _as_answer(response)
    answer = answer or _as_answer(value.get("answer"))
    figures = _figures_in(value, response, answer)
    usage = read_figures(figures)
    if usage is None:
        return None
    began = parse_moment(request.get("timestamp")) or _moment(
        value, "timestamp", "at", "started_at", "start_time", "startTime", "time", "created_at"
    )
    ended = parse_moment(response.get("timestamp")) or _moment(
        value, "ended_at", "end_time", "endTime", "completed_at"
    )
    model = (
        text_in(body, "model")
        or text_in(value, "model")
        or text_in(answer, "model", "modelVersion")
    )
    return LoggedRequest(
        body=body, answer=answer, usage=usage, figures=figures, model=model.rpartition("/")[2],
        provider=provider_of(text_in(value, "provider", "custom_llm_provider"))
        or _provider_of_body(body, value, answer),
        at=began, ended=ended, session=_first(value, request, body, _SESSION_KEYS),
        agent=_first(value, request, body, _AGENT_KEYS),
        id=text_in(value, "id", "request_id") or text_in(answer, "id", "responseId"),
    )  # fmt: skip


def _unwrap_litellm(value: Object) -> LoggedRequest | None:
    """Read LiteLLM's `StandardLoggingPayload`."""
    metadata = object_in(value, "metadata")
    figures = object_in(metadata, "usage_object") or object_in(
        object_in(value, "response"), "usage"
    )  # fmt: skip
    usage = read_figures(figures)
    if usage is None and count_in(value, "prompt_tokens"):
        usage = Usage(
            input=count_in(value, "prompt_tokens"), output=count_in(value, "completion_tokens"),
            cache_reported=False,
        )  # fmt: skip
    if usage is None:
        return None
    parameters = object_in(value, "model_parameters")
    messages = value.get("messages")
    model = text_in(value, "model")
    body: Object = {"model": model, **parameters, "messages": messages}
    if not isinstance(messages, list) or not messages:
        body = {}
    return LoggedRequest(
        body=body, answer=object_in(value, "response"), usage=usage, figures=figures,
        model=model.rpartition("/")[2], provider=provider_of(text_in(value, "custom_llm_provider")),
        at=parse_moment(value.get("startTime")), ended=parse_moment(value.get("endTime")),
        session=_first(value, metadata, object_in(metadata, "requester_metadata"), _SESSION_KEYS),
        id=text_in(value, "id"),
    )  # fmt: skip


def _first(*values: Any) -> str:
    *objects, keys = values
    for value in objects:
        for place in (value, object_in(value, "metadata")):
            if found := text_in(place, *keys):
                return found
    return ""


def _moment(value: Mapping[str, Any], *keys: str) -> float | None:
    return next((at for key in keys if (at := parse_moment(value.get(key))) is not None), None)


def as_body(value: Any) -> Object:
    """Return a model request's body, given as an object or JSON string; empty if it is neither."""
    if isinstance(value, str):
        value = parse_text(value)
    if not isinstance(value, dict):
        return {}
    is_gemini = isinstance(value.get("contents"), list)
    return value if is_gemini or looks_like_body(value) else {}


def _as_answer(value: Any) -> Object:
    if isinstance(value, str):
        answer = parse_answer(value)
        value = answer.body if answer else None
    if isinstance(value, list):
        # Gemini streams are lists of answers, the last of which contains the total.
        value = value[-1] if value else None
    return value if isinstance(value, dict) else {}


def _figures_in(*values: Mapping[str, Any]) -> Object:
    """Return the first usage figures in any vendor's format; empty if there are none."""
    for value in values:
        for key in ("usage", "usageMetadata", "usage_metadata"):
            figures = object_in(value, key)
            if read_figures(figures) is not None:
                return figures
    return {}


def read_figures(figures: Mapping[str, Any]) -> Usage | None:
    """Read usage in any vendor's format."""
    if "promptTokenCount" in figures or "prompt_token_count" in figures:
        cached = ("cachedContentTokenCount", "cached_content_token_count")
        output = count_in(figures, "candidatesTokenCount", "candidates_token_count")
        return Usage(
            input=count_in(figures, "promptTokenCount", "prompt_token_count"),
            cached=count_in(figures, *cached),
            output=output + count_in(figures, "thoughtsTokenCount", "thoughts_token_count"),
        )
    if "cache_read_input_tokens" in figures and "prompt_tokens" not in figures:
        return read_usage(figures)
    if "prompt_tokens" in figures or "input_tokens_details" in figures:
        usage = read_openai_usage(figures)
        written = count_in(figures, "cache_creation_input_tokens")
        return replace(usage, written=written) if usage and written else usage
    if "input_tokens" in figures:
        return read_openai_usage(figures)
    if "cacheRead" in figures:
        return read_usage(figures)
    return None


def _provider_of_body(body: Object, value: Object, answer: Object) -> str:
    if "contents" in body or "usageMetadata" in answer or "usageMetadata" in value:
        return "gemini"
    if object_in(answer, "usage").get("cache_read_input_tokens") is not None:
        return "anthropic"
    if object_in(value, "usage").get("cache_read_input_tokens") is not None:
        return "anthropic"
    return ""
