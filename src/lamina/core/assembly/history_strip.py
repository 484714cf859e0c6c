"""Cuts history at its own limits and replaces the removed messages.

Laws: a summary replaces removed messages, and the removal is reported. The content of an earlier
strip is carried over into the next one.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import asdict

from lamina.core.assembly.budget import assemble_standing
from lamina.core.compaction.cuts import choose_turn, find_cuts, has_more_turns, last_turns_start
from lamina.core.compaction.extractive_summary import extract_summary
from lamina.core.compaction.summary_sheet import NOTICE, shorten
from lamina.core.compaction.touched_files import TouchedFiles, merge_files, touched_files
from lamina.core.journal import SUMMARY_ID, State
from lamina.core.layers import MESSAGE_TOKENS, Assembler
from lamina.core.text.headers import UNDER_WAY
from lamina.core.values.message import Message
from lamina.core.values.patch import CompactionApply
from lamina.core.values.prompt import total_tokens
from lamina.core.values.request import Boundary, LeftOut

OVER_HISTORY = Boundary(kind="history", reason="history is over its limit")
# How much of a question is kept when its own turn is cut in the middle.
QUESTION_TOKENS = 2_000


def next_question(messages: Sequence[Message], cut: int) -> int:
    """Return the first cut at or after `cut` that is followed by a user message, or None."""
    for place in find_cuts(messages):
        if place >= cut and (place == len(messages) or messages[place].role == "user"):
            return place
    return cut


class HistoryCut(Struct, frozen=True, kw_only=True):
    """The new start of history, and the room for its summary."""

    first_kept: int
    summary_room: int | None = None


def limit_history(state: State, assembler: Assembler) -> HistoryCut | None:
    """Return the cut that is due if history exceeds one of its own limits."""
    settings, cached = state.settings, state.envelope.cached
    if settings.history == "strip":
        messages = cached.since(0)
        if has_more_turns(messages, settings.strip_after_turns):
            return HistoryCut(first_kept=last_turns_start(messages, settings.strip_turns))
    most = settings.history_messages
    if most is not None and len(cached) > most:
        # One message is the summary's.
        keep, messages = int(most * settings.prune_to) - 1, cached.since(0)
        first_kept = choose_turn(messages, [1] * len(messages), keep, at_most=most - 1)
        return HistoryCut(first_kept=first_kept, summary_room=None if most else 0)
    tokens = settings.history_tokens
    if tokens is not None and _history_tokens(state, assembler) > tokens:
        goal = int(tokens * settings.prune_to)
        summary = min(settings.summary_tokens, goal // 2)
        messages = cached.since(0)
        sizes = assembler.message_sizes(messages)
        first_kept = choose_turn(messages, sizes, goal - summary, at_most=tokens - summary)
        return HistoryCut(first_kept=first_kept, summary_room=summary)
    return None


def _history_tokens(state: State, assembler: Assembler) -> int:
    """Return the tokens of L4 without its items; taken from running totals, so the cost is
    negligible."""
    prompt = assemble_standing(state, assembler)
    in_place = sum(
        assembler.item_tokens(state.library.items[item, version])
        for item, standing in state.library.standing.items()
        if not standing.in_library
        for version in standing.versions
    )
    return total_tokens(prompt.history) - in_place


def splits_turn(state: State, after: int, first_kept: int) -> bool:
    return state.turn.start is not None and after <= state.turn.start < first_kept


def summarise(
    state: State,
    dropped: Sequence[Message],
    assembler: Assembler,
    *,
    split: bool,
    room: int | None = None,
) -> str:
    """Return a replacement for `dropped` of at most `summary_tokens`; nothing if not even the
    notice fits into `room`. If a turn is cut in the middle, its question comes first and is kept
    whatever the room."""
    question = ""
    if split:
        text = shorten(state.turn.question, QUESTION_TOKENS, assembler.count_text)
        question = f"{UNDER_WAY.text}\n{text}"
    limit = state.settings.summary_tokens
    if room is not None:
        limit = min(limit, room - MESSAGE_TOKENS - assembler.count_text(question))
        if limit < assembler.count_text(NOTICE):
            return question
    carried = "\n".join(message.text for message in dropped if message.id == SUMMARY_ID)
    rest = [message for message in dropped if message.id != SUMMARY_ID]
    summary = extract_summary(rest, limit, assembler.count_text, carried=carried)
    return f"{summary}\n\n{question}" if question else summary


def compact(
    state: State, dropped: Sequence[Message], first_kept: int, summary: str, reason: str,
    assembler: Assembler, *, after: int = 0, files: TouchedFiles | None = None,
) -> tuple[CompactionApply, LeftOut]:  # fmt: skip
    """Return the operation that replaces `dropped` with `summary`, and the report of it."""
    if files is None:
        # Files from earlier compactions stay on the list.
        known = TouchedFiles(read=state.read_files, modified=state.modified_files)
        files = merge_files(known, touched_files(dropped))
    op = CompactionApply(
        first_kept=first_kept, after=after, summary=summary, reason=reason, **asdict(files)
    )
    tokens = sum(assembler.message_sizes(dropped))
    what = f"messages {dropped[0].id}..{dropped[-1].id}"
    detail = f"{len(dropped)} earlier messages ({tokens:,} tokens) gave way to a summary"
    return op, LeftOut(what=what, reason="history", detail=detail, tokens=tokens)
