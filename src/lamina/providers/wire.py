"""What the encoders share: the prompt as messages, and vendor objects as dicts."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import msgspec
from msgspec import Struct

from lamina.errors import ReplyError
from lamina.values.message import Text, ToolDefinition
from lamina.values.prompt import Prompt, Segment, WireRole


class WireMessage(Struct, frozen=True, kw_only=True):
    role: WireRole
    segments: tuple[Segment, ...]


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
        else:
            system.append(segment)
    return tools, system, _messages(prompt)


def _messages(prompt: Prompt) -> Iterator[WireMessage]:
    def behind_front() -> Iterator[Segment]:
        for link in prompt.history:
            yield link.segment
        yield from prompt.turn

    for (role, _), group in groupby(behind_front(), key=lambda s: (s.role, s.message)):
        yield WireMessage(role=role, segments=tuple(group))


def merge_roles(messages: Iterable[WireMessage], as_user: bool) -> Iterator[WireMessage]:
    """Neighbours of one role as one message, for vendors whose turns alternate. With `as_user`
    tool results count as the user's."""

    def role_of(message: WireMessage) -> WireRole:
        return "user" if as_user and message.role == "tool" else message.role

    for role, group in groupby(messages, key=role_of):
        segments = tuple(segment for message in group for segment in message.segments)
        yield WireMessage(role=role, segments=segments)


def joined_text(segments: Iterable[Segment]) -> str:
    return "".join(s.content.text for s in segments if isinstance(s.content, Text))


def as_dict(reply: object) -> dict[str, Any]:
    """A vendor SDK's reply object, or the dict it stands for.

    Raises:
        ReplyError: it is neither.
    """
    if isinstance(reply, dict):
        return reply
    dump = getattr(reply, "model_dump", None) or getattr(reply, "to_dict", None)
    if dump is not None:
        try:
            dumped = dump(mode="json")
        except TypeError:
            dumped = dump()
        if isinstance(dumped, dict):
            return dumped
    raise ReplyError(
        f"a reply of type {type(reply).__name__} cannot be read; "
        f"pass the SDK's response object or the response body as a dict"
    )


def parse_arguments(arguments: str) -> dict[str, Any]:
    """A call's JSON arguments as an object; a model that wrote something else gets it wrapped."""
    try:
        parsed = msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        return {"_raw": arguments}
    return parsed if isinstance(parsed, dict) else {"_raw": parsed}
