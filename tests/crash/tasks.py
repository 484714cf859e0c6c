"""What children do until they are killed or done. Each says what was acknowledged, and when."""

import os
import resource
from pathlib import Path
from random import Random
from zlib import crc32

import anyio
from tests.crash.sample import entry_of, open_sample, store_in
from tests.fakes.replies import openai_reply

from lamina.codec import canonical_bytes, mint_id
from lamina.errors import SessionBusy, WriteFailed
from lamina.ports import OpenJournal
from lamina.stores.jsonl import JsonlStore
from lamina.values.entry import Entry

WORDS = "harbour berth ledger crane tide "


def sign(entry: Entry) -> str:
    """A line that says which entry was acknowledged, and what it held."""
    return f"{entry.id} {crc32(canonical_bytes(entry)):08x}\n"


def append_entries(folder: str, session: str, acks: str, seed: int, kind: str) -> None:
    """Appends entries of many sizes to a journal until it is killed."""
    pipe = os.open(acks, os.O_WRONLY)
    luck = Random(seed)

    async def body() -> None:
        opened = await store_in(folder, kind).open(session)
        parent = opened.journal.leaf
        while True:
            made = []
            for ahead in range(luck.randint(1, 4)):
                text = WORDS * luck.choice((1, 10, 200, 2_000))
                entry = entry_of(mint_id(opened.last + 1 + ahead), parent, text)
                parent = entry.id
                made.append(entry)
            await opened.append(made)
            os.write(pipe, "".join(map(sign, made)).encode())

    anyio.run(body)


def hold_session(folder: str, session: str, acks: str, seed: int, kind: str) -> None:
    """Talks in a session until it is killed."""
    pipe = os.open(acks, os.O_WRONLY)
    luck = Random(seed)

    async def body() -> None:
        async with await open_sample(Path(folder), session, kind=kind) as talking:
            said = 0

            def say() -> None:
                nonlocal said
                entries = talking.entries
                os.write(pipe, "".join(map(sign, entries[said:])).encode())
                said = len(entries)

            say()
            while True:
                turn = await talking.current_turn()
                if turn is None or not turn.pending_calls:
                    turn = turn or await talking.prepare(WORDS * luck.randint(1, 30))
                    say()
                    calls = [(mint_id(said), "find")] if luck.random() < 0.4 else []
                    turn = await turn.commit(openai_reply("ok", input=9, calls=calls))
                    say()
                if turn.pending_calls:
                    await turn.resume({call.id: WORDS for call in turn.pending_calls})
                    say()

    anyio.run(body)


def open_and_close(folder: str, session: str, acks: str, name: str, times: int, kind: str) -> None:
    """Opens a session, appends to it and closes it, again and again."""
    said = os.open(acks, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    luck = Random(name)

    async def body() -> None:
        done = 0
        while done < times:
            try:
                wait = luck.choice((0.1, 60.0))
                opened = await store_in(folder, kind, wait=wait).open(session)
            except SessionBusy:
                os.write(said, b"busy\n")
                continue
            entry = await _append_one(opened, f"{name}:{done}")
            os.write(said, sign(entry).encode())
            await opened.close()
            done += 1

    anyio.run(body)


def fill_the_disk(folder: str, session: str, acks: str, kind: str) -> None:
    """Appends until the system takes no more, makes room, and goes on; four times."""
    said = os.open(acks, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    path = JsonlStore(folder).path_of(session)
    if kind == "sqlite":
        path = Path(folder) / "sessions.sqlite-wal"
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]

    async def body() -> None:
        opened = await store_in(folder, kind).open(session)
        for room in (700, 2_000, 2_048, 5_001):
            resource.setrlimit(resource.RLIMIT_FSIZE, (_size(path) + room, most))
            failed = 0
            while failed < 3:
                try:
                    entry = await _append_one(opened, WORDS * 5)
                except WriteFailed:
                    failed += 1
                else:
                    os.write(said, sign(entry).encode())
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
            entry = await _append_one(opened, "there is room again")
            os.write(said, sign(entry).encode())
        await opened.close()

    anyio.run(body)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


async def _append_one(opened: OpenJournal, text: str) -> Entry:
    entry = entry_of(mint_id(opened.last + 1), "000000", text)
    await opened.append([entry])
    return entry
