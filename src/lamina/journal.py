"""The tree of entries, and the fold that makes a session's state of one path through it.

Laws: the envelope is a pure fold over the active path; a patch applies whole or raises and
changes nothing; replay runs no hook, calls no model and reads no file.
"""

from collections.abc import Iterable, Mapping
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from lamina.errors import InvalidPatch, InvalidSetting, JournalError
from lamina.values.chain import Chain
from lamina.values.entry import (
    Entry,
    EphemeralEntry,
    ForgetEntry,
    ItemEntry,
    MessageEntry,
    PinEntry,
    ReplyEntry,
    RequestEntry,
    SessionEntry,
    SettingsEntry,
    TransformEntry,
)
from lamina.values.envelope import LIBRARY, Envelope, Laid, SystemPart
from lamina.values.item import Item, ItemId, kind_of
from lamina.values.message import Context, Message, Text, Use
from lamina.values.patch import (
    CompactionApply,
    ItemLay,
    ItemSupersede,
    LibraryConsolidate,
    MessagesCachedReplace,
    MessagesUncachedAppend,
    OptionsSet,
    Patch,
    PatchOp,
    SystemPartRemove,
    SystemPartSet,
    SystemPartsReplace,
    ToolsRemove,
    ToolsReplace,
    op_name,
    op_reason,
)
from lamina.values.settings import Settings

# The id of the message that stands for what a compaction removed.
SUMMARY = "summary"


class Standing(Struct, frozen=True, kw_only=True):
    """The versions of an item whose blocks stand in the envelope, in order, and the one that
    applies, none if it was superseded. `in_library` says that it needs no boundary to get there."""

    versions: tuple[str, ...]
    current: str
    in_library: bool = False


class Known(Struct, frozen=True, kw_only=True):
    """What is remembered of an item once it was part of a turn."""

    priority: int
    essential: bool
    added: int
    named: int


class State(Struct, frozen=True, kw_only=True):
    """What a session amounts to at one entry of its tree."""

    session: SessionEntry
    settings: Settings
    envelope: Envelope
    items: Mapping[tuple[ItemId, str], Item]
    standing: Mapping[ItemId, Standing]
    known: Mapping[ItemId, Known]
    # Each with the version it had when it was pinned, for when it can no longer be read.
    pinned: Mapping[ItemId, str]
    forgotten: frozenset[ItemId] = frozenset()
    # Attached, but out for want of room; they stay out while they stay attached.
    still_out: frozenset[ItemId] = frozenset()
    # The rules and references that the latest list still standing names; None if none stands.
    in_force: tuple[ItemId, ...] | None = None
    turns: int = 0
    # What was typed in the turn under way; it must survive a cut in the middle of it.
    question: str = ""
    turn_start: int | None = None
    open_request: RequestEntry | None = None
    # What had been recorded when that was prepared; the rest is for the next one to explain.
    open_at: "tuple[int, int, Mapping[ItemId, Standing]] | None" = None
    last_sent: RequestEntry | None = None
    # What stood when that was sent: whatever is gone since has to be reported.
    sent_standing: Mapping[ItemId, Standing] = {}
    # Reasons recorded on this path since the last request that was sent, and the ops they are of.
    reasons: tuple[str, ...] = ()
    moved_by: tuple[str, ...] = ()
    calibration: Mapping[str, float] = {}
    leaf: str = ""


def begin(entry: SessionEntry) -> State:
    return State(
        session=entry,
        settings=entry.settings,
        envelope=Envelope(system=entry.system, tools=entry.tools, options=entry.options),
        items={},
        standing={},
        known={},
        pinned={},
        leaf=entry.id,
    )


def replay(entries: Iterable[Entry]) -> State:
    """The state at the end of one path, which begins with its session header.

    Raises:
        JournalError: there is no header, or a later entry does not fit.
    """
    state: State | None = None
    for entry in entries:
        if state is None:
            if not isinstance(entry, SessionEntry):
                raise JournalError(f"a session begins with its header, not with {entry.id!r}")
            state = begin(entry)
        else:
            state = fold(state, entry)
    if state is None:
        raise JournalError("no entries: nothing to replay")
    return state


