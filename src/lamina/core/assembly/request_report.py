"""Checks the prefix and records the request, as the last step before encoding."""

from collections.abc import Sequence
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import asdict, replace

from lamina.core.assembly.budget import Budget
from lamina.core.assembly.request_draft import Draft, Page, RequestPlan
from lamina.core.assembly.warm_prefix import plan_routing
from lamina.core.assembly.wire_parameters import digest_target, wire_parameters
from lamina.core.compaction.compaction_plan import compaction_margin, keep_limit, summary_limit
from lamina.core.journal import (
    LIBRARY_SOURCE,
    MovedParts,
    RecordedReason,
    RequestCopy,
    State,
    copy_for_request,
    find_laid_versions,
    has_grown,
    texts_of,
)
from lamina.core.layers import Assembler, ItemVersions, measure_layers
from lamina.core.layers.thinking import find_thinking, missing_thinking
from lamina.core.ledger import price_history
from lamina.core.ledger.agreement import THINKING_SOURCE, SentPrompt, compare, require_reason
from lamina.core.text import label_of
from lamina.core.values.collections import Chain
from lamina.core.values.entry import WIRE_FORM, RequestEntry
from lamina.core.values.item import Attachment, ItemId, Provenance
from lamina.core.values.message import Message, ToolDefinition
from lamina.core.values.prompt import Prompt, total_tokens
from lamina.core.values.request import (
    Agreement,
    Boundary,
    ContextItem,
    ContextTool,
    Fit,
    HistoryPrice,
    LeftOut,
    Placement,
    RequestContext,
)
from lamina.errors import WindowExceeded

# Boundaries that change the layout of messages, even if nothing else was written.
_LAYOUT_CHANGES = ("model_change", "settings_change")
# Describes the effect of another renderer on existing texts.
_REORDERED = "what is personal stands behind what is shared"
_REWORDED = "texts of ours are worded more clearly"
# Thinking depends on what it is bound to.
_THINKING_MOVED = RecordedReason(
    text="thinking is sent only behind what it was bound to",
    moved=MovedParts(sources=(THINKING_SOURCE,)),
)
# Up to this many answers are named one by one.
_NAMED = 6
# Remedies for a request that is too large, by its largest layer.
_ADVICE = {
    "tools": "offer fewer tools",
    "L1": "shorten the system prompt",
    "L2": "make fewer items essential or pinned",
    "L3": "make fewer attachments essential, or attach less",
    "L4": "shorten the tool results",
    "L5": "shorten the message",
}


class PrefixCheck(Struct, frozen=True, kw_only=True):
    """A comparison of a request with the previous one: how far they agree, the boundaries in
    between, and a warning if nothing explains a difference."""

    agreement: Agreement
    boundaries: tuple[Boundary, ...]
    warnings: tuple[str, ...] = ()


def record_request(
    page: Page,
    draft: Draft,
    prompt: Prompt,
    sent: SentPrompt | None,
    assembler: Assembler,
    *,
    cold: bool = False,
) -> RequestPlan:
    """Return the plan with its request entry. The draft's attachments and boundaries are the
    decided ones. `cold` means that no earlier prefix is in the cache.

    Raises:
        WindowExceeded: it does not fit.
        PrefixMoved: bytes would move without a reason.
    """
    _require_fit(prompt, draft.room)
    state = page.state
    copy = copy_for_request(state)
    check = _check_prefix(state, draft, prompt, sent, assembler, copy)
    routing = plan_routing(state, prompt, draft, check.agreement, page.at)
    kept, left_out = draft.attachments.attachments, draft.attachments.left_out
    context = RequestContext(
        target=draft.target.name,
        items=_describe(state, kept, assembler),
        tools=(*_size_tools(draft.tools, prompt), *_describe_loaded(state, draft, assembler)),
        allowed_tools=draft.allowed_tools,
        left_out=(
            *_truly_out(state, kept, draft, (*left_out, *_unreported(state, left_out))),
            *_out_of_copy(state, copy),
            *_thinking_left_out(copy.envelope.cached, prompt, sent, check.agreement),
        ),
        boundaries=check.boundaries,
        agreement=check.agreement,
        warm=routing.warm,
        fit=_measure_fit(draft.room, prompt),
        history_price=_price_history(state, draft, prompt) if cold else None,
        warnings=(*draft.attachments.warnings, *check.warnings),
    )
    base = state.requests.sent if sent is not None else None
    request = _write_request(page, draft, prompt, assembler, context, base, routing.key)
    return RequestPlan(
        state=page.state, entries=page.written, prompt=prompt, request=request, kept=kept
    )


