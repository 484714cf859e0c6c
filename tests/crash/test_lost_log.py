"""The power fails under a database: what its log held beyond the last sync is gone, or rubbish.

Torn lines and files that were moved about are no matter of a table: those suites are for files
alone. Here the log is cut at any byte, filled with zeros from there, or garbled.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import anyio
import pytest
from tests.crash.sample import SESSION, entry_of, header_of, store_in
from tests.crash.scale import luck, much, tally

from lamina.codec import mint_id
from lamina.values.entry import Entry

LOG = "sessions.sqlite-wal"
DATABASE = "sessions.sqlite"


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
    opened = await store.open(SESSION)
    assert dict(opened.entries) == dict(journal.entries)
    entry = entry_of(mint_id(opened.last + 1), opened.journal.leaf, "the power is back")
    await opened.append([entry])
    await opened.close()
    assert (await store.read(SESSION)).entries[entry.id] == entry
