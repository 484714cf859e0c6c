"""Applies patches to an envelope, and to the state of a session.

Laws: a patch applies completely, or raises and changes nothing. No patch separates a tool call from
its result. A patch shortened for the journal has the same effect as the whole one: a journal that
stored the history again with every turn would grow with the square of its length.
"""

from collections.abc import Iterable, Iterator
from typing import assert_never

from msgspec.structs import replace

from lamina.core.journal.reasons import RecordedReason, find_moved_parts, reason_of
from lamina.core.journal.state import (
    StandingItems,
    State,
    apply_lay_ops,
    find_laid_versions,
    find_versions,
    has_grown,
    laid_items,
    lay_uses,
)
from lamina.core.values.collections import Chain
from lamina.core.values.envelope import LIBRARY, Envelope, LaidItem, SystemPart
from lamina.core.values.item import ItemId
from lamina.core.values.message import Context, Message, Text, ToolCall, ToolResult, Use
from lamina.core.values.patch import (
    CompactionApply,
    ItemLay,
    ItemSupersede,
    LibraryConsolidate,
    MessagesCachedAppend,
    MessagesCachedReplace,
    MessagesUncachedAppend,
    OnceOps,
    OptionsSet,
    Patch,
    PatchOp,
    ResultsReplace,
    SystemPartRemove,
    SystemPartSet,
    SystemPartsReplace,
    ToolsRemove,
    ToolsReplace,
    lacks_reason,
    op_name,
    op_reason,
)
from lamina.errors import InvalidPatch

# The id of the message that replaces what a compaction removed.
SUMMARY_ID = "summary"


def apply_patch(
    envelope: Envelope, patch: Patch, turn_start: int | None = None, sent: bool = False
) -> tuple[Envelope, int | None]:
    """Return the envelope after every operation of `patch`, and the new start of the current turn.

    Raises:
        InvalidPatch: an operation needs a reason and has none, or cannot be applied.
    """
    check_reasons(patch)
    for op in patch.ops:
        envelope, turn_start = apply_op(envelope, op, turn_start, sent)
    return envelope, turn_start


def check_reasons(patch: Patch) -> None:
    """Check that every operation has the reason it needs.

    Raises:
        InvalidPatch: an operation needs a reason and has none.
    """
    for op in patch.ops:
        if lacks_reason(op):
            raise InvalidPatch(op_name(op), "changes what is cached and needs a non-blank reason")


def apply_op(
    envelope: Envelope, op: PatchOp, start: int | None, sent: bool,
    stood: StandingItems | None = None,
) -> tuple[Envelope, int | None]:  # fmt: skip
    """Return the envelope after one operation, and the new start of the current turn. `stood` makes
    it unnecessary to search all of history for standing items."""
    match op:
        case SystemPartSet(name=name, text=text):
            envelope = replace(envelope, system=_set_part(envelope.system, op, name, text))
        case SystemPartRemove(name=name):
            _check_name(op, name)
            parts = tuple(part for part in envelope.system if part.name != name)
            envelope = replace(envelope, system=parts)
        case SystemPartsReplace(parts=parts):
            for part in parts:
                _check_name(op, part.name)
            envelope = replace(envelope, system=parts)
        case ToolsReplace(tools=tools):
            names = [tool.name for tool in tools]
            if len(set(names)) != len(names):
                raise InvalidPatch(op_name(op), f"tool names are not unique: {sorted(names)!r}")
            if strangers := set(op.barred).difference(names):
                raise InvalidPatch(op_name(op), f"barred and not in the list: {strangers!r}")
            offered = tuple(tool for tool in tools if tool.name not in op.barred)
            envelope = replace(envelope, tools=offered, listed=tools if op.barred else ())
        case ToolsRemove():
            tools = tuple(tool for tool in envelope.tools if tool.name not in op.names)
            if len(tools) < len(envelope.tools):
                envelope = replace(envelope, tools=tools, listed=())
        case MessagesCachedReplace(messages=messages):
            envelope = replace(envelope, cached=_replace_messages(envelope.cached, op))
            start = None if start is None else min(start, len(envelope.cached))
        case MessagesCachedAppend(messages=messages):
            check_appended(op)
            if calls_wait(envelope):
                problem = "tool calls wait for their results; add messages behind those"
                raise InvalidPatch(op_name(op), problem)
            envelope = replace(envelope, cached=append_messages(envelope.cached, messages))
        case ResultsReplace():
            envelope = replace(envelope, cached=_replace_results(envelope.cached, op))
        case MessagesUncachedAppend(messages=messages):
            added = _with_ids(messages, "uncached", len(envelope.uncached))
            envelope = replace(envelope, uncached=envelope.uncached + added)
        case OptionsSet():
            envelope = replace(envelope, options=op.over(envelope.options))
        case CompactionApply():
            envelope, start = _compact(envelope, op, start)
        case ItemLay():
            envelope = _lay(envelope, op, sent, stood)
        case ItemSupersede():
            pass
        case LibraryConsolidate():
            envelope = _consolidate(envelope, op, start)
        case _:
            assert_never(op)
    return envelope, start


