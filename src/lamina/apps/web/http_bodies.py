"""Request bodies and queries, and answers that are not JSON: streams of events, and files.

Law: this module does not depend on routes or the desk, so that every record can build on it.
"""

from collections.abc import AsyncGenerator, Mapping

from msgspec import Struct


class RequestBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a request; unknown fields are refused."""


class RequestQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The query parameters of a request."""


class ServerEvent(Struct, frozen=True):
    """One event of a stream: `data` is JSON. Events without a number (pings) do not count."""

    event: str
    data: bytes
    number: int | None = None


class EventStream(Struct, frozen=True):
    """The answer of a route whose form is `events`."""

    events: AsyncGenerator[ServerEvent]


class SentFile(Struct, frozen=True, kw_only=True):
    """The answer of a route whose form is `file`. It is shown in the page only if `inline`;
    otherwise the browser downloads it."""

    data: bytes
    media_type: str
    name: str = ""
    inline: bool = False
    headers: Mapping[str, str] = {}