def path_to(leaf: str, entries: Mapping[str, Entry]) -> tuple[Entry, ...]:
    """The entries from the header to `leaf`.

    Raises:
        JournalError: a parent is missing, or parents form a cycle.
    """
    path: list[Entry] = []
    seen: set[str] = set()
    at: str | None = leaf
    while at is not None:
        if at in seen:
            raise JournalError(f"entry {at!r} is its own ancestor")
        if at not in entries:
            raise JournalError(f"entry {at!r} is missing; its descendants cannot be placed")
        seen.add(at)
        path.append(entries[at])
        at = entries[at].parent
    return tuple(reversed(path))


def fold(state: State, entry: Entry) -> State:
    """The state after one more entry."""
    match entry:
        case SessionEntry():
            raise JournalError(f"a second session header {entry.id!r} inside a session")
        case ItemEntry(item=item):
            state = replace(state, items={**state.items, (item.id, item.version): item})
        case TransformEntry(patch=patch):
            state = _transform(state, patch)
        case EphemeralEntry(tool_texts=texts):
            state = replace(state, envelope=replace(state.envelope, tool_texts=texts))
        case MessageEntry(message=message):
            state = _append(state, message)
        case RequestEntry():
            state = _request(state, entry)
        case ReplyEntry():
            state = _reply(state, entry)
        case SettingsEntry(settings=settings):
            state = replace(state, settings=settings)
        case PinEntry(item=item_id, pinned=True, version=version):
            state = replace(
                state,
                pinned={**state.pinned, item_id: version},
                forgotten=state.forgotten - {item_id},
            )
        case PinEntry(item=item_id):
            pinned = {each: kept for each, kept in state.pinned.items() if each != item_id}
            state = replace(state, pinned=pinned)
        case ForgetEntry(item=item_id):
            state = replace(state, forgotten=state.forgotten | {item_id})
        case _:
            assert_never(entry)
    return replace(state, leaf=entry.id)


def _append(state: State, message: Message) -> State:
    cached = state.envelope.cached
    envelope = replace(state.envelope, cached=cached.extend((message,)))
    if message.role != "user":
        return replace(state, envelope=envelope)
    context = message.context
    return replace(
        state,
        envelope=replace(envelope, tool_texts=()),
        standing=_stand(state.standing, context.uses) if context else state.standing,
        in_force=state.in_force if not context or context.in_force is None else context.in_force,
        turns=state.turns + 1,
        question=message.text,
        turn_start=len(cached),
    )


def _request(state: State, entry: RequestEntry) -> State:
    context = entry.context
    known = dict(state.known)
    for item in context.items:
        before = known.get(item.item)
        known[item.item] = Known(
            priority=item.priority,
            essential=item.essential,
            added=before.added if before else len(known),
            named=state.turns,
        )
    out = frozenset(
        ItemId(each.what) for each in context.left_out if each.reason in ("window", "still_out")
    )
    versions = {item.item: item.version for item in context.items}
    return replace(
        state,
        known=known,
        still_out=out,
        # A pinned file that goes away stays as it last was.
        pinned={item: versions.get(item, version) for item, version in state.pinned.items()},
        forgotten=state.forgotten - versions.keys(),
        open_request=entry,
        open_at=(len(state.reasons), len(state.moved_by), state.standing),
    )


def _reply(state: State, entry: ReplyEntry) -> State:
    request = state.open_request
    if request is None or request.id != entry.request:
        raise JournalError(
            f"reply {entry.id!r} answers request {entry.request!r}, which is not open"
        )
    reasons, moved_by, standing = state.open_at or (0, 0, {})
    state = replace(
        state,
        open_request=None,
        open_at=None,
        last_sent=request,
        sent_standing=standing,
        reasons=state.reasons[reasons:],
        moved_by=state.moved_by[moved_by:],
    )
    if entry.usage.input and request.tokens:
        ratio = entry.usage.input / request.tokens
        before = state.calibration.get(request.target)
        # Half of what is new: one odd request (an image, a cut stream) must not swing the budget.
        factor = ratio if before is None else (before + ratio) / 2
        bounded = min(3.0, max(0.3, factor))
        state = replace(state, calibration={**state.calibration, request.target: bounded})
    if not awaits_results(state):
        state = replace(state, turn_start=None, envelope=replace(state.envelope, tool_texts=()))
    return state


def awaits_results(state: State) -> bool:
    """Whether the last message calls tools whose results are not there yet."""
    cached = state.envelope.cached
    return bool(len(cached) and cached[-1].calls)


# -- patches -------------------------------------------------------------------------------------


