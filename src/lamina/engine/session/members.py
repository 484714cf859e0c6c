"""Adds rules, references and tools to a session, and removes them."""

import contextlib

from msgspec import Struct

from lamina.core.assembly.engine_tools import engine_members
from lamina.core.assembly.inclusion import (
    Member,
    agent_changes,
    files_modes,
    find_member,
    in_session,
    is_included,
    membership_added,
    missing_member_error,
    read_member,
    sort_by_include,
    sort_guides,
    sort_tools,
)
from lamina.core.journal import State
from lamina.core.values.agent import AgentChange
from lamina.core.values.entry import AdoptEntry, IncludeEntry
from lamina.core.values.item import GUIDE_KINDS, Include, ItemId, kind_of
from lamina.core.values.tool import OfferedTool
from lamina.engine.record.record import Record
from lamina.engine.session.turn_lifecycle import TurnLifecycle
from lamina.errors import UsageError


class SessionItem(Struct, frozen=True, kw_only=True):
    """An item that applies to every turn of a session."""

    item: ItemId
    include: Include
    missing: bool = False


async def list_items(turns: TurnLifecycle, state: State) -> tuple[SessionItem, ...]:
    """Return everything that applies to every turn, in order."""
    # Servers cannot be asked until they are opened.
    with contextlib.suppress(UsageError):
        await _list_tools(turns)
    guides = (await turns.tools.selector.guides(state)).guides
    library, tools = state.library, turns.tools.offered
    there = {guide.id for guide in guides} | {tool.id for tool in _tools_of(turns)}
    sorted_tools = sort_tools(state, tools)
    always: tuple[Member, ...] = (
        *sort_guides(sort_by_include(guides, library.members, *GUIDE_KINDS).always),
        *sorted_tools.always,
    )
    items = [SessionItem(item=member.id, include="always") for member in always]
    items += [
        SessionItem(item=item, include="always", missing=True)
        for item in _vanished(state)
        if item not in there
    ]
    others = {item.item for item in items} | {tool.id for tool in sorted_tools.removed}
    for item, membership in library.members.items():
        if membership == "manual" and item not in others:
            items.append(SessionItem(item=item, include="manual", missing=item not in there))
    return tuple(items)


def _vanished(state: State) -> list[ItemId]:
    """Return the rules and references that the session always includes, whether they exist or
    not.
    """
    modes, members = state.library.include_modes or {}, state.library.members
    return [
        item
        for item, include in modes.items()
        if include == "always" and kind_of(item) in GUIDE_KINDS and item not in members
    ]


async def add(record: Record, turns: TurnLifecycle, what: str) -> bool:
    """Add an item; return False if it is already in the session."""
    member = await _find(record.state, turns, what)
    if member is None:
        raise missing_member_error(read_member(what), await _candidates(record.state, turns))
    name, state = _name_of(member), record.state
    if is_included(member.id, member.include, state.library.members) and (
        name not in state.withdrawn
    ):
        return False
    membership = membership_added(member.include)
    if member in engine_members(turns.tools.offered):
        # Otherwise it would return only when the list moves anyway: the person wants it now.
        membership = "manual"
    await record.write(IncludeEntry, item=member.id, membership=membership, name=name)
    return True


async def remove(record: Record, turns: TurnLifecycle, what: str) -> bool:
    """Remove an item; return False if it was not in the session."""
    members = record.state.library.members
    item = read_member(what)
    if members.get(item) == "removed":
        return False
    name = next((_name_of(tool) for tool in _tools_of(turns) if tool.id == item), "")
    # An item that was added, or is always included, can be removed even if its agent no longer has
    # it.
    if members.get(item) != "manual":
        member = await _find(record.state, turns, what)
        if member is not None:
            item, name = member.id, _name_of(member)
            is_there = is_included(item, member.include, members) or member.include == "agent"
        else:
            is_there = item in _vanished(record.state)
        if not is_there or members.get(item) == "removed":
            return False
    await record.write(IncludeEntry, item=item, membership="removed", name=name)
    return True


# -- changed agent files --------------------------------------------------------------------------


async def find_agent_changes(turns: TurnLifecycle, state: State) -> tuple[AgentChange, ...]:
    """Return how the agent's files differ from those that the session adopted."""
    return (await turns.tools.selector.guides(state)).changes


async def adopt_agent(record: Record, turns: TurnLifecycle) -> tuple[AgentChange, ...]:
    """Adopt the agent's files; return the resulting changes."""
    library = record.state.library
    if library.include_modes is None:
        return ()
    guides = await turns.tools.selector.agent_guides()
    if guides.gone:
        raise UsageError(f"the agent cannot be read, so nothing was taken over: {guides.gone}")
    changes = agent_changes(library, guides)
    if changes:
        await record.write(
            AdoptEntry,
            include_modes=files_modes(guides),
            with_agent=record.state.session.with_agent,
            with_agent_at=library.modes_from,
        )
    return changes


def _name_of(member: Member) -> str:
    """Return the name by which the model calls a tool; empty for other items."""
    return member.definition.name if isinstance(member, OfferedTool) else ""


def _tools_of(turns: TurnLifecycle) -> tuple[OfferedTool, ...]:
    """Return the tools that can be added and removed: the runner's, and the engine's own."""
    return (*turns.tools.offered, *engine_members(turns.tools.offered))


async def _list_tools(turns: TurnLifecycle) -> None:
    """Ask the runner for its tools if no question has made it report them yet."""
    if not turns.tools.offered and turns.runner.list_tools:
        turns.tools.take(await turns.runner.list_tools())


async def _candidates(state: State, turns: TurnLifecycle) -> tuple[Member, ...]:
    guides = (await turns.tools.selector.guides(state)).guides
    return (*guides, *in_session(turns.tools.offered, state.library.include_modes))


async def _find(state: State, turns: TurnLifecycle, what: str) -> Member | None:
    name = read_member(what)
    if kind_of(name) == "tool":
        await _list_tools(turns)
    there = (*await _candidates(state, turns), *engine_members(turns.tools.offered))
    item = find_member(name, there)
    return next((member for member in there if member.id == item), None)
