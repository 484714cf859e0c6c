"""A request in its vendor's own form."""

from typing import Any

from anyio.to_thread import run_sync
from msgspec import Struct

from lamina.apps.views.sent_requests import encode_rebuilt
from lamina.apps.web.request_anatomy import find_by_id
from lamina.core.audit.rebuilt_request import rebuild_request
from lamina.core.audit.requests import list_requests
from lamina.core.journal import Journal
from lamina.core.ports import JournalStore, TargetBook


class WireBody(Struct, frozen=True, kw_only=True):
    """A request in its vendor's form, and why it may not be what was sent."""

    request: str
    target: str
    wire: str
    body: Any
    problems: tuple[str, ...]


async def show_body(
    journal: Journal, request: str, store: JournalStore, book: TargetBook
) -> WireBody:
    """A request in its vendor's form.

    Raises:
        NoSuchEntry: there is no such request, or it cannot be rebuilt.
    """
    requests = list_requests(journal)
    listed = find_by_id(requests, request)
    recorded = await run_sync(rebuild_request, journal, requests, listed, book)
    body, problems = await encode_rebuilt(recorded, store, book)
    return WireBody(
        request=listed.request.id,
        target=listed.request.target,
        wire=listed.request.wire,
        body=body,
        problems=problems,
    )
