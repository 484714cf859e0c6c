"""Prunes parts that were already sent, in big steps.

Law: a prune goes down to a share of the room (`prune_to`), so that the prefix moves once in many
turns and not on every one.
"""

from collections.abc import Sequence

from lamina.core.assembly.boundary import PruneOutcome, consolidate, standing_sizes
from lamina.core.assembly.budget import (
    EXCHANGE_SHARE,
    FULL_ENOUGH,
    HEADER_TOKENS,
    ITEMS_SHARE,
    Budget,
    PruneCandidate,
    Room,
    assemble_standing,
    drop_until,
)
from lamina.core.assembly.history_strip import compact, splits_turn, summarise
from lamina.core.assembly.request_draft import Page
from lamina.core.assembly.shortened_results import Exchange, shorten_exchange
from lamina.core.assembly.turn_items import applies
from lamina.core.compaction.cuts import choose_cut, choose_head, last_turns_start
from lamina.core.journal import SUMMARY_ID, State
from lamina.core.layers import Assembler
from lamina.core.values.item import Attachment, ItemId
from lamina.core.values.message import Message
from lamina.core.values.patch import Display, Patch, PatchOp

# A summary of this many tokens is made even if it uses all the remaining room.
SHORT_SUMMARY = 60


def prune(
    page: Page,
    assembler: Assembler,
    budget: Budget,
    *,
    turn_tokens: int,
    reason: str,
    attached: Sequence[Attachment] = (),
    keep_last: bool = False,
    cold: bool = False,
) -> PruneOutcome:
    """Prune what was sent: remove the middle of history if that is enough and fair, else lay
    everything out again. With `keep_last` the latest exchange stays whatever its size. `cold` means
    that the cache contains nothing any more."""
    room = budget.beside(assemble_standing(page.state, assembler), turn_tokens)
    outcome = _prune_middle(page, assembler, room, reason, attached, cold=cold)
    return outcome or _prune_by_worth(page, assembler, room, reason, attached, keep_last=keep_last)


def _prune_middle(
    page: Page, assembler: Assembler, room: Room, reason: str, attached: Sequence[Attachment],
    *, cold: bool,
) -> PruneOutcome | None:  # fmt: skip
    """Remove the middle of history. The head, with the conversation's original goal, keeps its
    bytes and its cache; the latest exchanges stay. If the cache is cold, more of them stay than of
    the head: they cost no more and are worth more. Return None if this would not suffice, or would
    remove an item while a less valuable one stays."""
    state, settings = page.state, page.state.settings
    free = room.for_history
    goal = int(settings.prune_to * free)
    messages = state.envelope.cached.since(0)
    sizes = assembler.message_sizes(messages, state.library.items)
    recent = int(goal * (1 - settings.prune_recent if cold else settings.prune_recent))
    first_kept = choose_cut(messages, sizes, recent, at_most=int(EXCHANGE_SHARE * free))
    latest = sum(sizes[first_kept:])
    # A large latest exchange stays beside the head; this leaves less room until the next prune.
    head_room = max(goal, int(EXCHANGE_SHARE * free)) if latest > recent else goal
    head_room -= latest + settings.summary_tokens
    after = choose_head(messages, sizes, head_room, known=_summaries(messages))
    if not 0 < after < first_kept - 1 or first_kept == len(messages):
        return None
    tokens = sum(sizes[:after]) + settings.summary_tokens + latest
    if tokens < FULL_ENOUGH * goal:
        # A short head leaves more room for the latest exchanges.
        first_kept = max(after, choose_cut(messages, sizes, goal - tokens + latest))
        tokens += sum(sizes[first_kept:]) - latest
    going = range(after, first_kept)
    edge = _short_edge(state, messages, sizes, going, goal, tokens, assembler, reason)
    first_kept = edge.start if edge else first_kept

    ops: list[PatchOp] = [*edge.ops] if edge else []
    reports = list(edge.reports) if edge else []
    title = "results shortened"
    lines = [f"Reason: {reason}", *(f"- {report.detail}" for report in reports)]
    dropped = messages[after:first_kept]
    if dropped:
        split = splits_turn(state, after, first_kept)
        summary = summarise(state, dropped, assembler, split=split)
        op, report = compact(state, dropped, first_kept, summary, reason, assembler, after=after)
        ops.append(op)
        reports.append(report)
        title = f"{len(dropped)} messages gave way to a summary"
        lines.append(f"What stands for {len(dropped)} messages:\n\n{summary}")
    elif not ops:
        return None
    display = Display(title=title, summary=reason, markdown="\n\n".join(lines))
    trial = page.copy()
    trial.transform("lamina.prune", Patch(ops=tuple(ops), display=display))
    evicted = _evicted_by(state, trial.state, goal, attached, assembler)
    if evicted is None:
        return None
    page.take(trial)
    return PruneOutcome(evicted=evicted, dropped_messages=len(dropped), reports=tuple(reports))


