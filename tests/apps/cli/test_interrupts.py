"""Ctrl-C once, twice at once, and insistently. In processes of their own: a signal is for all of a
process."""

import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

import lamina.apps.cli
from lamina.apps.cli.stdio import stop_on_signals

LIMIT_S = 60

# Interrupted twice, the second time while what was made is being kept.
TWICE = """
import os, signal
import anyio, anyio.to_thread, typer
from lamina.apps.cli.interrupts import run_async

app = typer.Typer()

async def work():
    await anyio.to_thread.run_sync(print, "begun")
    try:
        os.kill(os.getpid(), signal.SIGINT)
        await anyio.sleep_forever()
    finally:
        os.kill(os.getpid(), signal.SIGINT)
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(print, "kept")

@app.command()
def command():
    run_async(work)
    print("not reached")

app()
"""
# Interrupted when the work is done, and threads are still to be ended.
LATE = """
import asyncio, os, signal
import anyio.to_thread, typer
from lamina.apps.cli.interrupts import run_async

app = typer.Typer()

async def work():
    asyncio.current_task().add_done_callback(lambda _: os.kill(os.getpid(), signal.SIGINT))
    await anyio.to_thread.run_sync(print, "begun")

@app.command()
def command():
    run_async(work)
    print("not reached")

app()
"""
INSISTENT = """
import signal
from lamina.apps.cli.interrupts import RepeatedSignal

times = iter([0.0, 0.1, 0.2, 3.0])
repeated = RepeatedSignal(lambda: next(times))
print([repeated.is_first(signal.SIGTERM) for _ in range(3)])
repeated.is_first(signal.SIGTERM)
print("not reached")
"""


def run(program: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT_S
    )


def test_two_interrupts_at_once_are_one() -> None:
    done = run(TWICE)
    assert (done.returncode, done.stdout, done.stderr) == (130, "begun\nkept\n", "")


def test_an_interrupt_as_the_command_ends_is_not_lost() -> None:
    done = run(LATE)
    assert (done.returncode, done.stdout, done.stderr) == (130, "begun\n", "")


def test_one_that_insists_ends_the_process_with_what_was_printed() -> None:
    done = run(INSISTENT)
    assert done.returncode == 143
    assert (done.stdout, done.stderr) == ("[True, False, False]\n", "")


def test_two_signals_at_once_ask_a_turn_to_stop_once() -> None:
    times_asked = []

    def abort() -> bool:
        times_asked.append("stop")
        return True

    async def body() -> None:
        async with stop_on_signals() as stop:
            stop.abort = abort
            for _ in range(2):
                stop(signal.SIGINT)
        assert stop.exit_code == 130

    before = signal.getsignal(signal.SIGINT)
    anyio.run(body)
    assert times_asked == ["stop"]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    "path", sorted(Path(lamina.apps.cli.__file__).parent.rglob("*.py")), ids=str
)
def test_every_command_runs_interruptibly(path: Path) -> None:
    if path.name != "interrupts.py":
        assert "anyio.run(" not in path.read_text("utf-8")
