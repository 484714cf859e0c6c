"""Helpers shared by all wires: prompts as messages, tools and their calls, replies as typed values.

Laws: a segment's place in a request depends only on the segments before it, so anything sent
remains a prefix of later requests. A reply that cannot be read raises `ReplyError` and nothing
else.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import chain, compress, groupby
from json import dumps
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from lamina.core.codec import digest_texts, mend_text
from lamina.core.values.message import Text, ToolCall, ToolDefinition, ToolResult
from lamina.core.values.prompt import Prompt, Segment, WireRole
from lamina.errors import ReplyError

_MINTED_PREFIX = "call-"


def describe_tool(tool: ToolDefinition, schema_name: str) -> dict[str, Any]:
    """Return a tool's name, description and schema, whose key differs between vendors."""
    description: dict[str, Any] = {"name": tool.name}
    if tool.description.strip():
        description["description"] = tool.description
    # Vendors require an object with properties, even if there are none.
    description[schema_name] = {"type": "object", "properties": {}} | deepcopy(tool.parameters)
    return description


def parse_arguments(arguments: str) -> dict[str, Any]:
    """Parse a call's JSON arguments as an object; anything else that a model wrote is wrapped in
    one."""
    try:
        value = msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        return {"_raw": arguments}
    return value if isinstance(value, dict) else {"_raw": value}


def write_arguments(arguments: object) -> str:
    """Return a call's arguments as JSON text, in the order in which the model wrote the keys."""
    return mend_text(dumps(arguments or {}, ensure_ascii=False, separators=(",", ":")))


def mint_call_id(index: int, *facts: str) -> str:
    """Return an id for a call without one: the same whenever this reply is read, and different from
    those in other replies."""
    return f"{_MINTED_PREFIX}{index}-{digest_texts(facts)[:12]}"


def is_minted(call_id: str) -> bool:
    return call_id.startswith(_MINTED_PREFIX)


T = TypeVar("T")


def read_reply(reply: object, shape: type[T], what: str) -> T:
    """Read a reply object from a vendor's SDK, or a response body as a dict, into the type that a
    decoder reads.

    Raises:
        ReplyError: it does not match; for a vendor's error, with the vendor's message.
    """
    try:
        # By attribute: `model_dump` warns about values that the SDK let through.
        return msgspec.convert(reply, shape, from_attributes=True)
    except msgspec.ValidationError as error:
        raise unreadable_reply(reply, what, str(error)) from error


def unreadable_reply(reply: object, what: str, problem: str) -> ReplyError:
    """Return the error for a reply that is not `what`."""
    error = reply.get("error") if isinstance(reply, Mapping) else getattr(reply, "error", None)
    if isinstance(error, Mapping):
        error = error.get("message") or error.get("type")
    if error:
        problem = f"the provider reports an error: {error}"
    elif isinstance(reply, str | bytes):
        problem = f"it begins with {reply[:60]!r}"
    return ReplyError(
        mend_text(
            f"a reply of type {type(reply).__name__} is not {what}: {problem}; pass the SDK's "
            f"response object or the response body as a dict"
        )
    )


class WireMessage(Struct, frozen=True, kw_only=True):
    role: WireRole
    segments: tuple[Segment, ...]


def split_prompt(
    prompt: Prompt,
) -> tuple[list[ToolDefinition], list[Segment], Iterator[WireMessage]]:
    """Return the tools, the system message's segments, and the messages in order."""
    tools: list[ToolDefinition] = []
    system: list[Segment] = []
    for link in prompt.front:
        segment = link.segment
        if isinstance(segment.content, ToolDefinition):
            tools.append(segment.content)
        elif not is_blank(segment):
            system.append(segment)
    return tools, system, _messages(prompt)


def _messages(prompt: Prompt) -> Iterator[WireMessage]:
    group: list[Segment] = []
    message = ""
    role: WireRole = "user"
    for segment in prompt.since(prompt.ends[0]):
        # Inlined `is_blank`, to avoid a call for each segment of a long history.
        content = segment.content
        if isinstance(content, Text) and (not (text := content.text) or text.isspace()):
            continue
        if segment.message == message and segment.role == role:
            group.append(segment)
            continue
        if group:
            yield WireMessage(role=role, segments=tuple(group))
        group, message, role = [segment], segment.message, segment.role
    if group:
        yield WireMessage(role=role, segments=tuple(group))


def is_blank(segment: Segment) -> bool:
    """Return whether a segment is text with nothing but white space, which vendors refuse."""
    content = segment.content
    return isinstance(content, Text) and (not content.text or content.text.isspace())


def merge_roles(messages: Iterable[WireMessage]) -> Iterator[WireMessage]:
    """Merge neighbours with the same role, for vendors that require alternating turns; there tool
    results are the user's."""
    for role, group in groupby(messages, _alternating_role):
        segments = chain.from_iterable(message.segments for message in group)
        yield WireMessage(role=role, segments=tuple(segments))


def order_results(messages: Iterable[WireMessage]) -> Iterator[WireMessage]:
    """Yield messages with results in the order of the calls they answer, for vendors that accept no
    other. Newer recordings already have this order."""
    places: dict[str, int] = {}
    for message in messages:
        answers = [_is_answer(segment, places) for segment in message.segments]
        if sum(answers) > 1:
            results = iter(sorted(compress(message.segments, answers), key=_by_place(places)))
            segments = tuple(
                next(results) if is_answer else segment
                for segment, is_answer in zip(message.segments, answers, strict=True)
            )
            message = WireMessage(role=message.role, segments=segments)
        yield message
        calls = [s.content.id for s in message.segments if isinstance(s.content, ToolCall)]
        places = {call: place for place, call in enumerate(calls)}


def _is_answer(segment: Segment, places: Mapping[str, int]) -> bool:
    return isinstance(segment.content, ToolResult) and segment.content.call_id in places


def _by_place(places: Mapping[str, int]) -> Callable[[Segment], int]:
    return lambda s: places[s.content.call_id] if isinstance(s.content, ToolResult) else 0


def _alternating_role(message: WireMessage) -> WireRole:
    return "user" if message.role == "tool" else message.role


def join_text(segments: Iterable[Segment]) -> str:
    return "".join([s.content.text for s in segments if isinstance(s.content, Text)])


def single_text(segments: Sequence[Segment]) -> str | None:
    """Return the text of a message that consists of one text, as nearly all do; None for others."""
    if len(segments) != 1:
        return None
    content = segments[0].content
    return content.text if isinstance(content, Text) else None
