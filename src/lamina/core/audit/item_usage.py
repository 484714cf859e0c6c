"""Measures how rules, references and tools were in force, chosen and used; suggests changes.

Laws: everything is read from the journal; nothing is asked or sent. A turn counts once, however
many requests it took; an unanswered turn does not count. A tool is used when it is called, a rule
or reference when the answer names it: only this can be observed, and a suggestion claims no more.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.assembly.engine_tools import intended_call, is_engine_tool
from lamina.core.assembly.inclusion import fold_name
from lamina.core.audit.requests import ListedRequest, list_requests
from lamina.core.journal import Journal
from lamina.core.values.entry import Entry, ItemEntry, MessageEntry, RequestEntry, SessionEntry
from lamina.core.values.item import MEMBER_KINDS, Include, ItemId, is_member, key_of, kind_of
from lamina.core.values.request import WHOLE_POOL

# With fewer turns than this nothing is suggested; from this share of them on, an item counts as
# always used.
ENOUGH = 10
MOSTLY = 0.8


class InForce(Struct, frozen=True, kw_only=True):
    """An item in one turn. `chosen` means that it was found for this question, not kept."""

    include: Include
    chosen: bool = False
    score: float | None = None


class TurnUse(Struct, frozen=True, kw_only=True):
    """One answered turn: the items in force, and those that were called or named."""

    session: str
    at: float
    in_force: Mapping[ItemId, InForce]
    used: frozenset[ItemId] = frozenset()


class ItemUse(Struct, frozen=True, kw_only=True):
    """The use of one item. `turns` counts the turns in which it was in force, by mode; `since`
    counts all turns from the first of these on; `needed` counts those in which it was used although
    it is not always included; `score` is the mean of its scores when chosen."""

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
    """The use of one agent's items; without a name, of sessions without an agent."""

    agent: str
    sessions: int
    turns: int
    items: tuple[ItemUse, ...] = ()


# -- the turns of a session ----------------------------------------------------------------------


def agent_of(journal: Journal) -> str:
    """Return the agent that a session was opened with; empty if there was none."""
    header = _header(journal)
    return header.with_agent if header else ""


def read_turns(journal: Journal, *, inherited: bool = False) -> tuple[TurnUse, ...]:
    """Return the answered turns of a session, on every branch. Turns that a fork inherited were
    counted in the original, unless `inherited` says that the original is lost."""
    header = _header(journal)
    session = header.session if header else ""
    begins = header.at if header and header.forked_from and not inherited else float("-inf")
    questions = Questions(journal.entries)
    turns: dict[str, list[ListedRequest]] = {}
    for listed in list_requests(journal).listed:
        if listed.answer is not None and listed.request.at >= begins:
            turns.setdefault(questions.of(listed.request), []).append(listed)
    described = _name_described_tools(journal.entries.values())
    return tuple(_read_turn(session, requests, described) for requests in turns.values())


def _header(journal: Journal) -> SessionEntry | None:
    first = next(iter(journal.entries.values()), None)
    return first if isinstance(first, SessionEntry) else None


