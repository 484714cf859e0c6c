"""From entries to a state.

Laws: the envelope is a pure fold over the active path; replay runs no hook, calls no model and
reads no file.
"""

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import assert_never

from msgspec.structs import replace

from lamina.errors import InvalidPatch, JournalError
from lamina.journal.calibration import calibrate
from lamina.journal.patch_effects import (
    apply_lay_ops,
    apply_op,
    check_reasons,
    laid_items,
    latest_in_force,
)
from lamina.journal.reasons import RecordedReason, find_moved_parts, reason_of
from lamina.journal.removed_tools import TAKEN_OUT, TOOLS_JOIN, move_tools
from lamina.journal.state import KnownItem, LaidVersions, State
from lamina.values.collections import FrozenMap
from lamina.values.entry import (
    BranchSummaryEntry,
    CustomEntry,
    DecisionEntry,
    Entry,
    EphemeralEntry,
    ForgetEntry,
    InboxEntry,
    IncludeEntry,
    InfoEntry,
    ItemEntry,
    LabelEntry,
    LeafEntry,
    LeaveEntry,
    MessageEntry,
    ModelEntry,
    OpeningEntry,
    PinEntry,
    ReplyEntry,
    RequestEntry,
    ResultEntry,
    SessionEntry,
    SettingsEntry,
    TransformEntry,
    UnknownEntry,
)
from lamina.values.envelope import Envelope
from lamina.values.item import Item, ItemId
from lamina.values.message import Message, Text, Use
from lamina.values.patch import CompactionApply, Patch, op_name, op_reason

BRANCH_NOTICE = "[Another branch of this conversation was left. What came of it:]"


def initial_state(entry: Entry) -> State:
    """The state at a session's header.

    Raises:
        JournalError: the entry is not a header.
    """
    if not isinstance(entry, SessionEntry):
        raise JournalError(f"a session begins with its header, not with {entry.id!r}")
    state = State(
        session=entry,
        settings=entry.settings,
        envelope=Envelope(system=entry.system, tools=entry.tools, options=entry.options),
        items=FrozenMap(),
        item_entries=FrozenMap(),
        standing={},
        known={},
        pinned={},
        leaf=entry.id,
    )
    return _always(state, entry.included, entry.id)


def replay(entries: Iterable[Entry]) -> State:
    """The state at the end of one path, which begins with its session header.

    Raises:
        JournalError: there is no header, or a later entry does not fit.
    """
    path = iter(entries)
    header = next(path, None)
    if header is None:
        raise JournalError("no entries: nothing to replay")
    return reduce(fold_entry, path, initial_state(header))


def fold_entry(state: State, entry: Entry) -> State:
    """The state after one more entry."""
    match entry:
        # The most frequent first; each of them writes down where it got to by itself.
        case MessageEntry(message=message):
            return _append(state, message, entry.id)
        case RequestEntry():
            return _request(state, entry)
        case ReplyEntry():
            return _reply(state, entry)
        case SessionEntry():
            raise JournalError(f"a second session header {entry.id!r} inside a session")
        case ItemEntry(item=item):
            state = _keep_item(state, item, entry.id)
        case TransformEntry(transformer=transformer, patch=patch):
            state = move_tools(state, _transform(state, patch), transformer, patch)
            if transformer == TOOLS_JOIN and state.last_sent is not None:
                state = replace(state, tool_joins=state.tool_joins + 1)
        case EphemeralEntry(tool_texts=texts, messages=messages):
            # Results of planned tools stay for their turn, messages for one request.
            tool_texts = texts or state.envelope.tool_texts
            uncached = state.envelope.uncached + messages
            envelope = replace(state.envelope, tool_texts=tool_texts, uncached=uncached)
            state = replace(state, envelope=envelope)
        case ResultEntry(result=result, whole=whole):
            state = replace(state, results={**state.results, result.call_id: result})
            if whole:
                wholes = {**state.whole_results, result.call_id: whole}
                state = replace(state, whole_results=wholes)
        case DecisionEntry():
            state = _decide(state, entry)
        case SettingsEntry(settings=settings):
            # Other limits, another try for what had no room.
            out = state.still_out if settings.window == state.settings.window else frozenset()
            state = replace(state, settings=settings, still_out=out)
        case PinEntry(item=item_id, pinned=True, version=version):
            state = replace(
                state,
                pinned={**state.pinned, item_id: version},
                forgotten=state.forgotten - {item_id},
            )
        case PinEntry(item=item_id):
            pinned = {item: at for item, at in state.pinned.items() if item != item_id}
            state = replace(state, pinned=pinned)
        case LeaveEntry():
            state = _end_turn(state)
        case ModelEntry(target=target):
            state = replace(state, settings=replace(state.settings, target=target))
        case BranchSummaryEntry(id=entry_id, summary=summary):
            text = Text(f"{BRANCH_NOTICE}\n\n{summary}")
            cached = state.envelope.cached.extend(
                (Message(role="user", blocks=(text,), id=entry_id),)
            )
            state = replace(state, envelope=replace(state.envelope, cached=cached))
        case OpeningEntry():
            state = _open_again(state, entry)
        case InboxEntry(taken=""):
            state = replace(state, inbox={**state.inbox, entry.id: entry})
        case InboxEntry(taken=taken):
            inbox = {key: message for key, message in state.inbox.items() if key != taken}
            state = replace(state, inbox=inbox)
        case LeafEntry() | LabelEntry() | InfoEntry() | CustomEntry() | UnknownEntry():
            pass
        case IncludeEntry(item=item_id, membership=membership, name=name):
            # Added again, it comes last.
            members = {item: own for item, own in state.members.items() if item != item_id}
            if membership != "default":
                members[item_id] = membership
            withdrawn = {tool: why for tool, why in state.withdrawn.items() if tool != name}
            if name and membership == "removed":
                withdrawn[name] = TAKEN_OUT
            state = replace(state, members=members, withdrawn=withdrawn)
        case ForgetEntry(item=item_id):
            state = replace(state, forgotten=state.forgotten | {item_id})
        case _:
            assert_never(entry)
    return replace(state, leaf=entry.id)


