"""What every store does, whatever it keeps sessions in."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.fakes.sessions import run
from tests.strategies import header, modest, values_of

from lamina.adapters.stores.jsonl import JsonlStore
from lamina.adapters.stores.memory import MemoryStore
from lamina.adapters.stores.sqlite import SqliteStore
from lamina.core.audit.session_totals import sum_totals
from lamina.core.codec import canonical_bytes, decode_entry, mint_id
from lamina.core.journal import read_journal
from lamina.core.ports import JournalStore
from lamina.core.values.entry import CustomEntry, Entry, MessageEntry, ResultEntry, SessionEntry
from lamina.core.values.item import Picture
from lamina.core.values.message import Image, Message, Text, ToolResult
from lamina.errors import InvalidText, JournalError, SessionBusy, SessionMoved, UnknownSession

HOSTILE = [
    "../x", ".", "..", "a/b", "CON", "x" * 300, "é" * 200, "日本語", "\0", "a..", "A", "a", "%",
    "% ", "a\n", "~", "x" * 143 + "~0123456789abcdef", "x" * 143 + "=0123456789abcdef",
]  # fmt: skip


@pytest.fixture(params=["memory", "jsonl", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> JournalStore:
    stores: dict[str, JournalStore] = {
        "memory": MemoryStore(),
        "jsonl": JsonlStore(tmp_path, wait=0.0),
        "sqlite": SqliteStore(tmp_path / "kept.sqlite", wait=0.0),
    }
    return stores[request.param]


def start(session: str = "s") -> SessionEntry:
    return SessionEntry(id="000000", parent=None, at=1.5, session=session)


def custom(number: int, text: str = "x") -> Entry:
    parent = mint_id(number - 1)
    return CustomEntry(id=mint_id(number), parent=parent, at=1.5, kind="test", data=text)


def test_what_was_created_is_there(store: JournalStore) -> None:
    async def body() -> None:
        assert not await store.has("s")
        assert list(await store.sessions()) == []
        opened = await store.create(start())
        assert dict(opened.journal.entries) == {"000000": start()}
        assert (opened.journal.leaf, opened.last, opened.journal.damage) == ("000000", 0, ())
        await opened.close()
        assert await store.has("s")
        assert list(await store.sessions()) == ["s"]
        assert dict((await store.read("s")).entries) == {"000000": start()}

    run(body())


def test_what_was_appended_is_read_in_order_by_whoever_opens_next(store: JournalStore) -> None:
    async def body() -> None:
        opened = await store.create(start())
        await opened.append([custom(1), custom(2)])
        await opened.append([custom(3)])
        assert opened.last == 3
        await opened.close()
        for journal in (await store.read("s"), (await store.open("s")).journal):
            assert list(journal.entries.values()) == [start(), custom(1), custom(2), custom(3)]
            assert (journal.leaf, journal.last, journal.damage) == ("000003", 3, ())

    run(body())


def test_reading_needs_no_opening_and_does_not_disturb_one(store: JournalStore) -> None:
    async def body() -> None:
        opened = await store.create(start())
        await opened.append([custom(1)])
        before = await store.read("s")
        await opened.append([custom(2)])
        assert list(before.entries) == ["000000", "000001"]
        assert list((await store.read("s")).entries) == ["000000", "000001", "000002"]
        await opened.close()

    run(body())


def test_whoever_writes_gives_way_to_other_tasks(store: JournalStore) -> None:
    """Else in which order things happen, and are written down, would depend on the store."""

    async def body() -> None:
        opened = await store.create(start())
        events: list[str] = []

        async def begin(name: str) -> None:
            events.append(name)

        async with anyio.create_task_group() as group:
            group.start_soon(begin, "a task begins")
            await opened.append([custom(1)])
            events.append("an entry is kept")
            group.start_soon(begin, "another begins")
            await store.put_blob(b"x")
            events.append("a blob is kept")
        await opened.close()
        assert events == [
            "a task begins", "an entry is kept", "another begins", "a blob is kept"
        ]  # fmt: skip

    run(body())


def test_a_session_is_created_once(store: JournalStore) -> None:
    async def body() -> None:
        opened = await store.create(start())
        await opened.append([custom(1)])
        await opened.close()
        with pytest.raises(SessionMoved, match="'s'"):
            await store.create(start())
        assert list((await store.read("s")).entries) == ["000000", "000001"]

    run(body())


def test_a_session_that_is_not_there_is_unknown(store: JournalStore) -> None:
    async def body() -> None:
        await (await store.create(start("other"))).close()
        for act in (store.open, store.read):
            with pytest.raises(UnknownSession, match="'nobody'") as caught:
                await act("nobody")
            assert caught.value.code == "unknown_session"
        assert not await store.has("nobody")
        assert list(await store.sessions()) == ["other"]

    run(body())


def test_hostile_ids_are_ids_like_any_other(store: JournalStore) -> None:
    async def body() -> None:
        for each in HOSTILE:
            opened = await store.create(start(each))
            await opened.append([custom(1, f"of {each!r}")])
            await opened.close()
        assert sorted(await store.sessions()) == sorted(HOSTILE)
        for each in HOSTILE:
            assert await store.has(each)
            opened = await store.open(each)
            assert list(opened.journal.entries.values()) == [start(each), custom(1, f"of {each!r}")]
            await opened.close()
            assert (await store.read(each)).damage == ()

    run(body())


def test_the_empty_id_is_refused_or_kept_like_any_other(store: JournalStore) -> None:
    async def body() -> None:
        try:
            await (await store.create(start(""))).close()
        except JournalError:
            assert not await store.has("")
            return
        assert await store.has("")
        assert list(await store.sessions()) == [""]
        assert (await store.read("")).damage == ()

    run(body())


def test_a_session_that_cannot_be_written_is_not_there(store: JournalStore) -> None:
    """A lone surrogate cannot be encoded: neither as an id nor in an entry."""

    async def body() -> None:
        with pytest.raises(InvalidText):
            await store.create(start("\ud800"))
        assert not await store.has("\ud800")
        assert list(await store.sessions()) == []
        opened = await store.create(start("s"))
        with pytest.raises(InvalidText):
            await opened.append([custom(1), custom(2, "\udfff")])
        await opened.append([custom(1)])
        await opened.close()
        assert list((await store.read("s")).entries) == ["000000", "000001"]

    run(body())


def test_every_session_that_is_listed_can_be_opened(store: JournalStore) -> None:
    async def body() -> None:
        for each in ("one", "two"):
            await (await store.create(start(each))).close()
        with pytest.raises(InvalidText):
            await store.create(start("three\ud800"))
        for session in await store.sessions():
            assert await store.has(session)
            await (await store.open(session)).close()

    run(body())


def test_nothing_is_written_by_an_opening_that_was_closed(store: JournalStore) -> None:
    async def body() -> None:
        opened = await store.create(start())
        await opened.close()
        await opened.close()
        with pytest.raises(JournalError, match="closed"):
            await opened.append([custom(1)])
        assert list((await store.read("s")).entries) == ["000000"]

    run(body())


def test_the_session_written_last_is_listed_first(store: JournalStore) -> None:
    async def body() -> None:
        for at, each in enumerate(("b", "c", "a")):
            await (await store.create(start(each))).close()
            if isinstance(store, JsonlStore):
                # A file system's clock may be coarser than this test is quick.
                os.utime(store.path_of(each), (at, at))
        assert list(await store.sessions()) == ["a", "c", "b"]

    run(body())


def test_sessions_do_not_disturb_one_another(store: JournalStore) -> None:
    async def body() -> None:
        one, two = await store.create(start("one")), await store.create(start("two"))
        await one.append([custom(1, "one")])
        await two.append([custom(1, "two")])
        await one.append([custom(2, "one")])
        await one.close()
        await two.close()
        assert list((await store.read("one")).entries.values()) == [
            start("one"), custom(1, "one"), custom(2, "one")
        ]  # fmt: skip
        assert list((await store.read("two")).entries.values()) == [start("two"), custom(1, "two")]

    run(body())


def test_an_opening_goes_on_where_the_last_one_ended(store: JournalStore) -> None:
    async def body() -> None:
        await (await store.create(start())).close()
        for number in range(1, 6):
            opened = await store.open("s")
            assert opened.last == number - 1
            await opened.append([custom(number)])
            await opened.close()
        assert (await store.read("s")).last == 5

    run(body())


def test_ids_that_were_left_out_are_no_damage(store: JournalStore) -> None:
    """A fork holds the ids of one path only, and is written at once."""

    async def body() -> None:
        opened = await store.create(start())
        far = CustomEntry(id="000009", parent="000001", at=1.5, kind="test")
        await opened.append([custom(1), far, custom(10)])
        assert opened.last == 10
        await opened.close()
        journal = await store.read("s")
        assert list(journal.entries) == ["000000", "000001", "000009", "00000a"]
        assert (journal.damage, journal.last) == ((), 10)

    run(body())


def test_a_snapshot_may_be_given_to_any_store_and_changes_nothing(store: JournalStore) -> None:
    async def body() -> None:
        opened = await store.create(start())
        await opened.append([custom(1)])
        await opened.keep_snapshot(b"anything")
        await opened.append([custom(2)])
        await opened.close()
        again = await store.open("s")
        assert list(again.journal.entries.values()) == [start(), custom(1), custom(2)]
        assert again.journal.leaf == "000002"
        await again.close()

    run(body())


def test_an_opening_brings_the_newest_snapshot_and_what_came_since(store: JournalStore) -> None:
    async def body() -> None:
        opened = await store.create(start())
        await opened.append([custom(1)])
        await opened.keep_snapshot(b"older")
        await opened.append([custom(2)])
        await opened.keep_snapshot(b"newer")
        if opened.since_snapshot is None:
            return  # then there are none to bring
        assert opened.since_snapshot == 0
        await opened.append([custom(3), custom(4)])
        assert 0 < opened.since_snapshot < opened.size
        since, size = opened.since_snapshot, opened.size
        await opened.close()
        again = await store.open("s")
        assert (again.journal.snapshot, again.journal.since) == (b"newer", (custom(3), custom(4)))
        assert (again.since_snapshot, again.size, again.last) == (since, size, 4)
        assert again.journal.header == start()
        assert list(again.entries.values()) == [start(), *map(custom, range(1, 5))]
        await again.close()

    run(body())


# -- windows of a path -------------------------------------------------------------------------


def test_a_window_of_a_path_is_read_from_an_entry_back_to_another(store: JournalStore) -> None:
    async def body() -> None:
        opened = await store.create(start())
        aside = CustomEntry(id="000004", parent="000001", at=1.5, kind="test")
        await opened.append([custom(1), custom(2), custom(3), aside])
        await opened.close()
        again = await store.open("s")
        await again.append([CustomEntry(id="000005", parent="000004", at=1.5, kind="test")])
        await again.read_ahead(["000002", "000005", "nowhere"])

        async def window(entry: str, until: str = "", limit: int | None = None) -> list[str]:
            return [e.id for e in await again.read_path(entry, until=until, limit=limit)]

        assert await window("000003") == ["000000", "000001", "000002", "000003"]
        assert await window("000005") == ["000000", "000001", "000004", "000005"]
        assert await window("000005", "000001") == ["000004", "000005"]
        assert await window("000005", "000001", 1) == ["000005"]
        assert await window("000003", limit=2) == ["000002", "000003"]
        assert await window("000003", "000003") == []
        assert list(again.entries) == [f"00000{n}" for n in range(6)]
        assert list(again.journal.entries) == [f"00000{n}" for n in range(5)]
        await again.close()

    run(body())


# -- listing and deleting ------------------------------------------------------------------------


def message(number: int, text: str) -> Entry:
    words = Message(role="user", blocks=(Text(text),), id=mint_id(number))
    return MessageEntry(id=mint_id(number), parent=mint_id(number - 1), at=1.5, message=words)


async def assert_totals_are_those_of_a_whole_reading(store: JournalStore) -> None:
    listed = await store.list_sessions()
    assert [row.session for row in listed] == list(await store.sessions())
    for row in listed:
        assert row.totals == sum_totals(await store.read(row.session))
        assert not row.problem
        assert row.bytes > 0


def test_sessions_are_listed_with_their_totals(store: JournalStore) -> None:
    async def body() -> None:
        for session in ("one", "two"):
            opened = await store.create(start(session))
            await opened.append([message(1, f"What is {session}?"), custom(2)])
            await opened.close()
        await assert_totals_are_those_of_a_whole_reading(store)
        (one,) = [row.totals for row in await store.list_sessions() if row.session == "one"]
        assert one is not None
        assert (one.name, one.messages, one.entries, one.leaf) == ("What is one?", 1, 3, "000002")

    run(body())


def test_totals_are_right_after_every_append_also_beside_the_path(store: JournalStore) -> None:
    async def body() -> None:
        opened = await store.create(start())
        await assert_totals_are_those_of_a_whole_reading(store)
        aside = replace(message(4, "aside"), parent="000001")
        for entries in ([message(1, "a"), custom(2)], [message(3, "b")], [aside], [custom(5)]):
            await opened.append(entries)
            await assert_totals_are_those_of_a_whole_reading(store)
        await opened.keep_snapshot(b"anything")
        await assert_totals_are_those_of_a_whole_reading(store)
        await opened.append([custom(6)])
        await assert_totals_are_those_of_a_whole_reading(store)
        await opened.close()
        opened = await store.open("s")
        await opened.append([message(7, "c")])
        await assert_totals_are_those_of_a_whole_reading(store)
        await opened.close()

    run(body())


def test_a_session_that_was_deleted_is_gone_and_its_id_is_free(store: JournalStore) -> None:
    async def body() -> None:
        for session in ("one", "two"):
            opened = await store.create(start(session))
            await opened.append([custom(1)])
            await opened.keep_snapshot(b"anything")
            await opened.close()
        deleted = await store.delete("one")
        assert (deleted.session, deleted.blobs) == ("one", ())
        assert deleted.bytes > 0
        assert not await store.has("one")
        assert list(await store.sessions()) == ["two"]
        for act in (store.open, store.read, store.export, store.delete):
            with pytest.raises(UnknownSession, match="'one'"):
                await act("one")
        await (await store.create(start("one"))).close()
        assert list((await store.read("one")).entries) == ["000000"]
        assert list((await store.read("two")).entries) == ["000000", "000001"]

    run(body())


def test_a_session_that_is_open_is_not_deleted(store: JournalStore) -> None:
    async def body() -> None:
        opened = await store.create(start())
        with pytest.raises(SessionBusy, match="'s'"):
            await store.delete("s")
        await opened.append([custom(1)])
        await opened.close()
        assert list((await store.read("s")).entries) == ["000000", "000001"]
        await store.delete("s")
        assert not await store.has("s")

    run(body())


def with_picture(number: int, digest: str) -> Entry:
    picture = Picture(digest=digest, media_type="image/png", width=1, height=1)
    words = Message(role="user", blocks=(Image(picture=picture),), id=mint_id(number))
    return MessageEntry(id=mint_id(number), parent=mint_id(number - 1), at=1.5, message=words)


def test_blobs_that_no_other_session_refers_to_are_deleted_with_a_session(
    store: JournalStore,
) -> None:
    async def body() -> None:
        own, shared, free = [await store.put_blob(data) for data in (b"own", b"shared", b"free")]
        result = ToolResult(call_id="c", name="find", text="cut")
        for session, digests in (("one", (own, shared)), ("two", (shared,))):
            opened = await store.create(start(session))
            for digest in digests:
                await opened.append([with_picture(opened.last + 1, digest)])
            if session == "one":
                whole = await store.put_blob(b"whole")
                number = opened.last + 1
                entry = ResultEntry(
                    id=mint_id(number), parent=mint_id(number - 1), at=1.5,
                    result=result, whole=whole,
                )  # fmt: skip
                await opened.append([entry])
            await opened.close()
        deleted = await store.delete("one")
        assert deleted.blobs == tuple(sorted((own, whole)))
        assert await store.known_blobs([own, shared, free, whole]) == {shared, free}
        assert await store.get_blob(shared) == b"shared"
        with pytest.raises(JournalError):
            await store.get_blob(own)
        assert (await store.delete("two")).blobs == (shared,)
        assert await store.known_blobs([own, shared, free, whole]) == {free}

    run(body())


def test_a_blob_that_was_put_again_is_not_deleted_with_a_session_that_was_written_before(
    store: JournalStore,
) -> None:
    """Another session is about to refer to it."""

    async def body() -> None:
        digest = await store.put_blob(b"picture")
        opened = await store.create(start("one"))
        await opened.append([with_picture(1, digest)])
        await opened.close()
        if isinstance(store, JsonlStore):
            # Some file systems count in seconds.
            os.utime(store.path_of("one"), (1e9, 1e9))
        assert await store.put_blob(b"picture") == digest
        assert (await store.delete("one")).blobs == ()
        opened = await store.create(start("two"))
        await opened.append([with_picture(1, digest)])
        await opened.close()
        assert await store.get_blob(digest) == b"picture"

    run(body())


def test_an_export_holds_what_a_session_holds(store: JournalStore) -> None:
    async def body() -> None:
        opened = await store.create(start())
        await opened.append([custom(1), message(2, "é\u2028")])
        await opened.close()
        journal = read_journal(await store.export("s"), "s")
        assert journal == replace(await store.read("s"), entries=journal.entries)
        assert dict(journal.entries) == dict((await store.read("s")).entries)

    run(body())


def test_a_place_names_the_session(store: JournalStore) -> None:
    assert "pier" in store.place("pier")


# -- blobs ---------------------------------------------------------------------------------------


def test_blobs_come_back_by_their_digest(store: JournalStore) -> None:
    async def body() -> None:
        blobs = [b"", b"\0", b"image", bytes(range(256)) * 1_000]
        kept = [await store.put_blob(blob) for blob in blobs]
        assert [await store.get_blob(digest) for digest in kept] == blobs
        assert [await store.put_blob(blob) for blob in blobs] == kept
        assert kept[0] == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        assert list(await store.sessions()) == []

    run(body())


@pytest.mark.parametrize(
    "digest", ["0" * 64, "", "../sessions/s.jsonl", "a/b", "\0", "É", "a" * 999]
)
def test_a_blob_that_is_not_there_is_a_journal_error(digest: str, store: JournalStore) -> None:
    async def body() -> None:
        await (await store.create(start())).close()
        with pytest.raises(JournalError):
            await store.get_blob(digest)

    run(body())


ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)

# -- any entries ---------------------------------------------------------------------------------


@modest
@given(st.lists(st.lists(values_of(MessageEntry), min_size=1, max_size=3), max_size=3), ids)
def test_all_stores_keep_the_same_of_any_entries(
    writes: list[list[MessageEntry]], session: str
) -> None:

    async def body() -> None:
        with TemporaryDirectory() as folder:
            rows = SqliteStore(Path(folder) / "kept.sqlite")
            stores: list[JournalStore] = [MemoryStore(), JsonlStore(folder), rows]
            kept = []
            for each in stores:
                opened = await each.create(replace(header(), id="000000", session=session))
                number = 0
                for write in writes:
                    entries: list[Entry] = []
                    for entry in write:
                        number += 1
                        place = {"id": mint_id(number), "parent": mint_id(number - 1)}
                        entries.append(replace(entry, **place))
                    await opened.append(entries)
                await opened.close()
                journal = await each.read(session)
                assert journal.damage == ()
                kept.append([canonical_bytes(entry) for entry in journal.entries.values()])
                assert [*map(canonical_bytes, map(decode_entry, kept[-1]))] == kept[-1]
            assert kept[0] == kept[1] == kept[2]

    run(body())
