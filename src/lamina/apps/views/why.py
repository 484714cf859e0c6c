"""What a question was answered with, and why each item was included.

Law: this shows what the request was built from, according to the journal. Missing or omitted
items are shown as such, never among what was used.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from lamina.apps.views.session_items import AgentChangeRow
from lamina.core.assembly.engine_tools import ENGINE_TOOLS, USE_TOOL
from lamina.core.audit.rebuilt_request import RebuiltRequest, rebuild_request
from lamina.core.audit.requests import (
    ListedRequest,
    RequestList,
    describe_transformations,
    list_requests,
)
from lamina.core.journal import Journal, State, path_to
from lamina.core.ports import TargetBook
from lamina.core.values.entry import PLANNED, CustomEntry, MessageEntry, RequestEntry
from lamina.core.values.item import MEMBER_KINDS, Include, ItemId, key_of, kind_of
from lamina.core.values.patch import HookDisplay
from lamina.core.values.request import WHOLE_POOL, ContextItem, ContextTool, LeftOut, RequestContext
from lamina.engine.runners.citations import SEARCHED
from lamina.errors import NoSuchEntry

# Requested items that are missing, for a person to fix.
ASTRAY = ("missing", "ambiguous")
NO_LEVEL = "---"


class Reason(Struct, frozen=True, kw_only=True):
    """A rule, a reference or a tool of a request. Without an `item` it is a tool known only by
    name. `placement` is where it stands; `list` means the list of tools."""

    item: str
    name: str
    include: Include
    placement: str
    tokens: int = 0
    level: int | None = None
    server: str = ""
    about: str = ""
    score: float | None = None
    origin: str = ""
    source: str = ""
    # Further notes, such as that it was kept from an earlier question.
    notes: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Return the prefix of its name: the priority in three digits, or the server of a tool."""
        if not self.item or kind_of(ItemId(self.item)) == "tool":
            return f"{self.server}. •" if self.server else "•"
        return f"{NO_LEVEL if self.level is None else f'{self.level:03d}'} •"

    @property
    def badge(self) -> str:
        """Return how it was included, such as `Always` or `Agent - 0.87`."""
        score = "" if self.score is None else f" - {self.score:.2f}"
        return f"{self.include.capitalize()}{score}"