def _require_fit(prompt: Prompt, room: Budget) -> None:
    if prompt.tokens <= room.limit:
        return
    sizes = sizes_of(prompt)
    problem = "the request does not fit the window even without history and spare attachments"
    advice = _ADVICE[max(sizes, key=lambda layer: sizes[layer])]
    problem += f"; {advice}, or choose a model with a larger window"
    raise WindowExceeded(problem, sizes, room.limit)


def _measure_fit(room: Budget, prompt: Prompt) -> Fit:
    return Fit(
        window=room.window,
        reserve=room.reserve,
        tokens=round(prompt.tokens * room.calibration),
        calibration=room.calibration,
    )


def _check_prefix(
    state: State,
    draft: Draft,
    prompt: Prompt,
    sent: SentPrompt | None,
    assembler: Assembler,
    copy: RequestCopy,
) -> PrefixCheck:
    boundaries = draft.boundaries
    # With the same layout, another target moves nothing.
    own = _layout_reasons(boundaries, prompt) if sent and sent.layout != assembler.layout else []
    upgrade = _renderer_change(sent, assembler, prompt)
    own += [upgrade] if upgrade else []
    own += [_THINKING_MOVED] if assembler.layout.binds_thinking else []
    reasons = (*state.requests.reasons, *own, *copy.reasons)
    agreement = compare(sent, prompt, reasons, copy.envelope.cached)
    if sent and sent.cause and agreement.broke and agreement.broke.reason == sent.cause.reason:
        boundaries = (*boundaries, sent.cause)
    if upgrade and agreement.broke and upgrade.text in agreement.broke.reason:
        boundaries = (*boundaries, Boundary(kind="renderer_change", reason=upgrade.text))
    if not agreement.unexplained:
        return PrefixCheck(agreement=agreement, boundaries=boundaries)
    if state.settings.prefix_check == "raise":
        require_reason(agreement)
    place = agreement.unexplained[0]
    warning = (
        f"the prefix moved without a reason at {place.source} "
        f"({place.layer}): {agreement.reprocessed:,} tokens are processed again"
    )
    return PrefixCheck(agreement=agreement, boundaries=boundaries, warnings=(warning,))


def _write_request(
    page: Page,
    draft: Draft,
    prompt: Prompt,
    assembler: Assembler,
    context: RequestContext,
    base: RequestEntry | None,
    routing_key: str,
) -> RequestEntry:
    """Write the entry of a request that continues from `base`."""
    session, target, layout = page.state.session, draft.target, assembler.layout
    agreeing = context.agreement.segments
    shared = agreeing if base else 0
    parameters = wire_parameters(
        page.state, target,
        cache_key=session.session, routing_key=routing_key,
        agreeing=agreeing, base=base,
        allowed_tools=draft.allowed_tools,
    )  # fmt: skip
    run = prompt.cached_run()
    return page.write(
        RequestEntry,
        target=context.target,
        context=context,
        before=page.began_at,
        base=base.id if base else None,
        kept=shared,
        digests=tuple([segment.digest for segment in prompt.since(shared)]),
        promotion=layout.promotion,
        cached_run=run,
        tokens=prompt.tokens,
        cached_tokens=prompt.tokens_until(run),
        calibration=draft.room.calibration,
        retry=draft.retry,
        wire=target.wire,
        wire_form=WIRE_FORM,
        renderer=layout.renderer if session.renderer != layout.renderer else 0,
        binds_thinking=layout.binds_thinking,
        hides_pictures=layout.hides_pictures,
        cache_key=session.session,
        routing_key=routing_key,
        prompt_digest=prompt.digest,
        parameters_digest=parameters.digest_for(target, run),
        target_digest=digest_target(
            target,
            parameters.explicit_cache,
            bool(parameters.citations),
            parameters.options.effort,
        ),
    )


def _price_history(state: State, draft: Draft, prompt: Prompt) -> HistoryPrice | None:
    """Return the cost of reading history again, and of an actual or possible summary of it."""
    if draft.summary is not None:
        return draft.summary
    if not (history := total_tokens(prompt.history)):
        return None
    settings, room = state.settings, draft.room
    older = max(0, history - int(keep_limit(settings, room.window) / room.calibration))
    summary = int(summary_limit(settings, room.window) / room.calibration)
    is_worth_it = older > summary + compaction_margin(summary)
    return price_history(
        draft.target, settings, room.calibration,
        beside=prompt.tokens - history, history=history,
        dropped=older if is_worth_it else 0, summary=summary if is_worth_it else 0,
    )  # fmt: skip


