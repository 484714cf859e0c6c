"""What a chat over notes does while a message is typed."""

from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.notes import NoteSourceFake

from lamina.adapters.embed.index.sqlite_index import SqliteIndex
from lamina.apps.cli.chat.chat import BackgroundIndexer
from lamina.core.ports import Progress, ReadTexts
from lamina.engine.sources.note_search import WorkspaceSearch

pytestmark = pytest.mark.anyio


class ToldIndex(SqliteIndex):
    """Says when nothing is left to fill in."""

    def __init__(self, path: Path, embedder: FakeEmbedder) -> None:
        super().__init__(path, embedder)
        self.filled = anyio.Event()

    async def fill(
        self,
        digests: Sequence[bytes],
        texts: ReadTexts,
        progress: Progress | None = None,
        most: int = 512,
    ) -> int:
        made_count = await super().fill(digests, texts, progress, most)
        if not made_count:
            self.filled.set()
        return made_count


def searching(tmp_path: Path, embedder: FakeEmbedder) -> WorkspaceSearch:
    return WorkspaceSearch(source(), ToldIndex(tmp_path / "index.sqlite", embedder), patience=0)


def source() -> NoteSourceFake:
    return NoteSourceFake({f"{n}.md": f"# Berth {n}\n\nBoat{n} lies here.\n" for n in range(200)})


async def test_notes_are_embedded_while_a_message_is_typed(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    search = searching(tmp_path, embedder)
    assert (await search.search("boat7")).late > 0
    index = search._index
    assert isinstance(index, ToldIndex)
    with anyio.fail_after(20):
        async with BackgroundIndexer(search, at_once=False).working():
            await index.filled.wait()
    assert embedder.texts.pop(0) == "boat7"
    assert len(embedder.texts) == len(set(embedder.texts)) == 200
    assert (await search.search("boat7")).late == 0


async def test_it_stops_when_the_message_is_there_and_says_how_far_it_came(
    tmp_path: Path,
) -> None:
    embedder = FakeEmbedder()
    embedder.waits_at = "Boat99"
    search = searching(tmp_path, embedder)
    drawn: list[tuple[int, int]] = []
    search.indexing = lambda done, total: drawn.append((done, total))
    meanwhile = BackgroundIndexer(search, at_once=True)
    async with meanwhile.working():
        await embedder.waiting.wait()
        assert meanwhile.progress == "8 passages to embed (96%)"
    kept = len(embedder.texts)
    assert kept > 0
    assert not drawn
    embedder.waits_at = ""
    await search.prepare()
    assert len(embedder.texts) == 200
    assert drawn[-1][0] == drawn[-1][1]


@pytest.mark.parametrize("leaving", [EOFError(), ValueError("a bug")])
async def test_whoever_leaves_leaves_as_without_it(tmp_path: Path, leaving: Exception) -> None:
    search = searching(tmp_path, FakeEmbedder())
    meanwhile = BackgroundIndexer(search, at_once=True)
    with pytest.raises(type(leaving)) as raised:
        async with meanwhile.working():
            raise leaving
    assert raised.value is leaving
    assert search.indexing is None


async def test_what_goes_wrong_meanwhile_is_left_to_the_search(tmp_path: Path) -> None:
    search = searching(tmp_path, FakeEmbedder())
    search._source.fails = OSError("the disk is gone")  # type: ignore[attr-defined]
    meanwhile = BackgroundIndexer(search, at_once=True)
    meanwhile.progress = "7 passages to embed (30%)"
    with anyio.fail_after(20):
        async with meanwhile.working():
            # It says that there is nothing to wait for any more.
            await anyio.wait_all_tasks_blocked()
            assert meanwhile.progress == ""
    assert "the disk is gone" in (await search.search("boat7")).warnings[0]


async def test_notes_that_nobody_searches_are_left_alone(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    search = searching(tmp_path, embedder)
    async with BackgroundIndexer(search, at_once=False).working():
        await anyio.wait_all_tasks_blocked()
    assert embedder.texts == []
