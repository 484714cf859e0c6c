"""Many processes share one session: each waits or is told; nothing is lost and nothing doubled."""

import os
from collections import Counter
from pathlib import Path
from zlib import crc32

import anyio
import pytest
from tests.crash.nursery import Nursery
from tests.crash.sample import KINDS, SESSION, header_of, store_in
from tests.crash.scale import much, tally

from lamina.core.codec import canonical_bytes
from lamina.core.journal.lines import Line, read_lines

PROCESSES = 8


@pytest.mark.parametrize("kind", KINDS)
def test_four_processes_that_begin_a_new_store_at_once_all_find_it_theirs(
    kind: str, nursery: Nursery, tmp_path: Path
) -> None:
    for number in range(much(10, 200)):
        folder = tmp_path / f"store-{number}"
        gate = tmp_path / f"gate-{number}"
        os.mkfifo(gate)
        opened_gate = os.open(gate, os.O_RDWR)
        sessions = [f"session-{child}" for child in range(4)]
        children = [
            nursery.start(
                "create_session", folder=str(folder), session=session, gate=str(gate), kind=kind
            )
            for session in sessions
        ]
        # A byte for each of those that wait there.
        os.write(opened_gate, b"1234")
        assert [nursery.wait(child) for child in children] == [0] * 4
        os.close(opened_gate)
        assert sorted(anyio.run(store_in(folder, kind).sessions)) == sessions
        tally["new stores that four processes began at once"] += 1


@pytest.mark.parametrize("kind", KINDS)
def test_eight_processes_that_open_append_and_close_lose_and_double_nothing(
    kind: str, nursery: Nursery, tmp_path: Path
) -> None:
    times = much(10, 150)

    async def create() -> None:
        await (await store_in(tmp_path, kind).create(header_of())).close()

    anyio.run(create)
    children = [
        nursery.start(
            "open_and_close", folder=str(tmp_path), session=SESSION,
            acks=str(tmp_path / f"acks-{number}"), name=f"process {number}", times=times,
            kind=kind,
        )
        for number in range(PROCESSES)
    ]  # fmt: skip
    assert [nursery.wait(child) for child in children] == [0] * PROCESSES
    said = Counter[str]()
    for number in range(PROCESSES):
        said.update((tmp_path / f"acks-{number}").read_text().splitlines())
    tally["processes"] += PROCESSES
    tally["times a session was busy"] += said.pop("busy", 0)
    tally["openings of shared sessions"] += said.total()

    found = list(read_lines(anyio.run(store_in(tmp_path, kind).export, SESSION)))
    lines = [each for each in found if isinstance(each, Line)]
    assert lines == found, "something is damaged"
    there = Counter(
        f"{line.entry.id} {crc32(canonical_bytes(line.entry)):08x}" for line in lines[1:]
    )
    tally["lost"] += (said - there).total()
    tally["doubled"] += (there - said).total()
    assert there == said
    assert len({line.entry.id for line in lines}) == len(lines) == 1 + PROCESSES * times
