"""What is in a session: what its agent always includes, what a person added, what they removed.

Laws: what a person added is in; what they removed stays out, also of search, until they add it
again. Membership belongs to the session: the include modes it adopted from its agent apply until it
adopts others, whatever the agent's files say by then. What is gone from the agent is missing, and
is never reported as used.
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
# Mentions inside code are not meant.
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1[`~]*\s*?$|\Z)", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"(?<!`)(`+)(?!`).{1,2000}?(?<!`)\1(?!`)", re.DOTALL)
_CLOSING = ".,;:!?)]}'>"


# Something that an agent has, with its include mode.
Member = Guide | OfferedTool
M = TypeVar("M", Guide, OfferedTool)


class Inclusion(Struct, Generic[M], frozen=True, kw_only=True):
    """The members of a session in order, and what can be searched for."""

    always: tuple[M, ...] = ()
    manual: tuple[M, ...] = ()
    agent: tuple[M, ...] = ()
    # What exists, but was removed from the session.
    removed: tuple[M, ...] = ()
    # What a person added and the agent no longer has.
    missing: tuple[ItemId, ...] = ()

    @property
    def present(self) -> tuple[M, ...]:
        return self.always + self.manual


def sort_by_include(
    there: Sequence[M], members: Mapping[ItemId, Membership], *kinds: str
) -> Inclusion[M]:
    """Sort what an agent has by what the session says about it."""
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
    """Return the include mode of a member in a session that recorded `modes`. What is new since
    then can be searched for and added, and never joins a turn automatically."""
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
    """Return what an agent has, each under the session's include mode for it."""
    if modes is None or all(member.include == include_in(member, modes) for member in members):
        return members
    return tuple(replace(member, include=include_in(member, modes)) for member in members)


def files_modes(guides: Guides) -> dict[ItemId, Include]:
    """Return the include modes that an agent's files give now."""
    return {guide.id: guide.include for guide in guides.guides} | guides.tool_modes


def agent_changes(library: Library, guides: Guides) -> tuple[AgentChange, ...]:
    """Return how the files of an agent differ from what the session adopted. What a person added or
    removed is theirs and does not count as a difference."""
    here = library.include_modes
    if here is None or guides.gone:
        return ()
    now = files_modes(guides)
    changes = []
    for item in dict.fromkeys([*here, *now]):
        own, other = _recorded_mode(item, here), _recorded_mode(item, now)
        # What exists on one side only matters if that side always includes it.
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
    """Sort tools by what the session says about them, leaving out removed ones."""
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
    """Return the item that a person means by `rule:name`, `@ref:name` or `tool:server/name`.

    Raises:
        UsageError: it is none of these.
    """
    kind, colon, key = text.strip().removeprefix("@").partition(":")
    kind = _ALIASES.get(kind.lower(), kind.lower())
    if kind not in MEMBER_KINDS or not colon or not key.strip():
        raise UsageError(f"{text!r} is not of the form rule:NAME, ref:NAME or tool:SERVER/NAME")
    return ItemId(f"{kind}:{key.strip().strip(chr(34))}")


def find_member(wanted: ItemId, there: Iterable[Member]) -> ItemId | None:
    """Return the item of that name: exactly, or the only one that differs just in case or Unicode
    form. A tool without a server needs none before its name."""
    return find_item(wanted, [member.id for member in there])


def find_item(wanted: ItemId, known: Sequence[ItemId]) -> ItemId | None:
    """The same for ids."""
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
    """Return the rules and references that a message names with `@rule:` and `@ref:`, once each;
    not those in code."""
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
