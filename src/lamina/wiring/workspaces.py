"""A folder as a workspace, with what it needs besides: the web, a memory, and a search."""

import hashlib
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from lamina.ports import MemorySource
from lamina.sources.attachments import NO_WEB
from lamina.stores.jsonl import file_stem
from lamina.values.item import LoadedItem, url_id
from lamina.values.request import LeftOut
from lamina.values.web import FetchedResource, UnfetchedResource, WebRules
from lamina.wiring.folders import data_folder
from lamina.workspace.folder import FolderWorkspace
from lamina.workspace.memory_file import MemoryFile

if TYPE_CHECKING:
    from lamina.pages.fetcher import WebFetcher

# What is known of a workspace's notes; a cache.
NOTES_FILE = "notes.sqlite"
MEMORY_FILE = "memory.md"
INSTALL_HINT = "pip install 'lamina[workspace]'"


def workspace_folder(root: str | os.PathLike[str]) -> Path:
    """Where what belongs to a workspace is kept, outside of it."""
    place = Path(root).resolve()
    digest = hashlib.sha256(str(place).encode("utf-8", "surrogatepass")).hexdigest()
    return data_folder() / f"{file_stem(place.name)[:60]}-{digest[:12]}"


def open_workspace(root: str | os.PathLike[str]) -> FolderWorkspace:
    """A folder as a workspace; what is known of its notes is kept under the data folder.

    Raises:
        UsageError: it is not a folder.
    """
    return FolderWorkspace(root, cache=workspace_folder(root) / NOTES_FILE)


def memory_file() -> MemoryFile:
    """What a person wants every session to know: LAMINA_MEMORY, or a file in the data folder."""
    given = os.environ.get("LAMINA_MEMORY")
    return MemoryFile(Path(given) if given else data_folder() / MEMORY_FILE)


def memory_source(given: str | os.PathLike[str] | MemorySource | None) -> MemorySource | None:
    """A memory, given as such or by its path."""
    if given is None or not isinstance(given, str | os.PathLike):
        return given
    return MemoryFile(Path(given))


class LazyWebFetcher:
    """The web, if what fetches it is installed; opened when something is fetched."""

    def __init__(self) -> None:
        self._web: WebFetcher | None = None

    async def page(self, url: str, rules: WebRules) -> LoadedItem | LeftOut:
        if rules.access == "off":
            detail = f"{url}: {NO_WEB}"
            return LeftOut(what=url_id(url), reason="refused", detail=detail)
        if (web := self._open()) is None:
            detail = f"{url}: pages cannot be fetched: {INSTALL_HINT}"
            return LeftOut(what=url_id(url), reason="unreadable", detail=detail)
        return await web.page(url, rules)

    async def picture(
        self, url: str, rules: WebRules, limit: int
    ) -> FetchedResource | UnfetchedResource:
        if rules.access == "off":
            return UnfetchedResource(reason="refused", detail=NO_WEB)
        if (web := self._open()) is None:
            return UnfetchedResource(
                reason="unreadable", detail=f"it cannot be fetched: {INSTALL_HINT}"
            )
        return await web.picture(url, rules, limit)

    def _open(self) -> "WebFetcher | None":
        if self._web is None and all(map(find_spec, ("httpcore2", "lxml", "trafilatura"))):
            from lamina.pages.fetcher import WebFetcher
            from lamina.workspace.pdf import read_pdf

            self._web = WebFetcher(read_pdf=lambda data: read_pdf(data).text)
        return self._web
