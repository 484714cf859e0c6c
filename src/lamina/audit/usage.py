"""What became of rules, references and tools: in force, chosen, used; and what to make of it.

Laws: the journal says it all; nothing is asked and nothing is sent. A turn counts once, however
many requests it took; one that was never answered does not count. A tool is used when it is
called, a rule or reference when the answer names it: that is what can be seen, and a suggestion
says no more.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from unicodedata import normalize

from msgspec import Struct
from msgspec.structs import replace

from lamina.assembly.tools import USE_TOOL, intended_call
from lamina.audit.requests import ListedRequest, list_requests
from lamina.journal import Journal
from lamina.values.entry import Entry, ItemEntry, MessageEntry, RequestEntry, SessionEntry
from lamina.values.item import Include, Item, ItemId, key_of, kind_of

COUNTED = ("rule", "reference", "tool")
# Below so many turns nothing is suggested; from this share of them on, it is as good as always.
ENOUGH = 10
MOSTLY = 0.8


class InForce(Struct, frozen=True, kw_only=True):
    """An item in one turn. `chosen` says that it was found for this question, not kept."""

    include: Include
    chosen: bool = False
    score: float | None = None


class TurnUse(Struct, frozen=True, kw_only=True):
    """One answered turn: what was in force, and what of it was called or named."""

    session: str
    at: float
    in_force: Mapping[ItemId, InForce]
    used: frozenset[ItemId] = frozenset()


class ItemUse(Struct, frozen=True, kw_only=True):
    """What became of one item. `turns` are those in which it was in force, by mode; `since` counts
    all turns from the first of them on; `needed` are those in which it was used though it is not
    always in; `score` is the mean of what it was chosen with."""

    item: ItemId
    turns: int = 0
    always: int = 0
    manual: int = 0
    agent: int = 0
    chosen: int = 0
    score: float | None = None
    used: int = 0
    needed: int = 0
    since: int = 0
    sessions: int = 0
    suggestion: str = ""


class AgentUse(Struct, frozen=True, kw_only=True):
    """What became of the items of one agent; of sessions that had none, if it has no name."""

    agent: str
    sessions: int
    turns: int
    items: tuple[ItemUse, ...] = ()


# -- the turns of a session ----------------------------------------------------------------------


def agent_of(journal: Journal) -> str:
    """The agent that a session was opened with; empty if there was none."""
    header = _header(journal)
    return header.with_agent if header else ""


def read_turns(journal: Journal, *, inherited: bool = False) -> tuple[TurnUse, ...]:
    """The turns of a session that were answered, on every branch. What a fork took over was
    counted where it happened, unless `inherited` says that this is lost."""
    header = _header(journal)
    session = header.session if header else ""
    begins = header.at if header and header.forked_from and not inherited else float("-inf")
    asked = _Questions(journal.entries)
    turns: dict[str, list[ListedRequest]] = {}
    for listed in list_requests(journal).listed:
        if listed.answer is not None and listed.request.at >= begins:
            turns.setdefault(asked.of(listed.request), []).append(listed)
    described = _Described(journal.entries.values())
    return tuple(_read_turn(session, requests, described) for requests in turns.values())


def _header(journal: Journal) -> SessionEntry | None:
    first = next(iter(journal.entries.values()), None)
    return first if isinstance(first, SessionEntry) else None


class _Questions:
    """The question that each request was made for."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self._entries = entries
        self._known: dict[str, str] = {}

    def of(self, request: RequestEntry) -> str:
        passed: list[str] = []
        at: Entry | None = request
        found = request.id
        while at is not None and at.id not in passed:
            if at.id in self._known:
                found = self._known[at.id]
                break
            passed.append(at.id)
            if isinstance(at, MessageEntry) and at.message.role == "user":
                found = at.id
                break
            at = self._entries.get(at.parent or "")
        self._known.update(dict.fromkeys(passed, found))
        return found


