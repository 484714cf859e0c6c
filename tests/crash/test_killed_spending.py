"""Money across processes and kills: no limit is passed, and nothing that was charged is forgotten.

A vendor charges for what it gets, answered or not; the account must know of at least as much.
"""

import os
import signal
from pathlib import Path
from time import perf_counter

import anyio
import pytest
from tests.crash.nursery import Nursery
from tests.crash.scale import luck, much, tally

from lamina.adapters.stores.spend_file import SpendFile
from lamina.core.ports import SpendAccount
from lamina.core.values.spend_limits import Settlement

PROCESSES = 8
NEXT = Settlement(at=1.0, day="2026-11-17", session="next", target="fake:priced", cost=1.0)


def read_account(folder: Path) -> SpendAccount:
    return anyio.run(SpendFile(folder / "spend.jsonl").read)


def count(account: SpendAccount) -> float:
    """What was spent, and what may be."""
    total = 0.0
    for entry in account.entries:
        amount = entry.cost if entry.cost is not None else entry.high
        total += (amount or 0.0) if entry.state in ("open", "settled") else 0.0
    return total


def read_charges(file: Path) -> list[float]:
    """What the vendor charged; a line that was cut off was charged to nobody."""
    text = file.read_text() if file.exists() else ""
    return [float(line) for line in text.splitlines() if text.endswith("\n") or "." in line]


def test_eight_processes_never_pass_the_limit_of_a_day(nursery: Nursery, tmp_path: Path) -> None:
    """Not by a request each: not at all."""
    limit = much(1, 20) * 0.5
    files = [tmp_path / f"charged-{number}" for number in range(PROCESSES)]
    children = [
        nursery.start(
            "spend_until_refused", folder=str(tmp_path), charged=str(file), seed=number, limit=limit
        )
        for number, file in enumerate(files)
    ]
    assert [nursery.wait(child) for child in children] == [0] * PROCESSES
    charged = sum(sum(read_charges(file)) for file in files)
    account = read_account(tmp_path)
    assert account.damage == []
    assert {entry.state for entry in account.entries} == {"settled"}
    assert charged <= limit
    assert count(account) == pytest.approx(charged, abs=1e-6)
    # And it was used: nobody was refused while there was room. Prompts grow with their sessions, so
    # the one that was refused last may have cost a little more than any before it.
    assert charged > limit - max(entry.high or 0.0 for entry in account.entries) - 0.01
    tally["requests under one limit"] += len(account.entries)


@pytest.mark.parametrize("number", range(much(2, 40)))
def test_killed_at_any_moment_at_least_what_was_charged_is_counted(
    number: int, nursery: Nursery, tmp_path: Path
) -> None:
    chance = luck(f"killed spending {number}")
    charges = tmp_path / "charged"
    for kill in range(4):
        child = nursery.start(
            "spend_until_killed", folder=str(tmp_path), charged=str(charges),
            seed=number * 10 + kill,
        )  # fmt: skip
        # Not a sleep: it would give the child the other core, and always at the same places.
        begun, wanted = perf_counter(), len(read_charges(charges)) + chance.randint(0, 30)
        while len(read_charges(charges)) < wanted and perf_counter() < begun + 20:
            pass
        until = perf_counter() + chance.random() * 0.01
        while perf_counter() < until:
            pass
        os.kill(child, signal.SIGKILL)
        assert nursery.wait(child) == -signal.SIGKILL
        tally["kills"] += 1
        charged = sum(read_charges(charges))
        assert count(read_account(tmp_path)) >= charged - 1e-6


def test_killed_at_every_step_at_least_what_was_charged_is_counted(
    nursery: Nursery, tmp_path: Path
) -> None:
    """Before and after each call of the system that the account makes, for two requests."""
    step, code = 2, -signal.SIGKILL
    while code == -signal.SIGKILL:
        folder = tmp_path / str(step)
        folder.mkdir()
        given = {"folder": str(folder), "charged": str(folder / "charged"), "seed": 1}
        code = nursery.wait(nursery.start("spend_until_killed", **given, step=step))
        charged = sum(read_charges(folder / "charged"))
        assert count(read_account(folder)) >= charged - 1e-9, step
        # Whoever comes next goes on behind what was cut off.
        before = count(read_account(folder))
        anyio.run(SpendFile(folder / "spend.jsonl").settle, NEXT)
        account = read_account(folder)
        assert len(account.damage) <= 1, step
        assert count(account) == pytest.approx(before + 1.0), step
        step += 1
        tally["kills"] += 1
    assert code == 0
    assert step > 40
