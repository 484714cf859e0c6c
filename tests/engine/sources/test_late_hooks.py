"""Hooks that nobody waits for any more: they are told, and told of."""

import logging
import threading
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, run, system_of, talk

from lamina.core.values.entry import RequestEntry, TransformEntry
from lamina.core.values.message import Message, Text
from lamina.core.values.patch import SystemPartSet
from lamina.engine.sources.hooks import CancelSignal, ContextEvent, Hooks, MessageEvent
from lamina.errors import HookError

LIMIT = 0.05
LATE = SystemPartSet(name="late", text="LATE", reason="late")


class Slow:
    """A plain function as a hook that runs on until it is let go, or until it is told to stop."""

    def __init__(self, *, obeys: bool = False, result: Any = LATE) -> None:
        self.obeys = obeys
        self.result = result
        self.go = threading.Event()
        self.over = threading.Event()
        self.signals: list[CancelSignal] = []

    def __call__(self, event: ContextEvent | MessageEvent) -> Any:
        if self.signals:
            return None
        self.signals.append(event.signal)
        if self.obeys:
            assert event.signal.wait(20)
        else:
            self.go.wait()
        self.over.set()
        return self.result

    async def end(self) -> None:
        self.go.set()
        for thread in threading.enumerate():
            if thread.name == "hook slow":
                await anyio.to_thread.run_sync(thread.join)


def slow_hooks(slow: Callable[..., Any]) -> Hooks:
    hooks = Hooks()
    hooks.context(name="slow", timeout=LIMIT)(slow)
    return hooks


def test_a_plain_function_is_told_when_its_limit_has_passed() -> None:
    async def body() -> None:
        slow = Slow(obeys=True)
        session = await World().open(hooks=slow_hooks(slow))
        with pytest.raises(HookError, match=r"took longer than its 0.05 s"):
            await session.prepare("Q")
        await slow.end()
        assert slow.signals[0].cancelled

    run(body())


def test_a_plain_function_is_told_when_the_turn_is_stopped() -> None:
    async def body() -> None:
        slow, hooks = Slow(obeys=True), Hooks()
        hooks.message(name="slow")(slow)
        session = await World().open(hooks=hooks)
        async with anyio.create_task_group() as group:
            group.start_soon(session.prepare, "Q")
            while not slow.signals:
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        await slow.end()
        assert slow.signals[0].cancelled
        # It is not the end of the session.
        assert (await talk(session)).answer == "A"

    run(body())


def test_an_async_hook_is_cancelled_when_the_turn_is_stopped() -> None:
    async def body() -> None:
        endings: list[str] = []
        hooks = Hooks()
        begun = anyio.Event()

        @hooks.context
        async def wait(event: ContextEvent) -> None:
            begun.set()
            try:
                await anyio.Event().wait()
            finally:
                endings.append("cancelled")
                assert not event.signal.cancelled
            raise AssertionError

        session = await World().open(hooks=hooks)
        async with anyio.create_task_group() as group:
            group.start_soon(session.prepare, "Q")
            await begun.wait()
            group.cancel_scope.cancel()
        assert endings == ["cancelled"]

    run(body())


def test_a_hook_in_time_has_a_signal_that_says_nothing() -> None:
    async def body() -> None:
        signals: list[CancelSignal] = []
        hooks = Hooks()
        hooks.context(lambda event: signals.append(event.signal))
        hooks.message(lambda event: signals.append(event.signal))
        await talk(await World().open(hooks=hooks))
        assert len(signals) == len(set(map(id, signals))) == 3
        assert not any(signal.cancelled or signal.wait(0) for signal in signals)

    run(body())


def test_what_a_late_hook_returns_is_not_used() -> None:
    async def body() -> None:
        slow = Slow()
        session = await World().open(hooks=slow_hooks(slow), system="S")
        with pytest.raises(HookError):
            await session.prepare("Q")
        await slow.end()
        turn = await session.prepare("Q")
        assert system_of(turn) == "S"
        assert not [e for e in session.entries if isinstance(e, TransformEntry)]

    run(body())


def test_a_late_answer_of_a_message_hook_is_not_used() -> None:
    async def body() -> None:
        slow = Slow(result=Message(role="user", blocks=(Text("LATE"),)))
        hooks = Hooks()
        hooks.message(name="slow", timeout=LIMIT)(slow)
        session = await World().open(hooks=hooks)
        turn = await session.prepare("Q")
        await slow.end()
        await turn.commit(openai_reply("A"))
        assert [message.text for message in session.envelope.cached] == ["Q", "A"]

    run(body())


def test_a_hook_that_runs_on_is_in_the_request_context_and_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body() -> None:
        slow = Slow()
        session = await World().open("s", hooks=slow_hooks(slow))
        with pytest.raises(HookError):
            await session.prepare("Q")
        assert [record.getMessage().partition(":")[0] for record in lines()] == [
            "hook slow of session s still runs after its limit"
        ]
        turn = await session.prepare("Q")
        (warning,) = turn.context.warnings
        assert warning.startswith("hook 'slow' still runs, 0.")
        assert warning.endswith("what it returns is not used")
        (request,) = [e for e in session.entries if isinstance(e, RequestEntry)]
        assert request.context.warnings == (warning,)
        await turn.commit(openai_reply())
        # It was told of once.
        assert (await session.prepare("Q2")).context.warnings == ()
        await slow.end()
        assert lines()[-1].getMessage().startswith("hook slow of session s ended late: ms ")
        (warning,) = (await session.prepare("Q3")).context.warnings
        assert warning.startswith("hook 'slow' ran on for 0.")
        assert (await session.prepare("Q4")).context.warnings == ()

    def lines() -> list[logging.LogRecord]:
        return [record for record in caplog.records if record.name == "lamina.hooks"]

    with caplog.at_level(logging.WARNING, logger="lamina"):
        run(body())


def test_a_slow_hook_on_an_answer_is_told_of_with_the_answer() -> None:
    async def body() -> None:
        slow, hooks = Slow(), Hooks()

        @hooks.message(name="slow", timeout=LIMIT)
        def hook(event: MessageEvent) -> Any:
            return slow(event) if event.message.role == "assistant" else None

        session = await World().open(hooks=hooks)
        turn = await talk(session)
        assert any("'slow': took longer" in warning for warning in turn.warnings)
        assert any("'slow' still runs" in warning for warning in turn.warnings)
        await slow.end()

    run(body())


def test_a_session_closes_while_a_hook_runs_on() -> None:
    async def body() -> None:
        slow = Slow()
        world = World()
        session = await world.open("s", hooks=slow_hooks(slow))
        with pytest.raises(HookError):
            await session.prepare("Q")
        with anyio.fail_after(20):
            await session.close()
        assert not slow.over.is_set()
        await (await world.open("s")).close()
        await slow.end()

    run(body())


def test_a_hook_that_ends_its_thread_has_failed() -> None:
    async def body() -> None:
        hooks = Hooks()

        @hooks.context(name="leaver")
        def leave(event: ContextEvent) -> None:
            raise SystemExit(3)

        session = await World().open(hooks=hooks)
        with pytest.raises(HookError, match=r"'leaver': RuntimeError: SystemExit\(3\)"):
            await session.prepare("Q")

    run(body())
