"""What one request was answered with, for a person: rules, references and tools with reasons; what
else was sent; what was left out, and what narrowly missed.

Law: this shows what the request was built from, according to the journal.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from lamina.apps.views.answer_json import describe_options
from lamina.apps.views.journal_log import dict_rows
from lamina.apps.views.session_items import AgentChangeRow
from lamina.apps.views.why import Explanation, Reason, explain_request
from lamina.apps.web.request_anatomy import (
    find_by_id,
    find_neighbours,
    item_of_segment,
    reported_tokens,
)
from lamina.apps.web.request_summary import RequestRows, RequestSummary, reported_usage
from lamina.core.audit.rebuilt_request import RebuiltRequest, rebuild_request
from lamina.core.audit.requests import ListedRequest, RequestList, list_requests
from lamina.core.journal import Journal, path_to
from lamina.core.ports import TargetBook
from lamina.core.values.entry import MessageEntry, RequestEntry
from lamina.core.values.item import ItemId, kind_of
from lamina.core.values.note import SearchTier
from lamina.core.values.patch import HookDisplay
from lamina.core.values.prompt import Layer, Prompt, Segment
from lamina.core.values.request import (
    Boundary,
    ContextItem,
    ContextTool,
    Fit,
    LeftOut,
    RequestContext,
)
from lamina.core.values.selection import NearMiss
from lamina.core.values.settings import Settings
from lamina.engine.runners.agent_search import SEARCHED_ORIGINS, near_miss


class ReasonRow(Reason, frozen=True, kw_only=True):
    """A reason as a page shows it. `place` stands before its name: its priority in three digits, or
    the server of a tool; `badge` says how it was included, such as `Agent - 0.87`. `is_new` says
    that the previous request did not have it."""

    place: str
    badge: str
    pinned: bool
    is_new: bool


class AlsoSent(Struct, frozen=True, kw_only=True):
    """Other contents of a request, by kind: notes, memory, history and so on."""

    what: str
    label: str
    layer: Layer
    count: int
    tokens: int


class FoundPassage(Struct, frozen=True, kw_only=True):
    """A passage found by search, with its citation number."""

    number: int | None
    path: str
    heading: str
    start: int | None
    end: int | None
    score: float | None


class NoteSearchRecord(Struct, frozen=True, kw_only=True):
    """A search of notes for a request: the query, the number of notes, the results."""

    query: str
    searched: int
    passages: tuple[FoundPassage, ...]
    without_room: int
    # By words, by meaning, or both; empty if unknown.
    method: str


class PlannedCall(Struct, frozen=True, kw_only=True):
    """A call of a plan, and its outcome."""

    name: str
    arguments: str
    outcome: str


class ContextRecord(Struct, frozen=True, kw_only=True):
    """The context of one request. `near_note` says what `near` is, or why it is empty."""

    session: str
    request: RequestSummary
    of: int
    previous: str
    next: str
    question_number: int
    questions: int
    question: str
    rules: tuple[ReasonRow, ...]
    references: tuple[ReasonRow, ...]
    tools: tuple[ReasonRow, ...]
    items: tuple[ContextItem, ...]
    also_sent: tuple[AlsoSent, ...]
    left_out: tuple[LeftOut, ...]
    near: tuple[NearMiss, ...]
    near_note: str
    found: NoteSearchRecord | None
    searches: tuple[NoteSearchRecord, ...]
    planned: tuple[PlannedCall, ...]
    boundaries: tuple[Boundary, ...]
    fit: Fit
    cached: int | None
    options: dict[str, Any]
    citations: tuple[int, ...]
    warnings: tuple[str, ...]
    displays: tuple[HookDisplay, ...]
    proven: bool
    problems: tuple[str, ...]
    # How the agent's files differ today from the session's copy.
    agent_changes: tuple[AgentChangeRow, ...] = ()


def record_context(journal: Journal, request: str, book: TargetBook) -> ContextRecord:
    """Return the context of a request, even one that is still running.

    Raises:
        NoSuchEntry: there is no such request.
    """
    requests = list_requests(journal)
    listed = find_by_id(requests, request)
    recorded = rebuild_request(journal, requests, listed, book)
    why = explain_request(journal, recorded)
    prompt = recorded.prompt or Prompt()
    around = find_neighbours(requests, listed)
    opening = _opening_of(journal, requests, listed)
    near = tuple(_near_misses(opening.request, recorded))
    usage = reported_usage(listed.reply)
    before = _items_of(recorded.base.request) if recorded.base else None
    context = listed.request.context
    pinned = {item.item for item in context.items if item.pinned}

    def rows(reasons: Iterable[Reason]) -> tuple[ReasonRow, ...]:
        return tuple(_reason_row(reason, before, pinned) for reason in reasons)

    return ContextRecord(
        session=why.session,
        request=RequestRows(journal, requests, book).row(listed),
        of=len(requests.listed),
        previous=around.previous,
        next=around.next,
        question_number=why.number,
        questions=why.questions,
        question=why.question,
        rules=rows(why.rules),
        references=rows(why.references),
        tools=rows(why.tools),
        items=why.items,
        also_sent=tuple(_also_sent(prompt)),
        left_out=tuple(left for left in why.left_out if left.reason != "ranked_lower"),
        near=near,
        near_note=_note_near(near, recorded, opening is listed),
        found=_search_record(why.found) if why.found else None,
        searches=tuple(_search_record(record) for record in why.searches),
        planned=tuple(_planned(why)),
        boundaries=context.boundaries,
        fit=context.fit,
        cached=reported_tokens(prompt.tokens, recorded, usage),
        options=describe_options(recorded.options),
        citations=recorded.citations,
        warnings=recorded.warnings,
        displays=why.displays,
        proven=recorded.prompt is not None and not recorded.problems,
        problems=why.problems,
    )


def _opening_of(journal: Journal, requests: RequestList, listed: ListedRequest) -> ListedRequest:
    """Return the first request of a request's turn: it records what a search chose and what
    it did not."""
    first = listed
    for entry in reversed(path_to(listed.request.id, journal.entries)):
        if isinstance(entry, MessageEntry) and entry.message.role == "user":
            break
        if isinstance(entry, RequestEntry):
            first = requests.by_id(entry.id) or first
    return first


def _items_of(request: RequestEntry) -> frozenset[str]:
    context = request.context
    used = [item.item for item in context.items if item.placement != "left_out"]
    return frozenset([*used, *(tool.item for tool in context.tools)])


def _reason_row(reason: Reason, before: frozenset[str] | None, pinned: set[ItemId]) -> ReasonRow:
    return ReasonRow(
        place=reason.place,
        badge=reason.badge,
        pinned=reason.item in pinned,
        is_new=before is not None and bool(reason.item) and reason.item not in before,
        **asdict(reason),
    )


# -- what else was sent --------------------------------------------------------------------------

_LABELS = {
    "tools": "tool definitions",
    "memory": "memory",
    "system": "system prompt",
    "names": "names of relevant items",
    "history": "history",
    "steps": "steps of this turn",
    "results": "tool results",
    "question": "the question",
    "planned": "found or planned, for this request only",
}


def _also_sent(prompt: Prompt) -> Iterator[AlsoSent]:
    """Yield what a prompt contains apart from rules and references, by kind, in wire order."""
    layers: dict[str, Layer] = {}
    names: dict[str, set[str]] = {}
    tokens: dict[str, int] = {}
    steps = {link.segment.message for link in prompt.steps}
    for segment in prompt:
        if what := _what_is(segment, steps):
            layers.setdefault(what, segment.layer)
            name = segment.source if what in _BY_SOURCE else segment.message or segment.source
            names.setdefault(what, set()).add(name)
            tokens[what] = tokens.get(what, 0) + segment.tokens
    for what, layer in layers.items():
        label = _LABELS.get(what) or f"{what}s"
        count = len(names[what])
        yield AlsoSent(what=what, label=label, layer=layer, count=count, tokens=tokens[what])


# These are counted by source; everything else by message.
_BY_SOURCE = ("tools", "memory", "system", "note", "file", "selection", "query", "folder", "tag",
              "url", "pdf", "image")  # fmt: skip


def _what_is(segment: Segment, steps: set[str]) -> str:
    item, _ = item_of_segment(segment)
    if item:
        kind = str(kind_of(ItemId(item)))
        return "" if kind in ("rule", "reference", "tool") else kind
    kind, _, name = segment.source.partition(":")
    if segment.role == "tools":
        return "tools"
    if kind == "system":
        is_memory = name == "memory" or name.endswith("_memory")
        return "memory" if is_memory else "system"
    if kind in ("names", "frame"):
        return "names"
    if segment.source == "tool_texts":
        return "planned"
    if segment.layer == "L5":
        return "question"
    if segment.message in steps:
        return "results" if segment.role == "tool" else "steps"
    return "history"


# -- near misses ---------------------------------------------------------------------------------


def _near_misses(request: RequestEntry, recorded: RebuiltRequest) -> Iterator[NearMiss]:
    settings = recorded.state.settings if recorded.state else Settings()
    for left in request.context.left_out:
        if left.reason == "ranked_lower":
            kind = str(kind_of(ItemId(left.what)))
            how = settings.tool_search if kind == "tool" else settings.guide_search
            taken = _count_found(request.context, is_tool=kind == "tool")
            yield near_miss(left.what, left.score, how, "request", left.lacking, taken=taken)


def _count_found(context: RequestContext, *, is_tool: bool) -> int:
    """Return how many tools, or rules and references, search found for a request, including
    those without room."""
    rows: tuple[ContextItem | ContextTool, ...] = (*context.items, *context.tools)
    found = {
        str(row.item) for row in rows if row.include == "agent" and row.origin in SEARCHED_ORIGINS
    }
    found |= {left.what for left in context.left_out if left.reason == "room_left"}
    return sum((kind_of(ItemId(item)) == "tool") == is_tool for item in found)


def _note_near(near: Sequence[NearMiss], recorded: RebuiltRequest, is_opening: bool) -> str:
    if near:
        return "as recorded" if is_opening else "as recorded when the turn began"
    if recorded.state is None:
        return ""
    settings = recorded.state.settings
    if not (settings.guide_search.search or settings.tool_search.search):
        return "search chooses nothing in this session"
    return "search had no other candidates"


# -- what was searched and planned ---------------------------------------------------------------


def _search_record(record: dict[str, Any]) -> NoteSearchRecord:
    passages = tuple(_passage(hit) for hit in dict_rows(record.get("hits")))
    return NoteSearchRecord(
        query=str(record.get("query") or ""),
        searched=_whole(record.get("searched")) or 0,
        passages=passages,
        without_room=len(dict_rows(record.get("without_room"))),
        method=str(record.get("method") or "") or _method_of(passages),
    )


def _method_of(passages: tuple[FoundPassage, ...]) -> str:
    """Return how a search was made whose record contains only its results."""
    if not passages:
        return ""
    has_scores = any(passage.score is not None for passage in passages)
    return SearchTier(by="meaning" if has_scores else "words").words


def _passage(hit: dict[str, Any]) -> FoundPassage:
    score = hit.get("score")
    return FoundPassage(
        number=_whole(hit.get("source")),
        path=str(hit.get("path") or ""),
        heading=str(hit.get("heading") or ""),
        start=_whole(hit.get("start")),
        end=_whole(hit.get("end")),
        score=float(score) if isinstance(score, int | float) else None,
    )


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _planned(why: Explanation) -> Iterator[PlannedCall]:
    for call in dict_rows(why.planned.get("calls")) if why.planned else ():
        yield PlannedCall(
            name=str(call.get("name") or ""),
            arguments=str(call.get("arguments") or ""),
            outcome=str(call.get("outcome") or ""),
        )
