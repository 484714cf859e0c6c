"""What handlers need of a request: who calls, and what they say."""

from hashlib import sha256
from typing import TYPE_CHECKING, cast

import msgspec

from lamina.providers.emulators.gemini.refusals import invalid_argument

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
        GeminiRefusal: it is no JSON.
    """
    try:
        return cast(object, msgspec.json.decode(await request.body()))
    except msgspec.DecodeError as error:
        raise invalid_argument(f"Invalid JSON payload received. {error}") from error
