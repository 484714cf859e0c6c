"""Previews of the next request while a person types."""

from msgspec.structs import replace

from lamina.apps.web.handlers.session_routes import options_of
from lamina.apps.web.rehearsals import NewPreview, PreviewBody, RequestPreview
from lamina.apps.web.routes import Call, Route

WORKSPACE = "/api/workspaces/{workspace}"
SESSION = f"{WORKSPACE}/sessions/{{session}}"


async def preview(call: Call) -> RequestPreview:
    body: PreviewBody = call.body
    folder = call.desk.workspace(call.workspace)
    return await call.desk.rehearsals.preview(call.workspace, folder, call.session, body)


async def preview_new(call: Call) -> RequestPreview:
    body: NewPreview = call.body
    options = replace(options_of(body)[0], workspace=call.desk.workspace(call.workspace))
    return await call.desk.rehearsals.preview_new(call.workspace, options, body)


ROUTES = (
    Route(
        method="POST", path=f"{SESSION}/preview", handler=preview, body=PreviewBody,
        result=RequestPreview,
        summary="Previews what a message would send, digest for digest.",
    ),
    Route(
        method="POST", path=f"{WORKSPACE}/preview", handler=preview_new, body=NewPreview,
        result=RequestPreview,
        summary="Previews the first message of a new session.",
    ),
)  # fmt: skip
