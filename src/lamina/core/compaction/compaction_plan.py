"""Decides when history is compacted, and plans it: what goes, what stays, and facts about both.

Laws: the same messages yield the same plan. A plan never separates a tool call from its result, and
never removes calls whose results are still pending. No plan is made that would not help, so that
compaction cannot loop. Nothing here calls a model.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

from msgspec import Struct

from lamina.core.compaction.cuts import find_cuts
from lamina.core.compaction.summary_sheet import flatten, question_line, typed_text
from lamina.core.compaction.touched_files import NO_FILES, TouchedFiles, merge_files, touched_files
from lamina.core.journal import SUMMARY_ID
from lamina.core.text import label_of
from lamina.core.values.message import Message
from lamina.core.values.settings import Settings

# Only `cold` of these could wait: the window is not full yet.
Trigger = Literal["threshold", "cold", "overflow", "manual", "history"]

RESERVE, KEEP = 16_384, 20_000
# Future turns are assumed to need at most this share of the room.
AHEAD_SHARE = 0.25
# A summary is a message of its own, and names items that the current question still uses.
MARGIN = 64


def reserve_limit(settings: Settings, window: int) -> int:
    """Return the tokens of the window to keep free: with less free, compaction is due."""
    tokens = settings.compaction_reserve
    return min(RESERVE, window // 4) if tokens is None else tokens


def keep_limit(settings: Settings, window: int) -> int:
    """Return the tokens of the latest history that are kept word for word."""
    tokens = settings.compaction_keep
    return min(KEEP, window // 3) if tokens is None else tokens


def summary_limit(settings: Settings, window: int) -> int:
    """Return the maximum tokens of a summary: in a small window at most half of the history kept
    beside it."""
    return min(settings.compaction_summary, max(1, min(KEEP, window // 3) // 2))


def compaction_margin(summary_tokens: int) -> int:
    """Return the tokens that a cut must free in addition to its summary. While the window is not
    full, a cut is not urgent and must be worth the cache that it breaks."""
    return max(MARGIN, summary_tokens // 2)


def is_compaction_due(tokens: int, settings: Settings, window: int) -> bool:
    """Return whether a request of this size needs compaction; never if compaction is off."""
    return settings.compaction != "off" and tokens > window - reserve_limit(settings, window)


def is_compaction_near(
    tokens: int, most: int, settings: Settings, messages: Sequence[Message], sizes: Sequence[int]
) -> bool:
    """Return whether a request of this size leaves too little of `most`, its limit, for future
    turns, if they are like those in `messages`."""
    ahead = settings.compaction_ahead * _turn_tokens(messages, sizes)
    return tokens > most - min(ahead, int(AHEAD_SHARE * most))


def _turn_tokens(messages: Sequence[Message], sizes: Sequence[int]) -> int:
    """Return the average tokens of the turns after the latest summary."""
    begin = max((i + 1 for i, m in enumerate(messages) if m.id == SUMMARY_ID), default=0)
    turns = sum(is_question(message) for message in messages[begin:])
    return sum(sizes[begin:]) // max(1, turns)


class NoCompaction(Struct, frozen=True):
    """The reason why compaction would not help, as a sentence for display."""

    reason: str


class CompactionPlan(Struct, frozen=True, kw_only=True):
    """Messages before `first_kept` are replaced by a summary."""

    first_kept: int
    # The start of the turn that the cut goes through, and its question.
    turn_begin: int | None = None
    question: str = ""
    # The goal of the session, if the caller supplies it.
    goal: str = ""
    # The summary of an earlier compaction; its message is among those removed.
    previous_summary: str = ""
    # Files of the removed part, and of everything removed earlier.
    files: TouchedFiles = NO_FILES
    tokens_dropped: int
    tokens_kept: int
    # The maximum tokens of a summary.
    summary_tokens: int
    trigger: Trigger = "threshold"
    # The beginning of the first message that stays.
    kept_line: str = ""

    @property
    def dropped(self) -> range:
        return range(self.first_kept)

    @property
    def splits_turn(self) -> bool:
        return self.turn_begin is not None


def plan_compaction(
    messages: Sequence[Message],
    sizes: Sequence[int],
    *,
    keep: int,
    summary_tokens: int,
    turn_start: int | None = None,
    question: str = "",
    goal: str = "",
    known_files: TouchedFiles = NO_FILES,
    trigger: Trigger = "threshold",
) -> CompactionPlan | NoCompaction:
    """Return the plan for these messages, keeping about the last `keep` tokens, or the reason why
    there is none. `question` is the text typed in the current turn: its message may be gone
    already."""
    first_kept = _choose(messages, sizes, keep)
    if isinstance(first_kept, NoCompaction):
        return first_kept
    dropped_tokens = sum(sizes[:first_kept])
    margin = compaction_margin(summary_tokens) if trigger in ("threshold", "cold") else MARGIN
    if dropped_tokens <= summary_tokens + margin:
        return NoCompaction(
            f"only {dropped_tokens:,} tokens could go, which is not enough: the summary that would "
            f"stand for them may take {summary_tokens:,}, and the cut has to free {margin:,} more"
        )
    past = messages[:first_kept]
    begin = _turn_cut_by(messages, first_kept, turn_start)
    turn_question = ""
    if begin is not None:
        under_way = begin == turn_start and question
        turn_question = question if under_way else _question_in(messages[begin])
    return CompactionPlan(
        first_kept=first_kept,
        turn_begin=begin,
        question=turn_question,
        goal=goal,
        previous_summary=summary_among(past),
        files=merge_files(known_files, touched_files(past)),
        tokens_dropped=dropped_tokens,
        tokens_kept=sum(sizes[first_kept:]),
        summary_tokens=summary_tokens,
        trigger=trigger,
        kept_line=_opening_of(messages[first_kept]),
    )


def plan_strip(
    messages: Sequence[Message],
    sizes: Sequence[int],
    first_kept: int,
    *,
    summary_tokens: int,
    goal: str = "",
    known_files: TouchedFiles = NO_FILES,
) -> CompactionPlan:
    """Return the plan of a cut between two turns, as required by limits on history."""
    past = messages[:first_kept]
    return CompactionPlan(
        first_kept=first_kept,
        goal=goal,
        previous_summary=summary_among(past),
        files=merge_files(known_files, touched_files(past)),
        tokens_dropped=sum(sizes[:first_kept]),
        tokens_kept=sum(sizes[first_kept:]),
        summary_tokens=summary_tokens,
        trigger="history",
        kept_line=_opening_of(messages[first_kept]) if first_kept < len(messages) else "",
    )


def summary_among(messages: Sequence[Message]) -> str:
    """Return an earlier cut's summary, if these messages contain one."""
    return "\n\n".join(message.text for message in messages if message.id == SUMMARY_ID)


