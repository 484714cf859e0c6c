"""One loop for all threads of a process, in whatever a program is: with threads, with a loop of its
own, forked."""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import anyio
import pytest
from tests.fakes.providers import calling, saying
from tests.sync.scenes import fakes, history, open_agent, open_chat

import lamina
import lamina.sync
from lamina.errors import HookError
from lamina.sync.portal import HeldContext, call_back, portal


def test_two_threads_ask_at_once() -> None:
    both = threading.Barrier(2)

    def ask(name: str) -> str:
        @lamina.tool(permission="free")
        def tide() -> str:
            """Tells when the water is high."""
            both.wait(30)
            return name

        with open_agent(calling(("c1", "tide", {})), saying(name), tools=[tide]) as agent:
            return agent.run("When?").text

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(ask, ("noon", "one"))) == ["noon", "one"]


def test_two_threads_share_a_session() -> None:
    with lamina.sync.open_session(**fakes()) as session, ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda n: session.add_custom_entry("seen", n), range(100)))
        kept = [entry for entry in session.entries if getattr(entry, "kind", "") == "seen"]
        assert len(kept) == 100


def test_all_calls_run_in_one_loop() -> None:
    names: set[str] = set()
    hooks = lamina.Hooks()

    @hooks.context
    async def look(event: object) -> None:
        names.add(threading.current_thread().name)

    def ask(number: int) -> None:
        with open_chat(saying("Nine."), hooks=hooks) as chat:
            chat.run("Which berth?")

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(ask, range(6)))
    assert names == {"lamina.sync loop"}


@pytest.mark.parametrize("run", [asyncio.run, lambda main: anyio.run(lambda: main)])
def test_it_works_inside_a_loop_that_is_running(run: Callable[..., object]) -> None:
    async def cell() -> None:
        with open_chat(saying("Nine.")) as chat:
            assert chat.run("Which berth?").text == "Nine."
            assert history(chat.session)[-1] == ("assistant", "Nine.")

    run(cell())


def test_a_hook_that_runs_in_the_loop_is_told_to_await() -> None:
    hooks = lamina.Hooks()
    with open_chat(saying("Nine."), hooks=hooks) as chat:

        @chat.session.hooks.context
        async def look(event: object) -> None:
            chat.session.rename("new")

        with pytest.raises(HookError, match="in its own loop"):
            chat.run("Which berth?")


def test_an_interruption_stops_the_call_and_waits_until_it_has_cleaned_up() -> None:
    steps: list[str] = []

    class Interruption(BaseException):
        pass

    def interrupt() -> None:
        raise Interruption

    async def work() -> None:
        try:
            await call_back(interrupt)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(steps.append, "cleaned up")

    with pytest.raises(Interruption):
        portal().run(work)
    assert steps == ["cleaned up"]
    assert portal().read(lambda: "usable") == "usable"


def test_a_call_sees_the_same_portal_everywhere() -> None:
    assert portal() is portal()
    assert portal().process == os.getpid()


def test_what_is_being_closed_is_closed_although_it_is_interrupted() -> None:
    steps: list[str] = []
    is_interrupted = threading.Event()

    class Interruption(BaseException):
        pass

    def interrupt(number: int, frame: object) -> None:
        is_interrupted.set()
        raise Interruption

    @asynccontextmanager
    async def manager() -> AsyncIterator[None]:
        yield
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        assert await anyio.to_thread.run_sync(is_interrupted.wait, 30)
        await anyio.wait_all_tasks_blocked()
        steps.append("closed")

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(Interruption), HeldContext(portal(), manager):
            pass
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert steps == ["closed"]
