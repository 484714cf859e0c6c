"""What children do until they are killed or done. Each says what was acknowledged, and when."""

import os
import resource
import signal
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import anyio
from msgspec.structs import replace
from tests.crash.sample import entry_of, header_of, open_sample, store_in
from tests.fakes.book import SMALL
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World

from lamina.adapters.files import durable_writes as disk
from lamina.adapters.stores import session_file, spend_file
from lamina.adapters.stores.jsonl import JsonlStore
from lamina.adapters.stores.spend_file import SpendFile
from lamina.core.codec import canonical_bytes, mint_id
from lamina.core.ports import OpenJournal
from lamina.core.values.entry import Entry
from lamina.core.values.message import Text
from lamina.core.values.prices import flat_prices
from lamina.core.values.usage import Usage
from lamina.core.values.wire import Reply
from lamina.errors import SessionBusy, SpendLimit, WriteFailed

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


def create_session(folder: str, session: str, gate: str, kind: str) -> None:
    """Creates a session, and finds it in the list, as soon as the gate lets it through."""
    os.read(os.open(gate, os.O_RDONLY), 1)

    async def body() -> None:
        store = store_in(folder, kind)
        await (await store.create(header_of(session))).close()
        assert session in await store.sessions()

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


def spend_until_killed(folder: str, charged: str, seed: int, step: int = 0) -> None:
    """Asks a vendor that charges for every request, under a limit that is never reached, until it
    is killed: at its nth call of the system if `step` is given, else by somebody else."""
    if step:
        spend_file.TOTALS_BYTES = 500
        die_at(step)
    _spend(folder, charged, Random(seed), requests=2 if step else None, limit=1_000.0)


def spend_until_refused(folder: str, charged: str, seed: int, limit: float) -> None:
    """Asks until the limit of the day lets nothing more through."""
    _spend(folder, charged, Random(seed), requests=None, limit=limit)


def _spend(
    folder: str, charged: str, luck: Random, *, requests: int | None, limit: float
) -> None:  # fmt: skip
    bill = os.open(charged, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    prices = flat_prices(10.0, 20.0, read=0.1)
    target = replace(SMALL, model="priced", prices=prices)

    async def body() -> None:
        world = World()
        world.book.put(target)
        session = await world.open(
            target=target.name, spend_day=limit, spend_ledger=SpendFile(Path(folder, "spend.jsonl"))
        )
        asked = 0
        while requests is None or asked < requests:
            asked += 1
            try:
                turn = await session.prepare(WORDS * luck.randint(1, 9))
            except SpendLimit:
                return
            assert turn.cost_range is not None
            # Now it is sent: the vendor charges, whatever becomes of the answer.
            tokens = turn.context.fit.tokens
            output = luck.choice((10, 500, 1_000))
            cost = (tokens * 10.0 + output * 20.0) / 1_000_000
            os.write(bill, f"{cost:.9f}\n".encode())
            usage = Usage(input=tokens, output=output)
            if luck.random() < 0.2 and limit > 100:
                continue  # the answer is lost on its way
            await turn.commit(Reply(blocks=(Text("ok"),), usage=usage, stop="stop"))

    anyio.run(body)


def die_at(step: int) -> None:
    """Kills this process at the nth call of the system that the account makes: before it, or, where
    the number is odd, right after it."""
    counted = 0

    class MortalOs:
        def __getattr__(self, name: str) -> Any:
            real = getattr(os, name)
            if name not in ("open", "write", "fdatasync", "fstat", "close", "replace", "stat"):
                return real

            def call(*given: Any, **named: Any) -> Any:
                nonlocal counted
                counted += 2
                if counted == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                result = real(*given, **named)
                if counted + 1 == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return result

            return call

    for module in (spend_file, disk, session_file):
        module.os = MortalOs()  # type: ignore[attr-defined]


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


async def _append_one(opened: OpenJournal, text: str) -> Entry:
    entry = entry_of(mint_id(opened.last + 1), "000000", text)
    await opened.append([entry])
    return entry
