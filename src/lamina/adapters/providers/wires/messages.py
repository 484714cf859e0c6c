"""A prompt as messages, for every encoder.

Law: a segment's place in a request depends only on the segments before it, so what was sent stays
a prefix of what follows.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress, groupby

from msgspec import Struct

from lamina.core.values.message import Text, ToolCall, ToolDefinition, ToolResult
from lamina.core.values.prompt import Prompt, Segment, WireRole


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
    """Whether a segment is text with nothing but white space, which vendors refuse."""
    content = segment.content
    return isinstance(content, Text) and (not content.text or content.text.isspace())


def merge_roles(messages: Iterable[WireMessage]) -> Iterator[WireMessage]:
    """Neighbours with the same role as one message, for vendors whose turns alternate; there tool
    results are the user's."""
    for role, group in groupby(messages, _alternating_role):
        segments = chain.from_iterable(message.segments for message in group)
        yield WireMessage(role=role, segments=tuple(segments))


def order_results(messages: Iterable[WireMessage]) -> Iterator[WireMessage]:
    """Messages whose results stand in the order of the calls they answer, for vendors that take no
    other. What is recorded since results are put in order stands so already."""
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
    """The text of a message that consists of one text, as nearly all do; None for the others."""
    if len(segments) != 1:
        return None
    content = segments[0].content
    return content.text if isinstance(content, Text) else None
