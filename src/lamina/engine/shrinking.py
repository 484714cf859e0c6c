"""Boundaries: consolidating the library, and pruning what was already sent, in big steps.

Law: a prune goes down to a share of the room (`prune_to`), so that the prefix moves once in many
turns and not on every one.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina import budget
from lamina.compaction import choose_cut, extract_summary, last_turns_start
from lamina.engine.writing import Pen
from lamina.journal import SUMMARY, State
from lamina.layers import Assembler
from lamina.text import LIBRARY_HEADER, label_of
from lamina.values.envelope import Laid
from lamina.values.item import MEDIUM, ItemId
from lamina.values.message import Message, ToolResult
from lamina.values.patch import CompactionApply, Display, LibraryConsolidate, Patch, PatchOp
from lamina.values.request import LeftOut


# What the line about a removed middle costs.
NOTICE_TOKENS = 24
# How much of a question stays when its own turn is cut in the middle.
QUESTION_TOKENS = 2_000
UNDER_WAY = "The question that is being worked on:"


class Pruned(Struct, frozen=True, kw_only=True):
    """What a boundary took away."""

    evicted: tuple[budget.Sized, ...] = ()
    dropped_messages: int = 0
    reports: tuple[LeftOut, ...] = ()


def consolidate(
    pen: Pen,
    assembler: Assembler,
    reason: str,
    *,
    first_kept: int = 0,
    evicted: tuple[budget.Sized, ...] = (),
) -> Pruned:
    """Rebuilds the library from what stands, and cuts history before `first_kept`. Writes nothing
    if nothing would change."""
    state = pen.state
    gone = {each.item for each in evicted}
    library, reports = _plan_library(state, gone)
    ops: list[PatchOp] = []
    if first_kept:
        dropped = state.envelope.cached.until(first_kept).since(0)
        summary = _summarise(state, dropped, assembler)
        if state.turn_start is not None and first_kept > state.turn_start:
            question = shorten_text(state.question, QUESTION_TOKENS, assembler)
            summary = f"{summary}\n\n{UNDER_WAY}\n{question}"
        ops.append(CompactionApply(first_kept=first_kept, summary=summary, reason=reason))
        reports.append(_history_report(dropped, assembler))
    stale = any(message.context for message in state.envelope.cached)
    if library != state.envelope.library or stale:
        ops.append(LibraryConsolidate(items=library, reason=reason))
    if ops:
        pen.transform(
            "lamina.boundary",
            Patch(ops=tuple(ops), display=_display(reason, library, first_kept, evicted)),
        )
    return Pruned(evicted=evicted, dropped_messages=first_kept, reports=tuple(reports))


def limit_history(state: State, assembler: Assembler) -> int | None:
    """The first message to keep if history is over one of its own limits."""
    settings, cached = state.settings, state.envelope.cached
    if settings.history == "strip":
        start = last_turns_start(cached.since(0), settings.strip_after_turns)
        if start > 0:
            return last_turns_start(cached.since(0), settings.strip_turns)
    most = settings.history_messages
    if most is not None and len(cached) > most:
        keep = max(1, int(most * settings.prune_to))
        return choose_cut(cached.since(0), [1] * len(cached), keep)
    tokens = settings.history_tokens
    if tokens is not None:
        sizes = assembler.message_sizes(cached.since(0))
        if sum(sizes) > tokens:
            return choose_cut(cached.since(0), sizes, int(tokens * settings.prune_to))
    return None


def shrink(
    pen: Pen, assembler: Assembler, room: budget.Room, *, turn_tokens: int, reason: str
) -> Pruned:
    """Prunes library and history down to `prune_to` of the room that the fixed parts leave."""
    state = pen.state
    settings = state.settings
    front = assembler.assemble(state.envelope, state.items, len(state.envelope.cached)).front
    fixed = sum(link.segment.tokens for link in front if link.segment.layer in ("tools", "L1"))
    free = max(0, room.limit - fixed - turn_tokens)
    rest = int(settings.prune_to * free)

    messages = state.envelope.cached.since(0)
    sizes = assembler.message_sizes(messages)
    recent = sum(sizes[last_turns_start(messages, settings.strip_turns) :])
    library = _library_sizes(state, assembler)
    library_tokens = sum(each.tokens for each in library)
    choice = budget.drop_until(library, library_tokens - (rest - min(recent, rest // 2)))
    kept_tokens = sum(each.tokens for each in choice.kept)
    cut = choose_cut(
        messages,
        sizes,
        max(0, rest - kept_tokens),
        at_most=free - kept_tokens - settings.summary_tokens - len(LIBRARY_HEADER),
    )
    return consolidate(pen, assembler, reason, first_kept=cut, evicted=choice.dropped)


def shorten_text(text: str, limit: int, assembler: Assembler) -> str:
    """`text` with about `limit` tokens of it left, the middle gone and said to be."""
    size = assembler.count_text(text)
    if size <= limit:
        return text
    half = len(text) * limit // size // 2
    gap = f"\n[... {size - limit:,} tokens removed to fit the context window ...]\n"
    return f"{text[:half]}{gap}{text[len(text) - half :]}"


def shorten_results(
    results: Sequence[ToolResult], excess: int, assembler: Assembler
) -> tuple[list[ToolResult], list[LeftOut]]:
    """Tool results with `excess` tokens less: the largest lose their middle, and say so."""
    sizes = {result.call_id: assembler.count_text(result.text) for result in results}
    # A level that the large ones come down to; the small ones stay whole.
    goal = max(0, sum(sizes.values()) - excess - NOTICE_TOKENS * len(results))
    level, left = 0, sorted(sizes.values())
    while left and left[0] * len(left) <= goal:
        goal -= left.pop(0)
    level = goal // len(left) if left else max(sizes.values(), default=0)
    shortened, reports = [], []
    for result in results:
        size = sizes[result.call_id]
        if size <= level:
            shortened.append(result)
            continue
        shortened.append(replace(result, text=shorten_text(result.text, level, assembler)))
        detail = f"the result of {result.name} lost {size - level:,} of its {size:,} tokens"
        reports.append(
            LeftOut(
                what=f"result:{result.call_id}", reason="window", detail=detail, tokens=size - level
            )
        )
    return shortened, reports


def _plan_library(state: State, gone: set[ItemId]) -> tuple[tuple[Laid, ...], list[LeftOut]]:
    library: list[Laid] = []
    reports: list[LeftOut] = []
    for item_id, standing in state.standing.items():
        item = state.items[item_id, standing.current]
        if len(standing.versions) > 1:
            detail = f"{label_of(item_id)}: {len(standing.versions) - 1} earlier version(s) removed"
            reports.append(LeftOut(what=item_id, reason="superseded", detail=detail))
        if item_id in state.forgotten and item_id not in state.pinned:
            detail = f"{label_of(item_id)} was removed by request"
            reports.append(LeftOut(what=item_id, reason="removed", detail=detail))
        elif item.pictures:
            detail = f"{label_of(item_id)} has images and does not go into the library"
            reports.append(LeftOut(what=item_id, reason="has_images", detail=detail))
        elif item_id not in gone:
            library.append(Laid(item=item_id, version=standing.current))
    return tuple(library), reports


def _library_sizes(state: State, assembler: Assembler) -> list[budget.Sized]:
    sized = []
    for item_id, standing in state.standing.items():
        item = state.items[item_id, standing.current]
        if item.pictures or item_id in state.forgotten:
            continue
        known = state.known.get(item_id)
        sized.append(
            budget.Sized(
                item=item_id,
                label=label_of(item_id),
                tokens=assembler.item_tokens(item),
                priority=known.priority if known else MEDIUM,
                essential=item_id in state.pinned or bool(known and known.essential),
                # Least recently named first; among those named together, the earliest added.
                recency=(known.named << 20) + known.added if known else 0,
            )
        )
    return sized


def _summarise(state: State, dropped: tuple[Message, ...], assembler: Assembler) -> str:
    carried = dropped[0].text if dropped and dropped[0].id == SUMMARY else ""
    rest = dropped[1:] if carried else dropped
    return extract_summary(
        rest, state.settings.summary_tokens, assembler.count_text, carried=carried
    )


def _history_report(dropped: tuple[Message, ...], assembler: Assembler) -> LeftOut:
    tokens = sum(assembler.message_sizes(dropped))
    what = f"messages {dropped[0].id}..{dropped[-1].id}"
    detail = f"{len(dropped)} earlier messages ({tokens:,} tokens) gave way to a summary"
    return LeftOut(what=what, reason="history", detail=detail, tokens=tokens)


def _display(
    reason: str, library: tuple[Laid, ...], first_kept: int, evicted: tuple[budget.Sized, ...]
) -> Display:
    lines = [f"Reason: {reason}", "", "Library:"]
    lines += [f"- {label_of(laid.item)} `{laid.version[:8]}`" for laid in library] or ["- empty"]
    if evicted:
        lines += ["", "Left the library for want of room:"]
        lines += [f"- {each.label} ({each.tokens:,} tokens)" for each in evicted]
    if first_kept:
        lines += ["", f"{first_kept} messages gave way to a summary."]
    return Display(title=f"Boundary: {reason}", summary=f"{len(library)} items in the library",
                   markdown="\n".join(lines))  # fmt: skip