class Explanation(Struct, frozen=True, kw_only=True):
    """The context of a question's first request, by kind; for a question, followed by what later
    requests of its turn added, such as what the model found."""

    session: str
    # The number of the question on its path, and how many there are.
    number: int
    questions: int
    question: str
    request: str
    target: str
    at: float
    rules: tuple[Reason, ...] = ()
    references: tuple[Reason, ...] = ()
    tools: tuple[Reason, ...] = ()
    items: tuple[ContextItem, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    warnings: tuple[str, ...] = ()
    # What hooks want people to see of their changes.
    displays: tuple[HookDisplay, ...] = ()
    # Why this may differ from what was sent.
    problems: tuple[str, ...] = ()
    # What was searched for in notes, and which planned calls were run.
    found: dict[str, Any] | None = None
    planned: dict[str, Any] | None = None
    # What the model searched for during the turn.
    searches: tuple[dict[str, Any], ...] = ()
    # How the agent's files differ today from the session's copy.
    agent_changes: tuple[AgentChangeRow, ...] = ()


def explain_question(journal: Journal, number: int | None, book: TargetBook) -> Explanation:
    """Explain the context of a question on the active path; the last one by default.

    Raises:
        NoSuchEntry: there is no such question, or nothing was sent for it.
    """
    questions = _questions(journal, journal.leaf)
    if not questions:
        raise NoSuchEntry("no questions on this path yet: there is no context to explain")
    place = len(questions) if number is None else number
    if not 1 <= place <= len(questions):
        has = f"{len(questions):,} question{'s' * (len(questions) > 1)}"
        raise NoSuchEntry(f"no question {place}: the path has {has}, and 1 is the first")
    _, request = questions[place - 1]
    requests = list_requests(journal)
    listed = requests.by_id(request.id) if request else None
    if listed is None:
        raise NoSuchEntry(
            f"question {place} was not sent by Lamina: it was imported, or its request is "
            f"lost. `lamina log SESSION --requests` lists the requests"
        )
    why = explain_request(journal, rebuild_request(journal, requests, listed, book))
    later = [requests.by_id(entry.id) for entry in _later_requests(journal, listed.request)]
    for another in filter(None, later):
        why = _add_later(why, journal, requests, another, book)
    return why


def explain_request(journal: Journal, recorded: RebuiltRequest) -> Explanation:
    """Explain the context of any request, including a later one of its turn, one on another branch,
    or one still running. The record of search and plan is that of the turn's first
    request."""
    request = recorded.listed.request
    leaf = journal.leaf if recorded.listed.active else request.id
    questions = _questions(journal, leaf)
    before = {entry.id for entry in path_to(request.id, journal.entries)}
    number = sum(message.id in before for message, _ in questions)
    message, first = questions[number - 1] if number else (None, None)
    why = _explain(recorded, message, number, len(questions))
    opening = first.id if first else request.id
    return replace(
        why,
        found=_find_record(journal, SEARCHED, opening),
        planned=_find_record(journal, PLANNED, opening),
        searches=_searches_for(journal, message, leaf) if message else (),
    )


def _questions(journal: Journal, leaf: str) -> list[tuple[MessageEntry, RequestEntry | None]]:
    """Return the questions of a path, each with its first request."""
    questions: list[tuple[MessageEntry, RequestEntry | None]] = []
    for entry in path_to(leaf, journal.entries):
        if isinstance(entry, MessageEntry) and entry.message.role == "user":
            questions.append((entry, None))
        elif isinstance(entry, RequestEntry) and questions and questions[-1][1] is None:
            questions[-1] = (questions[-1][0], entry)
    return questions


def _later_requests(journal: Journal, first: RequestEntry) -> list[RequestEntry]:
    """Return the other requests of a turn on the active path, in order."""
    later: list[RequestEntry] = []
    is_inside = False
    for entry in path_to(journal.leaf, journal.entries):
        if isinstance(entry, MessageEntry) and entry.message.role == "user":
            is_inside = False
        elif isinstance(entry, RequestEntry):
            is_inside = is_inside or entry.id == first.id
            later += [entry] * (is_inside and entry.id != first.id)
    return later


def _add_later(
    why: Explanation,
    journal: Journal,
    requests: RequestList,
    listed: ListedRequest,
    book: TargetBook,
) -> Explanation:
    """Add what a later request of the turn contains beyond the explanation so far. Only a request
    that adds something is rebuilt."""
    known = {row.item or row.name for row in (*why.rules, *why.references, *why.tools)}
    known |= {item.item for item in why.items}
    context = listed.request.context
    there = {item.item for item in context.items if item.placement != "left_out"}
    new = (there | {tool.item for tool in context.tools}) - known
    new -= {tool.item for tool in context.tools if tool.name in known}
    if not new:
        return why
    other = _explain(rebuild_request(journal, requests, listed, book), None, 0, 0)
    note = f"added later in the turn, with request {listed.request.id}"

    def rows(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
        return tuple(replace(row, notes=(*row.notes, note)) for row in reasons if row.item in new)

    return replace(
        why,
        rules=(*why.rules, *rows(other.rules)),
        references=(*why.references, *rows(other.references)),
        tools=(*why.tools, *rows(other.tools)),
        items=(*why.items, *(item for item in other.items if item.item in new)),
    )


def _explain(
    recorded: RebuiltRequest, message: MessageEntry | None, number: int, of: int
) -> Explanation:
    request = recorded.listed.request
    context, state = request.context, recorded.state
    assert state is not None
    used = [item for item in context.items if item.placement != "left_out"]
    kinds: dict[str, list[ContextItem]] = {kind: [] for kind in (*MEMBER_KINDS, "")}
    for item in used:
        kinds[kind_of(item.item) if kind_of(item.item) in kinds else ""].append(item)
    tools = [_described(item, state) for item in kinds["tool"]]
    return Explanation(
        session=recorded.session.session,
        number=number,
        questions=of,
        question=message.message.text if message else "",
        request=request.id,
        target=context.target,
        at=request.at,
        rules=_by_level(_guide(item, state) for item in kinds["rule"]),
        references=_by_level(_guide(item, state) for item in kinds["reference"]),
        tools=tuple(
            sorted([*_listed(context, state), *tools], key=lambda tool: (tool.server, tool.name))
        ),
        items=tuple(kinds[""]),
        left_out=_left_out(context),
        warnings=(*context.warnings, *_describe_reply(recorded.listed)),
        displays=recorded.displays,
        problems=(*recorded.problems, *map(str, recorded.damage)),
    )


def _describe_reply(listed: ListedRequest) -> tuple[str, ...]:
    """Return what the provider removed from a request before the model saw it."""
    return describe_transformations(listed.reply.transformations) if listed.reply else ()


def _left_out(context: RequestContext) -> tuple[LeftOut, ...]:
    """Return what is not in the request, without duplicates; items not found come first."""
    known = {omission.what for omission in context.left_out}
    more = [
        LeftOut(what=item.item, reason="window", detail=item.reason, tokens=item.tokens)
        for item in context.items
        if item.placement == "left_out" and item.item not in known
    ]
    return tuple(
        sorted((*context.left_out, *more), key=lambda omission: omission.reason not in ASTRAY)
    )


def _by_level(guides: Iterable[Reason]) -> tuple[Reason, ...]:
    """Sort guides by level, those without a level last."""
    return tuple(
        sorted(guides, key=lambda guide: (guide.level is None, guide.level or 0, guide.name))
    )


def _guide(item: ContextItem, state: State) -> Reason:
    sent = state.library.items.get((item.item, item.version))
    # The description of a rule or reference, or the beginning of its text.
    purpose = (sent.title or sent.content) if sent else ""
    notes = ("pinned",) if item.pinned else ()
    return _reason(item, "", key_of(item.item), item.placement, purpose, notes, item.level)


def _described(item: ContextItem, state: State) -> Reason:
    """Return the row of a tool that stands in the conversation, not in the list."""
    sent = state.library.items.get((item.item, item.version))
    notes = (f"described in the conversation, called through {USE_TOOL.name}",)
    text = sent.content if sent else ""
    return _reason(item, *_server_and_name(item.item), item.placement, text, notes)


def _reason(
    item: ContextItem | ContextTool,
    server: str,
    name: str,
    placement: str,
    about: str,
    notes: tuple[str, ...],
    level: int | None = None,
) -> Reason:
    return Reason(
        item=item.item,
        name=name,
        include=item.include,
        placement=placement,
        tokens=item.tokens,
        level=level,
        server=server,
        about=_first_line(about),
        score=item.score,
        origin=item.origin,
        source=item.source,
        notes=notes,
    )


def _listed(context: RequestContext, state: State) -> list[Reason]:
    """Return the tools of the list, as described at that time."""
    known = {tool.name: tool for tool in context.tools}
    allowed = context.allowed_tools
    reasons = []
    for definition in state.envelope.tool_list:
        tool = known.get(definition.name)
        notes = []
        if tool and tool.kept:
            notes.append("kept from an earlier question")
        if tool and tool.origin == WHOLE_POOL:
            notes.append("one of few tools, which are all offered")
            tool = replace(tool, origin="")
        if tool is None and known and definition.name not in ENGINE_TOOLS:
            notes.append("still listed, but not callable")
        if allowed is not None and definition.name not in allowed:
            notes.append("listed, but not callable now")
        reasons.append(_tool(tool, definition.name, definition.description, tuple(notes)))
    listed = {definition.name for definition in state.envelope.tool_list}
    for name, loaded in state.loaded.items():
        if name in known and name not in listed:
            note = "loaded by a result, not part of the prefix"
            reasons.append(_tool(known[name], name, loaded.definition.description, (note,)))
    return reasons


def _tool(tool: ContextTool | None, name: str, about: str, notes: tuple[str, ...]) -> Reason:
    if tool is None:
        return Reason(
            item="", name=name, include="always", placement="list", about=_first_line(about),
            notes=notes,
        )  # fmt: skip
    return _reason(tool, *_server_and_name(tool.item), "list", about, notes)


def _server_and_name(item: ItemId) -> tuple[str, str]:
    server, slash, name = key_of(item).partition("/")
    if not slash:
        return "", server
    return server.replace("%2F", "/").replace("%25", "%"), name


def _first_line(text: str) -> str:
    lines = (line.strip().lstrip("#").strip() for line in text.splitlines())
    return next((line for line in lines if line), "")


def describe_why(why: Explanation) -> dict[str, Any]:
    """Return every field of every row, including empty ones, for programs."""
    return asdict(why) | {
        "items": [asdict(item) for item in why.items],
        "left_out": [asdict(omission) for omission in why.left_out],
        "agent_changes": [asdict(change) for change in why.agent_changes],
    }


def _find_record(journal: Journal, kind: str, request: str) -> dict[str, Any] | None:
    """Return the last record of a kind for a request: a search of notes, or a plan's calls."""
    records = [
        entry.data
        for entry in journal.entries.values()
        if isinstance(entry, CustomEntry) and entry.kind == kind and isinstance(entry.data, dict)
    ]
    own = [data for data in records if data.get("request") == request and "query" not in data]
    return own[-1] if own else None


def _searches_for(
    journal: Journal, question: MessageEntry, leaf: str
) -> tuple[dict[str, Any], ...]:
    """Return the searches called between a question of the path and the next one."""
    records: list[dict[str, Any]] = []
    is_inside = False
    for entry in path_to(leaf, journal.entries):
        match entry:
            case MessageEntry(message=message) if message.role == "user":
                is_inside = entry.id == question.id
            case CustomEntry(kind=kind, data=dict() as data) if kind == SEARCHED and is_inside:
                if "query" in data:
                    records.append(data)
            case _:
                pass
    return tuple(records)