def _layout_reasons(boundaries: Sequence[Boundary], prompt: Prompt) -> list[RecordedReason]:
    """Return the reasons that another target or layout implies for the parts of messages that
    depend on it: thinking signed by one vendor, and the positions of items. Another promotion also
    moves parts of L1."""
    return [
        RecordedReason(
            text=boundary.reason,
            moved=MovedParts(
                sources=_system_sources(prompt) if boundary.kind == "settings_change" else (),
                messages_from=0,
            ),
        )
        for boundary in boundaries
        if boundary.kind in _LAYOUT_CHANGES
    ]


def _renderer_change(
    sent: SentPrompt | None, assembler: Assembler, prompt: Prompt
) -> RecordedReason | None:
    """Return the reason if a request is laid out by another renderer than the previous one."""
    if sent is None or sent.cause or sent.layout.renderer == assembler.layout.renderer:
        return None
    old, new = sent.layout, assembler.layout
    changes = [_REORDERED] if old.shares_front != new.shares_front else []
    changes += [_REWORDED] if (other_words := old.wording != new.wording) else []
    return RecordedReason(
        text=f"{' and '.join(changes)} since an upgrade ({old.renderer}, now {new.renderer})",
        moved=MovedParts(sources=_system_sources(prompt), messages_from=0 if other_words else None),
    )


def _system_sources(prompt: Prompt) -> tuple[str, ...]:
    sources = {link.segment.source for link in prompt.front if link.segment.layer == "L1"}
    return tuple(sorted({*sources, LIBRARY_SOURCE}))


def _truly_out(
    state: State, kept: Sequence[Attachment], draft: Draft, left_out: Sequence[LeftOut]
) -> tuple[LeftOut, ...]:
    """Return these, except removed items that stand again in the same request and descriptions of
    tools that are now in the list."""
    if not left_out:
        return ()
    allowed = draft.allowed_tools
    offered = [tool for tool in draft.tools if allowed is None or tool.name in allowed]
    there = {str(item) for item in state.library.standing if not _is_outdated(state, item)}
    there |= {str(attachment.item.id) for attachment in kept} | {str(tool.item) for tool in offered}
    passing = ("removed", "has_images")
    return tuple(o for o in left_out if o.reason not in passing or o.what not in there)


def _is_outdated(state: State, item: ItemId) -> bool:
    """Return whether an earlier version of an item stands instead of that in the last request."""
    then, now = state.requests.sent_standing.get(item), state.library.standing[item]
    return then is not None and then.current not in now.versions and now.current in then.versions


def _unreported(state: State, left_out: Sequence[LeftOut]) -> list[LeftOut]:
    """Return items that stood in the last request and no longer do, whatever removed them."""
    if state.requests.sent_standing is state.library.standing:
        return []
    reported = {omission.what for omission in left_out}
    gone = [
        item
        for item in state.requests.sent_standing
        if (item not in state.library.standing or _is_outdated(state, item))
        and item not in reported
    ]
    if not gone:
        return []
    why = texts_of(state.requests.reasons) or "its block was removed"
    return [
        LeftOut(what=item, reason="removed", detail=f"{label_of(item)} no longer stands: {why}")
        for item in gone
    ]


def _out_of_copy(state: State, copy: RequestCopy) -> list[LeftOut]:
    """Return standing items that a hook removed from this request only."""
    if not state.once or has_grown(state.envelope, copy.envelope):
        return []
    there = find_laid_versions(copy.envelope, {})
    why = texts_of(copy.reasons) or "for one request"
    return [
        LeftOut(what=item, reason="removed", detail=f"{label_of(item)} is not in it: {why}")
        for item in state.library.standing
        if item not in there
    ]