def _compact(
    envelope: Envelope, op: CompactionApply, start: int | None
) -> tuple[Envelope, int | None]:
    cached = envelope.cached
    cut = max(0, min(op.first_kept, len(cached)))
    after = max(0, min(op.after, cut))
    _check_cut(op, cached, range(after, cut))
    head = cached.until(after)
    behind = list(map(_without_names, cached.since(cut)) if after else cached.since(cut))
    split = start is not None and after <= start < cut
    in_force = latest_in_force(cached.since(after)[: cut - after])
    middle: list[Message] = []
    there = {laid.item for laid in envelope.library} | brought_by((*head, *behind))
    if op.summary:
        summary = Message(role="user", blocks=(Text(op.summary),), id=SUMMARY_ID)
        if split and start is not None:
            named = _naming(cached[start].context, there, in_force)
            summary = _with_context(summary, named)
        middle = [summary]
    if start is not None and start >= cut:
        place = start - cut
        if in_force is not None and latest_in_force(behind[: place + 1]) is None:
            # They were named in the removed part; the current question names them instead.
            for question in behind[place : place + 1]:
                context = question.context or Context()
                named = replace(context, in_force=_standing_of(in_force, there))
                behind[place] = _with_context(question, named)
        start += after + len(middle) - cut
    elif split:
        # A turn cut in the middle starts with the summary, which contains its question.
        start = after
    return replace(envelope, cached=head.extend((*middle, *behind))), start


def _answers(messages: Iterable[Message]) -> Iterator[tuple[str, int | None, int]]:
    """Yield every result by its call's id: the index of the call (None if no call before it waits
    for one), and that of the result. Ids may be used again."""
    waiting: dict[str, list[int]] = {}
    for index, message in enumerate(messages):
        for block in message.blocks:
            match block:
                case ToolCall(id=call):
                    # An earlier call with this id gets no more answers; one beside it does.
                    beside = [place for place in waiting.get(call, ()) if place == index]
                    waiting[call] = [*beside, index]
                case ToolResult(call_id=call):
                    calls = waiting.get(call)
                    yield call, calls.pop() if calls else None, index
                case _:
                    pass


def _check_cut(op: CompactionApply, cached: Iterable[Message], gone: range) -> None:
    if not gone and (not op.summary or not gone.start):
        return
    for call, start, end in _answers(cached):
        # A result that already lacked a call before it is not this operation's fault.
        if start is not None and _side_of(start, gone) != _side_of(end, gone):
            pair = f"the call {call!r} (message {start}) from its result (message {end})"
            problem = f"a cut from {gone.start} to {gone.stop} would part {pair}"
            raise InvalidPatch(op_name(op), problem)


def _side_of(index: int, gone: range) -> int:
    """Return whether `index` is before, in, or after the removed part."""
    return (index >= gone.start) + (index >= gone.stop)


