"""Stopping: at any moment, by whoever; what there is by then is kept and the session goes on."""

from typing import Any

import anyio
import pytest
from tests.engine.runners.scenes import Scene
from tests.fakes.providers import Script, calling, saying, spoken
from tests.fakes.renderers import WORDS
from tests.fakes.sessions import run, words
from tests.fakes.summarizer import NEVER, FakeSummarizer
from tests.fakes.tools import ApproverFake, tool

from lamina.core.values.entry import LeaveEntry, MessageEntry, ReplyEntry, ResultEntry
from lamina.core.values.event import (
    ApprovalDecided,
    BlockDelta,
    BlockEnded,
    BlockStarted,
    Event,
    PromptProgress,
    RequestStarted,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    UsageReported,
)
from lamina.core.values.wire import ProgressPiece, TextPiece
from lamina.engine.runners.runner import STOPPED, Delivery
from lamina.engine.sources.hooks import ContextEvent, Hooks, MessageEvent
from lamina.errors import TurnStateError


async def stop_when(scene: Scene, waits: anyio.Event, how: str) -> str:
    """Asks, and stops once somebody waits: by `abort`, or by cancelling the caller."""
    ending = "cancelled"

    async def ask() -> None:
        nonlocal ending
        ending = (await scene.ask("Which berth?")).ending

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await waits.wait()
            if how == "abort":
                assert scene.runner.abort()
            else:
                group.cancel_scope.cancel()
    assert not scene.runner.running
    return ending


either = pytest.mark.parametrize("how", ["abort", "cancel"])


@either
def test_what_came_of_an_answer_is_kept(how: str) -> None:
    async def body() -> None:
        script: Script = [ProgressPiece(done=5, total=5), *spoken("Berth nine is"), anyio.Event()]
        async with Scene(script) as scene:
            ending = await stop_when(scene, scene.provider.waits, how)
            assert ending == ("aborted" if how == "abort" else "cancelled")
            assert scene.history[-1] == ("assistant", "Berth nine is")
            assert scene.kept(MessageEntry)[-1].interrupted
            reply = scene.kept(ReplyEntry)[-1]
            assert (reply.stop, reply.usage.input, reply.usage.output) == ("stopped", 5, 3)
            assert scene.provider.closed == 1
            if how == "abort":
                assert scene.events[-1] == TurnEnded(ending="aborted", answer="Berth nine is")
            await scene.require_sound()

    run(body())


@either
def test_a_question_without_a_word_of_an_answer_stays_open(how: str) -> None:
    async def body() -> None:
        async with Scene([anyio.Event()]) as scene:
            await stop_when(scene, scene.provider.waits, how)
            assert scene.runner.session.interrupted
            scene.plays(saying("Nine."))
            assert (await scene.go_on()).text == "Nine."
            assert scene.history == [("user", "Which berth?"), ("assistant", "Nine.")]
            await scene.require_sound()

    run(body())


@either
def test_half_a_call_is_no_call(how: str) -> None:
    async def body() -> None:
        script = [*spoken("Let me see"), *calling(("c", "find", {}))[:-1], anyio.Event()]
        async with Scene(script, tools=[tool("find")]) as scene:
            await stop_when(scene, scene.provider.waits, how)
            assert scene.history[-1] == ("assistant", "Let me see")
            assert scene.host.calls == []
            assert scene.runner.session.pending_calls == ()
            await scene.require_sound()

    run(body())


@either
def test_a_tool_that_is_stopped_is_not_said_not_to_have_run(how: str) -> None:
    async def body() -> None:
        calls = calling(("a", "quick", {}), ("b", "slow", {}), ("c", "asked", {}))
        approver = ApproverFake(anyio.Event())
        tools = [tool("quick"), tool("slow"), tool("asked", "required")]
        async with Scene(calls, tools=tools, approver=approver) as scene:
            scene.host.held["slow"] = anyio.Event()

            def started(event: Event, number: int) -> None:
                if isinstance(event, ToolFinished):
                    both.set()

            both = anyio.Event()
            scene.on_event = started
            await stop_when(scene, both, how)
            assert sorted(scene.host.called) == ["quick", "slow"]
            assert scene.host.stopped == ["slow"]
            assert scene.history[-1] == (
                "tool",
                f"quick gave {{}} | {WORDS.call_cut_short} | {STOPPED}",
            )
            assert scene.kept(LeaveEntry)
            with pytest.raises(TurnStateError):
                await scene.go_on()
            await scene.require_sound()
            assert len(scene.host.calls) == 2

    run(body())


