"""An MCP server at an address, over streamable HTTP or the older SSE.

Law: if the answer is not MCP, its status is remembered, so that a person learns more than that it
failed; the address itself, which may hold a secret, is not shown."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from lamina.adapters.tools.mcp_client.config import ServerConfig
from lamina.adapters.tools.mcp_client.process import MOST_MESSAGE_BYTES

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams

_CONNECT_SECONDS = 30.0
_ADVICE = {
    401: "check the headers of its entry",
    403: "check the headers of its entry",
    404: "check its url, which often ends in /mcp",
    405: "check its url, which often ends in /mcp",
}


class Endpoint:
    """A server's address. `connect` is a transport for the MCP client."""

    # Nothing runs here.
    pid: int | None = None

    @property
    def forgot_us(self) -> bool:
        """Whether it has just refused a request outright, as a restarted server does that does not
        know our session: 404 by the protocol, 400 by many."""
        return self._status in (400, 404)

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._status = 0

    @property
    def last_words(self) -> str:
        """The status of its last refusal, if there was one."""
        if not self._status:
            return ""
        advice = _ADVICE.get(self._status)
        return f"it answers HTTP {self._status}" + (f"; {advice}" if advice else "")

    @asynccontextmanager
    async def connect(self) -> AsyncIterator["TransportStreams"]:
        if self._config.is_sse:
            from mcp.client.sse import sse_client

            async with sse_client(self._config.url, httpx_client_factory=self._client) as streams:
                yield streams
            return
        from mcp.client.streamable_http import streamable_http_client

        async with (
            self._client() as http,
            streamable_http_client(
                self._config.url, http_client=http, max_sse_event_size=MOST_MESSAGE_BYTES
            ) as streams,
        ):
            yield streams

    def _client(self, *_: object, **__: object) -> "httpx2.AsyncClient":
        """The client of a connection, whatever the SDK would have it be like."""
        import httpx2

        return httpx2.AsyncClient(
            headers=self._config.headers,
            # No limit on reading: calls have their own, and a subscription has none.
            timeout=httpx2.Timeout(_CONNECT_SECONDS, read=None),
            event_hooks={"response": [self._note]},
        )

    async def _note(self, response: "httpx2.Response") -> None:
        self._status = response.status_code if response.status_code >= 400 else 0
