"""What a chat over notes does while a message is typed."""

from pathlib import Path

import anyio
import pytest
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.notes import NoteSourceFake

from lamina.cli.chat.indexer import BackgroundIndexer
from lamina.embed.index.sqlite_index import SqliteIndex
from lamina.sources.note_search import WorkspaceSearch
from lamina.values.note import NoteSearchResult

pytestmark = pytest.mark.anyio


def searching(tmp_path: Path, embedder: FakeEmbedder) -> WorkspaceSearch:
    source = NoteSourceFake({f"{n}.md": f"# Berth {n}\n\nBoat{n} lies here.\n" for n in range(200)})
    return WorkspaceSearch(source, SqliteIndex(tmp_path / "index.sqlite", embedder), patience=0)


async def test_notes_are_embedded_while_a_message_is_typed(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    search = searching(tmp_path, embedder)
    assert (await search.search("boat7")).late > 0
    done = anyio.Event()
    prepare = search.prepare

    async def prepare_and_tell() -> NoteSearchResult:
        found = await prepare()
        done.set()
        return found

    search.prepare = prepare_and_tell  # type: ignore[method-assign, assignment]
    with anyio.fail_after(20):
        async with BackgroundIndexer(search).working():
            await done.wait()
    assert len(embedder.texts) == 200
    assert (await search.search("boat7")).late == 0


async def test_it_stops_when_the_message_is_there_and_says_how_far_it_came(
    tmp_path: Path,
) -> None:
    embedder = FakeEmbedder()
    embedder.waits_at = "Boat99"
    search = searching(tmp_path, embedder)
    drawn: list[tuple[int, int]] = []
    search.indexing = lambda done, total: drawn.append((done, total))
    meanwhile = BackgroundIndexer(search)
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
    meanwhile = BackgroundIndexer(search)
    with pytest.raises(type(leaving)) as raised:
        async with meanwhile.working():
            raise leaving
    assert raised.value is leaving
    assert search.indexing is None


async def test_what_goes_wrong_meanwhile_is_left_to_the_search(tmp_path: Path) -> None:
    search = searching(tmp_path, FakeEmbedder())
    search._source.fails = OSError("the disk is gone")  # type: ignore[attr-defined]
    meanwhile = BackgroundIndexer(search)
    meanwhile.progress = "7 passages to embed (30%)"
    with anyio.fail_after(20):
        async with meanwhile.working():
            # It says that there is nothing to wait for any more.
            await anyio.wait_all_tasks_blocked()
            assert meanwhile.progress == ""
    assert "the disk is gone" in (await search.search("boat7")).warnings[0]
