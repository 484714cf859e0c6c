"""The process is killed at any moment: what was acknowledged is there, and the session goes on."""

import os
import signal
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Literal
from zlib import crc32

import anyio
import pytest
from tests.crash.nursery import Nursery
from tests.crash.sample import KINDS, SESSION, entry_of, header_of, open_sample, store_in
from tests.crash.scale import luck, much, tally

from lamina.core.codec import canonical_bytes, mint_id
from lamina.core.journal import read_journal

Task = Literal["append_entries", "hold_session"]


async def create(folder: Path, kind: str) -> None:
    await (await store_in(folder, kind).create(header_of())).close()


def run_and_kill(
    nursery: Nursery, folder: Path, kind: str, task: Task, seed: int, after: int, delay: float
) -> list[str]:
    """Kills a child so many seconds behind its nth acknowledgement; gives those it made."""
    pipe = folder / f"acks-{seed}"
    os.mkfifo(pipe)
    given = {"folder": str(folder), "session": SESSION, "acks": str(pipe), "seed": seed}
    child = nursery.start(task, **given, kind=kind)
    with pipe.open() as acks:
        said = list(islice(acks, after))
        # Not a sleep: it would give the child the other core, and always at the same places.
        until = perf_counter() + delay
        while perf_counter() < until:
            pass
        os.kill(child, signal.SIGKILL)
        said += list(acks)
    assert nursery.wait(child) == -signal.SIGKILL
    tally["kills"] += 1
    return [ack for ack in said if ack.endswith("\n")]


def check_acks(folder: Path, kind: str, acks: set[str], seed: int) -> None:
    journal = read_journal(anyio.run(store_in(folder, kind).export, SESSION), SESSION)
    there = {f"{e.id} {crc32(canonical_bytes(e)):08x}\n" for e in journal.entries.values()}
    tally["entries acknowledged"] += len(acks)
    tally["lost"] += len(acks - there)
    assert acks <= there, (seed, sorted(acks - there))
    kinds = {damage.kind for damage in journal.damage}
    # A kill leaves what the system has: a write may be cut, nothing else is amiss. A transaction
    # is there or not.
    cut = {"torn", "incomplete_write", "no_checksum", "no_final_newline"}
    assert kinds <= (cut if kind == "jsonl" else set()), (seed, kinds)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", range(much(2, 40)))
def test_entries_survive_a_kill_at_any_moment(
    number: int, kind: str, nursery: Nursery, tmp_path: Path
) -> None:
    """The same journal is killed again and again, and every time goes on."""
    chance = luck(f"kills {number}")
    anyio.run(create, tmp_path, kind)
    acks: set[str] = set()

    async def append() -> None:
        opened = await store_in(tmp_path, kind).open(SESSION)
        parent = opened.journal.leaf
        entry = entry_of(mint_id(opened.last + 1), parent, "after the kill")
        await opened.append([entry])
        await opened.close()
        acks.add(f"{entry.id} {crc32(canonical_bytes(entry)):08x}\n")

    for kill in range(4):
        seed, after = number * 10 + kill, chance.choice((0, 1, 5, 30))
        delay = chance.random() * (0.05 if after == 0 else 0.004)
        acks |= set(run_and_kill(nursery, tmp_path, kind, "append_entries", seed, after, delay))
        check_acks(tmp_path, kind, acks, seed)
        anyio.run(append)
        check_acks(tmp_path, kind, acks, seed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", range(much(2, 30)))
def test_a_conversation_survives_a_kill_at_any_moment(
    number: int, kind: str, nursery: Nursery, tmp_path: Path
) -> None:
    chance = luck(f"killed sessions {number}")
    acks: set[str] = set()

    async def go_on() -> None:
        async with await open_sample(tmp_path, kind=kind) as session:
            assert session.envelope.system[0].text == "You are terse."
            if turn := await session.current_turn():
                turn.request()

    for kill in range(3):
        seed, after = number * 10 + kill, chance.choice((0, 1, 7, 40))
        delay = chance.random() * (0.05 if after == 0 else 0.004)
        acks |= set(run_and_kill(nursery, tmp_path, kind, "hold_session", seed, after, delay))
        if acks:
            check_acks(tmp_path, kind, acks, seed)
        anyio.run(go_on)