def _transform(state: State, patch: Patch) -> State:
    for op in patch.ops:
        for item, version in items_named(op):
            if (item, version) not in state.items:
                problem = f"no content is kept of {item!r}, version {version[:8]!r}"
                raise InvalidPatch(op_name(op), problem)
    envelope, start = apply_patch(
        state.envelope, patch, state.turn_start, state.last_sent is not None
    )
    reasons = tuple(filter(None, map(op_reason, patch.ops)))
    moved_by = tuple(op_name(op) for op in patch.ops if op.needs_reason)
    return replace(
        state,
        envelope=envelope,
        standing=_supersede(_standing_after(state, envelope), patch),
        in_force=_in_force(state, envelope),
        turn_start=start,
        reasons=state.reasons + reasons,
        moved_by=state.moved_by + moved_by,
    )


def items_named(op: PatchOp) -> list[tuple[ItemId, str]]:
    """The item versions that an op lays down, whose contents have to be there."""
    match op:
        case ItemLay(item=item, version=version):
            return [(item, version)]
        case LibraryConsolidate(items=items):
            return [(laid.item, laid.version) for laid in items]
        case _:
            return []


def apply_patch(
    envelope: Envelope, patch: Patch, turn_start: int | None = None, sent: bool = False
) -> tuple[Envelope, int | None]:
    """The envelope after every op of `patch`, and where the turn under way now starts.

    Raises:
        InvalidPatch: an op needs a reason and has none, or cannot be applied.
    """
    for op in patch.ops:
        if op.needs_reason and not op_reason(op):
            raise InvalidPatch(op_name(op), "changes what is cached and needs a non-blank reason")
    for op in patch.ops:
        envelope, turn_start = _apply(envelope, op, turn_start, sent)
    return envelope, turn_start


def _apply(
    envelope: Envelope, op: PatchOp, start: int | None, sent: bool
) -> tuple[Envelope, int | None]:
    match op:
        case SystemPartSet(name=name, text=text):
            envelope = replace(envelope, system=_set_part(envelope.system, op, name, text))
        case SystemPartRemove(name=name):
            _check_name(op, name)
            kept = tuple(part for part in envelope.system if part.name != name)
            envelope = replace(envelope, system=kept)
        case SystemPartsReplace(parts=parts):
            for part in parts:
                _check_name(op, part.name)
            envelope = replace(envelope, system=parts)
        case ToolsReplace(tools=tools):
            names = [tool.name for tool in tools]
            if len(set(names)) != len(names):
                raise InvalidPatch(op_name(op), f"tool names are not unique: {sorted(names)!r}")
            envelope = replace(envelope, tools=tools)
        case ToolsRemove(names=gone):
            kept_tools = tuple(tool for tool in envelope.tools if tool.name not in gone)
            envelope = replace(envelope, tools=kept_tools)
        case MessagesCachedReplace(messages=messages):
            envelope = replace(envelope, cached=Chain(_with_ids(messages, "replaced", 0)))
            start = None if start is None else min(start, len(messages))
        case MessagesUncachedAppend(messages=messages):
            added = _with_ids(messages, "uncached", len(envelope.uncached))
            envelope = replace(envelope, uncached=envelope.uncached + added)
        case OptionsSet(temperature=temperature, max_tokens=max_tokens, reasoning=reasoning):
            given = {"temperature": temperature, "max_tokens": max_tokens, "reasoning": reasoning}
            changes = {name: value for name, value in given.items() if value is not None}
            try:
                envelope = replace(envelope, options=replace(envelope.options, **changes))
            except InvalidSetting as error:
                raise InvalidPatch(op_name(op), str(error)) from error
        case CompactionApply():
            envelope, start = _compact(envelope, op, start)
        case ItemLay(item=item, version=version):
            envelope = _lay(envelope, item, version, sent)
        case ItemSupersede():
            pass
        case LibraryConsolidate(items=items):
            bare = (_without_context(message) for message in envelope.cached)
            envelope = replace(envelope, library=items, cached=Chain(bare))
        case _:
            assert_never(op)
    return envelope, start


def _compact(
    envelope: Envelope, op: CompactionApply, start: int | None
) -> tuple[Envelope, int | None]:
    cached = envelope.cached
    cut = max(0, min(op.first_kept, len(cached)))
    after = max(0, min(op.after, cut))
    middle = (_summary_message(op.summary),) if op.summary else ()
    behind = map(_without_names, cached.since(cut)) if after else cached.since(cut)
    if start is not None and start >= cut:
        start += after + len(middle) - cut
    elif start is not None and start >= after:
        # A turn cut in the middle begins with the summary, which holds its question.
        start = after
    return replace(envelope, cached=cached.until(after).extend((*middle, *behind))), start


