"""Sessions of a workspace: listed, begun, looked at, renamed and deleted."""

from lamina.apps.views.options import SessionOptions
from lamina.apps.views.session_deletion import delete_all, find_named
from lamina.apps.views.session_list import SessionRow, list_sessions
from lamina.apps.views.settings import read_settings
from lamina.apps.web.kept_opening import KeptOpening
from lamina.apps.web.refusals import Refusal
from lamina.apps.web.route import Call, EventStream, Route
from lamina.apps.web.session_head import describe_head
from lamina.apps.web.shapes.sessions import (
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
from lamina.errors import LaminaError

WORKSPACE = "/api/workspaces/{workspace}"
SESSION = f"{WORKSPACE}/sessions/{{session}}"
_MOST = 500


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
    page = fitting[start : start + max(1, min(query.limit, _MOST))]
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
    """How a session is begun."""
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
            # Nobody wants a session that is not as it was asked for.
            await call.desk.close(call.workspace, session.id)
            await call.desk.stored(call.workspace, session.id).store.delete(session.id)
            raise
        call.desk.bulletin.tell(call.workspace, opened.news)
        return SessionCreated(session=session.id, notices=opened.notices)


async def show_head(call: Call) -> SessionHead:
    return await describe_head(call.desk, call.workspace, call.session)


async def rename_session(call: Call) -> SessionHead:
    body: RenamedSession = call.body
    async with call.desk.session(call.workspace, call.session) as opened:
        await opened.session.rename(body.name)
        call.desk.bulletin.tell(call.workspace, opened.news)
        return await describe_head(call.desk, call.workspace, call.session)


async def delete_session(call: Call) -> DeletedRow:
    desk, workspace, session = call.desk, call.workspace, call.session
    await desk.require_session(workspace, session)
    await desk.close(workspace, session)
    (deletion,) = await delete_all(await find_named([session], desk.workspace(workspace)))
    if deletion.problem:
        raise Refusal(409, "session_busy", deletion.problem)
    return DeletedRow(
        session=session, bytes=deletion.bytes, blobs=deletion.blobs,
        slot_bytes=deletion.slot_bytes,
    )  # fmt: skip


async def watch_sessions(call: Call) -> EventStream:
    call.desk.workspace(call.workspace)
    standing = [opened.news for opened in call.desk.list_open(call.workspace).values()]
    return EventStream(call.desk.bulletin.follow(call.workspace, standing))


ROUTES = (
    Route(
        method="GET", path=f"{WORKSPACE}/sessions", handler=list_cards, query=SessionQuery,
        result=SessionPage,
        summary="The sessions of a workspace, the one written last first.",
    ),
    Route(
        method="POST", path=f"{WORKSPACE}/sessions", handler=create_session, body=NewSession,
        result=SessionCreated, right="chat", status=201,
        summary="Begins a session.",
    ),
    Route(
        method="GET", path=SESSION, handler=show_head, result=SessionHead,
        summary="How a session stands: whom it talks to, what it does, what waits.",
    ),
    Route(
        method="PATCH", path=SESSION, handler=rename_session, body=RenamedSession,
        result=SessionHead, right="chat",
        summary="Gives a session a name.",
    ),
    Route(
        method="DELETE", path=SESSION, handler=delete_session, result=DeletedRow, right="chat",
        summary="Deletes a session with what belongs to it alone.",
    ),
    Route(
        method="GET", path=f"{WORKSPACE}/events", handler=watch_sessions, result=SessionNews,
        form="events",
        summary="Which sessions change their state: events `session`, and `ping`.",
    ),
)  # fmt: skip