def _thinking_left_out(
    messages: Chain[Message], prompt: Prompt, sent: SentPrompt | None, agreement: Agreement
) -> list[LeftOut]:
    """Return the thinking that was sent in the last request, or was added later, and is missing
    from this one. Earlier omissions are not reported again."""
    if prompt.standing is None:
        return []
    last = sent.prompt.last_message if sent else ""
    new = list(takewhile(lambda message: message.id != last, reversed(messages)))
    older: Sequence[Message] = ()
    sent_before: set[str] = set()
    start = agreement.segments
    if sent and agreement.broke:
        start, older = 0, messages.since(0)[: len(messages) - len(new)]
        sent_before = find_thinking(sent.prompt)
    thinkers = [message for message in (*older, *reversed(new)) if message.thinks]
    there = find_thinking(prompt, start) if thinkers else set()
    ids_of_new = {message.id for message in new}
    answers = []
    for message in thinkers:
        gone = missing_thinking(message, there)
        if message.id not in ids_of_new:
            gone &= sent_before
        if gone:
            answers.append(message.id)
    if not answers:
        return []
    names = ", ".join(answers) if len(answers) <= _NAMED else f"{answers[0]} to {answers[-1]}"
    whose = f"answer {names}" if len(answers) == 1 else f"{len(answers):,} answers ({names})"
    detail = f"the thinking of {whose} is not sent: what stood before it has changed"
    return [LeftOut(what=THINKING_SOURCE, reason="thinking", detail=detail)]


def sizes_of(prompt: Prompt) -> dict[str, int]:
    return {size.layer: size.tokens for size in measure_layers(prompt) if size.tokens}


def _describe(
    state: State, attachments: Sequence[Attachment], assembler: Assembler
) -> tuple[ContextItem, ...]:
    if not attachments:
        return ()
    start, cached = state.turn.start, state.envelope.cached
    # A patch may have removed the question.
    context = cached[start].context if start is not None and start < len(cached) else None
    full = {use.item for use in context.uses if use.form == "full"} if context else set()
    context_items = []
    for attachment in attachments:
        item = attachment.item
        standing = state.library.standing.get(item.id)
        placement: Placement = "above"
        if item.id in full:
            placement = "message"
        elif standing and standing.in_library:
            placement = "library"
        context_items.append(
            ContextItem(
                item=item.id,
                version=item.version,
                label=label_of(item.id),
                placement=placement,
                layer="L3" if placement == "message" else "L2",
                tokens=assembler.item_tokens(item),
                priority=attachment.priority,
                essential=attachment.is_essential,
                pinned=item.id in state.library.pinned,
                reason=_reason_for(attachment.provenance, item.id in state.library.pinned),
                **asdict(attachment.provenance),
            )
        )
    return tuple(context_items)


def read_attachments(context: RequestContext, items: ItemVersions) -> tuple[Attachment, ...]:
    """Return the attachments that a request context describes, with their contents where known."""
    return tuple(
        Attachment(
            item=items[key],
            priority=described.priority,
            essential=described.essential,
            provenance=described.provenance,
        )
        for described in context.items
        if (key := (described.item, described.version)) in items
    )


def _size_tools(tools: tuple[ContextTool, ...], prompt: Prompt) -> tuple[ContextTool, ...]:
    """Return the tools with their sizes in the request. Tools come first, in the order of the
    list."""
    if not tools:
        return ()
    segments = [link.segment for link in prompt.front]
    sizes = {s.content.name: s.tokens for s in segments if isinstance(s.content, ToolDefinition)}
    return tuple(replace(tool, tokens=sizes.get(tool.name, 0)) for tool in tools)


def _describe_loaded(state: State, draft: Draft, assembler: Assembler) -> list[ContextTool]:
    """Return the tools that results loaded; those of an earlier turn are kept."""
    if not (state.loaded and draft.target.loads_late and state.envelope.tool_list):
        return []
    turn = state.envelope.cached.since(state.turn.start or 0)
    new = {t.item for message in turn for block in message.loads.values() for t in block.tools}
    listed = {tool.name for tool in draft.tools}
    return [
        ContextTool(
            item=tool.item, name=name, tokens=assembler.definition_tokens(tool.definition),
            include="agent", score=tool.score, origin="model", source=tool.source,
            kept=tool.item not in new,
        )
        for name, tool in state.loaded.items()
        if name not in listed
    ]  # fmt: skip


# Explains why an item that nobody asked for was included; `{}` is the source it was found from.
_FOUND = {
    "search": "found by search",
    "lexical": "found by its words",
    "expansion": "like {}, which was chosen",
    "relation": "comes along with {}",
    "result": "like what {} gave",
    "model": 'found by the model, which searched for "{}"',
    "glob": "applies to {}",
}


def _reason_for(provenance: Provenance, pinned: bool) -> str:
    if pinned:
        return "pinned"
    if provenance.include == "always":
        return "always included"
    if provenance.origin:
        return _FOUND.get(provenance.origin, provenance.origin).format(provenance.source)
    if provenance.level is not None:
        return "added by hand"
    return "attached to this message"
