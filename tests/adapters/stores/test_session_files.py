"""Every session id has a file of its own, and every file says whose it is."""

import threading
import time
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.crash.sample import header_of
from tests.strategies import modest, texts

from lamina.adapters.stores.blob_files import put_blob_file, remove_blob_file
from lamina.adapters.stores.jsonl import JsonlStore
from lamina.adapters.stores.session_file import LONGEST_NAME, file_stem
from lamina.errors import JournalError, SessionMoved, UnknownSession

IDS = ["a", "a.", ".a", " a", "a ", "..", ".", "%", "%41", "a/b", "a\\b", "a:b", "é", "\0", "con",
       "a\nb", "A", "x" * 900, "é" * 300]  # fmt: skip


@modest
@given(st.lists(texts | st.sampled_from(IDS), min_size=2, max_size=6, unique=True))
def test_different_ids_have_different_names_that_any_folder_takes(ids: list[str]) -> None:
    stems = [file_stem(each) for each in ids]
    assert len(set(stems)) == len(ids)
    for stem in stems:
        assert stem.isascii()
        assert 0 < len(stem) <= LONGEST_NAME
        assert not set(stem) & set('/\\:*?"<>|\0\n')
        assert stem.strip(". ") == stem.lstrip("%").strip(". ") or stem.startswith("%")


def test_sessions_are_listed_by_the_ids_they_were_created_with(tmp_path: Path) -> None:
    async def body() -> None:
        store = JsonlStore(tmp_path)
        for each in IDS:
            await (await store.create(header_of(each))).close()
        assert sorted(await store.sessions()) == sorted(IDS)
        for each in IDS:
            assert await store.has(each)
            opened = await store.open(each)
            await opened.close()

    anyio.run(body)


def test_listing_goes_on_whatever_else_lies_in_the_folder(tmp_path: Path) -> None:
    async def body() -> None:
        store = JsonlStore(tmp_path)
        await (await store.create(header_of("mine"))).close()
        folder = tmp_path / "sessions"
        (folder / "empty.jsonl").write_bytes(b"")
        (folder / "rubbish.jsonl").write_bytes(b"\xff\0\n{")
        (folder / "other.txt").write_text("not a session")
        (folder / "bad%zzname~.jsonl").write_bytes(b"rubbish")
        assert "mine" in await store.sessions()

    anyio.run(body)


def test_listing_goes_on_past_what_cannot_be_looked_at(tmp_path: Path) -> None:
    async def body() -> None:
        store = JsonlStore(tmp_path)
        await (await store.create(header_of("mine"))).close()
        folder = tmp_path / "sessions"
        (folder / "dangling.jsonl").symlink_to(folder / "nowhere")
        (folder / "folder%zz.jsonl").mkdir()
        assert "mine" in await store.sessions()

    anyio.run(body)


def test_a_session_that_is_there_is_not_created_again(tmp_path: Path) -> None:
    async def body() -> None:
        store = JsonlStore(tmp_path)
        await (await store.create(header_of("one"))).close()
        with pytest.raises(SessionMoved):
            await store.create(header_of("one"))

    anyio.run(body)


def test_a_session_that_is_not_there_is_unknown(tmp_path: Path) -> None:
    async def body() -> None:
        store = JsonlStore(tmp_path)
        for act in (store.open, store.read):
            with pytest.raises(UnknownSession, match="nobody"):
                await act("nobody")
        assert not await store.has("nobody")
        assert await store.sessions() == ()

    anyio.run(body)


def test_a_folder_that_takes_no_sessions_is_a_journal_error(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("a file where the folder should be")

    async def body() -> None:
        store = JsonlStore(tmp_path)
        with pytest.raises(JournalError):
            await store.create(header_of("one"))
        with pytest.raises(JournalError):
            await store.open("one")
        assert not await store.has("one")

    anyio.run(body)


def test_a_damaged_blob_is_never_given_out(tmp_path: Path) -> None:
    async def body() -> None:
        store = JsonlStore(tmp_path)
        digest = await store.put_blob(b"a picture")
        (path,) = (each for each in (tmp_path / "blobs").rglob("*") if each.is_file())
        for damaged in (b"a pictur", b"A picture", b"", bytes(9)):
            path.write_bytes(damaged)
            with pytest.raises(JournalError, match="damaged"):
                await store.get_blob(digest)
        for wrong in ("../sessions/one", "", "a/b"):
            with pytest.raises(JournalError):
                await store.get_blob(wrong)

    anyio.run(body)


def test_a_damaged_blob_is_mended_when_it_is_put_again(tmp_path: Path) -> None:
    async def body() -> None:
        store = JsonlStore(tmp_path)
        digest = await store.put_blob(b"a picture")
        (path,) = (each for each in (tmp_path / "blobs").rglob("*") if each.is_file())
        path.write_bytes(b"")
        assert await store.put_blob(b"a picture") == digest
        assert await store.get_blob(digest) == b"a picture"

    anyio.run(body)


def test_a_folder_of_blobs_goes_with_its_last_one(tmp_path: Path) -> None:
    first, second = tmp_path / "7d" / "7d01", tmp_path / "7d" / "7d02"
    for path in (first, second):
        put_blob_file(path, b"picture")
    assert remove_blob_file(first, second.stat().st_mtime)
    assert second.exists()
    assert not remove_blob_file(second, second.stat().st_mtime - 1)
    assert remove_blob_file(second, second.stat().st_mtime)
    assert list(tmp_path.iterdir()) == []


def test_a_blob_is_put_while_its_folder_is_removed_as_empty(tmp_path: Path) -> None:
    """Whoever deletes the last blob of a folder does not stop others from putting one into it."""
    ours, theirs = tmp_path / "7d" / "7d01", tmp_path / "7d" / "7d02"
    is_done = threading.Event()

    def remove() -> None:
        while not is_done.is_set():
            put_blob_file(theirs, b"theirs")
            remove_blob_file(theirs, time.time() + 60)

    remover = threading.Thread(target=remove)
    remover.start()
    try:
        for _ in range(200):
            put_blob_file(ours, b"ours")
            assert ours.read_bytes() == b"ours"
            remove_blob_file(ours, time.time() + 60)
    finally:
        is_done.set()
        remover.join()
