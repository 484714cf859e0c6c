"""What the encoders share: the prompt as messages, and vendors' replies as typed values.

Laws: a segment's place in a request depends on the segments before it alone, so what was sent
stays a prefix of what follows. A reply that cannot be read raises `ReplyError` and nothing else.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from json import dumps
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from lamina.codec import digest_texts, mend_text
from lamina.errors import ReplyError
from lamina.values.message import Text, ToolDefinition
from lamina.values.prompt import Prompt, Segment, WireRole

T = TypeVar("T")

_MINTED = "call-"


class WireMessage(Struct, frozen=True, kw_only=True):
    role: WireRole
    segments: tuple[Segment, ...]


# -- requests ------------------------------------------------------------------------------------


def split_prompt(
    prompt: Prompt,
) -> tuple[list[ToolDefinition], list[Segment], Iterator[WireMessage]]:
    """Tools, the segments of the system message, and the messages in order."""
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
        # `is_blank`, without a call for each segment of a long history.
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
    """Whether a segment is a text of white space only, which vendors refuse."""
    content = segment.content
    return isinstance(content, Text) and (not content.text or content.text.isspace())


def merge_roles(messages: Iterable[WireMessage]) -> Iterator[WireMessage]:
    """Neighbours of one role as one message, for vendors whose turns alternate. Tool results are
    the user's there."""
    group: list[Segment] = []
    before: WireRole = "user"
    for message in messages:
        role: WireRole = "user" if message.role == "tool" else message.role
        if group and role != before:
            yield WireMessage(role=before, segments=tuple(group))
            group = []
        group += message.segments
        before = role
    if group:
        yield WireMessage(role=before, segments=tuple(group))


def join_text(segments: Iterable[Segment]) -> str:
    return "".join([s.content.text for s in segments if isinstance(s.content, Text)])


def single_text(segments: Sequence[Segment]) -> str | None:
    """The text of a message that is one text and nothing else, as nearly all are; None if not."""
    if len(segments) != 1:
        return None
    content = segments[0].content
    return content.text if isinstance(content, Text) else None


def describe_tool(tool: ToolDefinition, schema_name: str) -> dict[str, Any]:
    """A tool's name, description and schema, which is under another name for every vendor."""
    described: dict[str, Any] = {"name": tool.name}
    if tool.description.strip():
        described["description"] = tool.description
    # Vendors want an object with properties, be there any or not.
    described[schema_name] = {"type": "object", "properties": {}} | deepcopy(tool.parameters)
    return described


def parse_arguments(arguments: str) -> dict[str, Any]:
    """A call's JSON arguments as an object; a model that wrote something else gets it wrapped."""
    try:
        parsed = msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        return {"_raw": arguments}
    return parsed if isinstance(parsed, dict) else {"_raw": parsed}


# -- replies -------------------------------------------------------------------------------------


def read_reply(reply: object, shape: type[T], what: str) -> T:
    """A vendor SDK's reply object, or the response body as a dict, in the shape a decoder reads.

    Raises:
        ReplyError: it has another shape; if it is a vendor's error, with what the vendor says.
    """
    try:
        # By attribute and not by `model_dump`, which warns of values that the SDK let through.
        return msgspec.convert(reply, shape, from_attributes=True)
    except msgspec.ValidationError as error:
        raise unreadable_reply(reply, what, str(error)) from error


def unreadable_reply(reply: object, what: str, problem: str) -> ReplyError:
    """The error for a reply that is not `what`."""
    said = reply.get("error") if isinstance(reply, Mapping) else getattr(reply, "error", None)
    if isinstance(said, Mapping):
        said = said.get("message") or said.get("type")
    if said:
        problem = f"the provider reports an error: {said}"
    elif isinstance(reply, str | bytes):
        problem = f"it begins with {reply[:60]!r}"
    return ReplyError(
        mend_text(
            f"a reply of type {type(reply).__name__} is not {what}: {problem}; pass the SDK's "
            f"response object or the response body as a dict"
        )
    )


def write_arguments(arguments: object) -> str:
    """A call's arguments as JSON text, in the order in which the model wrote the keys."""
    return mend_text(dumps(arguments or {}, ensure_ascii=False, separators=(",", ":")))


def mint_call_id(index: int, *facts: str) -> str:
    """An id for a call that came without one: the same whenever this reply is read, and unlike
    those of other replies."""
    return f"{_MINTED}{index}-{digest_texts(facts)[:12]}"


def is_minted(call_id: str) -> bool:
    return call_id.startswith(_MINTED)