def _check_replaced(
    op: MessagesCachedReplace, before: Iterable[Message], messages: tuple[Message, ...]
) -> None:
    """Check that results have their calls before them, and that answered calls keep their results,
    except at the end. Existing errors are allowed to remain."""
    earlier, now = list(_answers(before)), list(_answers(messages))
    lost = {call for call, place, _ in now if place is None}
    if lost := lost - {call for call, place, _ in earlier if place is None}:
        problem = "would stand without its call in front of it"
        raise InvalidPatch(op_name(op), f"the result of call {min(lost)!r} {problem}")
    unanswered = {call for call, place, _ in earlier if place is not None}
    unanswered -= {call for call, _, _ in now}
    for message in messages[:-1]:
        for call in message.calls:
            if call.id in unanswered:
                problem = "would stay without the result it has; drop both, or keep both"
                raise InvalidPatch(op_name(op), f"the call {call.id!r} {problem}")


def _replace_messages(cached: Chain[Message], op: MessagesCachedReplace) -> Chain[Message]:
    messages = op.messages
    if not 0 <= op.kept <= len(cached):
        problem = f"cannot keep the first {op.kept} messages: history has {len(cached)}"
        raise InvalidPatch(op_name(op), problem)
    if not op.kept:
        _check_replaced(op, cached, messages)
        return Chain(_with_ids(messages, "replaced", 0))
    head = cached.until(op.kept)
    if op.kept < len(cached) or any(map(_is_paired, messages)):
        _check_replaced(op, cached, (*head, *messages))
    return head.extend(_with_ids(messages, "replaced", op.kept, head[-1].id))


def check_appended(op: MessagesCachedAppend) -> None:
    """Check that calls and results are paired.

    Raises:
        InvalidPatch: a call in it has no result there, or a result no call.
    """
    answered = list(_answers(op.messages))
    calls = sum(len(message.calls) for message in op.messages)
    if calls != len(answered) or any(place is None for _, place, _ in answered):
        problem = "calls of tools and their results are added together, or not at all"
        raise InvalidPatch(op_name(op), problem)


def append_messages(cached: Chain[Message], messages: tuple[Message, ...]) -> Chain[Message]:
    """Return history with messages appended, each with an id."""
    last = cached[-1].id if len(cached) else ""
    return cached.extend(_with_ids(messages, "appended", len(cached), last))


def calls_wait(envelope: Envelope) -> bool:
    """Return whether the last message calls tools whose results are still missing."""
    cached = envelope.cached
    return bool(len(cached) and cached[-1].calls)


def _is_paired(message: Message) -> bool:
    """Return whether a message contains a call or a result."""
    return any(isinstance(block, ToolCall | ToolResult) for block in message.blocks)


def _replace_results(cached: Chain[Message], op: ResultsReplace) -> Chain[Message]:
    messages = list(cached)
    place = next((i for i, message in enumerate(messages) if message.id == op.message), None)
    if place is None:
        raise InvalidPatch(op_name(op), f"no message {op.message!r} in history")
    results = {result.call_id: result for result in op.results}
    if not results or len(results) < len(op.results):
        raise InvalidPatch(op_name(op), "needs one result for each call that it is about")
    blocks = list(messages[place].blocks)
    for index, block in enumerate(blocks):
        if isinstance(block, ToolResult) and block.call_id in results:
            result = blocks[index] = results.pop(block.call_id)
            if block.name != result.name:
                problem = f"call {block.call_id!r} is one of {block.name!r}, not of {result.name!r}"
                raise InvalidPatch(op_name(op), problem)
    if results:
        problem = f"message {op.message!r} has no result of call {min(results)!r}"
        raise InvalidPatch(op_name(op), problem)
    messages[place] = replace(messages[place], blocks=tuple(blocks))
    return Chain(messages)


def _consolidate(envelope: Envelope, op: LibraryConsolidate, start: int | None) -> Envelope:
    there = {laid.item for laid in op.items}
    in_force = latest_in_force(envelope.cached)
    cached = []
    for index, message in enumerate(envelope.cached):
        names = index == start
        rest = _naming(message.context, there, in_force, op.in_place) if names else None
        cached.append(_with_context(message, rest))
    return replace(envelope, library=op.items, cached=Chain(cached))


