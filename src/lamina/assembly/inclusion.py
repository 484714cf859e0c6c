"""What is in a session: what its agent always includes, what a person added, what they took out.

Laws: what a person put in is in; what they took out stays out, also of search, until they add it
again. What is gone from the agent is missing, and never passes for used.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Generic, Protocol, TypeVar
from unicodedata import normalize

from msgspec import Struct

from lamina.errors import UsageError
from lamina.values.agent import Guide
from lamina.values.entry import Membership
from lamina.values.item import Include, ItemId, key_of, kind_of
from lamina.values.tool import OfferedTool

_ALIASES = {"ref": "reference"}
# `@rule:name`, `@ref:"name with spaces"`, at the start of a word. A comma may stand in a name, but
# not in front of the next mention.
_MENTION = re.compile(r'(?<![\w@])@(rule|ref|reference):(?:"([^"\n]+)"|((?:(?![,;]@)[^\s"])+))')
# What is shown as code is spoken of, and not meant.
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1[`~]*\s*?$|\Z)", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"(?<!`)(`+)(?!`).{1,2000}?(?<!`)\1(?!`)", re.DOTALL)
_CLOSING = ".,;:!?)]}'>"


class Member(Protocol):
    """Something that an agent has, under a mode of its own."""

    @property
    def id(self) -> ItemId: ...

    @property
    def include(self) -> Include: ...


M = TypeVar("M", Guide, OfferedTool)


class Inclusion(Struct, Generic[M], frozen=True, kw_only=True):
    """Who is there: in the order in which they stand, and what can be searched for."""

    always: tuple[M, ...] = ()
    manual: tuple[M, ...] = ()
    agent: tuple[M, ...] = ()
    # What a person added and the agent no longer has.
    missing: tuple[ItemId, ...] = ()

    @property
    def present(self) -> tuple[M, ...]:
        return self.always + self.manual


def sort_by_include(
    there: Sequence[M], members: Mapping[ItemId, Membership], *kinds: str
) -> Inclusion[M]:
    """Sorts what an agent has by what the session says of it."""
    by_id = {each.id: each for each in there}
    added = [item for item, said in members.items() if said == "manual" and kind_of(item) in kinds]
    always = tuple(
        each for each in there if each.include == "always" and members.get(each.id) != "removed"
    )
    taken = {each.id for each in always}
    return Inclusion(
        always=always,
        manual=tuple(by_id[item] for item in added if item in by_id and item not in taken),
        agent=tuple(each for each in there if each.include == "agent" and each.id not in members),
        missing=tuple(item for item in added if item not in by_id),
    )


def sort_guides(guides: Iterable[Guide]) -> tuple[Guide, ...]:
    """References, then rules; each by level, then by name."""
    return tuple(
        sorted(guides, key=lambda guide: (guide.kind != "reference", guide.level, guide.name))
    )


def read_member(text: str) -> ItemId:
    """The item that a person means by `rule:name`, `@ref:name` or `tool:server/name`.

    Raises:
        UsageError: it is none of these.
    """
    kind, colon, key = text.strip().removeprefix("@").partition(":")
    kind = _ALIASES.get(kind.lower(), kind.lower())
    if kind not in ("rule", "reference", "tool") or not colon or not key.strip():
        raise UsageError(f"{text!r} is not of the form rule:NAME, ref:NAME or tool:SERVER/NAME")
    return ItemId(f"{kind}:{key.strip().strip(chr(34))}")


def find_member(wanted: ItemId, there: Iterable[Member]) -> ItemId | None:
    """The item of that name: exactly, or the only one that is spelled the same but for case and
    Unicode's forms."""
    known = [member.id for member in there]
    if wanted in known:
        return wanted
    alike = [each for each in known if _folded(each) == _folded(wanted)]
    return alike[0] if len(alike) == 1 else None


def missing_member_error(wanted: ItemId, there: Iterable[Member]) -> UsageError:
    known = {
        key_of(member.id).casefold(): member.id
        for member in there
        if kind_of(member.id) == kind_of(wanted)
    }
    close = get_close_matches(key_of(wanted).casefold(), known, n=3, cutoff=0.5)
    near = [known[name] for name in close]
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {len(known)} others"
    return UsageError(f"there is no {kind_of(wanted)} {key_of(wanted)!r}; {hint}")


def find_mentions(text: str) -> tuple[ItemId, ...]:
    """The rules and references that a message names with `@rule:` and `@ref:`, once each; not
    those in code."""
    found: dict[ItemId, None] = {}
    for kind, quoted, bare in _MENTION.findall(_CODE.sub(" ", _FENCE.sub(" ", text))):
        name = quoted or bare.rstrip(_CLOSING)
        if name:
            found[ItemId(f"{_ALIASES.get(kind, kind)}:{name}")] = None
    return tuple(found)


def is_included(item: ItemId, include: Include, members: Mapping[ItemId, Membership]) -> bool:
    """Whether an item applies to every turn of the session."""
    said = members.get(item)
    return said == "manual" or (include == "always" and said != "removed")


def membership_added(include: Include) -> Membership:
    """What is to be said of an item that is added: one that is always in needs no word."""
    return "default" if include == "always" else "manual"


def _folded(item: ItemId) -> str:
    return normalize("NFC", item).casefold()
