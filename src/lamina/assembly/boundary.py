"""Boundaries: the library is rebuilt from what stands, and history cut at its own limits.

Law: what goes is reported, and a summary stands for messages that do.
"""

from collections.abc import Sequence

from msgspec import Struct

from lamina.assembly import budget
from lamina.assembly.page import Page
from lamina.assembly.truncation import Exchange, shorten_text
from lamina.compaction import (
    NOTICE,
    TouchedFiles,
    choose_cut,
    extract_summary,
    find_cuts,
    last_turns_start,
    merge_files,
    touched_files,
)
from lamina.journal import SUMMARY_ID, State
from lamina.layers import MESSAGE_TOKENS, Assembler
from lamina.text import label_of
from lamina.values.envelope import LaidItem
from lamina.values.item import MEDIUM, ItemId, kind_of
from lamina.values.message import Message
from lamina.values.patch import CompactionApply, Display, LibraryConsolidate, Patch, PatchOp
from lamina.values.prompt import total_tokens
from lamina.values.request import LeftOut

# How much of a question stays when its own turn is cut in the middle.
QUESTION_TOKENS = 2_000
# Who writes what a boundary does.
BOUNDARY = "lamina.boundary"
UNDER_WAY = "The question that is being worked on:"


class PruneOutcome(Struct, frozen=True, kw_only=True):
    """What a boundary took away."""

    evicted: tuple[budget.PruneCandidate, ...] = ()
    dropped_messages: int = 0
    reports: tuple[LeftOut, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.evicted or self.dropped_messages or self.reports)


def consolidate(
    pen: Page,
    assembler: Assembler,
    reason: str,
    *,
    first_kept: int = 0,
    evicted: tuple[budget.PruneCandidate, ...] = (),
    summary_room: int | None = None,
    summary: str | None = None,
    files: TouchedFiles | None = None,
    short: Exchange | None = None,
    transformer: str = BOUNDARY,
) -> PruneOutcome:
    """Rebuilds the library from what stands, and cuts history before `first_kept`, where `short`
    may begin. Writes nothing if nothing would change. `summary` stands for what goes; without one
    it is extracted."""
    state = pen.state
    gone = {candidate.item for candidate in evicted}
    in_place = _in_place(state, first_kept)
    library, reports = _plan_library(state, gone | set(in_place))
    ops: list[PatchOp] = []
    stale = any(message.context for message in state.envelope.cached)
    if library != state.envelope.library or stale:
        # First, so that what a cut leaves of the question under way can name what was laid down.
        ops.append(LibraryConsolidate(items=library, in_place=in_place, reason=reason))
    if first_kept:
        dropped = state.envelope.cached.until(first_kept).since(0)
        if summary is None:
            split = splits_turn(state, 0, first_kept)
            summary = summarise(state, dropped, assembler, split=split, room=summary_room)
        if not summary:
            # With no summary in front, history has to begin with a question.
            first_kept = _next_question(state.envelope.cached.since(0), first_kept)
            dropped = state.envelope.cached.until(first_kept).since(0)
        files = files or files_gone(state, dropped)
        ops.append(
            CompactionApply(
                first_kept=first_kept,
                summary=summary,
                reason=reason,
                read=files.read,
                modified=files.modified,
            )
        )
        reports.append(report_history(dropped, assembler))
    if short and short.start >= first_kept:
        ops += short.ops
        reports += short.reports
    if ops:
        pen.transform(
            transformer,
            Patch(ops=tuple(ops), display=_display(reason, library, first_kept, evicted)),
        )
    return PruneOutcome(evicted=evicted, dropped_messages=first_kept, reports=tuple(reports))


def files_gone(state: State, dropped: Sequence[Message]) -> TouchedFiles:
    """The files of messages that go, and of all that went before."""
    known = TouchedFiles(read=state.read_files, modified=state.modified_files)
    return merge_files(known, touched_files(dropped))


def _next_question(messages: Sequence[Message], cut: int) -> int:
    """The first cut from `cut` on behind which a user's message stands, or nothing."""
    later = (each for each in find_cuts(messages) if each >= cut)
    return next(
        (each for each in later if each == len(messages) or messages[each].role == "user"), cut
    )


def _in_place(state: State, first_kept: int) -> tuple[ItemId, ...]:
    """Items with images that the question under way brought: they cannot go into the library, and
    the turn still needs them."""
    start = state.turn_start
    context = state.envelope.cached[start].context if start is not None else None
    if context is None or start is None or start < first_kept:
        return ()
    full = [use for use in context.uses if use.form == "full"]
    return tuple(use.item for use in full if state.items[use.item, use.version].pictures)


class HistoryCut(Struct, frozen=True, kw_only=True):
    """Where history begins from now on, and what room its summary has."""

    first_kept: int
    summary_room: int | None = None


