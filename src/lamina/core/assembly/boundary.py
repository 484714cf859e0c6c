"""Finds boundaries, where the prefix is lost anyway, and rebuilds the library from standing items.

Law: removed items are reported, and removed messages are replaced by a summary.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from lamina.core.assembly.budget import PruneCandidate
from lamina.core.assembly.history_strip import compact, next_question, splits_turn, summarise
from lamina.core.assembly.request_draft import Page
from lamina.core.assembly.shortened_results import Exchange
from lamina.core.assembly.turn_items import applies
from lamina.core.compaction.touched_files import TouchedFiles
from lamina.core.journal import LIBRARY_SOURCE, State, renderer_in, texts_of
from lamina.core.layers import Assembler
from lamina.core.text import label_of
from lamina.core.values.entry import RENDERER
from lamina.core.values.envelope import LaidItem
from lamina.core.values.item import MEDIUM, Attachment, ItemId, is_binding
from lamina.core.values.patch import Display, LibraryConsolidate, Patch, PatchOp
from lamina.core.values.request import Boundary, LeftOut
from lamina.core.values.settings import Target, cache_rules

# The transformer that records a boundary's changes.
BOUNDARY = "lamina.boundary"
_Reason = Literal["superseded", "removed", "has_images"]


class PruneOutcome(Struct, frozen=True, kw_only=True):
    """The items and messages that a boundary removed."""

    evicted: tuple[PruneCandidate, ...] = ()
    dropped_messages: int = 0
    reports: tuple[LeftOut, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.evicted or self.dropped_messages or self.reports)


def consolidate(
    page: Page,
    assembler: Assembler,
    reason: str,
    *,
    first_kept: int = 0,
    evicted: tuple[PruneCandidate, ...] = (),
    summary_room: int | None = None,
    summary: str | None = None,
    files: TouchedFiles | None = None,
    short: Exchange | None = None,
    transformer: str = BOUNDARY,
) -> PruneOutcome:
    """Rebuild the library from the standing items and cut history before `first_kept`, where the
    shortened exchange `short` may begin. Write nothing if nothing would change. `summary` replaces
    the removed part; by default it is extracted."""
    state = page.state
    victims = {candidate.item for candidate in evicted}
    in_place = tuple(item for item in _in_place(state, first_kept) if item not in victims)
    library, reports = _plan_library(state, victims | set(in_place))
    ops: list[PatchOp] = []
    stale = any(message.context for message in state.envelope.cached)
    if library != state.envelope.library or stale:
        # Runs first, so that the rest of a cut question can name the items laid down.
        ops.append(LibraryConsolidate(items=library, in_place=in_place, reason=reason))
    if first_kept:
        dropped = state.envelope.cached.until(first_kept).since(0)
        if summary is None:
            split = splits_turn(state, 0, first_kept)
            summary = summarise(state, dropped, assembler, split=split, room=summary_room)
        if not summary:
            # Without a summary before it, history has to start with a question.
            first_kept = next_question(state.envelope.cached.since(0), first_kept)
            dropped = state.envelope.cached.until(first_kept).since(0)
        if [message.text for message in dropped] == [summary]:
            # A summary would replace itself.
            first_kept = 0
        else:
            op, report = compact(
                state, dropped, first_kept, summary, reason, assembler, files=files
            )
            ops.append(op)
            reports.append(report)
    if short and short.start >= first_kept:
        ops += short.ops
        reports += short.reports
    if ops:
        display = _display(reason, library, first_kept, evicted)
        page.transform(transformer, Patch(ops=tuple(ops), display=display))
    return PruneOutcome(evicted=evicted, dropped_messages=first_kept, reports=tuple(reports))


def _in_place(state: State, first_kept: int) -> tuple[ItemId, ...]:
    """Return items with images added by the current question: they cannot go into the library, and
    the turn still needs them."""
    start, cached = state.turn.start, state.envelope.cached
    # A patch may have removed the question.
    if start is None or start < first_kept or start >= len(cached):
        return ()
    if (context := cached[start].context) is None:
        return ()
    full = [use for use in context.uses if use.form == "full"]
    return tuple(use.item for use in full if state.library.items[use.item, use.version].pictures)


def _plan_library(state: State, victims: set[ItemId]) -> tuple[tuple[LaidItem, ...], list[LeftOut]]:
    library: list[LaidItem] = []
    reports: list[LeftOut] = []

    def report(item: ItemId, reason: _Reason, detail: str) -> None:
        reports.append(LeftOut(what=item, reason=reason, detail=f"{label_of(item)}{detail}"))

    for item, standing in state.library.standing.items():
        if not standing.current:
            report(item, "superseded", " no longer applied")
            continue
        if len(standing.versions) > 1:
            count = len(standing.versions) - 1
            report(item, "superseded", f": {count} earlier version(s) removed")
        if item in state.library.forgotten and item not in state.library.pinned:
            report(item, "removed", " was removed by request")
        elif item in victims:
            continue
        elif state.library.items[item, standing.current].pictures:
            report(item, "has_images", " has images and does not go into the library")
        else:
            library.append(LaidItem(item=item, version=standing.current))
    return tuple(library), reports


def standing_sizes(
    state: State, assembler: Assembler, attached: Sequence[Attachment] = ()
) -> list[PruneCandidate]:
    """Return the standing items that may be removed, with their worth: to the turn that has them
    `attached`, or else to the last turn that had them. If another version is attached, the turn
    needs that version, not the standing one."""
    candidates = []
    pictured = _in_place(state, 0)
    attachments = {attachment.item.id: attachment for attachment in attached}
    for item_id, standing in state.library.standing.items():
        if not standing.current or item_id in state.library.forgotten:
            continue
        item = state.library.items[item_id, standing.current]
        if item.pictures and item_id not in pictured:
            continue
        known, attachment = state.library.known.get(item_id), attachments.get(item_id)
        priority = known.priority if known else MEDIUM
        essential = bool(known and known.essential)
        if attachment is not None:
            priority, essential = attachment.priority, attachment.is_essential
        is_wanted = attachment is None or applies(state, attachment.item)
        must_stay = essential or item_id in state.library.pinned or is_binding(item_id)
        candidates.append(
            PruneCandidate(
                item=item_id,
                label=label_of(item_id),
                tokens=assembler.item_tokens(item),
                priority=priority,
                essential=must_stay and is_wanted,
                # Least recently named first; among those named together, the earliest added.
                recency=(known.named << 20) + known.added if known else 0,
            )
        )
    return candidates


def _display(
    reason: str,
    library: tuple[LaidItem, ...],
    first_kept: int,
    evicted: tuple[PruneCandidate, ...],
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


def report_pruned(pruned: PruneOutcome, attached: Sequence[Attachment] = ()) -> list[LeftOut]:
    """Report items removed at a boundary. Items of this turn are reported with the turn."""
    reports = list(pruned.reports)
    attached_items = {a.item.id for a in attached}
    for candidate in pruned.evicted:
        if candidate.item not in attached_items:
            item, tokens = candidate.item, candidate.tokens
            detail = f"{candidate.label} ({tokens:,} tokens) was removed: no room in the window"
            reports.append(LeftOut(what=item, reason="removed", detail=detail, tokens=tokens))
    return reports


def find_boundary(state: State, target: Target, now: float) -> Boundary | None:
    """Return the reason why the prefix is lost anyway, or None."""
    last = state.requests.sent
    if last is None:
        return Boundary(kind="first_request", reason="the first request of this session")
    if last.target != target.name:
        reason = f"the target changed from {last.target} to {target.name}"
        return Boundary(kind="model_change", reason=reason)
    if last.promotion != state.settings.promotion:
        reason = f"promotion changed from {last.promotion} to {state.settings.promotion}"
        return Boundary(kind="settings_change", reason=reason)
    if state.requests.reasons and (change := _recorded_change(state)):
        return change
    lifetime = cache_rules(state.settings, target).lifetime_s
    idle = now - (state.requests.cached_at or last.at)
    if lifetime is not None and (idle > lifetime or not lifetime):
        reason = f"{idle:.0f} s since the last request; the cache lives {lifetime:.0f} s"
        return Boundary(kind="expired", reason=reason)
    return None


def choose_renderer(state: State, boundary: Boundary | None) -> int:
    """Return the renderer of the next request: the current one if `boundary` shows that the prefix
    is lost anyway, else that of the last request."""
    if boundary and boundary.kind in ("first_request", "expired", "model_change"):
        return RENDERER
    return renderer_in(state)


def _recorded_change(state: State) -> Boundary | None:
    """Return the recorded boundary for moved tools or system parts."""
    why = _reasons_for(state, "tool:")
    # They may be back in their original places.
    if why and state.envelope.tool_list != state.requests.sent_tools:
        return Boundary(kind="tools_change", reason=why)
    if why := _reasons_for(state, "system:"):
        return Boundary(kind="system_change", reason=why)
    return None


def _reasons_for(state: State, prefix: str) -> str:
    """Return the reasons recorded for moving tools or system parts; the library is neither."""
    return texts_of(
        reason
        for reason in state.requests.reasons
        if not reason.is_return
        and any(
            source.startswith(prefix) and source != LIBRARY_SOURCE
            for source in reason.moved.sources
        )
    )
