"""What requests carry, and answers that are not JSON: streams of events, and files.

Law: nothing here knows a route or the desk behind it, so that every record may be built on it.
"""

from collections.abc import AsyncGenerator, Mapping

from msgspec import Struct


class RequestBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a request carries; a field that nobody knows is refused."""


class RequestQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stands behind the question mark of an address."""


class ServerEvent(Struct, frozen=True):
    """One event of a stream: `data` is JSON. Without a number it is not counted, as a ping."""

    event: str
    data: bytes
    number: int | None = None


class EventStream(Struct, frozen=True):
    """The answer of a route whose form is `events`."""

    events: AsyncGenerator[ServerEvent]


class SentFile(Struct, frozen=True, kw_only=True):
    """The answer of a route whose form is `file`. It is shown in the page only if it is `inline`;
    otherwise a browser saves it."""

    data: bytes
    media_type: str
    name: str = ""
    inline: bool = False
    headers: Mapping[str, str] = {}
