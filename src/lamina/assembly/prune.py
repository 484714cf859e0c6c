"""Pruning what was already sent, in big steps.

Law: a prune goes down to a share of the room (`prune_to`), so that the prefix moves once in many
turns and not on every one.
"""

from collections.abc import Sequence

from lamina.assembly.boundary import PruneOutcome, consolidate, standing_sizes
from lamina.assembly.budget import Budget, PruneCandidate, drop_until
from lamina.assembly.history import files_gone, report_history, splits_turn, summarise
from lamina.assembly.page import Page
from lamina.assembly.truncation import Exchange, shorten_exchange
from lamina.compaction.cuts import choose_cut, choose_head, last_turns_start
from lamina.journal import SUMMARY_ID, State
from lamina.layers import Assembler
from lamina.values.item import Attachment, ItemId
from lamina.values.message import Message
from lamina.values.patch import CompactionApply, Display, Patch, PatchOp
from lamina.values.prompt import total_tokens

# "## Context Library" and its sentence.
HEADER_TOKENS = 24
# How much of the room the latest exchange and the head may take if the exchange is large.
EXCHANGE_SHARE = 0.75
# A prune that would leave less than this share of its goal shortens an exchange that it would drop.
FULL_ENOUGH = 0.5
# After a prune, items that apply to the turn may take this share of the room.
ITEMS_SHARE = 0.75


def prune(
    page: Page,
    assembler: Assembler,
    room: Budget,
    *,
    turn_tokens: int,
    reason: str,
    attached: Sequence[Attachment] = (),
    keep_last: bool = False,
    cold: bool = False,
) -> PruneOutcome:
    """Prunes what was sent: the middle of history if that is enough and fair, else everything is
    laid out anew. With `keep_last` the latest exchange stays whatever its size. `cold` says that
    no bytes are in the cache any more."""
    return prune_middle(
        page, assembler, room, turn_tokens=turn_tokens, reason=reason, attached=attached, cold=cold
    ) or prune_by_worth(
        page, assembler, room,
        turn_tokens=turn_tokens, reason=reason, attached=attached, keep_last=keep_last,
    )  # fmt: skip


def prune_middle(
    page: Page,
    assembler: Assembler,
    room: Budget,
    *,
    turn_tokens: int,
    reason: str,
    attached: Sequence[Attachment],
    cold: bool = False,
) -> PruneOutcome | None:
    """Takes the middle out of history. The head, with what the conversation set out from, keeps
    its bytes and its cache; the latest exchanges stay, and more of them than of the head if the
    cache is cold: they cost no more then, and are worth more. None if that would not do, or would
    put out an item while one of less worth stays."""
    state, settings = page.state, page.state.settings
    front = assembler.assemble(state.envelope, state.items, len(state.envelope.cached)).front
    free = room.limit - total_tokens(front) - turn_tokens
    goal = int(settings.prune_to * free)
    messages = state.envelope.cached.since(0)
    sizes = assembler.message_sizes(messages, state.items)
    recent = int(goal * (1 - settings.prune_recent if cold else settings.prune_recent))
    first_kept = choose_cut(messages, sizes, recent, at_most=int(EXCHANGE_SHARE * free))
    latest = sum(sizes[first_kept:])
    # A large latest exchange stays beside the head, at the price of less room until next time.
    head_room = max(goal, int(EXCHANGE_SHARE * free)) if latest > recent else goal
    head_room -= latest + settings.summary_tokens
    after = choose_head(messages, sizes, head_room, known=_summaries(messages))
    if not 0 < after < first_kept - 1 or first_kept == len(messages):
        return None
    kept = sum(sizes[:after]) + settings.summary_tokens + latest
    if kept < FULL_ENOUGH * goal:
        # A short head leaves room for more of the latest.
        first_kept = max(after, choose_cut(messages, sizes, goal - kept + latest))
        kept += sum(sizes[first_kept:]) - latest
    edge = _short_edge(messages, sizes, range(after, first_kept), goal, kept, assembler, reason)
    first_kept = edge.start if edge else first_kept

    ops: list[PatchOp] = [*edge.ops] if edge else []
    reports = list(edge.reports) if edge else []
    said = [f"Reason: {reason}", *(f"- {report.detail}" for report in reports)]
    dropped = messages[after:first_kept]
    if dropped:
        summary = summarise(state, dropped, assembler, split=splits_turn(state, after, first_kept))
        files = files_gone(state, dropped)
        ops.append(
            CompactionApply(
                first_kept=first_kept,
                after=after,
                summary=summary,
                reason=reason,
                read=files.read,
                modified=files.modified,
            )
        )
        reports.append(report_history(dropped, assembler))
        said.append(f"What stands for {len(dropped)} messages:\n\n{summary}")
    elif not ops:
        return None
    display = Display(
        title=f"{len(dropped)} messages gave way to a summary" if dropped else "results shortened",
        summary=reason,
        markdown="\n\n".join(said),
    )
    trial = page.copy()
    trial.transform("lamina.prune", Patch(ops=tuple(ops), display=display))
    evicted = _evicted_by(state, trial.state, goal, attached, assembler)
    if evicted is None:
        return None
    page.take(trial)
    return PruneOutcome(evicted=evicted, dropped_messages=len(dropped), reports=tuple(reports))