@either
def test_a_result_that_is_there_is_kept(how: str) -> None:
    async def body() -> None:
        async with Scene(calling(("a", "find", {})), tools=[tool("find")]) as scene:
            ran = anyio.Event()

            def watch(event: Event, number: int) -> None:
                if isinstance(event, ToolFinished):
                    ran.set()
                    if how == "abort":
                        scene.runner.abort()

            scene.on_event = watch
            hung = anyio.Event()
            scene.plays([hung])
            if how == "abort":
                assert (await scene.ask()).ending == "aborted"
            else:
                await stop_when(scene, scene.provider.waits, how)
            assert [entry.result.text for entry in scene.kept(ResultEntry)] == ["find gave {}"]
            scene.on_event = None
            scene.provider.scripts.clear()
            await scene.require_sound()
            assert scene.results == ["find gave {}"]
            assert scene.host.called == ["find"]

    run(body())


@either
def test_nobody_is_left_to_decide(how: str) -> None:
    async def body() -> None:
        approver = ApproverFake(anyio.Event())
        script = calling(("a", "find", {}))
        async with Scene(script, tools=[tool("find", "required")], approver=approver) as scene:
            await stop_when(scene, approver.waits, how)
            assert scene.history[-1] == ("tool", STOPPED)
            assert scene.host.calls == []
            await scene.require_sound()

    run(body())


@either
def test_a_turn_that_is_stopped_while_tools_are_listed_has_asked_nothing(how: str) -> None:
    async def body() -> None:
        async with Scene() as scene:
            await scene.ask("Before?")
            scene.host.listing = anyio.Event()
            await stop_when(scene, scene.host.waits, how)
            scene.host.listing = None
            assert scene.history == [("user", "Before?"), ("assistant", "Done.")]
            if how == "abort":
                # Not the answer to the question before.
                assert scene.events[-1] == TurnEnded(ending="aborted", answer="", requests=0)
            await scene.require_sound()

    run(body())


@either
def test_a_turn_that_is_stopped_while_it_is_prepared_has_asked_nothing(how: str) -> None:
    async def body() -> None:
        hooks, waits = Hooks(), anyio.Event()

        @hooks.context
        async def hang(event: object) -> None:
            if scene.provider.bodies:
                waits.set()
                await anyio.Event().wait()

        async with Scene(hooks=hooks) as scene:
            await scene.ask("Before?")
            await stop_when(scene, waits, how)
            assert scene.history == [("user", "Before?"), ("assistant", "Done.")]
            assert not scene.runner.session.interrupted
            scene.provider.bodies.clear()
            await scene.require_sound()

    run(body())


@either
def test_an_answer_is_kept_if_a_hook_on_it_is_stopped(how: str) -> None:
    async def body() -> None:
        hooks, waits = Hooks(), anyio.Event()

        @hooks.message
        async def hang(event: MessageEvent) -> None:
            if event.message.role == "assistant" and not waits.is_set():
                waits.set()
                await anyio.Event().wait()

        async with Scene(saying("Nine."), hooks=hooks) as scene:
            await stop_when(scene, waits, how)
            assert scene.history[-1] == ("assistant", "Nine.")
            assert not scene.kept(MessageEntry)[-1].interrupted
            await scene.require_sound()

    run(body())


