"""What one request will be made of: a pure plan, from a state to entries and a prompt.

Laws: nothing is written before everything is decided; the plan never exceeds its budget; what it
leaves out it reports. Order: boundary, attachments, budget, prefix check.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina import budget, ledger
from lamina.engine.shortening import shorten_results
from lamina.engine.shrinking import (
    Pruned,
    consolidate,
    limit_history,
    shrink,
)
from lamina.engine.writing import Pen
from lamina.errors import UsageError, WindowExceeded
from lamina.journal import State, is_guidance
from lamina.layers import Assembler
from lamina.text import RULES_SENTENCE, label_of, rank_of
from lamina.values.entry import (
    Entry,
    EphemeralEntry,
    ItemEntry,
    MessageEntry,
    RequestEntry,
)
from lamina.values.item import Attachment, ItemId
from lamina.values.message import (
    Absent,
    Block,
    Context,
    Message,
    Text,
    ToolResult,
    ToolText,
    Use,
)
from lamina.values.patch import Display, ItemLay, Patch, PatchOp, SystemPartSet
from lamina.values.prompt import LAYERS, Prompt
from lamina.values.request import (
    Boundary,
    ContextItem,
    Fit,
    LeftOut,
    Placement,
    RequestContext,
)
from lamina.values.settings import Target

RULES_PART = "rules"
_TOLD = {"missing", "unreadable", "refused", "window", "attachment_limit"}
_WHY = {
    "missing": "not found",
    "unreadable": "could not be read",
    "refused": "not allowed",
    "window": "no room left",
    "attachment_limit": "no room left for attachments",
}


class Draft(Struct, frozen=True, kw_only=True):
    """A turn as asked for: what was typed, what could be read of what was attached, and where
    it goes."""

    text: str
    attachments: tuple[Attachment, ...]
    target: Target
    room: budget.Room
    left_out: tuple[LeftOut, ...] = ()
    tool_texts: tuple[ToolText, ...] = ()
    warnings: tuple[str, ...] = ()


class Plan(Struct, frozen=True, kw_only=True):
    state: State
    entries: tuple[Entry, ...]
    prompt: Prompt
    request: RequestEntry

    @property
    def context(self) -> RequestContext:
        return self.request.context


class _Composed(Struct, frozen=True, kw_only=True):
    """A tentative turn: what it names and what it leaves out."""

    kept: tuple[Attachment, ...]
    left_out: tuple[LeftOut, ...]
    pen: Pen
    prompt: Prompt


def plan_turn(pen: Pen, draft: Draft, assembler: Assembler, sent: Prompt | None) -> Plan:
    """The entries and the prompt of a new user message.

    Raises:
        UsageError: there is nothing to send.
        BudgetError: what must be sent does not fit.
        PrefixMoved: bytes would move without a reason.
    """
    if not draft.text.strip() and not draft.attachments and not draft.tool_texts:
        raise UsageError("nothing to send: the message is empty and nothing is attached")
    boundaries: list[Boundary] = []
    reports: list[LeftOut] = []
    settings = pen.state.settings

    natural = find_boundary(pen.state, draft.target, pen.at)
    cold = natural is not None and natural.kind != "first_request"
    if natural:
        boundaries.append(natural)
    if natural and natural.kind == "first_request":
        _lay_always(pen, draft.attachments)
    _explain_rules(pen, draft.attachments)

    kept_history = limit_history(pen.state, assembler)
    promotes = settings.promotion == "eager" and any(
        not standing.in_library for standing in pen.state.standing.values()
    )
    reason = natural.reason if natural else ""
    if kept_history is not None:
        boundary = Boundary(kind="history", reason="history is over its limit")
        boundaries.append(boundary)
        reason = boundary.reason
    elif promotes and not cold:
        boundary = Boundary(kind="promotion", reason="eager promotion into the library")
        boundaries.append(boundary)
        reason = boundary.reason
    if cold or kept_history is not None or promotes:
        pruned = consolidate(pen, assembler, reason, first_kept=kept_history or 0)
        reports += _report_pruned(pruned, draft.attachments)
    if cold:
        standing = assembler.assemble(pen.state.envelope, pen.state.items, _end(pen.state))
        if standing.tokens > settings.prune_cold_above * draft.room.limit:
            pruned = shrink(
                pen, assembler, draft.room, turn_tokens=0, attached=draft.attachments,
                reason=f"{reason}; pruned while the cache is cold",
            )  # fmt: skip
            reports += _report_pruned(pruned, draft.attachments)

    left_out = list(draft.left_out)
    attachments = _without_still_out(pen.state, draft.attachments, left_out, retry=cold)
    attachments = _fit_attachments(pen.state, attachments, assembler, left_out)

    composed = _compose(pen, draft, attachments, tuple(left_out), assembler)
    limit = draft.room.limit
    if composed.prompt.tokens > limit:
        # What is worth less than history goes before history does, exactly and without a break.
        composed = _drop_new(
            pen, draft, composed, assembler, limit, above=settings.history_priority
        )
    if composed.prompt.tokens > limit:
        turn_tokens = sum(segment.tokens for segment in composed.prompt.turn)
        pruned = shrink(
            pen, assembler, draft.room,
            turn_tokens=turn_tokens, reason="over the window", attached=attachments,
        )  # fmt: skip
        if pruned.dropped_messages or pruned.evicted:
            boundaries.append(Boundary(kind="window", reason="the request was over the window"))
        reports += _report_pruned(pruned, attachments)
        evicted = {each.item for each in pruned.evicted}
        left_out += [_no_room(a, assembler) for a in attachments if a.item.id in evicted]
        attachments = tuple(a for a in attachments if a.item.id not in evicted)
        composed = _compose(pen, draft, attachments, tuple(left_out), assembler)
    if composed.prompt.tokens > limit:
        composed = _drop_new(pen, draft, composed, assembler, limit, above=-1)
    return _finish(
        composed.pen, draft, composed.prompt, sent, assembler,
        kept=composed.kept,
        left_out=(*reports, *composed.left_out),
        boundaries=tuple(boundaries),
    )  # fmt: skip


def plan_results(
    pen: Pen,
    draft: Draft,
    results: Sequence[ToolResult],
    assembler: Assembler,
    sent: Prompt | None,
    attachments: tuple[Attachment, ...],
) -> Plan:
    """The next request of the turn under way, with the results of its tool calls."""
    boundaries: tuple[Boundary, ...] = ()
    reports: list[LeftOut] = []
    limit = draft.room.limit
    before = pen

    def write(given: Sequence[ToolResult]) -> tuple[Pen, Prompt]:
        page = before.copy()
        message = Message(role="tool", blocks=tuple(given), id=page.next_id())
        page.write(MessageEntry, message=message)
        state = page.state
        return page, assembler.assemble(state.envelope, state.items, state.turn_start or 0)

    pen, prompt = write(results)
    if prompt.tokens > limit:
        boundaries = (Boundary(kind="window", reason="the request was over the window"),)
        pen, prompt, pruned = _shrink_now(pen, draft, assembler)
        if prompt.tokens > limit:
            # What was not sent yet may be shortened; what is left of it fits by itself.
            results, shortened = shorten_results(
                results, prompt.tokens - limit, assembler.count_text
            )
            reports += shortened
            pen, prompt = write(results)
            if prompt.tokens > limit:
                pen, prompt, pruned = _shrink_now(pen, draft, assembler)
        reports += _report_pruned(pruned, attachments)
    return _finish(
        pen, draft, prompt, sent, assembler,
        kept=attachments, left_out=tuple(reports), boundaries=boundaries,
    )  # fmt: skip


def _shrink_now(pen: Pen, draft: Draft, assembler: Assembler) -> tuple[Pen, Prompt, Pruned]:
    """Prunes with the turn under way among what may go."""
    pruned = shrink(pen, assembler, draft.room, turn_tokens=0, reason="over the window")
    state = pen.state
    return pen, assembler.assemble(state.envelope, state.items, state.turn_start or 0), pruned


def find_boundary(state: State, target: Target, now: float) -> Boundary | None:
    """The moment at which the prefix is dead anyway, if this is one."""
    last = state.last_sent
    if last is None:
        return Boundary(kind="first_request", reason="the first request of this session")
    if last.target != target.name:
        reason = f"the target changed from {last.target} to {target.name}"
        return Boundary(kind="model_change", reason=reason)
    if any(op.startswith("tools_") for op in state.moved_by):
        return Boundary(kind="tools_change", reason="; ".join(state.reasons))
    if any(op.startswith("system_") for op in state.moved_by):
        return Boundary(kind="system_change", reason="; ".join(state.reasons))
    lifetime = state.settings.cache_lifetime_s
    if lifetime is None:
        lifetime = target.cache.lifetime_s
    if lifetime is not None and now - last.at > lifetime:
        reason = f"{now - last.at:.0f} s since the last request; the cache lives {lifetime:.0f} s"
        return Boundary(kind="expired", reason=reason)
    return None


def in_wire_order(attachments: Iterable[Attachment]) -> tuple[Attachment, ...]:
    return tuple(sorted(attachments, key=lambda a: rank_of(a.item.id, a.shape)))


# -- what the turn says --------------------------------------------------------------------------


def _lay_always(pen: Pen, attachments: Sequence[Attachment]) -> None:
    always = [a for a in attachments if a.include == "always" and not a.item.pictures]
    if not always:
        return
    ordered = sorted(always, key=lambda a: (rank_of(a.item.id, a.shape), a.priority, a.item.key))
    for attachment in ordered:
        _keep_item(pen, attachment)
    ops: list[PatchOp] = [ItemLay(item=a.item.id, version=a.item.version) for a in ordered]
    title = f"{len(ops)} always-included item{'s' * (len(ops) > 1)} laid down"
    pen.transform("lamina.always", Patch(ops=tuple(ops), display=Display(title=title)))


def _explain_rules(pen: Pen, attachments: Sequence[Attachment]) -> None:
    """The fixed sentence in L1 that makes naming rules meaningful, before the first of them."""
    if not any(is_guidance(a.item.id) for a in attachments):
        return
    if any(part.name == RULES_PART for part in pen.state.envelope.system):
        return
    reason = "rules come into play: L1 says when they apply"
    op = SystemPartSet(name=RULES_PART, text=RULES_SENTENCE, reason=reason)
    pen.transform("lamina.rules", Patch(ops=(op,), display=Display(title=reason)))


def _keep_item(pen: Pen, attachment: Attachment) -> None:
    item = attachment.item
    if (item.id, item.version) not in pen.state.items:
        pen.write(ItemEntry, item=item)


def _resolve(state: State, attachments: Sequence[Attachment]) -> tuple[Use, ...]:
    uses = []
    for attachment in attachments:
        item = attachment.item
        use = Use(item=item.id, version=item.version, form="full", shape=attachment.shape)
        standing = state.standing.get(item.id)
        if standing is None:
            uses.append(use)
        elif item.version not in standing.versions:
            uses.append(replace(use, replaces=True))
        elif not is_guidance(item.id) or item.version != standing.current:
            shown = len(standing.versions)
            if item.version == standing.versions[-1]:
                uses.append(replace(use, form="named"))
            else:
                ordinal = standing.versions.index(item.version) + 1
                uses.append(replace(use, form="named", ordinal=ordinal, shown=shown))
    return tuple(sorted(uses, key=lambda use: use.form != "named"))


def _compose(
    pen: Pen,
    draft: Draft,
    attachments: tuple[Attachment, ...],
    left_out: tuple[LeftOut, ...],
    assembler: Assembler,
) -> _Composed:
    """The turn with these attachments, written on a copy of the pen."""
    pen = pen.copy()
    state = pen.state
    uses = _resolve(state, attachments)
    for attachment in attachments:
        _keep_item(pen, attachment)
    guidance = tuple(a.item.id for a in attachments if is_guidance(a.item.id))
    context = Context(
        uses=uses,
        absent=tuple(
            Absent(label=label_of(ItemId(each.what)), why=_WHY[each.reason])
            for each in left_out
            if each.reason in _TOLD
        ),
        in_force=guidance if guidance != state.in_force else None,
    )
    blocks: tuple[Block, ...] = (Text(draft.text),)
    if context != Context():
        blocks = (context, *blocks)
    pen.write(MessageEntry, message=Message(role="user", blocks=blocks, id=pen.next_id()))
    if draft.tool_texts:
        pen.write(EphemeralEntry, tool_texts=draft.tool_texts)
    start = pen.state.turn_start or 0
    prompt = assembler.assemble(pen.state.envelope, pen.state.items, start)
    return _Composed(kept=attachments, left_out=left_out, pen=pen, prompt=prompt)


# -- what does not fit ---------------------------------------------------------------------------


def _without_still_out(
    state: State, attachments: Sequence[Attachment], left_out: list[LeftOut], *, retry: bool
) -> tuple[Attachment, ...]:
    """Items dropped for want of room stay out while they stay attached: letting them back in on
    the next turn would push others out, turn after turn."""
    if retry or not state.still_out:
        return tuple(attachments)
    kept = []
    for attachment in attachments:
        item = attachment.item
        pinned = item.id in state.pinned or attachment.is_essential
        if item.id in state.still_out and item.id not in state.standing and not pinned:
            detail = f"{label_of(item.id)} had no room before; detach and attach it to try again"
            left_out.append(LeftOut(what=item.id, reason="still_out", detail=detail))
        else:
            kept.append(attachment)
    return tuple(kept)


def _sized(state: State, attachment: Attachment, index: int, assembler: Assembler) -> budget.Sized:
    known = state.known.get(attachment.item.id)
    return budget.Sized(
        item=attachment.item.id,
        label=label_of(attachment.item.id),
        tokens=assembler.item_tokens(attachment.item),
        priority=attachment.priority,
        essential=attachment.is_essential or attachment.item.id in state.pinned,
        recency=known.added if known else len(state.known) + index,
    )


def _fit_attachments(
    state: State,
    attachments: tuple[Attachment, ...],
    assembler: Assembler,
    left_out: list[LeftOut],
) -> tuple[Attachment, ...]:
    limit = state.settings.attachment_limit
    if limit is None:
        return attachments
    sized = [_sized(state, a, index, assembler) for index, a in enumerate(attachments)]
    choice = budget.fit_attachments(sized, limit)
    for each in choice.dropped:
        detail = f"{each.label} ({each.tokens:,} tokens) is over the attachment limit of {limit:,}"
        if each.item in state.standing:
            detail += "; its text stays in the context until the next boundary"
        left_out.append(
            LeftOut(what=each.item, reason="attachment_limit", detail=detail, tokens=each.tokens)
        )
    kept = {each.item for each in choice.kept}
    return tuple(a for a in attachments if a.item.id in kept)


def _drop_new(
    pen: Pen, draft: Draft, composed: _Composed, assembler: Assembler, limit: int, *, above: int
) -> _Composed:
    """Leaves out unsent items with a priority number above `above` until the request fits."""
    state = pen.state
    new = {use.item for use in _resolve(state, composed.kept) if use.form == "full"}
    excess = composed.prompt.tokens - limit
    while excess > 0:
        candidates = [
            _sized(state, a, index, assembler)
            for index, a in enumerate(composed.kept)
            if a.item.id in new and a.priority > above
        ]
        choice = budget.drop_until(candidates, excess)
        if not choice.dropped or (above >= 0 and not _helps(choice, excess)):
            break
        gone = {each.item for each in choice.dropped}
        reports = tuple(_no_room(a, assembler) for a in composed.kept if a.item.id in gone)
        kept = tuple(a for a in composed.kept if a.item.id not in gone)
        composed = _compose(pen, draft, kept, (*composed.left_out, *reports), assembler)
        excess = composed.prompt.tokens - limit
    return composed


def _helps(choice: budget.Choice, excess: int) -> bool:
    return sum(each.tokens for each in choice.dropped) >= excess


def _no_room(attachment: Attachment, assembler: Assembler) -> LeftOut:
    tokens = assembler.item_tokens(attachment.item)
    label = label_of(attachment.item.id)
    detail = f"{label} ({tokens:,} tokens, priority {attachment.priority}) does not fit the window"
    return LeftOut(what=attachment.item.id, reason="window", detail=detail, tokens=tokens)


def _report_pruned(pruned: Pruned, attached: Sequence[Attachment]) -> list[LeftOut]:
    reports = list(pruned.reports)
    named = {a.item.id for a in attached}
    for each in pruned.evicted:
        if each.item not in named:
            detail = (
                f"{each.label} ({each.tokens:,} tokens) left the library: no room in the window"
            )
            reports.append(
                LeftOut(what=each.item, reason="removed", detail=detail, tokens=each.tokens)
            )
    return reports


def _end(state: State) -> int:
    return len(state.envelope.cached)


# -- the request ---------------------------------------------------------------------------------


def _finish(
    pen: Pen,
    draft: Draft,
    prompt: Prompt,
    sent: Prompt | None,
    assembler: Assembler,
    *,
    kept: tuple[Attachment, ...],
    left_out: tuple[LeftOut, ...],
    boundaries: tuple[Boundary, ...],
) -> Plan:
    room, state = draft.room, pen.state
    if prompt.tokens > room.limit:
        raise WindowExceeded(
            "the request does not fit the window even without history and spare attachments; "
            "shorten the message or the system prompt, or choose a model with a larger window",
            _sizes(prompt),
            room.limit,
        )
    agreement = ledger.compare(sent, prompt, state.reasons)
    warnings = list(draft.warnings)
    if agreement.broke and not agreement.broke.reason:
        if state.settings.prefix_check == "raise":
            ledger.require_reason(agreement)
        warnings.append(
            f"the prefix moved without a reason at {agreement.broke.source} "
            f"({agreement.broke.layer}): {agreement.reprocessed:,} tokens are processed again"
        )
    context = RequestContext(
        target=draft.target.name,
        items=_describe(state, kept, assembler),
        left_out=left_out,
        boundaries=boundaries,
        agreement=agreement,
        fit=Fit(
            window=room.window,
            reserve=room.reserve,
            tokens=round(prompt.tokens * room.calibration),
            calibration=room.calibration,
        ),
        warnings=tuple(warnings),
    )
    base = state.last_sent if sent is not None else None
    run = prompt.cached_run()
    request = pen.write(
        RequestEntry,
        target=draft.target.name,
        context=context,
        before=pen.began_at,
        base=base.id if base else None,
        kept=agreement.segments if base else 0,
        digests=tuple(s.digest for s in prompt.since(agreement.segments if base else 0)),
        cached_run=run,
        tokens=prompt.tokens,
        cached_tokens=prompt.tokens_until(run),
        calibration=room.calibration,
    )
    return Plan(state=pen.state, entries=pen.written, prompt=prompt, request=request)


def _sizes(prompt: Prompt) -> dict[str, int]:
    sizes = dict.fromkeys(LAYERS, 0)
    for segment in prompt:
        sizes[segment.layer] += segment.tokens
    return {layer: tokens for layer, tokens in sizes.items() if tokens}


def _describe(
    state: State, attachments: Sequence[Attachment], assembler: Assembler
) -> tuple[ContextItem, ...]:
    last = state.envelope.cached[state.turn_start] if state.turn_start is not None else None
    context = last.context if last else None
    full = {use.item for use in context.uses if use.form == "full"} if context else set()
    described = []
    for attachment in attachments:
        item = attachment.item
        standing = state.standing.get(item.id)
        placement: Placement = "above"
        if item.id in full:
            placement = "message"
        elif standing and standing.in_library:
            placement = "library"
        described.append(
            ContextItem(
                item=item.id,
                version=item.version,
                label=label_of(item.id),
                placement=placement,
                layer="L3" if placement == "message" else "L2",
                tokens=assembler.item_tokens(item),
                priority=attachment.priority,
                essential=attachment.is_essential,
                pinned=item.id in state.pinned,
                include=attachment.include,
                reason=_reason_for(attachment, item.id in state.pinned),
            )
        )
    return tuple(described)


def _reason_for(attachment: Attachment, pinned: bool) -> str:
    if pinned:
        return "pinned"
    if attachment.include == "always":
        return "always included"
    return "attached to this message"