def _decide(state: State, entry: DecisionEntry) -> State:
    state = replace(state, decisions={**state.decisions, entry.call_id: entry})
    if entry.decision != "allow_session":
        return state
    return replace(state, allowed={**state.allowed, entry.tool: entry.digest})


def _open_again(state: State, entry: OpeningEntry) -> State:
    state = replace(state, given={**state.given, **entry.given})
    if entry.options is not None:
        state = replace(state, envelope=replace(state.envelope, options=entry.options))
    return state if entry.included is None else _always(state, entry.included, entry.id)


def _always(state: State, items: tuple[Item, ...], entry: str) -> State:
    for item in items:
        if (item.id, item.version) not in state.items:
            state = _keep_item(state, item, entry)
    return replace(state, always=tuple((item.id, item.version) for item in items))


def _keep_item(state: State, item: Item, entry: str) -> State:
    key = (item.id, item.version)
    return replace(
        state,
        pictured=state.pictured or bool(item.pictures),
        items=state.items.with_entry(key, item),
        item_entries=state.item_entries.with_entry(key, entry),
    )


def _append(state: State, message: Message, leaf: str) -> State:
    cached = state.envelope.cached
    messages = cached.extend((message,))
    pictured = state.pictured or message.pictured
    if state.results or state.decisions:
        state = replace(state, results={}, whole_results={}, decisions={})
    if message.role != "user":
        envelope = replace(state.envelope, cached=messages)
        state = replace(state, pictured=pictured, envelope=envelope, called_by="", leaf=leaf)
        # An answer that no request of ours waits for: it was imported, and ends its turn.
        ends = message.role == "assistant" and state.open_request is None and not message.calls
        return _end_turn(state) if ends else state
    context, text = message.context, message.text
    return replace(
        state,
        pictured=pictured,
        envelope=replace(state.envelope, cached=messages, tool_texts=()),
        standing=lay_uses(state.standing, context.uses) if context else state.standing,
        in_force=state.in_force if not context or context.in_force is None else context.in_force,
        turns=state.turns + 1,
        question=text,
        goal=state.goal or text,
        asked=message.id,
        retried=False,
        called_by="",
        turn_start=len(cached),
        leaf=leaf,
    )


def _request(state: State, entry: RequestEntry) -> State:
    context = entry.context
    known, pinned, forgotten = state.known, state.pinned, state.forgotten
    if context.items:
        known = dict(known)
        for item in context.items:
            before = known.get(item.item)
            known[item.item] = KnownItem(
                priority=item.priority,
                essential=item.essential,
                added=before.added if before else len(known),
                named=state.turns,
            )
        versions = {item.item: item.version for item in context.items}
        # A pinned file that goes away stays as it last was.
        pinned = {item: versions.get(item, version) for item, version in pinned.items()}
        forgotten -= frozenset(versions)
    out = [o.what for o in context.left_out if o.reason in ("window", "still_out")]
    return replace(
        state,
        known=known,
        still_out=frozenset(map(ItemId, out)),
        pinned=pinned,
        forgotten=forgotten,
        asked="",
        retried=state.retried or entry.retry,
        open_request=entry,
        open_at=(len(state.reasons), len(state.cuts), state.standing, state.envelope.tool_list),
        leaf=entry.id,
    )