@either
def test_an_answer_is_kept_if_the_compaction_behind_it_is_stopped(how: str) -> None:
    async def body() -> None:
        summarizer = FakeSummarizer(NEVER)
        limits: dict[str, Any] = {"window": 1_200, "output_reserve": 100}
        async with Scene(summarizer=summarizer, **limits) as scene:
            for number in range(4):
                scene.plays(saying(words(100, f"a{number}")))
                await scene.ask(words(100, f"q{number}"))
            scene.plays(saying(words(90, "last")))
            waits = anyio.Event()

            async def watch() -> None:
                while not summarizer.asked:
                    await anyio.lowlevel.checkpoint()
                waits.set()

            async with anyio.create_task_group() as group:
                group.start_soon(watch)
                await stop_when(scene, waits, how)
            assert summarizer.cancelled == 1
            assert scene.history[-1] == ("assistant", words(90, "last"))
            assert not scene.kept(MessageEntry)[-1].interrupted
            if how == "abort":
                assert scene.events[-1] == TurnEnded(ending="aborted", answer=words(90, "last"))
            summarizer._answers = ("## Goal\nThe plan.",)
            await scene.require_sound()

    run(body())


@pytest.mark.parametrize("deliver", ["steer", "follow_up"])
def test_what_was_said_meanwhile_and_not_taken_up_still_waits(deliver: Delivery) -> None:
    async def body() -> None:
        hooks, waits = Hooks(), anyio.Event()

        @hooks.context
        async def hang(event: ContextEvent) -> None:
            assert event.message is not None
            if event.message.text == "The north pier." and not waits.is_set():
                waits.set()
                await anyio.Event().wait()

        async with Scene(calling(("a", "find", {})), tools=[tool("find")], hooks=hooks) as scene:

            async def send(event: Event, number: int) -> None:
                if isinstance(event, RequestStarted) and len(scene.provider.bodies) == 0:
                    await scene.agent.send_message("The north pier.", deliver=deliver)

            scene.on_event = send
            await stop_when(scene, waits, "abort")
            assert "The north pier." not in str(scene.history)
            scene.on_event = None
            answer = await scene.ask("And now?")
            assert (answer.ending, answer.requests) == ("answered", 1)
            asked = [text for role, text in scene.history if role == "user"]
            assert asked == ["Which berth?", "The north pier.", "And now?"]
            await scene.verify()

    run(body())


@pytest.mark.parametrize("kind", [RequestStarted, PromptProgress, BlockStarted, BlockDelta,
                                  BlockEnded, UsageReported, ToolStarted, ToolFinished,
                                  ApprovalDecided])  # fmt: skip
@pytest.mark.parametrize("slow", [False, True], ids=["at once", "while it listens"])
def test_a_turn_can_be_stopped_by_whoever_hears_of_it(kind: type[Event], slow: bool) -> None:
    async def body() -> None:
        first: Script = [ProgressPiece(done=1, total=1), *calling(("a", "find", {}), text="See:")]
        tools = [tool("find", "required")]
        approver = ApproverFake("allow_once")
        async with Scene(first, tools=tools, approver=approver) as scene:
            stopped: list[Event] = []

            async def listen(event: Event) -> None:
                if isinstance(event, kind) and not stopped:
                    stopped.append(event)
                    assert scene.runner.abort()
                    if slow:
                        await anyio.lowlevel.checkpoint()

            answer = await scene.runner.run("Which berth?", on_event=listen)
            assert stopped
            assert answer.ending == "aborted"
            await scene.verify()
            kept = scene.history
            if kind in (BlockDelta, BlockEnded):
                assert kept[1] == ("assistant", "See:")
            scene.provider.scripts.clear()
            await scene.require_sound()
            assert len(scene.host.calls) <= 1

    run(body())


def test_there_is_nothing_to_stop_when_nothing_runs() -> None:
    async def body() -> None:
        async with Scene() as scene:
            assert not scene.runner.abort()
            await scene.ask()
            assert not scene.runner.abort()

    run(body())


def test_a_stopped_turn_of_two_can_be_followed_by_a_restart() -> None:
    async def body() -> None:
        async with Scene([TextPiece("Nine"), anyio.Event()], tools=[tool("find")]) as scene:
            await stop_when(scene, scene.provider.waits, "abort")
            await scene.restart()
            assert scene.history[-1] == ("assistant", "Nine")
            await scene.require_sound()

    run(body())