def _short_edge(
    messages: Sequence[Message],
    sizes: Sequence[int],
    going: range,
    goal: int,
    kept: int,
    assembler: Assembler,
    reason: str,
) -> Exchange | None:
    """The last exchange of those that go, if little would be left without it: one that filled most
    of the window would else be gone as soon as it was read."""
    if kept >= FULL_ENOUGH * goal:
        return None
    return shorten_exchange(messages, sizes, going, goal - kept, assembler.count_text, reason)


def _evicted_by(
    before: State, after: State, goal: int, attached: Sequence[Attachment], assembler: Assembler
) -> tuple[PruneCandidate, ...] | None:
    """Of the items that no longer stand, those that this turn does not lay down again; None if
    one of them is worth more than one that stays."""
    sized = {siz.item: siz for siz in standing_sizes(before, assembler)}
    lost = {
        item: sized[item]
        for item, standing in before.standing.items()
        if item in sized
        and (item not in after.standing or after.standing[item].current != standing.current)
    }
    staying = [candidate for item, candidate in sized.items() if item not in lost]
    room = int(ITEMS_SHARE * goal) - sum(candidate.tokens for candidate in staying)
    named = {a.item.id for a in attached}
    again: set[ItemId] = set()
    for candidate in sorted(
        lost.values(), key=lambda candidate: (candidate.priority, -candidate.recency)
    ):
        must = candidate.essential or candidate.priority < before.settings.history_priority
        if candidate.item in named and (must or candidate.tokens <= room):
            again.add(candidate.item)
            room -= candidate.tokens
    evicted = tuple(candidate for item, candidate in lost.items() if item not in again)
    if any(candidate.essential for candidate in evicted):
        return None
    wanted = [candidate.priority for candidate in evicted if candidate.item in named]
    spare = [candidate for candidate in staying if not candidate.essential]
    # What applies now is worth more than what no longer does, whatever it would cost to move.
    if wanted and any(
        candidate.priority > min(wanted)
        or (candidate.item not in named and candidate.priority == min(wanted))
        for candidate in spare
    ):
        return None
    return evicted


def drop_over(
    sized: Sequence[PruneCandidate], limit: int
) -> tuple[int, tuple[PruneCandidate, ...]]:
    """Tokens of what stays within `limit`, and what has to go for it."""
    choice = drop_until(sized, sum(candidate.tokens for candidate in sized) - limit)
    return sum(candidate.tokens for candidate in choice.kept), choice.dropped


def _summaries(messages: Sequence[Message]) -> list[int]:
    return [index for index, message in enumerate(messages) if message.id == SUMMARY_ID]


def prune_by_worth(
    page: Page,
    assembler: Assembler,
    room: Budget,
    *,
    turn_tokens: int,
    reason: str,
    attached: Sequence[Attachment] = (),
    keep_last: bool = False,
) -> PruneOutcome:
    """Lays everything out anew: first what applies to this turn, then the rest of the library by
    worth, and as much of the latest history as fits `prune_to` of the room that is left."""
    state = page.state
    settings = state.settings
    front = assembler.assemble(state.envelope, state.items, len(state.envelope.cached)).front
    fixed = sum(link.segment.tokens for link in front if link.segment.layer in ("tools", "L1"))
    free = max(0, room.limit - fixed - turn_tokens)
    rest = int(settings.prune_to * free)

    messages = state.envelope.cached.since(0)
    sizes = assembler.message_sizes(messages)
    recent = sum(sizes[last_turns_start(messages, settings.strip_turns) :])
    library = standing_sizes(state, assembler)
    named = {a.item.id for a in attached}
    applying = [candidate for candidate in library if candidate.item in named]
    idle = [candidate for candidate in library if candidate.item not in named]
    kept, dropped = drop_over(applying, int(ITEMS_SHARE * free))
    others, more = drop_over(idle, rest - min(recent, rest // 2) - kept)
    kept_tokens = kept + others
    # The summary and the library's header are new and must fit as well.
    left = free - kept_tokens - HEADER_TOKENS
    at_most = sum(sizes) if keep_last else left - settings.summary_tokens
    cut = choose_cut(messages, sizes, max(0, rest - kept_tokens), at_most=at_most)
    kept_tokens += sum(sizes[cut:])
    edge = _short_edge(messages, sizes, range(cut), rest, kept_tokens, assembler, reason)
    return consolidate(
        page, assembler, reason,
        first_kept=edge.start if edge else cut, short=edge, evicted=(*dropped, *more),
        summary_room=left - sum(sizes[cut:]) - (rest - kept_tokens if edge else 0),
    )  # fmt: skip
