"""Summarises removed messages without a model.

Laws: a summary is extractive, the same for the same messages, and never over its limit. It states
only facts from the messages: where nothing was found it says so, rather than that there is nothing.
An earlier summary is carried over as text and never parsed.
"""

import re
from collections.abc import Iterator, Sequence

from lamina.core.compaction.compaction_plan import CompactionPlan, is_question
from lamina.core.compaction.summary_sheet import (
    NOTICE,
    Count,
    SummarySheet,
    first_line,
    flatten,
    has_notice,
    question_line,
    quote_within,
    shorten,
    typed_text,
    without_notice,
)
from lamina.core.text import one_line
from lamina.core.text.headers import UNDER_WAY
from lamina.core.text.wording import Wording
from lamina.core.values.message import Message, Text, ToolResult

# The maximum length of a message's line: the preferred length, or one at which all of them fit.
WIDTHS = (160, 100, 64, 40)


def extract_summary(
    messages: Sequence[Message], limit: int, count: Count, *, carried: str = ""
) -> str:
    """Return a notice of the removal followed, up to `limit` tokens, by the first line of each
    question and answer: the latest are preferred, in their original order. `carried` is the summary
    at the start of these messages. It gets the remaining room, at least half, and loses its middle
    above that; lines are shortened before the first ones are dropped."""
    lines, head = _headlines(messages, limit - count(NOTICE), count), NOTICE
    if carried:
        taken = sum(count(line) + 1 for line in lines)
        earlier = shorten(carried, max(limit // 2, limit - taken), count)
        # If it is too short to say what it is, it is useless.
        head = earlier if earlier == carried or has_notice(earlier) else NOTICE
        lines = _headlines(messages, limit - count(head), count)
    size, first = count(head), len(lines)
    while first and (size := size + count(lines[first - 1]) + 1) <= limit:
        first -= 1
    # Joined lines may have more tokens than the sum of single lines.
    while count(text := "\n".join([head, *lines[first:]])) > limit and first < len(lines):
        first += 1
    return text


def _headlines(messages: Sequence[Message], room: int, count: Count) -> list[str]:
    """Return a line for each message that has text, short enough for all of them to fit, if
    possible."""
    lines: list[str] = []
    for width in WIDTHS:
        lines = [line for message in messages if (line := _headline(message, width))]
        if sum(count(line) + 1 for line in lines) <= room:
            break
    return lines


def _headline(message: Message, width: int) -> str:
    if message.role == "tool":
        return ""
    text = " ".join(block.text for block in message.blocks if isinstance(block, Text))
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if message.calls:
        names = ", ".join(call.name for call in message.calls)
        first = f"{first} (called {names})".strip()
    if not first:
        return ""
    who = "Asked" if message.role == "user" else "Answered"
    return f"{who}: {first if len(first) <= width else first[: width - 1].rstrip() + '…'}"


# -- compaction ----------------------------------------------------------------------------------

# The maximum shares of a summary for a quoted question, the earlier summary and a list of files.
QUESTION_SHARE, EARLIER_SHARE, FILES_SHARE = 0.35, 0.4, 0.15
MAX_LINES = 8
# Lines worth keeping word for word. Other styles are quoted less.
_CONSTRAINT = re.compile(
    r"\b(must|mustn't|never|always|do not|don't|prefer|avoid|make sure)\b", re.I
)
_DECISION = re.compile(
    r"\b(decided|decision|chose|agreed|went with|(?:we|i)(?:'ll| will) use)\b", re.I
)
_NEXT = re.compile(r"\W*(next(?: steps?)?|todo|to do|remaining|still to do)\b\W*(.*)", re.I)
_BULLET = re.compile(r"\s*(?:[-*+•]|\d+[.)])\s+(.*)")


def extract_plan_summary(
    plan: CompactionPlan,
    messages: Sequence[Message],
    limit: int,
    count: Count,
    words: Wording,
) -> str:
    """Return the summary of the messages that `plan` drops from `messages`, within `limit` tokens
    and smaller than the part it replaces. Empty if not even its first line fits. Empty sections say
    that nothing was found; if room is short they are left out."""
    limit = min(limit, plan.tokens_dropped - 1)
    past = messages[: plan.first_kept]
    begin = len(past) if plan.turn_begin is None else plan.turn_begin
    before, turn = past[:begin], past[begin:]
    sheet = SummarySheet(limit, count)
    # In order of worth: the first ones get the room.
    _add_question(sheet, plan, int(limit * QUESTION_SHARE), count)
    sheet.add("goal", _goal_lines(plan, past, words))
    _add_files(sheet, "modified", plan.files.modified, int(limit * FILES_SHARE), count)
    if earlier := without_notice(plan.previous_summary):
        quotation = quote_within(earlier, int(limit * EARLIER_SHARE), count, flat=True)
        sheet.add("context", [f"{words.earlier_summary}\n{quotation}"] if quotation else [])
    sheet.add("blocked", _blocked_lines(messages, plan.first_kept), latest_first=True)
    sheet.add("constraints", _marked_lines(before, "user", _CONSTRAINT), latest_first=True)
    sheet.add("decisions", _marked_lines(past, "assistant", _DECISION), latest_first=True)
    sheet.add("next", _next_lines(past), latest_first=True)
    sheet.add("progress", _step_lines(turn), latest_first=True)
    sheet.add("done", _done_lines(before, words), latest_first=True)
    _add_files(sheet, "read", plan.files.read, int(limit * FILES_SHARE), count)
    return sheet.render()


def _add_question(sheet: SummarySheet, plan: CompactionPlan, room: int, count: Count) -> None:
    if not plan.splits_turn:
        return
    quotation = quote_within(plan.question, room, count) if plan.question.strip() else ""
    question = quotation or f"> {first_line(plan.question) or '(see the earlier summary)'}"
    sheet.add("progress", [f"{UNDER_WAY.text}\n{question}"])


def _goal_lines(plan: CompactionPlan, past: Sequence[Message], words: Wording) -> list[str]:
    if plan.goal.strip():
        return [f"- {first_line(plan.goal)}"]
    if plan.previous_summary:
        return [f"- {words.goal_in_earlier}"]
    return [f"- {question_line(message)}" for message in past if is_question(message)][:1]


def _add_files(
    sheet: SummarySheet, section: str, paths: Sequence[str], room: int, count: Count
) -> None:
    """Add the latest of these files that fit into `room`, and the number of the others."""
    lines: list[str] = []
    for path in reversed(paths):
        line = f"- {one_line(path)}"
        room -= count(line) + 1
        if room < 0:
            break
        lines.append(line)
    rest = len(paths) - len(lines)
    more = [f"- ({rest:,} more, not listed)"] if rest else []
    sheet.add(section, [*more, *reversed(lines)], latest_first=True)


def _blocked_lines(messages: Sequence[Message], first_kept: int) -> list[str]:
    """Return the tools whose last result is an error, with its text."""
    last: dict[str, tuple[int, ToolResult]] = {}
    for index, message in enumerate(messages):
        for block in message.blocks:
            if isinstance(block, ToolResult):
                last.pop(block.name, None)
                last[block.name] = (index, block)
    return [
        f"- {flatten(result.name)} failed: {first_line(result.text) or '(no message)'}"
        for index, result in last.values()
        if result.is_error and index < first_kept
    ]


def _marked_lines(messages: Sequence[Message], role: str, mark: re.Pattern[str]) -> list[str]:
    """Return the latest lines by a role that contain one of these words."""
    lines: dict[str, None] = {}
    for message in messages:
        if message.role == role and (role != "user" or is_question(message)):
            for line in typed_text(message).splitlines():
                if mark.search(line):
                    lines[f"- {flatten(_without_bullet(line))}"] = None
    return list(lines)[-MAX_LINES:]


def _next_lines(past: Sequence[Message]) -> list[str]:
    """Return the next step named in the last final answer: the rest of that line, or the list below
    it."""
    final = (
        message for message in reversed(past) if message.role == "assistant" and not message.calls
    )
    lines = next((text for text in map(typed_text, final) if text.strip()), "").splitlines()
    next_lines: list[str] = []
    listing = False
    for line in lines:
        bullet = _BULLET.match(line)
        if listing and bullet:
            next_lines.append(f"- {flatten(bullet[1])}")
        elif match := _NEXT.match(line):
            listing = not match[2].strip()
            next_lines += [] if listing else [f"- {flatten(_without_bullet(line))}"]
        elif line.strip():
            listing = False
    return next_lines[-MAX_LINES:]


def _without_bullet(line: str) -> str:
    match = _BULLET.match(line)
    return match[1] if match else line


def _done_lines(messages: Sequence[Message], words: Wording) -> list[str]:
    """Return a line for each turn: its question, and the beginning of its last answer."""
    lines = []
    for question, rest in _turns(messages):
        question_part = f"Asked: {question_line(question)}" if question else words.went_on
        texts = [typed_text(message) for message in rest if message.role == "assistant"]
        answer = next((text for text in reversed(texts) if text.strip()), "")
        answer = first_line(answer, headings=False)
        if question or answer:
            lines.append(f"- {question_part} {f'Answered: {answer}' if answer else '(no answer)'}")
    return lines


def _turns(messages: Sequence[Message]) -> Iterator[tuple[Message | None, list[Message]]]:
    """Yield questions, each with the messages that followed; the first question is None for the
    remains of an earlier cut."""
    question: Message | None = None
    rest: list[Message] = []
    for message in messages:
        if is_question(message):
            if question or rest:
                yield question, rest
            question, rest = message, []
        else:
            rest.append(message)
    if question or rest:
        yield question, rest


def _step_lines(turn: Sequence[Message]) -> list[str]:
    """Return the text and the calls in the removed part of a turn."""
    lines = []
    for message in turn:
        if message.role != "assistant":
            continue
        text = first_line(typed_text(message))
        call_texts = [f"{call.name} {flatten(call.arguments, 60)}" for call in message.calls]
        calls = f"(called {flatten(', '.join(call_texts), 240)})" if call_texts else ""
        if text or calls:
            lines.append(f"- {' '.join(filter(None, (text, calls)))}")
    return lines