class _Described:
    """Tools that were described in the conversation, by the name the model is told."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._tools: list[Item] = [
            entry.item
            for entry in entries
            if isinstance(entry, ItemEntry) and entry.item.kind == "tool"
        ]
        self._known: dict[str, ItemId | None] = {}

    def find(self, name: str) -> ItemId | None:
        if name not in self._known:
            begins = (tool.id for tool in self._tools if tool.content.startswith(f"{name}: "))
            self._known[name] = next(begins, None)
        return self._known[name]


def _read_turn(session: str, requests: Sequence[ListedRequest], described: _Described) -> TurnUse:
    in_force: dict[ItemId, InForce] = {}
    names: dict[str, ItemId] = {}
    for listed in requests:
        for item, force in _in_force(listed):
            in_force.setdefault(item, force)
        names |= {tool.name: tool.item for tool in listed.request.context.tools}
    used: set[ItemId] = set()
    said: list[str] = []
    for listed in requests:
        assert listed.answer is not None
        message = listed.answer.message
        said.append(message.text)
        for call in map(intended_call, message.calls):
            called = names.get(call.name) or described.find(call.name)
            if called is not None and call.name != USE_TOOL.name:
                used.add(called)
                # Described for an earlier question, it can still be called.
                in_force.setdefault(called, InForce(include="agent"))
    answer = _folded("\n".join(said))
    used.update(item for item in in_force if kind_of(item) != "tool" and _names(answer, item))
    return TurnUse(
        session=session, at=requests[0].request.at, in_force=in_force, used=frozenset(used)
    )


def _in_force(listed: ListedRequest) -> Iterator[tuple[ItemId, InForce]]:
    context = listed.request.context
    for item in context.items:
        if kind_of(item.item) in COUNTED and item.placement != "left_out":
            chosen = item.include == "agent" and item.origin not in ("", "glob")
            yield item.item, InForce(include=item.include, chosen=chosen, score=item.score)
    for tool in context.tools:
        chosen = tool.include == "agent" and bool(tool.origin) and not tool.kept
        yield tool.item, InForce(include=tool.include, chosen=chosen, score=tool.score)


def _names(answer: str, item: ItemId) -> bool:
    return _pattern(_folded(key_of(item))).search(answer) is not None


@lru_cache(maxsize=4096)
def _pattern(name: str) -> re.Pattern[str]:
    """A name as a whole word. A single letter is a word of its own in too many languages: that
    has to be cited, as `[A]`, `[^A]` or `rule:A`."""
    before = r"(?<![\w-])" if len(name) > 1 else r"(?:\[\^?|\b(?:rule|ref|reference):\"?)"
    return re.compile(f"{before}{re.escape(name)}(?![\\w-])")


def _folded(text: str) -> str:
    return normalize("NFC", text).casefold()


# -- what it comes to ---------------------------------------------------------------------------


def sum_use(agent: str, turns: Iterable[TurnUse]) -> AgentUse:
    """What the turns of an agent come to, item by item: by kind, then by name."""
    ordered = sorted(turns, key=lambda turn: turn.at)
    tallies: dict[ItemId, _Tally] = {}
    for place, turn in enumerate(ordered):
        for item, force in turn.in_force.items():
            tally = tallies.setdefault(item, _Tally(len(ordered) - place))
            tally.add(force, used=item in turn.used, session=turn.session)
    found = (tally.sum(item) for item, tally in tallies.items())
    return AgentUse(
        agent=agent,
        sessions=len({turn.session for turn in ordered}),
        turns=len(ordered),
        items=tuple(sorted(found, key=lambda use: (COUNTED.index(kind_of(use.item)), use.item))),
    )


class _Tally:
    def __init__(self, since: int) -> None:
        self._since = since
        self._modes: dict[Include, int] = {"always": 0, "manual": 0, "agent": 0}
        self._scores: list[float] = []
        self._sessions: set[str] = set()
        self._chosen = self._used = self._needed = 0

    def add(self, each: InForce, *, used: bool, session: str) -> None:
        self._modes[each.include] += 1
        self._sessions.add(session)
        self._chosen += each.chosen
        if each.chosen and each.score is not None:
            self._scores.append(each.score)
        self._used += used
        self._needed += used and each.include != "always"

    def sum(self, item: ItemId) -> ItemUse:
        scores = self._scores
        use = ItemUse(
            item=item,
            turns=sum(self._modes.values()),
            always=self._modes["always"],
            manual=self._modes["manual"],
            agent=self._modes["agent"],
            chosen=self._chosen,
            score=sum(scores) / len(scores) if scores else None,
            used=self._used,
            needed=self._needed,
            since=self._since,
            sessions=len(self._sessions),
        )
        return replace(use, suggestion=suggest(use))


def suggest(use: ItemUse) -> str:
    """What could be made of an item; empty if there is nothing to say, or too little was seen."""
    return next((say(use) for applies, say in _SUGGESTIONS if applies(use)), "")


def _never_used(use: ItemUse) -> str:
    how = f"though it was always in or chosen in {use.always + use.chosen} turns"
    if kind_of(use.item) == "tool":
        return f"never called, {how}: make it manual, or take it out"
    return (
        f"never named in an answer, {how}: "
        f"if it does not shape answers either, make it manual, or take it out"
    )


_SUGGESTIONS: tuple[tuple[Callable[[ItemUse], bool], Callable[[ItemUse], str]], ...] = (
    (lambda use: not use.used and use.always + use.chosen >= ENOUGH, _never_used),
    (
        lambda use: use.since >= ENOUGH and use.needed >= MOSTLY * use.since,
        lambda use: f"needed in {use.needed} of {use.since} turns: make it always",
    ),
    (
        lambda use: use.since >= ENOUGH and use.manual >= MOSTLY * use.since,
        lambda use: f"added by hand in {use.manual} of {use.since} turns: make it always",
    ),
)