def limit_history(state: State, assembler: Assembler) -> HistoryCut | None:
    """The cut that is due if history is over one of its own limits."""
    settings, cached = state.settings, state.envelope.cached
    if settings.history == "strip":
        start = last_turns_start(cached.since(0), settings.strip_after_turns)
        if start > 0:
            return HistoryCut(first_kept=last_turns_start(cached.since(0), settings.strip_turns))
    most = settings.history_messages
    if most is not None and len(cached) > most:
        # One message is the summary's.
        keep = max(0, int(most * settings.prune_to) - 1)
        first_kept = choose_cut(cached.since(0), [1] * len(cached), keep)
        return HistoryCut(first_kept=first_kept, summary_room=None if most else 0)
    tokens = settings.history_tokens
    if tokens is not None and _history_tokens(state, assembler) > tokens:
        goal = int(tokens * settings.prune_to)
        summary = min(settings.summary_tokens, goal // 2)
        sizes = assembler.message_sizes(cached.since(0))
        first_kept = choose_cut(cached.since(0), sizes, goal - summary)
        return HistoryCut(first_kept=first_kept, summary_room=summary)
    return None


def _history_tokens(state: State, assembler: Assembler) -> int:
    """L4 without the items that stand in it; from running totals, so it costs nothing."""
    prompt = assembler.assemble(state.envelope, state.items, len(state.envelope.cached))
    in_place = sum(
        assembler.item_tokens(state.items[item, version])
        for item, standing in state.standing.items()
        if not standing.in_library
        for version in standing.versions
    )
    return total_tokens(prompt.history) - in_place


def splits_turn(state: State, after: int, first_kept: int) -> bool:
    return state.turn_start is not None and after <= state.turn_start < first_kept


def _plan_library(state: State, gone: set[ItemId]) -> tuple[tuple[LaidItem, ...], list[LeftOut]]:
    library: list[LaidItem] = []
    reports: list[LeftOut] = []
    for item_id, standing in state.standing.items():
        if not standing.current:
            detail = f"{label_of(item_id)} no longer applied"
            reports.append(LeftOut(what=item_id, reason="superseded", detail=detail))
            continue
        item = state.items[item_id, standing.current]
        if len(standing.versions) > 1:
            detail = f"{label_of(item_id)}: {len(standing.versions) - 1} earlier version(s) removed"
            reports.append(LeftOut(what=item_id, reason="superseded", detail=detail))
        if item_id in state.forgotten and item_id not in state.pinned:
            detail = f"{label_of(item_id)} was removed by request"
            reports.append(LeftOut(what=item_id, reason="removed", detail=detail))
        elif item_id in gone:
            continue
        elif item.pictures:
            detail = f"{label_of(item_id)} has images and does not go into the library"
            reports.append(LeftOut(what=item_id, reason="has_images", detail=detail))
        else:
            library.append(LaidItem(item=item_id, version=standing.current))
    return tuple(library), reports


def standing_sizes(state: State, assembler: Assembler) -> list[budget.PruneCandidate]:
    sized = []
    for item_id, standing in state.standing.items():
        if not standing.current:
            continue
        item = state.items[item_id, standing.current]
        if item.pictures or item_id in state.forgotten:
            continue
        known = state.known.get(item_id)
        sized.append(
            budget.PruneCandidate(
                item=item_id,
                label=label_of(item_id),
                tokens=assembler.item_tokens(item),
                priority=known.priority if known else MEDIUM,
                essential=item_id in state.pinned
                or kind_of(item_id) == "rule"
                or bool(known and known.essential),
                # Least recently named first; among those named together, the earliest added.
                recency=(known.named << 20) + known.added if known else 0,
            )
        )
    return sized


def summarise(
    state: State,
    dropped: Sequence[Message],
    assembler: Assembler,
    *,
    split: bool,
    room: int | None = None,
) -> str:
    """What stands for `dropped`; nothing if not even the notice fits into `room`. The question of
    a turn that is cut in the middle comes first, and stays whatever the room."""
    question = ""
    if split:
        kept = shorten_text(state.question, QUESTION_TOKENS, assembler.count_text)
        question = f"{UNDER_WAY}\n{kept}"
    limit = state.settings.summary_tokens
    if room is not None:
        limit = min(limit, room - MESSAGE_TOKENS - assembler.count_text(question))
        if limit < assembler.count_text(NOTICE):
            return question
    carried = "\n".join(message.text for message in dropped if message.id == SUMMARY_ID)
    rest = [message for message in dropped if message.id != SUMMARY_ID]
    summary = extract_summary(rest, limit, assembler.count_text, carried=carried)
    return f"{summary}\n\n{question}" if question else summary


def report_history(dropped: Sequence[Message], assembler: Assembler) -> LeftOut:
    tokens = sum(assembler.message_sizes(dropped))
    what = f"messages {dropped[0].id}..{dropped[-1].id}"
    detail = f"{len(dropped)} earlier messages ({tokens:,} tokens) gave way to a summary"
    return LeftOut(what=what, reason="history", detail=detail, tokens=tokens)


def _display(
    reason: str,
    library: tuple[LaidItem, ...],
    first_kept: int,
    evicted: tuple[budget.PruneCandidate, ...],
) -> Display:
    lines = [f"Reason: {reason}", "", "Library:"]
    lines += [f"- {label_of(laid.item)} `{laid.version[:8]}`" for laid in library] or ["- empty"]
    if evicted:
        lines += ["", "Left the library for want of room:"]
        lines += [f"- {candidate.label} ({candidate.tokens:,} tokens)" for candidate in evicted]
    if first_kept:
        lines += ["", f"{first_kept} messages gave way to a summary."]
    return Display(title=f"Boundary: {reason}", summary=f"{len(library)} items in the library",
                   markdown="\n".join(lines))  # fmt: skip