def _reply(state: State, entry: ReplyEntry) -> State:
    request = state.open_request
    if request is None or request.id != entry.request:
        problem = f"answers request {entry.request!r}, which is not open"
        raise JournalError(f"reply {entry.id!r} {problem}")
    reasons, cuts, standing, tools = state.open_at or (0, 0, {}, ())
    state = replace(
        state,
        envelope=replace(state.envelope, uncached=()),
        open_request=None,
        open_at=None,
        last_sent=request,
        last_usage=entry.usage,
        last_reply=entry.provider_id,
        sent_standing=standing,
        sent_tools=tools,
        reasons=state.reasons[reasons:],
        cuts=state.cuts[cuts:],
        leaf=entry.id,
    )
    before = state.calibration.get(request.target)
    factor = calibrate(before, entry.usage.input, request.tokens)
    if factor is not None and factor != before:
        state = replace(state, calibration={**state.calibration, request.target: factor})
    if awaits_results(state):
        return replace(state, called_by=request.id)
    return _end_turn(state)


def _end_turn(state: State) -> State:
    envelope = replace(state.envelope, tool_texts=(), uncached=())
    return replace(state, turn_start=None, envelope=envelope)


def awaits_results(state: State) -> bool:
    """Whether the last message calls tools whose results are not there yet."""
    cached = state.envelope.cached
    return bool(len(cached) and cached[-1].calls)


def _transform(state: State, patch: Patch) -> State:
    for op in patch.ops:
        for item, version in laid_items(op):
            if (item, version) not in state.items:
                problem = f"no content is kept of {item!r}, version {version[:8]!r}"
                raise InvalidPatch(op_name(op), problem)
    before, standing, in_force = state.envelope, state.standing, state.in_force
    check_reasons(patch)
    envelope, start, reasons = before, state.turn_start, []
    for op in patch.ops:
        after, start = apply_op(envelope, op, start, state.last_sent is not None)
        if op_reason(op):
            reasons.append(reason_of(op, envelope, after))
        envelope = after
    if envelope.cached is not before.cached:
        in_force = latest_in_force(envelope.cached)
    if envelope.library is not before.library or envelope.cached is not before.cached:
        standing = find_laid_versions(envelope, standing)
    for op in patch.ops:
        if isinstance(op, CompactionApply):
            dropped = min(op.first_kept, len(before.cached)) - max(0, op.after)
            if dropped > 0:
                state = replace(state, cuts=(*state.cuts, (op.reason, dropped)))
            if op.read or op.modified:
                state = replace(state, read_files=op.read, modified_files=op.modified)
    return replace(
        state,
        envelope=envelope,
        standing=apply_lay_ops(standing, patch),
        in_force=in_force,
        turn_start=start,
        reasons=state.reasons + _net_reasons(reasons, before, envelope),
    )


def _net_reasons(
    reasons: list[RecordedReason], before: Envelope, after: Envelope
) -> tuple[RecordedReason, ...]:
    """The reasons of a patch, each with what its op moved and no later one moved back."""
    if len(reasons) < 2:
        return tuple(reasons)
    net = find_moved_parts(before, after)
    return tuple(replace(reason, moved=reason.moved.within(net)) for reason in reasons)


def lay_uses(
    standing: Mapping[ItemId, LaidVersions], uses: Iterable[Use]
) -> Mapping[ItemId, LaidVersions]:
    after = dict(standing)
    for use in uses:
        before = after.get(use.item)
        versions = before.versions if before else ()
        if use.form == "full":
            # A version that stands twice counts at its last place only.
            versions = (*(version for version in versions if version != use.version), use.version)
            after[use.item] = LaidVersions(versions=versions, current=use.version)
        elif before and before.current != use.version:
            after[use.item] = replace(before, current=use.version, in_library=False)
    return after


def find_laid_versions(
    envelope: Envelope, before: Mapping[ItemId, LaidVersions]
) -> Mapping[ItemId, LaidVersions]:
    """What stands in `envelope`. `before` is what stood until now: a version chosen by name alone
    ("changed back") and one that was superseded stay so while the blocks stand."""
    library = {
        laid.item: LaidVersions(versions=(laid.version,), current=laid.version, in_library=True)
        for laid in envelope.library
    }
    contexts = (message.context for message in envelope.cached)
    uses = (use for context in contexts if context for use in context.uses if use.form == "full")
    after = dict(lay_uses(library, uses))
    for item, then in before.items():
        now = after.get(item)
        if now is None or then.current == now.current:
            continue
        if then.current in now.versions or (not then.current and then.versions == now.versions):
            after[item] = replace(now, current=then.current)
    return after