class Questions:
    """The question that each request was made for."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self._entries = entries
        self._known: dict[str, str] = {}

    def of(self, request: RequestEntry) -> str:
        visited: list[str] = []
        at: Entry | None = request
        question = request.id
        while at is not None and at.id not in visited:
            if at.id in self._known:
                question = self._known[at.id]
                break
            visited.append(at.id)
            if isinstance(at, MessageEntry) and at.message.role == "user":
                question = at.id
                break
            at = self._entries.get(at.parent or "")
        self._known.update(dict.fromkeys(visited, question))
        return question


def _name_described_tools(entries: Iterable[Entry]) -> dict[str, ItemId]:
    """Return the tools described in the conversation, by the name the model reads."""
    tools: dict[str, ItemId] = {}
    for entry in entries:
        if isinstance(entry, ItemEntry) and entry.item.kind == "tool":
            tools.setdefault(entry.item.content.partition(": ")[0], entry.item.id)
    return tools


def _read_turn(
    session: str, requests: Sequence[ListedRequest], described: Mapping[str, ItemId]
) -> TurnUse:
    in_force: dict[ItemId, InForce] = {}
    names: dict[str, ItemId] = {}
    for listed in requests:
        for item, force in _in_force(listed):
            in_force.setdefault(item, force)
        names |= {tool.name: tool.item for tool in listed.request.context.tools}
    used: set[ItemId] = set()
    messages = [listed.answer.message for listed in requests if listed.answer]
    for message in messages:
        for call in map(intended_call, message.calls):
            tool = names.get(call.name) or described.get(call.name)
            if tool is not None and not is_engine_tool(tool):
                used.add(tool)
                # If it was described for an earlier question, it can still be called.
                in_force.setdefault(tool, InForce(include="agent"))
    answer = fold_name("\n".join(message.text for message in messages))
    used.update(item for item in in_force if kind_of(item) != "tool" and _names(answer, item))
    return TurnUse(
        session=session, at=requests[0].request.at, in_force=in_force, used=frozenset(used)
    )


def _in_force(listed: ListedRequest) -> Iterator[tuple[ItemId, InForce]]:
    context = listed.request.context
    for item in context.items:
        if is_member(item.item) and item.placement != "left_out":
            chosen = item.include == "agent" and item.origin not in ("", "glob")
            yield item.item, InForce(include=item.include, chosen=chosen, score=item.score)
    for tool in context.tools:
        if is_engine_tool(tool.item) or not context.allows(tool.name):
            continue
        is_found = tool.origin not in ("", WHOLE_POOL) and not tool.kept
        chosen = tool.include == "agent" and is_found
        yield tool.item, InForce(include=tool.include, chosen=chosen, score=tool.score)


def _names(answer: str, item: ItemId) -> bool:
    return _pattern(fold_name(key_of(item))).search(answer) is not None


@lru_cache(maxsize=4096)
def _pattern(name: str) -> re.Pattern[str]:
    """Return a pattern for a name as a whole word. A single letter is a word in too many languages:
    it has to be cited, as `[A]`, `[^A]` or `rule:A`."""
    before = r"(?<![\w-])" if len(name) > 1 else r"(?:\[\^?|\b(?:rule|ref|reference):\"?)"
    return re.compile(f"{before}{re.escape(name)}(?![\\w-])")


# -- totals and suggestions ---------------------------------------------------------------------


def sum_use(agent: str, turns: Iterable[TurnUse]) -> AgentUse:
    """Return the totals of an agent's turns, item by item: by kind, then by name."""
    in_order = sorted(turns, key=lambda turn: turn.at)
    by_item: dict[ItemId, list[TurnUse]] = {}
    since: dict[ItemId, int] = {}
    for place, turn in enumerate(in_order):
        for item in turn.in_force:
            by_item.setdefault(item, []).append(turn)
            since.setdefault(item, len(in_order) - place)
    return AgentUse(
        agent=agent,
        sessions=len({turn.session for turn in in_order}),
        turns=len(in_order),
        items=tuple(
            _sum_item(item, by_item[item], since[item])
            for item in sorted(by_item, key=lambda item: (MEMBER_KINDS.index(kind_of(item)), item))
        ),
    )


def _sum_item(item: ItemId, turns: Sequence[TurnUse], since: int) -> ItemUse:
    modes = Counter(turn.in_force[item].include for turn in turns)
    chosen = [turn.in_force[item] for turn in turns if turn.in_force[item].chosen]
    scores = [force.score for force in chosen if force.score is not None]
    uses = [turn for turn in turns if item in turn.used]
    use = ItemUse(
        item=item,
        turns=len(turns),
        always=modes["always"],
        manual=modes["manual"],
        agent=modes["agent"],
        chosen=len(chosen),
        score=sum(scores) / len(scores) if scores else None,
        used=len(uses),
        needed=sum(turn.in_force[item].include != "always" for turn in uses),
        since=since,
        sessions=len({turn.session for turn in turns}),
    )
    return replace(use, suggestion=suggest(use))


def suggest(use: ItemUse) -> str:
    """Return a suggestion for an item; empty if there is none, or too little data."""
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
