"""Sessions of a workspace: listed, started, shown with their state, renamed and deleted.

The head of a session combines its journal with the server's current work on it.
"""

from msgspec import convert
from msgspec.structs import replace

from lamina.apps.views.session_deletion import delete_all, find_named
from lamina.apps.views.session_options import SessionOptions
from lamina.apps.views.settings_by_name import read_settings
from lamina.apps.views.stored_sessions import SessionRow, list_sessions
from lamina.apps.web.conversation.message_outline import Outline
from lamina.apps.web.conversation.message_rows import CallOutcomes, label_call
from lamina.apps.web.desk import Desk
from lamina.apps.web.http_answers import Refusal
from lamina.apps.web.http_bodies import EventStream
from lamina.apps.web.kept_opening import KeptOpening, read_opening
from lamina.apps.web.open_session import OpenSession
from lamina.apps.web.routes import Call, Route
from lamina.apps.web.session_records import (
    CallView,
    DeletedRow,
    NewSession,
    RenamedSession,
    SessionCard,
    SessionCreated,
    SessionHead,
    SessionNews,
    SessionPage,
    SessionQuery,
    SessionState,
)
from lamina.core.audit.requests import waiting_request
from lamina.core.journal import Journal, walk_back
from lamina.core.text import label_of
from lamina.core.text.excerpt import brief
from lamina.core.values.entry import (
    Entry,
    LeaveEntry,
    MessageEntry,
    ModelEntry,
    RequestEntry,
    SettingsEntry,
)
from lamina.core.values.item import key_of
from lamina.core.values.message import ToolCall
from lamina.core.values.settings import Settings
from lamina.core.values.tool import OfferedTool
from lamina.errors import LaminaError, UnknownTarget

_TITLE = 80


async def describe_head(desk: Desk, workspace: str, session: str) -> SessionHead:
    """
    Raises:
        UnknownSession: there is no such session.
    """
    opened = desk.find_open(workspace, session)
    journal, outline = await desk.read_outline(workspace, session)
    header = journal.header
    opening = read_opening(journal)
    tail = _tail(journal, outline)
    busy = await desk.is_busy_elsewhere(workspace, session)
    if opened is not None:
        waiting = await _waiting_now(opened)
        settings = opened.session.settings
        interrupted = opened.session.interrupted
        state = opened.state
        if state == "waiting" and not waiting:
            # No decision is pending for these calls: the turn was cut off while they ran.
            state, interrupted = "interrupted", True
    else:
        waiting = _waiting_then(tail)
        settings = _settings(journal, outline)
        interrupted = bool(waiting_request(tail)) or (_awaits_results(tail) and not waiting)
        state = _state(interrupted, bool(waiting), busy)
    last = opened.turns.last if opened else None
    title = outline.name
    if not title and outline.first_question:
        question = journal.entries[outline.first_question]
        title = brief(question.message.text, _TITLE) if isinstance(question, MessageEntry) else ""
    return SessionHead(
        session=session,
        workspace=workspace,
        name=outline.name,
        title=title,
        target=settings.target,
        mode=opening.mode,
        files=opening.files,
        web=opening.web,
        agent=header.with_agent,
        project=opening.project,
        window=_window(desk, settings),
        state=state,
        interrupted=interrupted,
        busy_elsewhere=busy,
        waiting=tuple(waiting),
        turn=last.view if last else None,
        leaf=journal.leaf,
        rows=len(outline.rows),
        other_rows=outline.other_rows,
        began=header.at,
        forked_from=header.forked_from,
        source=header.source,
        damage=journal.damage,
    )


def _state(interrupted: bool, waits: bool, busy: bool) -> SessionState:
    if busy:
        return "working"
    if waits:
        return "waiting"
    return "interrupted" if interrupted else "idle"


def _tail(journal: Journal, outline: Outline) -> tuple[Entry, ...]:
    """Return the last turn of the path."""
    rows = outline.rows
    start = outline.question_of(len(rows) - 1) if rows else 0
    until = rows[start - 1] if start > 0 else ""
    return walk_back(journal.entries, journal.leaf, until)


