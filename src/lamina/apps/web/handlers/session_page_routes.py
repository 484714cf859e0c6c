"""Views of a whole session: context of a request, timeline, tree, verification."""

from anyio.to_thread import run_sync
from msgspec.structs import replace

from lamina.apps.views.session_check import SessionCheck, check_stored
from lamina.apps.views.session_items import find_stored_changes
from lamina.apps.web.branch_map import BranchMap, map_branches
from lamina.apps.web.cache_timeline import CacheTimeline, read_timeline
from lamina.apps.web.context_record import ContextRecord, record_context
from lamina.apps.web.routes import Call, Route

SESSION = "/api/workspaces/{workspace}/sessions/{session}"


async def show_context(call: Call) -> ContextRecord:
    journal = await call.desk.read_journal(call.workspace, call.session)
    record = await run_sync(record_context, journal, call.path["request"], call.desk.book)
    changes = await find_stored_changes(journal, call.desk.workspace(call.workspace))
    return replace(record, agent_changes=changes)


async def show_timeline(call: Call) -> CacheTimeline:
    journal = await call.desk.read_journal(call.workspace, call.session)
    return await run_sync(read_timeline, journal, call.session, call.desk.book)


async def show_tree(call: Call) -> BranchMap:
    journal = await call.desk.read_journal(call.workspace, call.session)
    return await run_sync(map_branches, journal)


async def verify_session(call: Call) -> SessionCheck:
    desk = call.desk
    await desk.require_session(call.workspace, call.session)
    # Read from its file line by line: a session that is only viewed is not fully loaded.
    return await check_stored(desk.stored(call.workspace, call.session), desk.book)


ROUTES = (
    Route(
        method="GET", path=f"{SESSION}/context/{{request}}", handler=show_context,
        result=ContextRecord,
        summary="Shows the context of a request, and why each item was included.",
    ),
    Route(
        method="GET", path=f"{SESSION}/timeline", handler=show_timeline, result=CacheTimeline,
        summary="Shows every request with its cache use, and every priced break.",
    ),
    Route(
        method="GET", path=f"{SESSION}/tree", handler=show_tree, result=BranchMap,
        summary="Shows the branches of the session as a map.",
    ),
    Route(
        method="GET", path=f"{SESSION}/verify", handler=verify_session, result=SessionCheck,
        summary="Verifies that every request can be rebuilt byte for byte.",
    ),
)  # fmt: skip
