"""Where to search the web, if a person named a place: an HTTP endpoint, or a tool of a server.

Laws: the place and the key come from the person who opens the session, never from a folder or a
journal. Both kinds of places answer in the same format, described in docs/web-search.md.
"""

import os
from collections.abc import Mapping, Sequence

from lamina.adapters.pages.fetch_answers import FetchFailure
from lamina.adapters.pages.search_endpoint import read_found
from lamina.core.ports import ToolHost, WebSearch
from lamina.core.values.item import tool_id
from lamina.core.values.web_access import FoundPages, UnfetchedResource
from lamina.errors import UsageError

# The key and its header; the default header is `Authorization: Bearer KEY`.
KEY, HEADER = "LAMINA_WEB_SEARCH_KEY", "LAMINA_WEB_SEARCH_HEADER"
_MCP = "mcp:"


def offer_web_search(where: str | WebSearch, hosts: Sequence[ToolHost]) -> ToolHost:
    """Offer the tool `webSearch`; the servers of `hosts` may serve it.

    Raises:
        UsageError: `where` is not a place.
    """
    from lamina.engine.runners.web_search_tool import WebSearchTools

    return WebSearchTools(find_web_search(where, hosts))


def find_web_search(where: str | WebSearch, hosts: Sequence[ToolHost] = ()) -> WebSearch:
    """Return the web search at a place: `https://...`, or `mcp:SERVER/TOOL`.

    Raises:
        UsageError: it is not a place.
    """
    if not isinstance(where, str):
        return where
    place = where.strip()
    if place.startswith(_MCP):
        server, _, tool = place.removeprefix(_MCP).partition("/")
        if not server or not tool:
            raise UsageError(f"{where!r} is not the tool of a server: write it as mcp:SERVER/TOOL")
        return ServerSearch(hosts, server, tool)
    from lamina.adapters.pages.search_endpoint import SearchEndpoint

    return SearchEndpoint(place, headers=_key_header(os.environ))


def _key_header(environment: Mapping[str, str]) -> dict[str, str]:
    key, header = environment.get(KEY, "").strip(), environment.get(HEADER, "").strip()
    if not key:
        return {}
    return {header: key} if header else {"Authorization": f"Bearer {key}"}


class ServerSearch:
    """An MCP server's tool that searches the web; it accepts a `query` and answers with JSON."""

    def __init__(self, hosts: Sequence[ToolHost], server: str, tool: str) -> None:
        self._hosts = hosts
        self._id = tool_id(server, tool)
        self.name = f"{server}/{tool}"

    async def search(self, query: str, limit: int) -> FoundPages | UnfetchedResource:
        for host in self._hosts:
            for tool in (await host.toolset()).tools:
                if tool.id != self._id:
                    continue
                wanted = tool.definition.parameters.get("properties", {})
                arguments = {"query": query} | ({"limit": limit} if "limit" in wanted else {})
                output = await host.call(tool.definition.name, arguments)
                if output.is_error:
                    return _unread(f"{self.name} failed: {output.text[:200]}")
                try:
                    return read_found(output.whole or output.text)
                except FetchFailure as failure:
                    return failure.why
        return _unread(f"there is no tool {self.name}; `lamina tools` lists those of servers")


def _unread(detail: str) -> UnfetchedResource:
    return UnfetchedResource(reason="unreadable", detail=detail)
