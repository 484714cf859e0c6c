"""What handlers need of a request: who calls, what they say, and how to hang up on them."""

from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

import anyio
import msgspec

from lamina.providers.emulators.gemini.bodies import invalid_argument

if TYPE_CHECKING:
    from starlette.requests import Request


def key_of(request: "Request") -> str:
    return request.headers.get("x-goog-api-key") or request.query_params.get("key") or ""


def owner_of(request: "Request") -> str:
    """Who calls, without their key."""
    return sha256(key_of(request).encode()).hexdigest()


async def read_json_body(request: "Request") -> object:
    """The body of a request.

    Raises:
        Refused: it is no JSON.
    """
    try:
        return cast(object, msgspec.json.decode(await request.body()))
    except msgspec.DecodeError as error:
        raise invalid_argument(f"Invalid JSON payload received. {error}") from error


async def hang_up(request: "Request") -> None:
    """Closes the connection under a request, as a network does."""
    server: Any = getattr(request.receive, "__self__", None)
    server.transport.abort()
    # The server learns of it in its own time.
    while not server.disconnected:  # noqa: ASYNC110 - it tells in no other way
        await anyio.sleep(0.001)
