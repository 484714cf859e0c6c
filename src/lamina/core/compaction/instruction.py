"""Asking a model for a summary, and what is made of its answer.

Laws: the same plan gives the same words. What a model writes is used as text: nothing is read out
of it. What Lamina knows itself (files, the question under way) is not left to the model.
"""

from collections.abc import Sequence

from lamina.core.compaction.files import TouchedFiles
from lamina.core.compaction.plan import CompactionPlan
from lamina.core.compaction.quotes import Count, quote, quote_within
from lamina.core.compaction.summary_sheet import NOTICE, SECTIONS, without_notice
from lamina.core.text import one_line

MOST_FILES = 100
# Characters of the question that are repeated to the model.
QUOTED = 4_000
READ, MODIFIED = SECTIONS["read"], SECTIONS["modified"]

_TASK = """\
Write a summary of the conversation above. It will take the place of the messages it covers:
whoever goes on sees the summary and what stays, and nothing else. Do not answer any question
above, do not go on with the work and do not call tools."""
_SCOPE = """\
The message that begins as follows, and all behind it, stays word for word.
Summarise only what stands before it.
> {line}"""
_SCOPE_UNKNOWN = "The latest messages stay word for word. Summarise only what stands before them."
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
_TURN = """\
## Turn in progress
The cut goes through a turn whose later steps stay. Add this part for it: what was asked, what was
done for it so far, and what the later steps build on."""
_EARLIER = """\
An earlier summary stands among the messages. The messages it was made from are gone: carry over
everything in it that still holds, and move what was finished since to Done."""
_FILES = """\
These files were touched. The lists are appended to your summary as they are; do not repeat them.

{files}"""
_LENGTH = """\
Write at most {words:,} words ({tokens:,} tokens). Keep names, paths, numbers and error messages
exactly as they are. Answer with the summary alone."""


def summary_instruction(
    plan: CompactionPlan, *, in_parts: bool = False, is_last: bool = True
) -> str:
    """The user message that asks for the summary of what `plan` drops; it follows those messages,
    or all of them. `in_parts`, it follows a part of them, with nothing behind it and the earlier
    summary told; what is to be said of the cut is for the last part."""
    parts = [_TASK]
    if not in_parts:
        parts.append(_SCOPE.format(line=plan.kept_line) if plan.kept_line else _SCOPE_UNKNOWN)
    parts.append(_HEADINGS)
    if plan.splits_turn and is_last:
        parts.append(_TURN)
        if plan.question.strip():
            parts.append(f"What was asked in it:\n{quote_within(plan.question, QUOTED, len)}")
    if plan.previous_summary and not in_parts:
        parts.append(_EARLIER)
    if is_last and (files := _list_files(plan.files)):
        parts.append(_FILES.format(files=files))
    words = max(1, plan.summary_tokens * 3 // 4)
    parts.append(_LENGTH.format(words=words, tokens=plan.summary_tokens))
    return "\n\n".join(parts)


def finish_summary(text: str, files: TouchedFiles, *, question: str = "") -> str:
    """A model's summary as it will stand: trimmed, behind the notice that messages were removed,
    with the files behind it. `question` is that of a turn cut in the middle, word for word. Empty
    if the model wrote nothing."""
    body = without_notice(_strip_fence(text.strip()))
    if not body:
        return ""
    parts = [NOTICE, body]
    if question.strip():
        parts.append(f"The question that is being worked on:\n{quote(question)}")
    return "\n\n".join(filter(None, (*parts, _list_files(files))))


def is_usable_summary(summary: str, dropped_tokens: int, count: Count) -> bool:
    """Whether a summary says something and is smaller than what it stands for."""
    return bool(summary.strip()) and count(summary) < dropped_tokens


def _list_files(files: TouchedFiles) -> str:
    lists = ((READ, files.read), (MODIFIED, files.modified))
    return "\n\n".join(f"{title}\n{_list(paths)}" for title, paths in lists if paths)


def _list(paths: Sequence[str]) -> str:
    """The latest of these, and how many more there are."""
    rest = len(paths) - MOST_FILES
    more = [f"- ({rest:,} more, not listed)"] if rest > 0 else []
    return "\n".join([*more, *(f"- {one_line(path)}" for path in paths[-MOST_FILES:])])


def _strip_fence(text: str) -> str:
    """`text` without a code fence around all of it."""
    lines = text.splitlines()
    is_fenced = len(lines) > 2 and lines[0].startswith("```") and lines[-1].strip() == "```"
    if is_fenced and not any(line.startswith("```") for line in lines[1:-1]):
        return "\n".join(lines[1:-1]).strip()
    return text
