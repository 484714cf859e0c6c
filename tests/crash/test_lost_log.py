"""The power fails under a database: what was not synced yet is gone, or rubbish.

The log is cut at every frame and at any byte, filled with zeros from there, or garbled; of the last
write, and of a log that is being copied into the database, any sectors have reached the disk.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import anyio
import pytest
from msgspec import Struct
from tests.crash.database import DATABASE, LOG
from tests.crash.sample import SESSION, entry_of, header_of, store_in
from tests.crash.scale import luck, much, tally

from lamina.adapters.stores.sqlite import SqliteStore
from lamina.core.codec import mint_id
from lamina.core.ports import JournalStore
from lamina.core.values.entry import Entry

# The head of a log, and a frame of it: a head and a page.
HEAD, FRAME = 32, 24 + 4096
SECTOR = 512


class Recording:
    """A database and its log as they were on disk, and how long the log was when each entry was
    acknowledged."""

    def __init__(self, folder: Path, chance: Random) -> None:
        self.written: list[Entry] = [header_of()]
        self.acked: list[tuple[int, str]] = []
        anyio.run(self._write, folder, chance)

    async def _write(self, folder: Path, chance: Random) -> None:
        opened = await store_in(folder, "sqlite").create(header_of())
        for _ in range(much(12, 60)):
            entries = []
            for ahead in range(chance.randint(1, 3)):
                number = opened.last + 1 + ahead
                text = "harbour " * chance.choice((1, 20, 900))
                entries.append(entry_of(mint_id(number), mint_id(number - 1), text))
            await opened.append(entries)
            self.written += entries
            size = (folder / LOG).stat().st_size
            self.acked += [(size, entry.id) for entry in entries]
            if chance.random() < 0.2:
                await opened.keep_snapshot(b"state")
        self.database = (folder / DATABASE).read_bytes()
        self.log = (folder / LOG).read_bytes()
        await opened.close()

    def images(self, chance: Random) -> Iterator[tuple[int, bytes]]:
        """Logs of which only so many bytes are as they were."""
        size = len(self.log)
        for frame in range(HEAD, size + 1, FRAME):
            yield frame, self.log[:frame]
            yield frame + FRAME // 2, self.log[: frame + FRAME // 2]
        for _ in range(much(25, 400)):
            cut = chance.randrange(size + 1)
            rest = size - cut
            yield cut, self.log[:cut]
            yield cut, self.log[:cut] + bytes(rest)
            yield cut, self.log[:cut] + chance.randbytes(rest)


@pytest.mark.parametrize("number", range(much(1, 8)))
def test_what_was_acknowledged_survives_whatever_becomes_of_the_rest_of_the_log(
    number: int, tmp_path: Path
) -> None:
    chance = luck(f"lost log {number}")
    (tmp_path / "whole").mkdir()
    recording = Recording(tmp_path / "whole", chance)
    for at, (cut, log) in enumerate(recording.images(chance)):
        folder = tmp_path / str(at)
        folder.mkdir()
        (folder / DATABASE).write_bytes(recording.database)
        (folder / LOG).write_bytes(log)
        anyio.run(check_image, folder, recording, cut)
        tally["databases after a power failure"] += 1


async def check_image(folder: Path, recording: Recording, cut: int) -> None:
    store = store_in(folder, "sqlite", wait=0.0)
    acked = {entry for size, entry in recording.acked if size <= cut}
    if not acked and not await store.has(SESSION):
        return
    journal = await store.read(SESSION)
    tally["lost"] += len(acked - journal.entries.keys())
    assert acked <= journal.entries.keys()
    assert journal.damage == ()
    # A beginning of what was written, to the end of a write, and nothing else.
    assert list(journal.entries.values()) == recording.written[: len(journal.entries)]
    await check_next_append(store, list(journal.entries.values()))


async def check_next_append(store: JournalStore, entries: list[Entry]) -> None:
    opened = await store.open(SESSION)
    assert list(opened.entries.values()) == entries
    entry = entry_of(mint_id(opened.last + 1), opened.journal.leaf, "the power is back")
    await opened.append([entry])
    await opened.close()
    assert (await store.read(SESSION)).entries[entry.id] == entry


# -- the last write -------------------------------------------------------------------------------


class Moment(Struct, frozen=True, kw_only=True):
    """The files in front of a write and behind it, and the entries that there were."""

    before: dict[str, bytes]
    after: dict[str, bytes]
    acked: list[Entry]
    written: list[Entry]

    def images(self, chance: Random, count: int) -> Iterator[dict[str, bytes]]:
        """The log reaches the disk in any order of its sectors. It is all there before anything
        of it is copied into the database; that may arrive in any order, too."""
        for _ in range(count):
            log = mix_sectors(self.before[LOG], self.after[LOG], chance)
            # A log that begins anew has its head synced first: else old frames could be believed.
            yield {DATABASE: self.before[DATABASE], LOG: self.after[LOG][:HEAD] + log[HEAD:]}
            if self.after[DATABASE] != self.before[DATABASE]:
                mixed = mix_sectors(self.before[DATABASE], self.after[DATABASE], chance)
                yield {DATABASE: mixed, LOG: self.after[LOG]}


def mix_sectors(before: bytes, after: bytes, chance: Random) -> bytes:
    """A file of which some sectors are as they are now, the others as they were, or zero."""
    image = bytearray(after)
    share = chance.random()
    for at in range(0, len(after), SECTOR):
        if after[at : at + SECTOR] != before[at : at + SECTOR] and chance.random() < share:
            old = before[at : at + SECTOR]
            image[at : at + SECTOR] = old + bytes(len(image[at : at + SECTOR]) - len(old))
    return bytes(image)


async def record_moments(folder: Path, chance: Random) -> list[Moment]:
    """Writes of many sizes; the log is copied into the database again and again."""
    opened = await SqliteStore(folder / DATABASE).create(header_of())
    assert opened._connection is not None
    opened._connection.execute("pragma wal_autocheckpoint = 12").fetchall()
    written: list[Entry] = [header_of()]
    moments = []
    for _ in range(much(15, 60)):
        made = []
        for ahead in range(chance.randint(1, 3)):
            number = opened.last + 1 + ahead
            text = "harbour " * chance.choice((1, 20, 900, 3_000))
            made.append(entry_of(mint_id(number), mint_id(number - 1), text))
        before = _files(folder)
        await opened.append(made)
        moments.append(
            Moment(
                before=before, after=_files(folder), acked=list(written), written=[*written, *made]
            )
        )
        written += made
    await opened.close()
    return moments


def _files(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in (DATABASE, LOG)}


@pytest.mark.parametrize("number", range(much(1, 10)))
def test_a_write_is_there_whole_or_not_at_all_whichever_sectors_arrived(
    number: int, tmp_path: Path
) -> None:
    chance = luck(f"sectors {number}")
    (tmp_path / "whole").mkdir()
    moments = anyio.run(record_moments, tmp_path / "whole", chance)
    copied = [moment for moment in moments if moment.after[DATABASE] != moment.before[DATABASE]]
    assert len(copied) > 1
    folder = tmp_path / "image"
    folder.mkdir()
    counts = Counter[bool]()
    for moment in moments:
        for files in moment.images(chance, much(6, 40)):
            for path in folder.iterdir():
                path.unlink()
            for name, data in files.items():
                (folder / name).write_bytes(data)
            counts[anyio.run(_check_last_write, folder, moment)] += 1
            tally["databases after a power failure"] += 1
    assert counts[True]
    assert counts[False]


async def _check_last_write(folder: Path, moment: Moment) -> bool:
    """Whether the last write is there; what was acknowledged in front of it always is."""
    store = store_in(folder, "sqlite", wait=0.0)
    journal = await store.read(SESSION)
    assert journal.damage == ()
    entries = list(journal.entries.values())
    tally["lost"] += len(moment.acked) > len(entries)
    assert entries in (moment.acked, moment.written)
    await check_next_append(store, entries)
    return len(entries) > len(moment.acked)
