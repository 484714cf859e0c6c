"""The search index with its embedder: where it is, and whether it uses vectors."""

import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from lamina.adapters.files.extras import install_hint, is_installed
from lamina.apps.wiring.folders import data_folder
from lamina.core.ports import Corpus, GradualCorpus, Progress, ReadTexts
from lamina.core.values.selection import Document

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

    from lamina.adapters.embed.index.sqlite_index import SqliteIndex

INDEX_FILE = "index.sqlite"
# The name that `lamina models pull` uses.
EMBEDDING_MODEL = "minilm"
OFF_WORDS = ("off", "0", "no", "false")


def search_index_path() -> Path:
    """The path of the index: one for all workspaces, since it identifies chunks by their text."""
    return data_folder() / INDEX_FILE


def wants_embeddings() -> bool:
    """Whether vectors are wanted: LAMINA_EMBED=off turns them off."""
    return os.environ.get("LAMINA_EMBED", "on").lower() not in OFF_WORDS


def can_embed() -> bool:
    """Whether vectors are wanted and their runtime is installed; the model may be missing."""
    return wants_embeddings() and is_installed("embeddings")


def open_index(
    *,
    path: Path | None = None,
    lexical: bool = False,
    fetch: bool = False,
    fetching: Callable[[int, int], None] | None = None,
) -> "SqliteIndex":
    """Open the index; nothing is read or loaded before the first search. `lexical` or
    LAMINA_EMBED=off leaves the embedder out. With `fetch`, a missing model is downloaded at first
    use, and `fetching` receives the progress."""
    # numpy is slow to load, and only a search needs it.
    from lamina.adapters.embed.index.sqlite_index import SqliteIndex

    place = search_index_path() if path is None else path
    if not wants_embeddings():
        setting = os.environ["LAMINA_EMBED"]
        return SqliteIndex(place, None, off=f"embeddings are switched off (LAMINA_EMBED={setting})")
    if lexical:
        return SqliteIndex(place, None)
    from lamina.adapters.embed.minilm import MiniLM

    return SqliteIndex(place, MiniLM(fetch=fetch, progress=fetching))


def missing_search() -> str:
    """Why search is not available in this installation; empty if it is."""
    return "" if is_installed("search") else f"search is not installed: {install_hint('search')}"


class LazyIndex:
    """The index, opened at the first search. A missing model is not downloaded here; callers do
    that first. With `keep` off, a copy is searched, so the index does not change and new vectors
    are dropped with the copy. `lexical` leaves the embedder out."""

    def __init__(self, *, keep: bool = True, lexical: bool = False) -> None:
        self._keep = keep
        self._lexical = lexical
        self._index: SqliteIndex | None = None
        self._copy: TemporaryDirectory[str] | None = None

    async def load(
        self,
        documents: Sequence[Document],
        progress: Progress | None = None,
        texts: ReadTexts | None = None,
        patience: float | None = None,
        among: Collection[bytes] | None = None,
    ) -> Corpus:
        return await (await self._open()).load(documents, progress, texts, patience, among)

    async def load_for(
        self,
        parts: Sequence[str],
        documents: Sequence[Document],
        progress: Progress | None = None,
        texts: ReadTexts | None = None,
        patience: float | None = None,
        among: Collection[bytes] | None = None,
        comparing: Progress | None = None,
    ) -> GradualCorpus:
        index = await self._open()
        return await index.load_for(parts, documents, progress, texts, patience, among, comparing)

    async def fill(
        self,
        digests: Sequence[bytes],
        texts: ReadTexts,
        progress: Progress | None = None,
        most: int = 512,
    ) -> int:
        # Additions to a copy are dropped with it.
        if not self._keep:
            return 0
        return await (await self._open()).fill(digests, texts, progress, most)

    async def write(self) -> tuple[int, Sequence[str]]:
        # Additions to a copy are not kept.
        if not self._keep or self._index is None:
            return 0, ()
        return await self._index.write()

    async def _open(self) -> "SqliteIndex":
        if self._index is None:
            place = None if self._keep else await anyio.to_thread.run_sync(self._copy_index)
            self._index = open_index(path=place, lexical=self._lexical)
        return self._index

    async def aclose(self) -> None:
        """Close the index; another search reopens it, and remembers what was loaded, as copies of a
        session share it."""
        if self._index is not None:
            # Closing may wait for the disk.
            await anyio.to_thread.run_sync(self._index.close)
        if self._copy is not None:
            await anyio.to_thread.run_sync(self._copy.cleanup)
            self._index = self._copy = None

    def _copy_index(self) -> Path:
        import shutil
        from tempfile import TemporaryDirectory

        self._copy = TemporaryDirectory(prefix="lamina-")
        place = Path(self._copy.name, INDEX_FILE)
        # Including recent writes that are not in the file itself yet. SQLite's own copying would
        # write next to the original; a torn copy is detected and made again.
        for suffix in ("", "-wal"):
            with suppress(OSError):
                shutil.copyfile(f"{search_index_path()}{suffix}", f"{place}{suffix}")
        return place
