"""Asks a model for a summary, at once or, if its window is too small for all messages, in steps,
and completes the summary it writes.

Laws: the same plan yields the same words. A model's output is used as text: nothing is parsed from
it. Facts that Lamina has itself (files, the current question) are not left to the model. In a
stepwise summary, every part fits its room, and none ends between a tool call and its result.
Earlier parts are included as the summary so far, which is quoted, never parsed.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from lamina.core.compaction.compaction_plan import CompactionPlan
from lamina.core.compaction.cuts import find_cuts
from lamina.core.compaction.summary_sheet import (
    NOTICE,
    SECTIONS,
    Count,
    quote,
    quote_within,
    shorten,
    without_notice,
)
from lamina.core.compaction.touched_files import TouchedFiles
from lamina.core.journal import SUMMARY_ID
from lamina.core.text import escape_content, label_of, one_line
from lamina.core.text.wording import Wording
from lamina.core.values.message import Context, Image, Message, Text, Thinking, ToolCall, ToolResult

MAX_FILES = 100
# The maximum length, in characters, of the question repeated to the model.
QUOTED = 4_000
READ, MODIFIED = SECTIONS["read"], SECTIONS["modified"]

_HEADINGS = """\
Use these headings in this order. Write short points under them, or (none).

## Goal
What is to be achieved.

## Constraints & Preferences
What was asked for or ruled out along the way.

## Progress
### Done
### In Progress
### Blocked

## Key Decisions
Each with its reason.

## Next Steps
In order.

## Critical Context
What cannot be found again: names, numbers, error messages, findings."""
_FILES = """\
These files were touched. The lists are appended to your summary as they are; do not repeat them.

{files}"""


def summary_instruction(
    plan: CompactionPlan, words: Wording, *, in_parts: bool = False, is_last: bool = True
) -> str:
    """Return the user message that asks for the summary of the messages `plan` drops; it follows
    those messages, or all messages. With `in_parts` it follows a part of them, without later
    messages, and includes the earlier summary; instructions about the cut are left to the last
    part."""
    parts = [words.summary_task]
    if not in_parts:
        scope = words.summary_scope if plan.kept_line else words.summary_scope_unknown
        parts.append(scope.format(line=plan.kept_line))
    parts.append(_HEADINGS)
    if plan.splits_turn and is_last:
        parts.append(words.summary_turn)
        if plan.question.strip():
            parts.append(f"What was asked in it:\n{quote_within(plan.question, QUOTED, len)}")
    if plan.previous_summary and not in_parts:
        parts.append(words.summary_earlier)
    if is_last and (files := _list_files(plan.files)):
        parts.append(_FILES.format(files=files))
    limit = plan.summary_tokens
    parts.append(words.summary_length.format(words=max(1, limit * 3 // 4), tokens=limit))
    return "\n\n".join(parts)


def finish_summary(text: str, files: TouchedFiles, *, question: str = "") -> str:
    """Return a model's summary in its final format: trimmed, after the notice that messages were
    removed, and followed by the files. `question` is that of a turn cut in the middle, word for
    word. Empty if the model wrote nothing."""
    body = without_notice(_strip_fence(text.strip()))
    if not body:
        return ""
    parts = [NOTICE, body]
    if question.strip():
        parts.append(f"The question that is being worked on:\n{quote(question)}")
    return "\n\n".join(filter(None, (*parts, _list_files(files))))


def is_usable_summary(summary: str, dropped_tokens: int, count: Count) -> bool:
    """Return whether a summary has content and is smaller than the messages it replaces."""
    return bool(summary.strip()) and count(summary) < dropped_tokens


def _list_files(files: TouchedFiles) -> str:
    lists = ((READ, files.read), (MODIFIED, files.modified))
    return "\n\n".join(f"{title}\n{_list(paths)}" for title, paths in lists if paths)


def _list(paths: Sequence[str]) -> str:
    """Return the latest of these paths, and the number of the others."""
    rest = len(paths) - MAX_FILES
    more = [f"- ({rest:,} more, not listed)"] if rest > 0 else []
    return "\n".join([*more, *(f"- {one_line(path)}" for path in paths[-MAX_FILES:])])


def _strip_fence(text: str) -> str:
    """Return `text` without a code fence around all of it."""
    lines = text.splitlines()
    is_fenced = len(lines) > 2 and lines[0].startswith("```") and lines[-1].strip() == "```"
    if is_fenced and not any(line.startswith("```") for line in lines[1:-1]):
        return "\n".join(lines[1:-1]).strip()
    return text


# A tool result is quoted by its beginning and its end.
RESULT_TOKENS = 500
TAG = "conversation"
_PART = """\
A conversation is too long to be read at once. This is part {step} of {of}:

<{tag}>
{text}
</{tag}>"""


class SummaryPart(Struct, frozen=True, kw_only=True):
    """Messages that are summarised in one step, and their text for the summariser."""

    messages: range
    text: str


def split_into_parts(
    messages: Sequence[Message], room: int, count: Count
) -> tuple[SummaryPart, ...]:
    """Split the messages into parts of at most `room` tokens. A larger exchange loses its
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
    """Return a message as text for a summariser. An earlier summary is passed separately."""
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
    plan: CompactionPlan, words: Wording, part: SummaryPart, step: int, of: int, previous: str
) -> str:
    """Return the message that asks for the summary up to and including this part. `previous` is the
    summary of the earlier parts, quoted."""
    pieces = [words.summary_before.format(summary=previous)] if previous else []
    pieces.append(_PART.format(step=step, of=of, tag=TAG, text=part.text))
    if previous:
        pieces.append(words.summary_whole)
    pieces.append(summary_instruction(plan, words, is_last=step == of, in_parts=True))
    return "\n\n".join(pieces)
