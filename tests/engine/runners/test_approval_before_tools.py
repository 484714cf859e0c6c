"""Who may run: what is asked, what a decision holds for, and calls that wait for one."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest
from tests.engine.runners.scenes import Scene
from tests.fakes.providers import calling, saying
from tests.fakes.sessions import run
from tests.fakes.tools import ApproverFake, tool

from lamina.adapters.stores.jsonl import JsonlStore
from lamina.adapters.stores.memory import MemoryStore
from lamina.core.ports import JournalStore
from lamina.core.values.entry import DecisionEntry, ResultEntry
from lamina.core.values.event import (
    ApprovalDecided,
    ApprovalWanted,
    Event,
    ToolFinished,
    ToolStarted,
    TurnEnded,
)
from lamina.core.values.tool import DENIED, ApprovalPolicy, Decision, Permission
from lamina.errors import TurnStateError, UsageError

ASKED: dict[tuple[ApprovalPolicy, Permission], bool] = {
    ("always", "required"): True,
    ("always", "free"): True,
    ("tool", "required"): True,
    ("tool", "free"): False,
    ("never", "required"): False,
    ("never", "free"): False,
}


@pytest.mark.parametrize("decision", ["allow_once", "allow_session", "deny"])
@pytest.mark.parametrize(("asking", "permission"), list(ASKED))
def test_a_person_is_asked_as_session_and_tool_say(
    asking: ApprovalPolicy, permission: Permission, decision: Decision
) -> None:
    async def body() -> None:
        script = (calling(("a", "find", {})), calling(("b", "find", {})))
        approver = ApproverFake(decision)
        async with Scene(
            *script, tools=[tool("find", permission)], approver=approver, ask_before_tools=asking
        ) as scene:
            assert (await scene.ask()).ending == "answered"
            asked = ASKED[asking, permission]
            again = asked and decision != "allow_session"
            assert approver.asked == ["a"] * asked + ["b"] * again
            denied = asked and decision == "deny"
            assert scene.results == [DENIED if denied else "find gave {}"] * 2
            assert all(each.result.is_error == denied for each in scene.told(ToolFinished))
            assert len(scene.host.calls) == (0 if denied else 2)
            assert len(scene.kept(DecisionEntry)) == len(approver.asked)
            assert (
                len(scene.told(ApprovalWanted)) == len(scene.told(ApprovalDecided)) == asked + again
            )
            await scene.require_sound()

    run(body())


def test_a_denial_is_told_to_the_model_in_these_words() -> None:
    assert DENIED == "Tool call denied"


def test_approval_events_come_before_the_tool_runs() -> None:
    async def body() -> None:
        approver = ApproverFake("allow_once")
        async with Scene(
            calling(("a", "find", {})), tools=[tool("find", "required")], approver=approver
        ) as scene:
            await scene.ask()
            kinds = (ApprovalWanted, ApprovalDecided, ToolStarted, ToolFinished)
            assert [type(e) for e in scene.events if isinstance(e, kinds)] == list(kinds)

    run(body())


def test_what_is_allowed_for_the_session_is_not_asked_for_another_call_of_the_answer() -> None:
    async def body() -> None:
        calls = calling(("a", "find", {"n": 1}), ("b", "find", {"n": 2}), ("c", "other", {}))
        approver = ApproverFake("allow_session", "deny")
        tools = [tool("find", "required"), tool("other", "required")]
        async with Scene(calls, tools=tools, approver=approver) as scene:
            await scene.ask()
            assert approver.asked == ["a", "c"]
            assert [each.call.id for each in scene.told(ApprovalWanted)] == ["a", "c"]
            assert scene.results == ["find gave {'n': 1}", "find gave {'n': 2}", DENIED]
            await scene.require_sound()

    run(body())


@pytest.mark.parametrize("kind", ["memory", "files"])
def test_what_is_allowed_for_the_session_holds_after_a_restart_for_that_definition(
    kind: str, tmp_path: Path
) -> None:
    async def body() -> None:
        store: JournalStore = MemoryStore() if kind == "memory" else JsonlStore(tmp_path)
        approver = ApproverFake("allow_session", "deny")
        tools = [tool("find", "required")]
        script = [calling((f"c{n}", "find", {})) for n in range(2)]
        async with Scene(*script[:1], tools=tools, approver=approver, store=store) as scene:
            await scene.ask()
            await scene.restart()
            scene.plays(script[1])
            await scene.ask()
            assert approver.asked == ["c0"]
            scene.host.tools = [tool("find", "required", description="Finds and deletes.")]
            scene.plays(calling(("c2", "find", {})))
            await scene.ask()
            assert approver.asked == ["c0", "c2"]
            assert scene.results[-1] == DENIED
            # Back to what was allowed.
            scene.host.tools = tools
            scene.plays(calling(("c3", "find", {})))
            await scene.ask()
            assert approver.asked == ["c0", "c2"]
            await scene.require_sound()

    run(body())


def test_what_is_allowed_in_one_session_is_not_in_another() -> None:
    async def body() -> None:
        approver = ApproverFake("allow_session")
        async with Scene(
            calling(("a", "find", {})), tools=[tool("find", "required")], approver=approver
        ) as scene:
            await scene.ask()
            await scene.runner.__aexit__()
            await scene.open("another")
            scene.plays(calling(("b", "find", {})))
            await scene.ask()
            assert approver.asked == ["a", "b"]

    run(body())


# -- mixed turns: some run, some wait -------------------------------------------------------------

MIXED = calling(("a", "free", {}), ("b", "asked", {"n": 1}), ("c", "asked", {"n": 2}))
TOOLS = [tool("free"), tool("asked", "required")]


def test_free_calls_run_and_the_others_wait() -> None:
    async def body() -> None:
        async with Scene(MIXED, tools=TOOLS) as scene:
            answer = await scene.ask("Which berth?")
            assert (answer.ending, answer.requests) == ("waiting", 1)
            assert [call.call.id for call in answer.waiting_calls] == ["b", "c"]
            assert answer.waiting_calls[0].tool == TOOLS[1]
            assert [each.call.id for each in scene.told(ApprovalWanted)] == ["b", "c"]
            assert [call.id for call in scene.runner.session.pending_calls] == ["b", "c"]
            assert scene.host.called == ["free"]
            assert [each.result.call_id for each in scene.kept(ResultEntry)] == ["a"]
            assert scene.events[-1] == TurnEnded(ending="waiting", answer="", requests=1)
            await scene.verify()

    run(body())


@pytest.mark.parametrize("restarts", [False, True])
def test_decisions_are_taken_up_and_nothing_runs_twice(restarts: bool, tmp_path: Path) -> None:
    async def body() -> None:
        async with Scene(MIXED, tools=TOOLS, store=JsonlStore(tmp_path)) as scene:

            async def between() -> None:
                if restarts:
                    await scene.restart()

            await scene.ask("Which berth?")
            await between()
            await scene.agent.decide("b", "deny")
            await between()
            answer = await scene.go_on()
            assert (answer.ending, [call.call.id for call in answer.waiting_calls]) == (
                "waiting",
                ["c"],
            )
            assert scene.host.called == ["free"]
            await between()
            await scene.agent.decide("c", "allow_once")
            await between()
            scene.plays(saying("Nine."))
            answer = await scene.go_on()
            assert (answer.ending, answer.text) == ("answered", "Nine.")
            assert scene.host.called == ["free", "asked"]
            assert scene.results == ["free gave {}", DENIED, "asked gave {'n': 2}"]
            await scene.require_sound()

    run(body())


def test_allowing_one_call_for_the_session_frees_the_other() -> None:
    async def body() -> None:
        async with Scene(MIXED, tools=TOOLS) as scene:
            await scene.ask()
            await scene.agent.decide("c", "allow_session")
            assert (await scene.go_on()).ending == "answered"
            assert scene.host.called == ["free", "asked", "asked"]
            await scene.require_sound()

    run(body())


@pytest.mark.parametrize("decision", ["allow_once", "allow_session", "deny"])
def test_a_decision_is_about_the_tool_that_was_shown(decision: Decision) -> None:
    async def body() -> None:
        async with Scene(calling(("a", "asked", {})), tools=TOOLS) as scene:
            await scene.ask()
            await scene.agent.decide("a", decision)
            scene.host.tools = [tool("asked", "required", description="Deletes everything.")]
            answer = await scene.go_on()
            assert scene.host.calls == []
            if decision == "deny":
                assert (answer.ending, scene.results) == ("answered", [DENIED])
            else:
                assert answer.ending == "waiting"
                await scene.agent.decide("a", "deny")
                assert (await scene.go_on()).ending == "answered"
            await scene.require_sound()

    run(body())


def test_a_decision_can_be_changed_until_it_is_taken_up() -> None:
    async def body() -> None:
        async with Scene(calling(("a", "asked", {})), tools=TOOLS) as scene:
            await scene.ask()
            await scene.agent.decide("a", "allow_once")
            await scene.agent.decide("a", "deny")
            await scene.go_on()
            assert scene.results == [DENIED]

    run(body())


def test_only_calls_that_wait_can_be_decided() -> None:
    async def body() -> None:
        async with Scene(MIXED, tools=TOOLS) as scene:
            with pytest.raises(TurnStateError, match="call 'a' is not waiting"):
                await scene.agent.decide("a", "deny")
            await scene.ask()
            with pytest.raises(TurnStateError, match="call 'a' is not waiting"):
                await scene.agent.decide("a", "deny")
            with pytest.raises(UsageError, match="'maybe' is not one of"):
                await scene.agent.decide("b", "maybe")  # type: ignore[arg-type]
            scene.host.tools = []
            await scene.restart()
            with pytest.raises(TurnStateError, match="no longer exists"):
                await scene.agent.decide("b", "deny")
            assert scene.kept(DecisionEntry) == []

    run(body())


async def through_run(scene: Scene) -> None:
    await scene.ask()


async def through_stream(scene: Scene) -> None:
    async with scene.runner.stream("Q") as events:
        assert [event async for event in events]


@pytest.mark.parametrize("ask", [through_run, through_stream])
def test_whoever_listened_to_the_turn_is_not_told_of_decisions_after_it(
    ask: Callable[[Scene], Awaitable[None]],
) -> None:
    async def body() -> None:
        async with Scene(calling(("a", "asked", {})), tools=TOOLS) as scene:
            await ask(scene)
            told = len(scene.events)
            await scene.agent.decide("a", "deny")
            assert len(scene.events) == told
            await scene.go_on()
            assert scene.results == [DENIED]

    run(body())


def test_while_one_is_asked_the_free_calls_run() -> None:
    async def body() -> None:
        approver = ApproverFake(anyio.Event())
        async with Scene(MIXED, tools=TOOLS, approver=approver) as scene:
            scene.abort_at(ToolFinished)
            with anyio.fail_after(5):
                answer = await scene.ask()
            assert answer.ending == "aborted"
            assert scene.host.called == ["free"]

    run(body())


def test_an_approver_that_fails_stops_no_tool_and_the_turn_can_be_gone_on_with() -> None:
    async def body() -> None:
        approver = ApproverFake(RuntimeError("no screen"), "allow_once")
        async with Scene(MIXED, tools=TOOLS, approver=approver) as scene:
            release = scene.host.held["free"] = anyio.Event()

            async def let_go() -> None:
                await scene.host.waits.wait()
                while not approver.asked:
                    await anyio.lowlevel.checkpoint()
                release.set()

            async with anyio.create_task_group() as group:
                group.start_soon(let_go)
                with pytest.raises(RuntimeError, match="no screen"):
                    await scene.ask()
            assert scene.host.stopped == []
            assert [each.result.call_id for each in scene.kept(ResultEntry)] == ["a"]
            assert [call.id for call in scene.runner.session.pending_calls] == ["b", "c"]
            assert (await scene.go_on()).ending == "answered"
            assert scene.host.called == ["free", "asked", "asked"]
            await scene.require_sound()

    run(body())


def test_an_approver_that_says_something_else_has_decided_nothing() -> None:
    async def body() -> None:
        approver = ApproverFake("sure", "allow_once")  # type: ignore[arg-type]
        async with Scene(calling(("a", "asked", {})), tools=TOOLS, approver=approver) as scene:
            with pytest.raises(UsageError, match="'sure' is not one of"):
                await scene.ask()
            assert scene.host.calls == []
            assert (await scene.go_on()).ending == "answered"
            await scene.require_sound()

    run(body())


def test_what_waits_can_be_decided_from_a_listener_that_is_told_at_the_end() -> None:
    async def body() -> None:
        async with Scene(calling(("a", "asked", {})), tools=TOOLS) as scene:
            endings: list[str] = []

            async def listen(event: Event) -> None:
                if isinstance(event, TurnEnded) and event.ending == "waiting":
                    await scene.agent.decide("a", "allow_once")
                    endings.append((await scene.runner.resume(on_event=listen)).ending)

            await scene.runner.run("Q", on_event=listen)
            assert endings == ["answered"]
            await scene.require_sound()

    run(body())
