"""Which attachments of a turn fit, and what is reported of the others."""

from collections.abc import Sequence
from typing import Literal

from lamina.assembly import budget
from lamina.assembly.boundary import PruneOutcome
from lamina.assembly.draft import Draft
from lamina.assembly.items import TentativeTurn, compose, resolve
from lamina.assembly.page import Page
from lamina.journal import State, is_guidance
from lamina.layers import Assembler
from lamina.text import label_of
from lamina.values.item import BROUGHT, Attachment
from lamina.values.request import LeftOut


def split_still_out(
    state: State, attachments: Sequence[Attachment], room: int, assembler: Assembler
) -> tuple[tuple[Attachment, ...], tuple[LeftOut, ...]]:
    """Items dropped for want of room stay out while they stay attached: letting them back in on
    the next turn would push others out, turn after turn. Those that fit `room` may come back."""
    kept, reports = [], []
    for attachment in attachments:
        item = attachment.item
        out = item.id in state.still_out and item.id not in state.standing
        if not out or attachment.is_essential or item.id in state.pinned:
            kept.append(attachment)
        elif (tokens := assembler.item_tokens(item)) <= room:
            room -= tokens
            kept.append(attachment)
        else:
            detail = f"{label_of(item.id)} had no room before; detach and attach it to try again"
            reports.append(
                LeftOut(
                    what=item.id, reason="still_out", detail=detail, tokens=tokens,
                    source=_brought_by(attachment),
                )
            )  # fmt: skip
    return tuple(kept), tuple(reports)


def limit_attachments(
    state: State, attachments: Sequence[Attachment], assembler: Assembler
) -> tuple[tuple[Attachment, ...], tuple[LeftOut, ...]]:
    """What stays under the attachments' own limit. Rules and references are not attachments.

    Raises:
        EssentialsTooLarge: the essentials alone are over it.
    """
    limit = state.settings.attachment_limit
    if limit is None:
        return tuple(attachments), ()
    sized = [
        size_attachment(state, attachment, index, assembler)
        for index, attachment in enumerate(attachments)
        if not is_guidance(attachment.item.id) and attachment.item.kind != "tool"
    ]
    sources = {a.item.id: _brought_by(a) for a in attachments}
    reports = []
    for candidate in (choice := budget.fit_attachments(sized, limit)).dropped:
        size = f"{candidate.label} ({candidate.tokens:,} tokens)"
        detail = f"{size} is over the attachment limit of {limit:,}"
        if candidate.item in state.standing:
            detail += "; its text stays in the context until the next boundary"
        reports.append(
            LeftOut(
                what=candidate.item, reason="attachment_limit", detail=detail,
                tokens=candidate.tokens, source=sources[candidate.item],
            )
        )  # fmt: skip
    gone = {candidate.item for candidate in choice.dropped}
    return tuple(a for a in attachments if a.item.id not in gone), tuple(reports)


def drop_new(
    pen: Page,
    draft: Draft,
    composed: TentativeTurn,
    assembler: Assembler,
    limit: int,
    *,
    above: int = -1,
) -> TentativeTurn:
    """Leaves out unsent items with a priority number above `above` until the request is within
    `limit`. With a floor for the priority it is all or nothing: dropping some would not help."""
    state = pen.state
    new = {use.item for use in resolve(state, composed.kept) if use.form == "full"}
    before = composed
    while (excess := composed.prompt.tokens - limit) > 0:
        candidates = [
            size_attachment(state, attachment, index, assembler)
            for index, attachment in enumerate(composed.kept)
            if attachment.item.id in new and attachment.priority > above
        ]
        gone = {candidate.item for candidate in budget.drop_until(candidates, excess).dropped}
        if not gone:
            return before if above >= 0 else composed
        reports = tuple(no_room(a, assembler) for a in composed.kept if a.item.id in gone)
        kept = tuple(a for a in composed.kept if a.item.id not in gone)
        composed = compose(pen, draft, kept, (*composed.left_out, *reports), assembler)
    return composed


def size_attachment(
    state: State, attachment: Attachment, index: int, assembler: Assembler
) -> budget.PruneCandidate:
    known = state.known.get(attachment.item.id)
    return budget.PruneCandidate(
        item=attachment.item.id,
        label=label_of(attachment.item.id),
        tokens=assembler.item_tokens(attachment.item),
        priority=attachment.priority,
        essential=attachment.is_essential or attachment.item.id in state.pinned,
        recency=known.added if known else len(state.known) + index,
    )


def no_room(
    attachment: Attachment,
    assembler: Assembler,
    *,
    reason: Literal["window", "removed"] = "window",
) -> LeftOut:
    tokens = assembler.item_tokens(attachment.item)
    label = label_of(attachment.item.id)
    detail = f"{label} ({tokens:,} tokens, priority {attachment.priority}) does not fit the window"
    return LeftOut(
        what=attachment.item.id, reason=reason, detail=detail, tokens=tokens,
        source=_brought_by(attachment),
    )  # fmt: skip


def _brought_by(attachment: Attachment) -> str:
    """The folder, tag or note that brought it; what a search found came by itself."""
    return attachment.source if attachment.origin in BROUGHT else ""


def report_pruned(pruned: PruneOutcome, attached: Sequence[Attachment] = ()) -> list[LeftOut]:
    """What a boundary took away. Items of this turn are reported with the turn itself."""
    reports = list(pruned.reports)
    named = {a.item.id for a in attached}
    for candidate in pruned.evicted:
        if candidate.item not in named:
            size = f"{candidate.label} ({candidate.tokens:,} tokens)"
            detail = f"{size} was removed: no room in the window"
            reports.append(
                LeftOut(
                    what=candidate.item, reason="removed", detail=detail, tokens=candidate.tokens
                )
            )
    return reports
