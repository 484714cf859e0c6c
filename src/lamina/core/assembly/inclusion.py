"""Determines the contents of a session: items that its agent always includes, items a person added,
and items they removed.

Laws: items a person added are in; items they removed stay out, also of search, until added again.
Membership belongs to the session: the include modes adopted from its agent apply until it adopts
others, even if the agent's files change. Items gone from the agent are missing, and never reported
as used.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Generic, TypeVar
from unicodedata import normalize

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.assembly.engine_tools import is_engine_tool
from lamina.core.journal import Library, State
from lamina.core.values.agent import EVERY_TOOL, AgentChange, Guide, Guides
from lamina.core.values.entry import Membership
from lamina.core.values.item import MEMBER_KINDS, Include, ItemId, key_of, kind_of, tool_id
from lamina.core.values.tool import OfferedTool
from lamina.errors import UsageError

_ALIASES = {"ref": "reference"}
# `@rule:name`, `@ref:"name with spaces"`, at the start of a word. A comma may be part of a name,
# but not before the next mention.
_MENTION = re.compile(r'(?<![\w@])@(rule|ref|reference):(?:"([^"\n]+)"|((?:(?![,;]@)[^\s"])+))')
# Mentions inside code do not count.
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1[`~]*\s*?$|\Z)", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"(?<!`)(`+)(?!`).{1,2000}?(?<!`)\1(?!`)", re.DOTALL)
_CLOSING = ".,;:!?)]}'>"


# Something an agent has, with its include mode.
Member = Guide | OfferedTool
M = TypeVar("M", Guide, OfferedTool)


class Inclusion(Struct, Generic[M], frozen=True, kw_only=True):
    """The members of a session in order, and the searchable items."""

    always: tuple[M, ...] = ()
    manual: tuple[M, ...] = ()
    agent: tuple[M, ...] = ()
    # Existing items that were removed from the session.
    removed: tuple[M, ...] = ()
    # Items a person added that the agent no longer has.
    missing: tuple[ItemId, ...] = ()

    @property
    def present(self) -> tuple[M, ...]:
        return self.always + self.manual


def sort_by_include(
    there: Sequence[M], members: Mapping[ItemId, Membership], *kinds: str
) -> Inclusion[M]:
    """Sort an agent's items by their include mode in the session."""
    by_id = {member.id: member for member in there}
    manual = [item for item, how in members.items() if how == "manual" and kind_of(item) in kinds]
    removed = {item for item, how in members.items() if how == "removed"}
    always = {m.id: m for m in there if m.include == "always" and m.id not in removed}
    return Inclusion(
        always=tuple(always.values()),
        manual=tuple(by_id[item] for item in manual if item in by_id and item not in always),
        agent=tuple(m for m in there if m.include == "agent" and m.id not in members),
        missing=tuple(item for item in manual if item not in by_id),
    )


def include_in(member: Member, modes: Mapping[ItemId, Include] | None) -> Include:
    """Return the include mode of a member in a session that recorded `modes`. Newer items can be
    searched for and added, but never join a turn automatically."""
    if modes is None or (isinstance(member, OfferedTool) and not member.of_agent):
        return member.include
    recorded = _recorded_mode(member.id, modes)
    if recorded is not None:
        return recorded
    return "manual" if member.include == "always" else member.include


def _recorded_mode(item: ItemId, modes: Mapping[ItemId, Include]) -> Include | None:
    mode = modes.get(item)
    if mode is None and kind_of(item) == "tool":
        mode = modes.get(_every_tool(item))
    return mode


def _every_tool(tool: ItemId) -> ItemId:
    """Return the id that stands for all tools of a tool's server."""
    return ItemId(f"{tool.partition('/')[0]}/{EVERY_TOOL}")


def in_session(members: Sequence[M], modes: Mapping[ItemId, Include] | None) -> Sequence[M]:
    """Return the agent's items, each with the session's include mode for it."""
    if modes is None or all(member.include == include_in(member, modes) for member in members):
        return members
    return tuple(replace(member, include=include_in(member, modes)) for member in members)


def files_modes(guides: Guides) -> dict[ItemId, Include]:
    """Return the include modes that an agent's files currently define."""
    return {guide.id: guide.include for guide in guides.guides} | guides.tool_modes