def _with_ids(messages: tuple[Message, ...], stem: str, start: int) -> tuple[Message, ...]:
    """Messages with ids: neighbours without one would become one message on the wire."""
    return tuple(
        message if message.id else replace(message, id=f"{stem}:{index}")
        for index, message in enumerate(messages, start)
    )


def _check_name(op: PatchOp, name: str) -> None:
    if name == LIBRARY:
        raise InvalidPatch(
            op_name(op), f"the part {LIBRARY!r} is reserved; use library_consolidate"
        )
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


def _lay(envelope: Envelope, item: ItemId, version: str, sent: bool) -> Envelope:
    if not sent:
        kept = tuple(laid for laid in envelope.library if laid.item != item)
        return replace(envelope, library=(*kept, Laid(item=item, version=version)))
    if len(envelope.cached) and envelope.cached[-1].calls:
        raise InvalidPatch("item_lay", "tool calls wait for their results; lay it down after them")
    use = Use(item=item, version=version, form="full")
    message = Message(
        role="user", blocks=(Context(uses=(use,)),), id=f"lay:{len(envelope.cached)}:{item}"
    )
    return replace(envelope, cached=envelope.cached.extend((message,)))


def _summary_message(summary: str) -> Message:
    return Message(role="user", blocks=(Text(summary),), id=SUMMARY)


def _without_context(message: Message) -> Message:
    if message.context is None:
        return message
    blocks = tuple(block for block in message.blocks if not isinstance(block, Context))
    return replace(message, blocks=blocks)


def _without_names(message: Message) -> Message:
    """The message with the items it brought, but not the names of those that stood elsewhere."""
    context = message.context
    if context is None:
        return message
    full = tuple(use for use in context.uses if use.form == "full")
    if full == context.uses and not context.absent:
        return message
    kept = Context(uses=full, in_force=context.in_force)
    others = tuple(block for block in message.blocks if not isinstance(block, Context))
    return replace(message, blocks=(kept, *others) if kept != Context() else others)


# -- what stands in the envelope -----------------------------------------------------------------


def _stand(standing: Mapping[ItemId, Standing], uses: Iterable[Use]) -> Mapping[ItemId, Standing]:
    changed = dict(standing)
    for use in uses:
        before = changed.get(use.item)
        versions = before.versions if before else ()
        if use.form == "full":
            # A version that stands twice counts at its last place only.
            versions = (*(each for each in versions if each != use.version), use.version)
            changed[use.item] = Standing(versions=versions, current=use.version)
        elif before and before.current != use.version:
            changed[use.item] = replace(before, current=use.version, in_library=False)
    return changed


def _standing_after(state: State, envelope: Envelope) -> Mapping[ItemId, Standing]:
    if envelope.library is state.envelope.library and envelope.cached is state.envelope.cached:
        return state.standing
    standing: Mapping[ItemId, Standing] = {
        laid.item: Standing(versions=(laid.version,), current=laid.version, in_library=True)
        for laid in envelope.library
    }
    for message in envelope.cached:
        if context := message.context:
            standing = _stand(standing, (use for use in context.uses if use.form == "full"))
    # A version chosen by name alone ("changed back") still applies if its block still stands.
    after = dict(standing)
    for item, before in state.standing.items():
        now = after.get(item)
        if now and before.current != now.current and before.current in now.versions:
            after[item] = replace(now, current=before.current)
    return after


def _in_force(state: State, envelope: Envelope) -> tuple[ItemId, ...] | None:
    """The latest list of rules in force that is still there to be read."""
    if envelope.cached is state.envelope.cached:
        return state.in_force
    lists = [m.context.in_force for m in envelope.cached if m.context]
    return next((each for each in reversed(lists) if each is not None), None)


def _supersede(standing: Mapping[ItemId, Standing], patch: Patch) -> Mapping[ItemId, Standing]:
    """What stands, less the versions that were said to apply no longer."""
    gone = {(op.item, op.version) for op in patch.ops if isinstance(op, ItemSupersede)}
    if not gone:
        return standing
    return {
        item: replace(each, current="") if (item, each.current) in gone else each
        for item, each in standing.items()
    }


def is_guidance(item: ItemId) -> bool:
    """Rules and references: named as a set in force, not turn by turn."""
    return kind_of(item) in ("rule", "reference")
