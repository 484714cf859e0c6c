"""Notes are made ready to be searched while a session is open."""

from pathlib import Path

import anyio
import pytest
from tests.apps.cli.test_chat_indexer import ToldIndex, source
from tests.fakes.embedder import FakeEmbedder

from lamina.apps.views.background_fill import FillPause, filling
from lamina.engine.sources.note_search import WorkspaceSearch, order_passages

pytestmark = pytest.mark.anyio


async def test_a_search_that_misses_something_begins_it_and_the_next_has_all(
    tmp_path: Path,
) -> None:
    index = ToldIndex(tmp_path / "index.sqlite", FakeEmbedder())
    search = WorkspaceSearch(source(), index, patience=0)
    with anyio.fail_after(30):
        async with filling(search):
            result = await search.search("boat7")
            assert result.tier is not None
            assert result.tier.by == "candidates"
            assert result.tier.words == (
                "by words, the best 64 re-ranked by meaning; 64 of 200 passages are indexed"
            )
            await index.filled.wait()
    complete = (await search.search("boat7")).tier
    assert complete is not None
    assert (complete.by, complete.indexed, complete.words) == (
        "meaning", 200, "by meaning and words",
    )  # fmt: skip


async def test_while_turns_are_under_way_nothing_is_embedded_and_nothing_lost(
    tmp_path: Path,
) -> None:
    embedder = FakeEmbedder()
    embedder.waits_at = "Boat99"
    index = ToldIndex(tmp_path / "index.sqlite", embedder)
    search = WorkspaceSearch(source(), index, patience=0)
    pause = FillPause()
    with anyio.fail_after(30):
        async with filling(search, at_once=True, pause=pause):
            await embedder.waiting.wait()
            pause.begin()
            pause.begin()
            embedder.waits_at = ""
            await anyio.wait_all_tasks_blocked()
            count = len(embedder.texts)
            pause.end()
            await anyio.wait_all_tasks_blocked()
            assert len(embedder.texts) == count < 200
            pause.end()
            await index.filled.wait()
            # A turn that begins when there is nothing to do is nobody's business, either.
            pause.begin()
            pause.end()
    # But for the one that it was at, all were embedded once.
    assert len(embedder.texts) <= 201
    assert len({*embedder.texts}) == 200


async def test_without_notes_there_is_nothing_to_do() -> None:
    async with filling(None):
        pass


async def test_folders_that_were_looked_at_come_first_then_what_changed_last() -> None:
    notes = source()
    notes.notes = {"a/old.md": "one", "b/new.md": "two", "b/newer.md": "three", "c/seen.md": "four"}
    notes.times = {"a/old.md": 1.0, "b/new.md": 2.0, "b/newer.md": 3.0, "c/seen.md": 0.0}
    by_path = {note.path: note.passages[0].digest for note in (await notes.catalogue()).notes}
    order = order_passages((await notes.catalogue()).notes, {"c": 2})
    assert order == [by_path[p] for p in ("c/seen.md", "b/newer.md", "b/new.md", "a/old.md")]
