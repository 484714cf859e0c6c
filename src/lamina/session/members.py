"""Adding rules, references and tools to a session, and removing them."""

from msgspec import Struct

from lamina.assembly.engine_tools import engine_members
from lamina.assembly.inclusion import (
    Member,
    find_member,
    is_included,
    membership_added,
    missing_member_error,
    read_member,
    sort_by_include,
    sort_guides,
    sort_tools,
)
from lamina.journal import State
from lamina.record.record import Record
from lamina.session.turn_lifecycle import TurnLifecycle
from lamina.values.entry import IncludeEntry
from lamina.values.item import Include, ItemId, kind_of
from lamina.values.item_kind import GUIDE_KINDS
from lamina.values.tool import OfferedTool


class SessionItem(Struct, frozen=True, kw_only=True):
    """Something that applies to every turn of a session."""

    item: ItemId
    include: Include
    missing: bool = False


async def list_items(turns: TurnLifecycle, state: State) -> tuple[SessionItem, ...]:
    """What applies to every turn, in the order in which it stands."""
    guides = (await turns.selector.guides()).guides
    tools = turns.tools
    there = {guide.id for guide in guides} | {tool.id for tool in _tools_of(turns)}
    sorted_tools = sort_tools(state, tools)
    always: tuple[Member, ...] = (
        *sort_guides(sort_by_include(guides, state.library.members, *GUIDE_KINDS).always),
        *sorted_tools.always,
    )
    items = [SessionItem(item=member.id, include="always") for member in always]
    others = {item.item for item in items} | {tool.id for tool in sorted_tools.removed}
    for item, membership in state.library.members.items():
        if membership == "manual" and item not in others:
            items.append(SessionItem(item=item, include="manual", missing=item not in there))
    return tuple(items)


async def add(record: Record, turns: TurnLifecycle, what: str) -> bool:
    """Puts an item in; False if it is in already."""
    member = await _find(turns, what)
    name, state = _name_of(member), record.state
    if is_included(member.id, member.include, state.library.members) and (
        name not in state.withdrawn
    ):
        return False
    membership = membership_added(member.include)
    if member in engine_members(turns.tools):
        # Else it would come back when the list moves anyway: a person wants it now.
        membership = "manual"
    await record.write(IncludeEntry, item=member.id, membership=membership, name=name)
    return True


async def remove(record: Record, turns: TurnLifecycle, what: str) -> bool:
    """Takes an item out; False if it was not there."""
    members = record.state.library.members
    item = read_member(what)
    if members.get(item) == "removed":
        return False
    name = next((_name_of(tool) for tool in _tools_of(turns) if tool.id == item), "")
    # One that was added can leave even if its agent no longer has it.
    if members.get(item) != "manual":
        member = await _find(turns, what)
        item, name = member.id, _name_of(member)
        is_there = is_included(item, member.include, members) or member.include == "agent"
        if not is_there or members.get(item) == "removed":
            return False
    await record.write(IncludeEntry, item=item, membership="removed", name=name)
    return True


def _name_of(member: Member) -> str:
    """What the model knows a tool by; nothing for other items."""
    return member.definition.name if isinstance(member, OfferedTool) else ""


def _tools_of(turns: TurnLifecycle) -> tuple[OfferedTool, ...]:
    """The tools that can be removed and added: those of a runner, and the engine's own."""
    return (*turns.tools, *engine_members(turns.tools))


async def _find(turns: TurnLifecycle, what: str) -> Member:
    name = read_member(what)
    if kind_of(name) == "tool" and not turns.tools and turns.list_tools:
        turns.toolset = await turns.list_tools()
    guides = (await turns.selector.guides()).guides
    there: tuple[Member, ...] = (*guides, *_tools_of(turns))
    item = find_member(name, there)
    if item is None:
        raise missing_member_error(name, (*guides, *turns.tools))
    return next(member for member in there if member.id == item)