async def _waiting_now(opened: OpenSession) -> list[CallView]:
    decisions = opened.session.state.turn.decisions
    calls = [*await opened.waiting_calls(), *opened.planned_calls.values()]
    views = [_view(call, tool) for call, tool in calls]
    # Calls already decided are shown while others of their turn wait.
    if views:
        for call in opened.session.pending_calls:
            if (entry := decisions.get(call.id)) is not None:
                tool = await opened.find_tool(call)
                views.append(_view(call, tool, entry.decision))
    return views


def _view(call: ToolCall, tool: OfferedTool | None, decision: str | None = None) -> CallView:
    return CallView(
        id=call.id,
        name=call.name,
        label=tool.label or label_of(tool.id) if tool else call.name,
        server=key_of(tool.id).rpartition("/")[0] if tool else "",
        about=tool.definition.description if tool else "",
        arguments=call.arguments,
        decision=decision,
    )


def _waiting_then(tail: tuple[Entry, ...]) -> list[CallView]:
    """Return calls without a result, according to the journal. If all of them were decided, the
    turn was cut off, and nothing waits for a person."""
    if not _awaits_results(tail):
        return []
    outcomes = CallOutcomes(tail, {}, False)
    answer = next(e for e in reversed(tail) if isinstance(e, MessageEntry))
    requests = [entry for entry in tail if isinstance(entry, RequestEntry)]
    request = requests[-1] if requests else None
    calls = [call for call in answer.message.calls if call.id not in outcomes.results]
    if all(call.id in outcomes.decisions for call in calls):
        return []
    return [
        CallView(
            id=call.id, name=call.name, label=label_call(call.name, request), server="", about="",
            arguments=call.arguments, decision=outcomes.decisions.get(call.id),
        )
        for call in calls
    ]  # fmt: skip


def _awaits_results(tail: tuple[Entry, ...]) -> bool:
    for entry in reversed(tail):
        if isinstance(entry, LeaveEntry):
            return False
        if isinstance(entry, MessageEntry):
            return entry.message.role == "assistant" and bool(entry.message.calls)
    return False


def _settings(journal: Journal, outline: Outline) -> Settings:
    """Return the settings at the leaf."""
    settings = journal.header.settings
    for name in outline.settings_of(journal.leaf):
        entry = journal.entries[name]
        if isinstance(entry, SettingsEntry):
            settings = entry.settings
        elif isinstance(entry, ModelEntry):
            settings = replace(settings, target=entry.target)
    return settings


def _window(desk: Desk, settings: Settings) -> int:
    if settings.window is not None:
        return settings.window
    try:
        return desk.book.find(settings.target).window
    except UnknownTarget:
        return 0


WORKSPACE = "/api/workspaces/{workspace}"
SESSION = f"{WORKSPACE}/sessions/{{session}}"
_MAX = 500


async def list_cards(call: Call) -> SessionPage:
    query: SessionQuery = call.query
    rows = await list_sessions(call.desk.workspace(call.workspace), everywhere=False)
    words = query.q.casefold().split()
    fitting = [
        row for row in rows if all(word in f"{row.name} {row.session}".casefold() for word in words)
    ]
    start = 0
    if query.after:
        places = [place for place, row in enumerate(fitting) if row.session == query.after]
        start = places[0] + 1 if places else 0
    page = fitting[start : start + max(1, min(query.limit, _MAX))]
    more = start + len(page) < len(fitting)
    return SessionPage(
        sessions=tuple([_card(call, row) for row in page]),
        total=len(fitting),
        after=page[-1].session if page and more else None,
    )