def _naming(
    context: Context | None,
    there: set[ItemId],
    in_force: tuple[ItemId, ...] | None,
    in_place: tuple[ItemId, ...] = (),
) -> Context | None:
    """Return what the current question still states: the names of standing items, and what is in
    force."""
    uses = []
    for use in context.uses if context else ():
        if use.item in in_place:
            uses.append(use)
        elif use.item in there:
            uses.append(Use(item=use.item, version=use.version, form="named", shape=use.shape))
    uses.sort(key=lambda use: use.form != "named")
    absent = context.absent if context else ()
    rest = Context(uses=tuple(uses), absent=absent, in_force=_standing_of(in_force, there))
    return rest if rest != Context() else None


def _standing_of(
    in_force: tuple[ItemId, ...] | None, there: set[ItemId]
) -> tuple[ItemId, ...] | None:
    return None if in_force is None else tuple(item for item in in_force if item in there)


def latest_in_force(messages: Iterable[Message]) -> tuple[ItemId, ...] | None:
    """Return the latest list of rules in force in these messages; None if there is none."""
    lists = [message.context.in_force for message in messages if message.context]
    return next((items for items in reversed(lists) if items is not None), None)


def brought_by(messages: Iterable[Message]) -> set[ItemId]:
    """Return the items that messages contain in full."""
    contexts = (message.context for message in messages)
    return {u.item for context in contexts if context for u in context.uses if u.form == "full"}


def _with_ids(
    messages: tuple[Message, ...], stem: str, start: int, last: str = ""
) -> tuple[Message, ...]:
    """Return messages with ids, following one with the id `last`: neighbors without an id, or with
    the same one, would become one message on the wire."""
    start += last == f"{stem}:{start}"
    return tuple(
        message if message.id else replace(message, id=f"{stem}:{index}")
        for index, message in enumerate(messages, start)
    )


def _check_name(op: PatchOp, name: str) -> None:
    if name == LIBRARY:
        problem = f"the part {LIBRARY!r} is reserved; use library_consolidate"
        raise InvalidPatch(op_name(op), problem)
    if not name.strip():
        raise InvalidPatch(op_name(op), "a system part needs a name")


def _set_part(
    parts: tuple[SystemPart, ...], op: PatchOp, name: str, text: str
) -> tuple[SystemPart, ...]:
    _check_name(op, name)
    new = SystemPart(name=name, text=text)
    for index, part in enumerate(parts):
        if part.name == name:
            return (*parts[:index], new, *parts[index + 1 :])
    return (*parts, new)


def _lay(envelope: Envelope, op: ItemLay, sent: bool, stood: StandingItems | None) -> Envelope:
    item, version = op.item, op.version
    if not sent:
        others = tuple(laid for laid in envelope.library if laid.item != item)
        return replace(envelope, library=(*others, LaidItem(item=item, version=version)))
    if calls_wait(envelope):
        raise InvalidPatch("item_lay", "tool calls wait for their results; lay it down after them")
    versions = stood.versions_in(envelope, item) if stood else find_versions(envelope, item)
    use = Use(item=item, version=version, form="full", replaces=bool(versions))
    # If its text stands above, it only has to say that it applies again.
    is_stated = op.in_force is not None and version in versions
    name = f"lay:{len(envelope.cached)}:{item}"
    context = Context(uses=() if is_stated else (use,), in_force=op.in_force)
    message = Message(role="user", blocks=(context,), id=name)
    return replace(envelope, cached=envelope.cached.extend((message,)))


def _with_context(message: Message, context: Context | None) -> Message:
    """Return the message with this context replacing its own; unchanged if neither exists."""
    if context is None and message.context is None:
        return message
    others = tuple(block for block in message.blocks if not isinstance(block, Context))
    return replace(message, blocks=(context, *others) if context else others)


def _without_names(message: Message) -> Message:
    """Return the message with the items it brought, but without the names of those that stood
    elsewhere."""
    context = message.context
    if context is None:
        return message
    full = tuple(use for use in context.uses if use.form == "full")
    if full == context.uses and not context.absent:
        return message
    rest = Context(uses=full, in_force=context.in_force)
    return _with_context(message, rest if rest != Context() else None)