def agent_changes(library: Library, guides: Guides) -> tuple[AgentChange, ...]:
    """Return the differences between an agent's files and the modes the session adopted. Items a
    person added or removed do not count as differences."""
    here = library.include_modes
    if here is None or guides.gone:
        return ()
    now = files_modes(guides)
    changes = []
    for item in dict.fromkeys([*here, *now]):
        own, other = _recorded_mode(item, here), _recorded_mode(item, now)
        # An item that exists on one side only matters if that side always includes it.
        matters = "always" in (own, other) if None in (own, other) else own != other
        if matters and item not in library.members:
            changes.append(AgentChange(item=item, here=own, now=other))
    return tuple(changes)


def is_removed(state: State, tool: OfferedTool) -> bool:
    """Return whether a tool was removed from the session, by a person or by a patch."""
    return (
        state.library.members.get(tool.id) == "removed" or tool.definition.name in state.withdrawn
    )


def sort_tools(state: State, tools: Sequence[OfferedTool]) -> Inclusion[OfferedTool]:
    """Sort tools by their include mode in the session, leaving out removed ones."""
    tools = in_session(tools, state.library.include_modes)
    inclusion = sort_by_include(
        [t for t in tools if not is_removed(state, t)], state.library.members, "tool"
    )
    ids = {tool.id for tool in tools}
    return replace(
        inclusion,
        removed=tuple(tool for tool in tools if is_removed(state, tool)),
        missing=tuple(
            item for item in inclusion.missing if item not in ids and not is_engine_tool(item)
        ),
    )


def sort_guides(guides: Iterable[Guide]) -> tuple[Guide, ...]:
    """Return references, then rules; each by level, then by name."""
    return tuple(
        sorted(guides, key=lambda guide: (guide.kind != "reference", guide.level, guide.name))
    )


def read_member(text: str) -> ItemId:
    """Return the item named by `rule:name`, `@ref:name` or `tool:server/name`.

    Raises:
        UsageError: it is none of these.
    """
    kind, colon, key = text.strip().removeprefix("@").partition(":")
    kind = _ALIASES.get(kind.lower(), kind.lower())
    if kind not in MEMBER_KINDS or not colon or not key.strip():
        raise UsageError(f"{text!r} is not of the form rule:NAME, ref:NAME or tool:SERVER/NAME")
    return ItemId(f"{kind}:{key.strip().strip(chr(34))}")


def find_member(wanted: ItemId, there: Iterable[Member]) -> ItemId | None:
    """Return the item of that name: an exact match, or the only one that differs just in case or
    Unicode normalization. A tool without a server needs no prefix."""
    return find_item(wanted, [member.id for member in there])


def find_item(wanted: ItemId, known: Sequence[ItemId]) -> ItemId | None:
    """Do the same for ids."""
    if wanted in known:
        return wanted
    if kind_of(wanted) == "tool" and "/" not in wanted:
        wanted = tool_id("", key_of(wanted))
    alike = [item for item in known if fold_name(item) == fold_name(wanted)]
    return alike[0] if len(alike) == 1 else None


def missing_member_error(wanted: ItemId, there: Iterable[Member]) -> UsageError:
    return missing_item_error(wanted, [member.id for member in there])


def missing_item_error(wanted: ItemId, there: Sequence[ItemId]) -> UsageError:
    known = {key_of(item).casefold(): item for item in there if kind_of(item) == kind_of(wanted)}
    close = get_close_matches(key_of(wanted).casefold(), known, n=3, cutoff=0.5)
    near = [known[name] for name in close]
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {len(known)} others"
    return UsageError(f"there is no {kind_of(wanted)} {key_of(wanted)!r}; {hint}")


def find_mentions(text: str) -> tuple[ItemId, ...]:
    """Return the rules and references that a message mentions with `@rule:` and `@ref:`, once each,
    except in code."""
    mentions: dict[ItemId, None] = {}
    for kind, quoted, bare in _MENTION.findall(_CODE.sub(" ", _FENCE.sub(" ", text))):
        name = quoted or bare.rstrip(_CLOSING)
        if name:
            mentions[ItemId(f"{_ALIASES.get(kind, kind)}:{name}")] = None
    return tuple(mentions)


def is_included(item: ItemId, include: Include, members: Mapping[ItemId, Membership]) -> bool:
    """Return whether an item applies to every turn of the session."""
    membership = members.get(item)
    return membership == "manual" or (include == "always" and membership != "removed")


def membership_added(include: Include) -> Membership:
    """Return the membership of an added item: the default for one that is always in."""
    return "default" if include == "always" else "manual"


def fold_name(text: str) -> str:
    """Return a text as names are compared: without case, in one Unicode form."""
    return normalize("NFC", text).casefold()
