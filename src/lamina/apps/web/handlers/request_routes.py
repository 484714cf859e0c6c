"""What was sent, request by request: rows, one request in detail, its wire form, comparisons."""

from anyio.to_thread import run_sync

from lamina.apps.web.request_anatomy import RequestAnatomy, WireBody, dissect_request, show_body
from lamina.apps.web.request_difference import RequestDifference, compare_requests
from lamina.apps.web.request_summary import SentRequests, list_sent
from lamina.apps.web.routes import Call, Route

SESSION = "/api/workspaces/{workspace}/sessions/{session}"


async def list_requests(call: Call) -> SentRequests:
    journal = await call.desk.read_journal(call.workspace, call.session)
    return await run_sync(list_sent, journal, call.desk.book)


async def show_request(call: Call) -> RequestAnatomy:
    journal = await call.desk.read_journal(call.workspace, call.session)
    return await run_sync(dissect_request, journal, call.path["request"], call.desk.book)


async def show_wire(call: Call) -> WireBody:
    desk = call.desk
    journal = await desk.read_journal(call.workspace, call.session)
    store = desk.stored(call.workspace, call.session).store
    return await show_body(journal, call.path["request"], store, desk.book)


async def show_difference(call: Call) -> RequestDifference:
    journal = await call.desk.read_journal(call.workspace, call.session)
    before, after = call.path["before"], call.path["after"]
    return await run_sync(compare_requests, journal, before, after, call.desk.book)


ROUTES = (
    Route(
        method="GET", path=f"{SESSION}/requests", handler=list_requests, result=SentRequests,
        summary="Lists every request of the session, on every branch.",
    ),
    Route(
        method="GET", path=f"{SESSION}/requests/{{request}}", handler=show_request,
        result=RequestAnatomy,
        summary="Shows a request: its layers, and every segment with the text sent.",
    ),
    Route(
        method="GET", path=f"{SESSION}/requests/{{request}}/wire", handler=show_wire,
        result=WireBody, summary="Shows a request in its vendor's own form.",
    ),
    Route(
        method="GET", path=f"{SESSION}/requests/{{before}}/difference/{{after}}",
        handler=show_difference, result=RequestDifference,
        summary="Compares two requests: the first byte that moved, why, and the cost.",
    ),
)  # fmt: skip