def shorten_patch(patch: Patch, envelope: Envelope, sent: bool) -> Patch:
    """Return the patch for `envelope`, with the messages that stay in place counted, not repeated;
    `sent` says whether anything was sent yet.

    Raises:
        InvalidPatch: an operation cannot be applied.
    """
    if not any(isinstance(op, MessagesCachedReplace) for op in patch.ops):
        return patch
    ops: list[PatchOp] = []
    for op in patch.ops:
        if isinstance(op, MessagesCachedReplace) and not op.kept:
            kept = _count_kept(envelope.cached, op.messages)
            op = replace(op, kept=kept, messages=op.messages[kept:])
        ops.append(op)
        if len(ops) < len(patch.ops):
            envelope, _ = apply_op(envelope, op, None, sent)
    return replace(patch, ops=tuple(ops))


def _count_kept(cached: Chain[Message], messages: tuple[Message, ...]) -> int:
    pairs = zip(cached, messages, strict=False)
    differing = (place for place, (old, new) in enumerate(pairs) if old is not new and old != new)
    return next(differing, min(len(cached), len(messages)))


def require_contents(state: State, ops: Iterable[PatchOp]) -> None:
    """Check that the contents of all items to be laid down exist.

    Raises:
        InvalidPatch: an operation lays something down whose content is missing.
    """
    for op in ops:
        for item, version in laid_items(op):
            if (item, version) not in state.library.items:
                problem = f"no content is kept of {item!r}, version {version[:8]!r}"
                raise InvalidPatch(op_name(op), problem)


def patch_state(state: State, transformer: str, patch: Patch) -> State:
    """Return the state after a patch by `transformer`.

    Raises:
        InvalidPatch: an operation is wrong, or cannot be applied.
    """
    require_contents(state, patch.ops)
    before, library, requests = state.envelope, state.library, state.requests
    standing, in_force, cuts = library.standing, library.in_force, requests.cuts
    check_reasons(patch)
    envelope, start, reasons = before, state.turn.start, []
    behind, once = state.turn.behind_results, state.once
    stood = StandingItems(envelope=before, standing=standing)
    for op in patch.ops:
        if isinstance(op, OptionsSet) and op.scope == "uncached":
            apply_op(envelope, op, start, False)
            once += (OnceOps(transformer=transformer, ops=(op,)),)
            continue
        if isinstance(op, MessagesCachedAppend) and calls_wait(envelope):
            check_appended(op)
            behind += op.messages
            continue
        after, start = apply_op(envelope, op, start, state.requests.sent is not None, stood)
        if op_reason(op):
            reasons.append(reason_of(op, envelope, after))
        envelope = after
    old, new = before.cached, envelope.cached
    if has_grown(before, envelope):
        # It only grew, if at all: parts already searched are not searched again.
        for message in new.since(len(old)):
            if context := message.context:
                standing = lay_uses(standing, context.uses)
                in_force = in_force if context.in_force is None else context.in_force
    else:
        in_force = latest_in_force(new)
        standing = find_laid_versions(envelope, standing)
    for op in patch.ops:
        if isinstance(op, CompactionApply):
            dropped = min(op.first_kept, len(before.cached)) - max(0, op.after)
            if dropped > 0:
                cuts = (*cuts, (op.reason, dropped))
            if op.read or op.modified:
                state = replace(state, read_files=op.read, modified_files=op.modified)
    return replace(
        state,
        envelope=envelope,
        once=once,
        library=replace(library, standing=apply_lay_ops(standing, patch), in_force=in_force),
        turn=replace(state.turn, start=start, behind_results=behind),
        requests=replace(
            requests,
            reasons=requests.reasons + _net_reasons(reasons, before, envelope),
            cuts=cuts,
        ),
    )


def _net_reasons(
    reasons: list[RecordedReason], before: Envelope, after: Envelope
) -> tuple[RecordedReason, ...]:
    """Return the reasons of a patch, each with the parts that its operation moved and no later one
    moved back."""
    if len(reasons) < 2:
        return tuple(reasons)
    net = find_moved_parts(before, after)
    return tuple(replace(reason, moved=reason.moved.within(net)) for reason in reasons)