def is_question(message: Message) -> bool:
    """Return whether a message is a person's question, not a summary or laid-down items alone."""
    return message.role == "user" and message.id != SUMMARY_ID and bool(question_line(message))


def _choose(messages: Sequence[Message], sizes: Sequence[int], keep: int) -> int | NoCompaction:
    """Return the new start of history: the start of a turn, unless cutting through one keeps more
    than twice as much. The latest exchange stays even if it does not fit whole."""
    tail = [*reversed([*accumulate(reversed(sizes), initial=0)])]
    if tail[0] <= keep:
        return NoCompaction(f"all of history ({tail[0]:,} tokens) is within the {keep:,} that stay")
    # The new summary includes the earlier one; the two never stand side by side.
    summary = max((i for i, message in enumerate(messages) if message.id == SUMMARY_ID), default=0)
    cuts = [cut for cut in find_cuts(messages) if summary < cut < len(messages)]
    if not cuts:
        return NoCompaction("there is nothing in front of the latest exchange that could go")
    fitting_cuts = [cut for cut in cuts if tail[cut] <= keep] or cuts[-1:]
    turns = [cut for cut in fitting_cuts if messages[cut].role == "user"]
    if turns and tail[turns[0]] * 2 >= tail[fitting_cuts[0]]:
        return turns[0]
    return fitting_cuts[0]


def _turn_cut_by(messages: Sequence[Message], cut: int, turn_start: int | None) -> int | None:
    """Return the start of the turn that a cut goes through; None if it goes between two turns."""
    if turn_start is not None and turn_start < cut:
        return turn_start
    if turn_start == cut or messages[cut].role == "user":
        return None
    begins = (i for i in range(cut - 1, -1, -1) if messages[i].role == "user")
    # If none of them is a question, the turn started before a summary, which contains its question.
    return next(
        (i for i in begins if is_question(messages[i]) or messages[i].id == SUMMARY_ID), None
    )


def _question_in(message: Message) -> str:
    return typed_text(message) if is_question(message) else ""


def _opening_of(message: Message) -> str:
    if line := question_line(message):
        return line
    tool_names = dict.fromkeys(call.name for call in message.calls)
    labels = [label_of(use.item) for use in message.context.uses] if message.context else []
    return flatten(f"(calls {', '.join(tool_names)})" if tool_names else ", ".join(labels))
