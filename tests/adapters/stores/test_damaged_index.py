"""An index beside a journal is believed or made anew; whatever it is, the journal decides."""

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from tests.crash.sample import SESSION, entry_of, open_sample, sample_journal
from tests.crash.scale import luck, much, tally
from tests.fakes.replies import openai_reply

from lamina.adapters.stores.jsonl import JsonlStore
from lamina.adapters.stores.session_file import index_path, read_index
from lamina.core.codec import mint_id
from lamina.core.journal import read_journal


def half_of(journal: bytes) -> bytes:
    """About the first half, up to the end of a write."""
    end = journal.index(b"\n", 60_000) + 1
    while read_journal(journal[:end], SESSION).damage:
        end = journal.index(b"\n", end) + 1
    return journal[:end]


HALF = half_of(sample_journal())


async def indexed(folder: Path) -> tuple[Path, Path]:
    """The first half of the sample with an index of it."""
    path = JsonlStore(folder).path_of(SESSION)
    path.parent.mkdir(parents=True)
    path.write_bytes(HALF)
    opened = await JsonlStore(folder).open(SESSION)
    await opened.keep_snapshot(b"")
    await opened.close()
    assert read_index(index_path(path))
    return path, index_path(path)


def changed(data: bytes) -> Iterator[bytes]:
    """The bytes cut off anywhere, and with any one of them changed."""
    chance = luck("index")
    yield b""
    for at in sorted(chance.sample(range(len(data)), min(len(data), much(150, 3_000)))):
        yield data[:at]
        yield data[:at] + bytes([data[at] ^ chance.randrange(1, 256)]) + data[at + 1 :]
        yield data[:at] + bytes(len(data) - at)


def test_no_damage_to_an_index_changes_what_is_read(tmp_path: Path) -> None:
    sound = read_journal(HALF, SESSION)

    async def body() -> None:
        _, index = await indexed(tmp_path)
        for damaged in changed(index.read_bytes()):
            tally["indexes damaged"] += 1
            index.write_bytes(damaged)
            opened = await JsonlStore(tmp_path).open(SESSION)
            await opened.close()
            journal = opened.journal
            assert dict(journal.entries) == dict(sound.entries)
            assert (journal.leaf, journal.last, journal.damage) == (sound.leaf, sound.last, ())

    anyio.run(body)


def test_an_index_of_other_bytes_is_not_believed(tmp_path: Path) -> None:
    """The journal was cut, changed, exchanged or mended under the index."""
    chance = luck("other bytes")
    at = chance.randrange(len(HALF))
    others = {
        "cut": HALF[:at],
        "cut between lines": HALF[: HALF.rindex(b"\n", 0, -1) + 1],
        "changed": HALF[:at] + bytes([HALF[at] ^ 1]) + HALF[at + 1 :],
        "grown": sample_journal(),
        "grown and torn": sample_journal()[:-5],
        "zero-filled": HALF[:at] + bytes(len(HALF) - at),
        "empty lines behind": HALF + b"\n\n",
    }

    async def body() -> None:
        path, _ = await indexed(tmp_path)
        for what, data in others.items():
            path.write_bytes(data)
            opened = await JsonlStore(tmp_path).open(SESSION)
            await opened.close()
            read, journal = read_journal(data, SESSION), opened.journal
            assert dict(journal.entries) == dict(read.entries), what
            assert (journal.leaf, journal.last) == (read.leaf, read.last), what
            assert journal.damage == read.damage, what

    anyio.run(body)


@pytest.mark.parametrize("takes", ["folder", "gone"])
def test_an_index_that_cannot_be_written_or_read_takes_nothing_away(
    takes: str, tmp_path: Path
) -> None:
    async def body() -> None:
        path, index = await indexed(tmp_path)
        index.unlink()
        if takes == "folder":
            index.mkdir()
        opened = await JsonlStore(tmp_path).open(SESSION)
        await opened.keep_snapshot(b"")
        entry = entry_of(mint_id(opened.last + 1), opened.journal.leaf, "and on")
        await opened.append([entry])
        await opened.keep_snapshot(b"")
        await opened.close()
        assert read_journal(path.read_bytes(), SESSION).entries[entry.id] == entry
        assert not list(path.parent.glob("*.part"))

    anyio.run(body)


def test_a_session_with_any_rubbish_for_a_state_in_its_index_replays(tmp_path: Path) -> None:
    async def body() -> None:
        path, _ = await indexed(tmp_path)
        whole = read_journal(HALF, SESSION)
        for rubbish in (b"\0", b"\x90", b"\xc0", b"{}", bytes(100), b"\x9b" + bytes(50)):
            opened = await JsonlStore(tmp_path).open(SESSION)
            await opened.keep_snapshot(rubbish)
            await opened.close()
            async with await open_sample(tmp_path) as session:
                assert [entry.id for entry in session.entries] == list(whole.entries)
                assert session.state.leaf == whole.leaf
        async with await open_sample(tmp_path) as session:
            turn = await session.prepare("And now?")
            await turn.commit(openai_reply("fine"))
        assert path.read_bytes().startswith(HALF)

    anyio.run(body)
