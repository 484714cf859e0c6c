"""Pages and pictures of the web, where what fetches them is installed."""

from typing import TYPE_CHECKING

from lamina.adapters.extras import install_hint, is_installed
from lamina.core.values.item import LoadedItem, url_id
from lamina.core.values.request import LeftOut
from lamina.core.values.web import FetchedResource, UnfetchedResource, WebRules
from lamina.engine.sources.attachments import NO_WEB

if TYPE_CHECKING:
    from lamina.adapters.pages.fetcher import WebFetcher


class LazyWebFetcher:
    """The web, if what fetches it is installed; opened when something is fetched."""

    def __init__(self) -> None:
        self._web: WebFetcher | None = None

    async def page(self, url: str, rules: WebRules) -> LoadedItem | LeftOut:
        if rules.access == "off":
            detail = f"{url}: {NO_WEB}"
            return LeftOut(what=url_id(url), reason="refused", detail=detail)
        if (web := self._open()) is None:
            detail = f"{url}: pages cannot be fetched: {install_hint('pages')}"
            return LeftOut(what=url_id(url), reason="unreadable", detail=detail)
        return await web.page(url, rules)

    async def picture(
        self, url: str, rules: WebRules, limit: int
    ) -> FetchedResource | UnfetchedResource:
        if rules.access == "off":
            return UnfetchedResource(reason="refused", detail=NO_WEB)
        if (web := self._open()) is None:
            return UnfetchedResource(
                reason="unreadable", detail=f"it cannot be fetched: {install_hint('pages')}"
            )
        return await web.picture(url, rules, limit)

    def _open(self) -> "WebFetcher | None":
        if self._web is None and is_installed("pages"):
            from lamina.adapters.pages.fetcher import WebFetcher
            from lamina.adapters.workspace.pdf import read_pdf

            self._web = WebFetcher(read_pdf=lambda data: read_pdf(data).text)
        return self._web
