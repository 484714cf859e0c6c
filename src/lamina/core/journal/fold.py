"""Folds entries to a state: applies the changes of each entry, including tools and shortened
results.

Laws: the envelope is a pure fold over the active path; replay runs no hook, calls no model and
reads no file.

Tools: a tool removed by a person or a hook stays away until someone restores it; the engine's own
changes to the list neither remove nor restore anything. A name is loaded once: if two results load
it, the first definition is sent, since a definition never changes once sent.

Shortened results: the digest of the whole result stays, even after a summary replaced its message.
A replacement made by a person or a hook is permanent.
"""

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, assert_never

from msgspec.structs import replace

from lamina.core.codec import digest_bytes
from lamina.core.journal.calibration import calibrate
from lamina.core.journal.patch_effects import append_messages, calls_wait, patch_state
from lamina.core.journal.request_copy import check_once, copy_for_request
from lamina.core.journal.state import (
    KnownItem,
    LastRequests,
    OpenTurn,
    RecordedBefore,
    State,
    laid_items,
    lay_uses,
    options_for_request,
)
from lamina.core.values.entry import (
    AdoptEntry,
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
from lamina.core.values.envelope import Envelope, SystemParts
from lamina.core.values.item import Item, ItemId
from lamina.core.values.message import LoadedTool, Message, Text, ToolResult
from lamina.core.values.patch import (
    MessagesCachedReplace,
    Patch,
    ResultsReplace,
    ToolsRemove,
    ToolsReplace,
    op_reason,
)
from lamina.errors import JournalError


def load_tools(
    loaded: Mapping[str, LoadedTool], messages: Iterable[Message]
) -> Mapping[str, LoadedTool]:
    """Return `loaded` with the tools that these messages load."""
    tools = [t for message in messages for b in message.loads.values() for t in b.tools]
    return {tool.definition.name: tool for tool in reversed(tools)} | dict(loaded)


def move_loaded(before: State, state: State) -> State:
    """Return the state after a patch, which may have removed results that loaded a tool."""
    if not before.loaded or before.envelope.cached is state.envelope.cached:
        return state
    return replace(state, loaded=load_tools({}, state.envelope.cached))


# The engine's transformers that maintain the list of tools, and that add chosen tools to a list
# already sent.
TOOLS = "lamina.tools"
TOOLS_JOIN = "lamina.tools.join"
TAKEN_OUT = "it was taken out of the session"
# Patches come from a person or a hook unless their transformer's name starts with this.
_ENGINE = "lamina."


def move_tools(before: State, state: State, transformer: str, patch: Patch) -> State:
    """Apply the removals and restorations of tools by a patch of `transformer`."""
    ops = [op for op in patch.ops if isinstance(op, ToolsReplace | ToolsRemove)]
    if not ops:
        return state
    withdrawn, hosted = dict(state.withdrawn), state.hosted
    names = {tool.name for tool in before.envelope.tools}
    listed = {tool.name for tool in before.envelope.tool_list}
    for op in ops:
        if isinstance(op, ToolsRemove):
            withdrawn |= dict.fromkeys(op.names, op_reason(op))
            names -= {*op.names}
            continue
        offered = {tool.name for tool in op.tools if tool.name not in op.barred}
        if transformer in (TOOLS, TOOLS_JOIN):
            hosted |= offered - listed
            continue
        if not transformer.startswith(_ENGINE):
            # A runner would offer its tools again; others come back only if given again.
            leavers = ((names & hosted) | {*op.barred}) - offered
            withdrawn |= dict.fromkeys(sorted(leavers), op_reason(op))
        withdrawn = {name: why for name, why in withdrawn.items() if name not in offered}
        hosted -= offered - names
        names = offered
    return replace(state, withdrawn=withdrawn, hosted=hosted)


# Patches come from a person or a hook unless their transformer's name starts with this.


def keep_digests(state: State, message: str, wholes: Mapping[str, str]) -> State:
    """Return the state with the digests of a message's whole results, by call; sorted by call id,
    the order in which they are read back from an entry."""
    digests = {(message, call): wholes[call] for call in sorted(wholes)}
    return replace(state, shortened={**state.shortened, **digests})


def move_digests(before: State, state: State, transformer: str, patch: Patch) -> State:
    """Apply the shortened or permanently replaced results of a patch by `transformer`."""
    for op in patch.ops:
        if isinstance(op, ResultsReplace) and transformer.startswith(_ENGINE):
            old = results_of(next(m for m in before.envelope.cached if m.id == op.message))
            digests = {call: whole_digest(before, op.message, old[call]) for call in old}
            calls = {result.call_id for result in op.results}
            digests = {call: digest for call, digest in digests.items() if call in calls}
            state = keep_digests(state, op.message, digests)
        elif isinstance(op, ResultsReplace | MessagesCachedReplace) and state.shortened:
            state = _without_replaced(before, state)
    return state


def _without_replaced(before: State, state: State) -> State:
    old = _texts(before)
    new = _texts(state)
    digests = {
        key: digest
        for key, digest in state.shortened.items()
        if key not in old or old[key] == new.get(key)
    }
    return replace(state, shortened=digests)


def _texts(state: State) -> dict[tuple[str, str], str]:
    """Return the texts of all present results, by message and call."""
    return {
        (message.id, call): result.text
        for message in state.envelope.cached
        for call, result in results_of(message).items()
    }


def results_of(message: Message) -> dict[str, ToolResult]:
    """Return the results in a message, by call."""
    return {block.call_id: block for block in message.blocks if isinstance(block, ToolResult)}


def whole_digest(state: State, message: str, result: ToolResult) -> str:
    """Return the digest of the whole result, before anything was removed."""
    return state.shortened.get((message, result.call_id)) or digest_bytes(result.text.encode())


# The transformer that lays down the items that apply to every turn.
ALWAYS = "lamina.always"
BRANCH_NOTICE = "[Another branch of this conversation was left. What came of it:]"


def initial_state(entry: Entry) -> State:
    """Return the state at a session's header.

    Raises:
        JournalError: the entry is not a header.
    """
    if not isinstance(entry, SessionEntry):
        raise JournalError(f"a session begins with its header, not with {entry.id!r}")
    state = State(
        session=entry,
        settings=entry.settings,
        envelope=Envelope(
            system=SystemParts(entry.system), tools=entry.tools, options=entry.options
        ),
        leaf=entry.id,
    )
    state = _change_library(
        state, include_modes=entry.include_modes, modes_from=entry.with_agent_at
    )
    return _always(state, entry.included, entry.id)


def replay(entries: Iterable[Entry]) -> State:
    """Return the state at the end of one path, which starts with its session header.

    Raises:
        JournalError: there is no header, or a later entry does not fit.
    """
    path = iter(entries)
    header = next(path, None)
    if header is None:
        raise JournalError("no entries: nothing to replay")
    return reduce(fold_entry, path, initial_state(header))


def fold_entry(state: State, entry: Entry) -> State:
    """Return the state after one more entry."""
    match entry:
        # The most frequent entries come first; each records its own progress.
        case MessageEntry(message=message, whole_results=digests):
            state = _append(state, message, entry.id)
            return keep_digests(state, message.id, digests) if digests else state
        case RequestEntry():
            return _request(state, entry)
        case ReplyEntry():
            return _reply(state, entry)
        case SessionEntry():
            raise JournalError(f"a second session header {entry.id!r} inside a session")
        case ItemEntry(item=item):
            state = _keep_item(state, item, entry.id)
        case TransformEntry(transformer=transformer, patch=patch):
            before, state = state, patch_state(state, transformer, patch)
            state = move_tools(before, state, transformer, patch)
            state = move_loaded(before, move_digests(before, state, transformer, patch))
            if transformer == ALWAYS:
                always = state.envelope.always | {item for item, _ in _laid_by(patch)}
                state = replace(state, envelope=replace(state.envelope, always=always))
            if transformer == TOOLS_JOIN and state.requests.sent is not None:
                state = replace(state, tool_joins=state.tool_joins + 1)
        case EphemeralEntry(tool_texts=texts, messages=messages, patches=patches):
            for once in patches:
                check_once(state, once)
            # Results of planned tools stay for their turn, everything else for one request.
            tool_texts = texts or state.envelope.tool_texts
            uncached = state.envelope.uncached + messages
            envelope = replace(state.envelope, tool_texts=tool_texts, uncached=uncached)
            state = replace(state, envelope=envelope, once=state.once + patches)
        case ResultEntry(result=result, whole=whole):
            turn = state.turn
            if entry.found:
                turn = replace(turn, searches=(*turn.searches, entry))
            wholes = {**turn.whole_results, result.call_id: whole} if whole else turn.whole_results
            results = {**turn.results, result.call_id: result}
            state = replace(state, turn=replace(turn, results=results, whole_results=wholes))
        case DecisionEntry():
            state = _decide(state, entry)
        case SettingsEntry(settings=settings, replaces=names):
            if names:
                options = replace(state.envelope.options, **dict.fromkeys(names))
                state = replace(state, envelope=replace(state.envelope, options=options))
            # The limits changed, so items left out for lack of room get another try.
            if settings.window != state.settings.window:
                state = _change_library(state, still_out=frozenset())
            state = replace(state, settings=settings)
        case PinEntry(item=item_id, pinned=True, version=version):
            library = state.library
            state = _change_library(
                state,
                pinned={**library.pinned, item_id: version},
                forgotten=library.forgotten - {item_id},
            )
        case PinEntry(item=item_id):
            pinned = {item: at for item, at in state.library.pinned.items() if item != item_id}
            state = _change_library(state, pinned=pinned)
        case LeaveEntry():
            state = _end_turn(state)
        case ModelEntry(target=target):
            state = replace(state, settings=replace(state.settings, target=target))
        case BranchSummaryEntry(id=entry_id, summary=summary):
            text = Text(f"{BRANCH_NOTICE}\n\n{summary}")
            cached = state.envelope.cached.extend(
                (Message(role="user", blocks=(text,), id=entry_id),)
            )
            requests = replace(state.requests, branched=True, left="")
            envelope = replace(state.envelope, cached=cached)
            state = replace(state, envelope=envelope, requests=requests)
        case OpeningEntry():
            state = _open_again(state, entry)
        case InboxEntry(taken=""):
            state = replace(state, inbox={**state.inbox, entry.id: entry})
        case InboxEntry(taken=taken):
            inbox = {key: message for key, message in state.inbox.items() if key != taken}
            state = replace(state, inbox=inbox)
        case LeafEntry(warm_at=warm_at, left=left):
            requests = replace(state.requests, branched=True, left=left)
            requests = replace(requests, warm_at=warm_at) if warm_at else requests
            state = replace(state, requests=requests)
        case LabelEntry() | InfoEntry() | CustomEntry() | UnknownEntry():
            pass
        case IncludeEntry(item=item_id, membership=membership, name=name):
            # If added again, it comes last.
            members = {item: own for item, own in state.library.members.items() if item != item_id}
            if membership != "default":
                members[item_id] = membership
            withdrawn = {tool: why for tool, why in state.withdrawn.items() if tool != name}
            if name and membership == "removed":
                withdrawn[name] = TAKEN_OUT
            state = replace(_change_library(state, members=members), withdrawn=withdrawn)
        case AdoptEntry(include_modes=modes, with_agent_at=place):
            state = _change_library(state, include_modes=modes, modes_from=place)
        case ForgetEntry(item=item_id):
            state = _change_library(state, forgotten=state.library.forgotten | {item_id})
        case _:
            assert_never(entry)
    return replace(state, leaf=entry.id)


def _laid_by(patch: Patch) -> list[tuple[ItemId, str]]:
    return [key for op in patch.ops for key in laid_items(op)]


def _change_library(state: State, **changes: Any) -> State:
    return replace(state, library=replace(state.library, **changes))


def _decide(state: State, entry: DecisionEntry) -> State:
    decisions = {**state.turn.decisions, entry.call_id: entry}
    state = replace(state, turn=replace(state.turn, decisions=decisions))
    if entry.decision != "allow_session":
        return state
    return replace(state, allowed={**state.allowed, entry.tool: entry.digest})


def _open_again(state: State, entry: OpeningEntry) -> State:
    # Sorted as they are read back.
    given = {name: entry.given[name] for name in sorted(entry.given)}
    state = replace(state, given={**state.given, **given})
    if entry.options is not None:
        state = replace(state, envelope=replace(state.envelope, options=entry.options))
    return state if entry.included is None else _always(state, entry.included, entry.id)


def _always(state: State, items: tuple[Item, ...], entry: str) -> State:
    for item in items:
        if (item.id, item.version) not in state.library.items:
            state = _keep_item(state, item, entry)
    return _change_library(state, always=tuple((item.id, item.version) for item in items))


def _keep_item(state: State, item: Item, entry: str) -> State:
    key, library = (item.id, item.version), state.library
    library = replace(
        library,
        items=library.items.with_entry(key, item),
        item_entries=library.item_entries.with_entry(key, entry),
    )
    return replace(state, library=library, pictured=state.pictured or bool(item.pictures))


def _append(state: State, message: Message, leaf: str) -> State:
    cached, turn = state.envelope.cached, state.turn
    place, messages = len(cached), cached.extend((message,))
    pictured = state.pictured or message.pictured
    if message.role != "user":
        if turn.behind_results and message.role == "tool":
            messages = append_messages(messages, turn.behind_results)
            turn = replace(turn, behind_results=())
        if turn.called_by or turn.results or turn.decisions:
            turn = replace(
                turn, called_by="", results={}, whole_results={}, searches=(), decisions={}
            )
        envelope = replace(state.envelope, cached=messages)
        state = replace(state, pictured=pictured, envelope=envelope, turn=turn, leaf=leaf)
        if message.loads:
            state = replace(state, loaded=load_tools(state.loaded, (message,)))
        # An answer to no request of this session: it was imported, and ends its turn.
        ends = message.role == "assistant" and state.requests.open is None and not message.calls
        return _end_turn(state) if ends else state
    library, context, text = state.library, message.context, message.text
    if context:
        in_force = library.in_force if context.in_force is None else context.in_force
        standing = lay_uses(library.standing, context.uses)
        library = replace(library, standing=standing, in_force=in_force)
    return replace(
        state,
        pictured=pictured,
        envelope=replace(state.envelope, cached=messages, tool_texts=()),
        library=library,
        turn=OpenTurn(question=text, asked=message.id, start=place),
        turn_count=state.turn_count + 1,
        goal=state.goal or text,
        leaf=leaf,
    )


def _request(state: State, entry: RequestEntry) -> State:
    context, library, requests = entry.context, state.library, state.requests
    copy = copy_for_request(state)
    if context.items:
        known = dict(library.known)
        for item in context.items:
            before = known.get(item.item)
            known[item.item] = KnownItem(
                priority=item.priority,
                essential=item.essential,
                added=before.added if before else len(known),
                named=state.turn_count,
            )
        versions = {item.item: item.version for item in context.items}
        library = replace(
            library,
            known=known,
            # A pinned file that disappears keeps its last content.
            pinned={item: versions.get(item, version) for item, version in library.pinned.items()},
            forgotten=library.forgotten - frozenset(versions),
        )
    out = [o.what for o in context.left_out if o.reason in ("window", "still_out")]
    if out or library.still_out:
        library = replace(library, still_out=frozenset(map(ItemId, out)))
    before_open = RecordedBefore(
        reasons=len(requests.reasons),
        cuts=len(requests.cuts),
        standing=library.standing,
        tools=state.envelope.tool_list,
        options=options_for_request(state),
        returning=copy.returning,
    )
    return replace(
        state,
        library=library,
        turn=replace(state.turn, asked="", retried=state.turn.retried or entry.retry),
        requests=replace(requests, open=entry, before_open=before_open),
        leaf=entry.id,
    )


def _reply(state: State, entry: ReplyEntry) -> State:
    requests = state.requests
    request, before = requests.open, requests.before_open
    if request is None or before is None or request.id != entry.request:
        problem = f"answers request {entry.request!r}, which is not open"
        raise JournalError(f"reply {entry.id!r} {problem}")
    state = replace(
        state,
        envelope=replace(state.envelope, uncached=()),
        once=(),
        requests=LastRequests(
            sent=request,
            sent_usage=entry.usage,
            sent_reply=entry.provider_id,
            sent_standing=before.standing,
            sent_tools=before.tools,
            sent_options=before.options,
            reasons=(*before.returning, *requests.reasons[before.reasons :]),
            cuts=requests.cuts[before.cuts :],
        ),
        leaf=entry.id,
    )
    factor_before = state.calibration.get(request.target)
    factor = calibrate(factor_before, entry.usage.input, request.tokens)
    if factor is not None and factor != factor_before:
        state = replace(state, calibration={**state.calibration, request.target: factor})
    if awaits_results(state):
        return replace(state, turn=replace(state.turn, called_by=request.id))
    return _end_turn(state)


def _end_turn(state: State) -> State:
    envelope = replace(state.envelope, tool_texts=(), uncached=())
    return replace(state, turn=replace(state.turn, start=None), envelope=envelope, once=())


def awaits_results(state: State) -> bool:
    """Return whether the last message calls tools whose results are still missing."""
    return calls_wait(state.envelope)
