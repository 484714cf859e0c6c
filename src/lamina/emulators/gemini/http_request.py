"""What handlers need of a request: the caller and the body."""

from hashlib import sha256
from typing import cast

import msgspec
from starlette.requests import Request

from lamina.emulators.gemini.refusals import invalid_argument


def key_of(request: Request) -> str:
    return request.headers.get("x-goog-api-key") or request.query_params.get("key") or ""


def owner_of(request: Request) -> str:
    """The caller, known by a digest of the key."""
    return sha256(key_of(request).encode()).hexdigest()


async def read_json_body(request: Request) -> object:
    """The body of a request.

    Raises:
        GeminiRefusal: it is not JSON.
    """
    try:
        return cast(object, msgspec.json.decode(await request.body()))
    except msgspec.DecodeError as error:
        raise invalid_argument(f"Invalid JSON payload received. {error}") from error
