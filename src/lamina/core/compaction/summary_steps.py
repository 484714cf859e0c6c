"""A summary in steps, for a summarizer whose window does not hold all that it is of.

Laws: every part fits the room it is given. No part ends between a tool call and its result. What
went before a part comes with it as the summary so far; it is quoted and never parsed.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from lamina.core.compaction.cuts import find_cuts
from lamina.core.compaction.instruction import summary_instruction
from lamina.core.compaction.plan import CompactionPlan
from lamina.core.compaction.quotes import Count, shorten
from lamina.core.journal import SUMMARY_ID
from lamina.core.text import escape_content, label_of
from lamina.core.values.message import Context, Image, Message, Text, Thinking, ToolCall, ToolResult

# A tool result is told by its beginning and its end.
RESULT_TOKENS = 500
TAG = "conversation"
_PART = """\
A conversation is too long to be read at once. This is part {step} of {of}:

<{tag}>
{text}
</{tag}>"""
_BEFORE = """\
A summary of what stands before this part:

{summary}"""
_WHOLE = """\
Write one summary of both, the parts before and this one: carry over everything of the summary
that still holds, and move what was finished since to Done."""


class SummaryPart(Struct, frozen=True, kw_only=True):
    """Messages that are summed up in one step, and the text that the summarizer reads of them."""

    messages: range
    text: str


def split_into_parts(
    messages: Sequence[Message], room: int, count: Count
) -> tuple[SummaryPart, ...]:
    """The messages in parts of at most `room` tokens. An exchange that is larger loses its
    middle."""
    parts: list[SummaryPart] = []
    for start, end in pairwise(dict.fromkeys((0, *find_cuts(messages), len(messages)))):
        text = "\n".join(filter(None, (transcribe(m, count) for m in messages[start:end])))
        last = parts[-1] if parts else None
        if last and count(joined := f"{last.text}\n{text}".strip()) <= room:
            parts[-1] = SummaryPart(messages=range(last.messages.start, end), text=joined)
        else:
            parts.append(SummaryPart(messages=range(start, end), text=shorten(text, room, count)))
    return tuple(part for part in parts if part.text)


def transcribe(message: Message, count: Count) -> str:
    """A message as a summarizer reads it. An earlier summary comes by another way."""
    if message.id == SUMMARY_ID:
        return ""
    return escape_content("\n".join(_lines(message, count)), TAG)


def _lines(message: Message, count: Count) -> Iterator[str]:
    who = "Asked" if message.role == "user" else "Answered"
    for block in message.blocks:
        match block:
            case Text(text=text):
                yield f"[{who}] {text}"
            case ToolCall(name=name, arguments=arguments):
                yield f"[Called {name}] {shorten(arguments, RESULT_TOKENS, count)}"
            case ToolResult(name=name, text=text, is_error=is_error):
                verb = "failed" if is_error else "gave"
                yield f"[{name} {verb}] {shorten(text, RESULT_TOKENS, count)}"
            case Context(uses=uses):
                if uses:
                    yield f"[Attached] {', '.join(label_of(use.item) for use in uses)}"
            case Image():
                yield f"[{who} with an image]"
            case Thinking():
                pass


def step_instruction(
    plan: CompactionPlan, part: SummaryPart, step: int, of: int, previous: str
) -> str:
    """The one message that asks for the summary of all up to this part. `previous` is the summary
    of what stands before it, quoted."""
    pieces = [_BEFORE.format(summary=previous)] if previous else []
    pieces.append(_PART.format(step=step, of=of, tag=TAG, text=part.text))
    if previous:
        pieces.append(_WHOLE)
    pieces.append(summary_instruction(plan, is_last=step == of, in_parts=True))
    return "\n\n".join(pieces)
