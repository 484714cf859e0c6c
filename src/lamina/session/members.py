"""Adding rules, references and tools to a session, and taking them out of it."""

from msgspec import Struct

from lamina.assembly.inclusion import (
    Member,
    find_member,
    is_included,
    membership_added,
    missing_member_error,
    read_member,
    sort_by_include,
    sort_guides,
)
from lamina.journal import State
from lamina.record.record import Record
from lamina.session.turns import Turns
from lamina.values.entry import IncludeEntry, Membership
from lamina.values.item import Include, ItemId, kind_of


class SessionItem(Struct, frozen=True, kw_only=True):
    """Something that applies to every turn of a session."""

    item: ItemId
    include: Include
    missing: bool = False


async def list_items(turns: Turns, state: State) -> tuple[SessionItem, ...]:
    """What applies to every turn, in the order in which it stands."""
    guides = (await turns.selector.guides()).guides
    tools = turns.toolset.tools
    inclusion = sort_by_include(guides, state.members, "rule", "reference")
    found = [
        *(SessionItem(item=g.id, include="always") for g in sort_guides(inclusion.always)),
        *(
            SessionItem(item=tool.id, include="always")
            for tool in sort_by_include(tools, state.members, "tool").always
        ),
    ]
    there = {guide.id for guide in guides} | {tool.id for tool in tools}
    known = {item.item for item in found}
    found += [
        SessionItem(item=item, include="manual", missing=item not in there)
        for item, said in state.members.items()
        if said == "manual" and item not in known
    ]
    return tuple(found)


async def add(record: Record, turns: Turns, what: str) -> bool:
    """Puts an item in; False if it is in already."""
    item, include = await _find(turns, what)
    if is_included(item, include, record.state.members):
        return False
    await _write(record, item, membership_added(include))
    return True


async def remove(record: Record, turns: Turns, what: str) -> bool:
    """Takes an item out; False if it was not there."""
    members = record.state.members
    wanted = read_member(what)
    if members.get(wanted) == "removed":
        return False
    if members.get(wanted) == "manual":
        # Also one that its agent has no more.
        await _write(record, wanted, "removed")
        return True
    item, include = await _find(turns, what)
    there = is_included(item, include, members) or include == "agent"
    if not there or members.get(item) == "removed":
        return False
    await _write(record, item, "removed")
    return True


async def _find(turns: Turns, what: str) -> tuple[ItemId, Include]:
    wanted = read_member(what)
    if kind_of(wanted) == "tool" and not turns.toolset.tools and turns.list_tools:
        turns.toolset = await turns.list_tools()
    guides = (await turns.selector.guides()).guides
    there: tuple[Member, ...] = (*guides, *turns.toolset.tools)
    found = find_member(wanted, there)
    if found is None:
        raise missing_member_error(wanted, there)
    return found, next(member.include for member in there if member.id == found)


async def _write(record: Record, item: ItemId, membership: Membership) -> None:
    await record.write(IncludeEntry, item=item, membership=membership)
