"""A small database of two sessions, as its files are left by a clean end and by a crash."""

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import anyio
from msgspec import Struct
from tests.crash.checks import check_state, lines_of
from tests.crash.sample import entry_of, header_of, sample_journal, store_in
from tests.crash.scale import tally
from tests.fakes.book import FakeBook

from lamina.core.audit.verification import verify
from lamina.core.codec import mint_id
from lamina.core.journal import Journal
from lamina.core.ports import JournalStore
from lamina.core.values.entry import Entry, SessionEntry
from lamina.errors import LaminaError

T = TypeVar("T")

DATABASE = "sessions.sqlite"
LOG = f"{DATABASE}-wal"
SESSIONS = ("sample", "other")
BLOB = b"a picture of a harbour " * 40
# The entries of the first session come from the sample, so many of them.
_COUNT = 14


class Image(Struct, frozen=True):
    """The files of a database by their names, and what was written."""

    files: dict[str, bytes]
    written: Mapping[str, Mapping[str, Entry]]
    blob: str

    def put(self, folder: Path, files: Mapping[str, bytes] | None = None) -> None:
        """Puts the files into a folder, or others in place of them, and nothing else."""
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            path.unlink()
        for name, data in {**self.files, **(files or {})}.items():
            (folder / name).write_bytes(data)


@cache
def closed_image() -> Image:
    """After a clean end: the log is copied into the database, and gone."""
    return _make(lambda folder, written, blob: None)


@cache
def crashed_image() -> Image:
    """After a crash: most is in the log."""
    taken: list[Image] = []

    def take(folder: Path, written: Mapping[str, Mapping[str, Entry]], blob: str) -> None:
        files = {name: (folder / name).read_bytes() for name in (DATABASE, LOG)}
        taken.append(Image(files, written, blob))

    _make(take)
    return taken[0]


def _make(at_the_end: Callable[[Path, Mapping[str, Mapping[str, Entry]], str], None]) -> Image:
    entries = {
        "sample": [line.entry for line in lines_of(sample_journal())[:_COUNT]],
        "other": [
            header_of("other"),
            *(entry_of(mint_id(n), mint_id(n - 1), f"other {n}") for n in range(1, 4)),
        ],
    }

    async def body(folder: Path) -> Image:
        store = store_in(folder, "sqlite")
        blob = await store.put_blob(BLOB)
        written: dict[str, dict[str, Entry]] = {}
        opened = []
        for session in SESSIONS:
            header, *rest = entries[session]
            assert isinstance(header, SessionEntry)
            journal = await store.create(header)
            opened.append(journal)
            for entry in rest:
                await journal.append([entry])
            written[session] = {entry.id: entry for entry in entries[session]}
        at_the_end(folder, written, blob)
        for journal in opened:
            await journal.close()
        return Image({DATABASE: _read(folder / DATABASE)}, written, blob)

    with TemporaryDirectory() as folder:
        return anyio.run(body, Path(folder))


def _read(path: Path) -> bytes:
    return path.read_bytes()


# -- what must hold -------------------------------------------------------------------------------


async def check_reading(store: JournalStore, image: Image) -> int:
    """Whoever reads gets what was written, or is told what is wrong. How many sessions were
    read."""
    read = 0
    await _told(store.sessions())
    for session in SESSIONS:
        await _told(store.has(session))
        journal = await _told(store.read(session))
        if journal is not None:
            check_entries(journal, image.written[session], has_log=LOG in image.files)
            verify(journal, FakeBook())
            read += 1
        exported = await _told(store.export(session))
        assert journal is None or exported is not None
    data = await _told(store.get_blob(image.blob))
    assert data in (None, BLOB)
    await _told(store.known_blobs([image.blob]))
    return read


def check_entries(journal: Journal, written: Mapping[str, Entry], *, has_log: bool = False) -> None:
    """Nothing was read that was not written, and nothing is missing unless that is said. A log
    counts up to where it is damaged, as if the power had failed there."""
    for entry in journal.entries.values():
        if written.get(entry.id) != entry:
            assert journal.damage, entry
            # The header that stands in for a lost one.
            assert entry.id in (mint_id(0), *written), entry
    if not journal.damage:
        expected = list(written.values())
        if has_log:
            expected = expected[: len(journal.entries)]
        tally["silent drops"] += len(expected) - len(journal.entries)
        assert list(journal.entries.values()) == expected
    check_state(journal)


async def check_going_on(store: JournalStore, image: Image) -> int:
    """A session that opens takes another entry, or says why not. How many took one."""
    taken = 0
    for session in SESSIONS:
        opened = await _told(store.open(session))
        if opened is None:
            continue
        try:
            dict(opened.entries)
            entry = entry_of(mint_id(opened.last + 1), opened.journal.leaf, "and on")
            await opened.append([entry])
        except LaminaError:
            continue
        finally:
            await opened.close()
        # Where an index that both sessions share is damaged, that may only show now.
        journal = await _told(store.read(session))
        if journal is not None and not journal.damage:
            assert journal.entries[entry.id] == entry
        taken += 1
    await _told(store.list_sessions())
    return taken


async def _told(act: Awaitable[T]) -> T | None:
    """What comes of reading; None if an error of ours says why nothing does."""
    try:
        return await act
    except LaminaError:
        return None