def _short_edge(
    state: State, messages: Sequence[Message], sizes: Sequence[int], going: range, goal: int,
    kept: int, assembler: Assembler, reason: str,
) -> Exchange | None:  # fmt: skip
    """Return the last of the removed exchanges, if little would be left without it: one that filled
    most of the window would otherwise be removed as soon as it was read.
    most of the window would otherwise be gone as soon as it was read."""
    if kept >= FULL_ENOUGH * goal:
        return None
    room, count = goal - kept, assembler.count_text
    return shorten_exchange(state, messages, sizes, going, room, count, reason)


def _evicted_by(
    before: State, after: State, goal: int, attached: Sequence[Attachment], assembler: Assembler
) -> tuple[PruneCandidate, ...] | None:
    """Return the items that no longer stand and are not laid down again in this turn; None if one
    of them is worth more than one that stays, or would leave an earlier version of itself."""
    lost: list[PruneCandidate] = []
    staying: list[PruneCandidate] = []
    for candidate in standing_sizes(before, assembler, attached):
        old, new = (
            before.library.standing[candidate.item],
            after.library.standing.get(candidate.item),
        )
        if new and new.current != old.current:
            return None
        (staying if new else lost).append(candidate)
    room = int(ITEMS_SHARE * goal) - sum(candidate.tokens for candidate in staying)
    named = {a.item.id for a in attached if applies(before, a.item)}
    again: set[ItemId] = set()
    for candidate in sorted(lost, key=lambda c: (c.priority, -c.recency)):
        must = candidate.essential or candidate.priority < before.settings.history_priority
        if candidate.item in named and (must or candidate.tokens <= room):
            again.add(candidate.item)
            room -= candidate.tokens
    evicted = tuple(candidate for candidate in lost if candidate.item not in again)
    if any(candidate.essential for candidate in evicted):
        return None
    priorities = [candidate.priority for candidate in evicted if candidate.item in named]
    # Items that apply now are worth more than those that no longer do, whatever the cost of moving.
    for candidate in staying if priorities else ():
        worth_less = candidate.priority >= min(priorities) + (candidate.item in named)
        if worth_less and not candidate.essential:
            return None
    return evicted


def drop_over(
    sized: Sequence[PruneCandidate], limit: int
) -> tuple[int, tuple[PruneCandidate, ...]]:
    """Return the tokens of the items that stay within `limit`, and the items to drop."""
    choice = drop_until(sized, sum(candidate.tokens for candidate in sized) - limit)
    return sum(candidate.tokens for candidate in choice.kept), choice.dropped


def _summaries(messages: Sequence[Message]) -> list[int]:
    return [index for index, message in enumerate(messages) if message.id == SUMMARY_ID]


def _prune_by_worth(
    page: Page, assembler: Assembler, room: Room, reason: str, attached: Sequence[Attachment],
    *, keep_last: bool,
) -> PruneOutcome:  # fmt: skip
    """Lay everything out again: first the items that apply to this turn, then the rest of the
    library by worth, and as much of the latest history as fits `prune_to` of the remaining room."""
    state, settings = page.state, page.state.settings
    free = max(0, room.free)
    rest = int(settings.prune_to * free)

    messages = state.envelope.cached.since(0)
    sizes = assembler.message_sizes(messages)
    recent = sum(sizes[last_turns_start(messages, settings.strip_turns) :])
    library = standing_sizes(state, assembler, attached)
    attached_items = {a.item.id for a in attached if applies(state, a.item)}
    applying = [candidate for candidate in library if candidate.item in attached_items]
    idle = [candidate for candidate in library if candidate.item not in attached_items]
    tokens, dropped = drop_over(applying, int(ITEMS_SHARE * free))
    others, more = drop_over(idle, rest - min(recent, rest // 2) - tokens)
    tokens += others
    # The summary and the library's header are new and must fit as well.
    spare = free - tokens - HEADER_TOKENS
    at_most = sum(sizes) if keep_last else spare - settings.summary_tokens
    cut = choose_cut(messages, sizes, max(0, rest - tokens), at_most=at_most)
    tokens += sum(sizes[cut:])
    edge = _short_edge(state, messages, sizes, range(cut), rest, tokens, assembler, reason)
    left = spare - sum(sizes[cut:]) - (rest - tokens if edge else 0)
    # A long summary that fills the freed room would soon have to be made again.
    summary_room = min(left, max(left // 2, SHORT_SUMMARY))
    return consolidate(
        page, assembler, reason,
        first_kept=edge.start if edge else cut, short=edge, evicted=(*dropped, *more),
        summary_room=summary_room,
    )  # fmt: skip