def _card(call: Call, row: SessionRow) -> SessionCard:
    opened = call.desk.find_open(call.workspace, row.session)
    state: SessionState = "interrupted" if row.open else "idle"
    if row.waits:
        state = "waiting"
    if row.problem:
        state = "unreadable"
    turn: str | None = None
    if opened is not None:
        state, turn = opened.state, opened.news.turn
    usage = row.usage
    reported = usage.cache_reported and usage.input > 0
    return SessionCard(
        session=row.session,
        name=row.name,
        state=state,
        turn=turn,
        messages=row.messages,
        usage=usage,
        cached_share=usage.cached / usage.input if reported else None,
        cost=row.cost,
        unpriced=row.unpriced,
        bytes=row.bytes,
        written=row.written,
        damage=row.damage,
        problem=row.problem,
    )


def options_of(body: NewSession) -> tuple[SessionOptions, KeptOpening]:
    """Return how a session is started."""
    opening = KeptOpening(
        mode=body.mode, files=body.files, web=body.web or None, project=body.project
    )
    options = SessionOptions(
        agent=body.agent or None, project=body.project, target=body.target or None,
        system=body.system, mode=body.mode, files=body.files, web_search=body.web or None,
    )  # fmt: skip
    return options, opening


async def create_session(call: Call) -> SessionCreated:
    body: NewSession = call.body
    options, opening = options_of(body)
    opened = await call.desk.create(call.workspace, options, opening)
    with opened:
        session = opened.session
        try:
            if changes := read_settings(body.settings, session.settings):
                await session.update_settings(**changes)
            if body.name.strip():
                await session.rename(body.name)
        except LaminaError:
            # Do not leave behind a session that differs from the request.
            await call.desk.close(call.workspace, session.id)
            await call.desk.stored(call.workspace, session.id).store.delete(session.id)
            raise
        call.desk.bulletin.publish(call.workspace, opened.news)
        return SessionCreated(session=session.id, notices=opened.notices)


async def show_head(call: Call) -> SessionHead:
    return await describe_head(call.desk, call.workspace, call.session)


async def rename_session(call: Call) -> SessionHead:
    body: RenamedSession = call.body
    async with call.desk.session(call.workspace, call.session) as opened:
        await opened.session.rename(body.name)
        call.desk.bulletin.publish(call.workspace, opened.news)
        return await describe_head(call.desk, call.workspace, call.session)


async def delete_session(call: Call) -> DeletedRow:
    desk, workspace, session = call.desk, call.workspace, call.session
    await desk.require_session(workspace, session)
    await desk.close(workspace, session)
    (deletion,) = await delete_all(await find_named([session], desk.workspace(workspace)))
    if deletion.problem:
        raise Refusal(409, "session_busy", deletion.problem)
    return convert(deletion, DeletedRow, from_attributes=True)


async def watch_sessions(call: Call) -> EventStream:
    call.desk.workspace(call.workspace)
    standing = [opened.news for opened in call.desk.list_open(call.workspace).values()]
    return EventStream(call.desk.bulletin.follow(call.workspace, standing))


ROUTES = (
    Route(
        method="GET", path=f"{WORKSPACE}/sessions", handler=list_cards, query=SessionQuery,
        result=SessionPage,
        summary="Lists the sessions of a workspace, most recently written first.",
    ),
    Route(
        method="POST", path=f"{WORKSPACE}/sessions", handler=create_session, body=NewSession,
        result=SessionCreated, right="chat", status=201,
        summary="Starts a session.",
    ),
    Route(
        method="GET", path=SESSION, handler=show_head, result=SessionHead,
        summary="Shows a session's state: its target, its turn, what waits.",
    ),
    Route(
        method="PATCH", path=SESSION, handler=rename_session, body=RenamedSession,
        result=SessionHead, right="chat",
        summary="Renames a session.",
    ),
    Route(
        method="DELETE", path=SESSION, handler=delete_session, result=DeletedRow, right="chat",
        summary="Deletes a session and everything only it uses.",
    ),
    Route(
        method="GET", path=f"{WORKSPACE}/events", handler=watch_sessions, result=SessionNews,
        form="events",
        summary="Streams changes of sessions' states: `session` and `ping`.",
    ),
)  # fmt: skip
