"""Hooks in an agent's turn: at its start, and on results before a model sees them."""

import anyio
import pytest
from tests.engine.runners.scenes import Scene
from tests.fakes.providers import Script, calling, saying, spoken
from tests.fakes.sessions import run
from tests.fakes.tools import ApproverFake, tool

from lamina.core.values.entry import RequestEntry, TransformEntry
from lamina.core.values.event import BlockDelta, BlockEnded, ToolFinished, WarningIssued
from lamina.core.values.message import Message, ToolResult
from lamina.core.values.patch import SystemPartSet
from lamina.core.values.tool import ToolOutput
from lamina.engine.sources.hooks import ContextEvent, Hooks, MessageEvent
from lamina.errors import HookError, ProviderError


def test_a_hook_at_the_start_runs_once_a_question_and_replays_without_it() -> None:
    async def body() -> None:
        hooks = Hooks()
        started: list[str] = []

        @hooks.context(reason="before_agent_start", name="briefing")
        async def brief(event: ContextEvent) -> SystemPartSet:
            assert event.message is not None
            started.append(event.message.text)
            text = f"It is about: {event.message.text}"
            return SystemPartSet(name="topic", text=text, reason="a new topic")

        script = (calling(("a", "find", {})), calling(("b", "find", {})))
        scene = Scene(*script, tools=[tool("find")], hooks=hooks)
        async with scene:
            await scene.ask("Berths")
            await scene.ask("Cranes")
            assert started == ["Berths", "Cranes"]
            systems = [body["messages"][0]["content"] for body in scene.provider.bodies]
            assert systems == ["It is about: Berths"] * 3 + ["It is about: Cranes"]
            written = [e for e in scene.kept(TransformEntry) if e.transformer == "briefing"]
            assert len(written) == 2
            last = scene.kept(RequestEntry)[-1].context.agreement.broke
            assert last is not None
            assert "a new topic" in last.reason
            hooks.context_hooks.clear()
            await scene.restart()
            await scene.ask("And now?")
            assert scene.provider.bodies[-1]["messages"][0]["content"] == "It is about: Cranes"
            await scene.verify()

    run(body())


def redact(event: MessageEvent) -> Message | None:
    if event.message.role != "tool":
        return None
    blocks = tuple(
        ToolResult(call_id=b.call_id, name=b.name, text=b.text.replace("hunter2", "***"))
        for b in event.message.blocks
        if isinstance(b, ToolResult)
    )
    return Message(role="tool", blocks=blocks)


@pytest.mark.parametrize("then", ["answer", "steer", "new question", "abort"])
def test_a_message_hook_sees_results_before_any_model_does(then: str) -> None:
    async def body() -> None:
        hooks = Hooks()
        hooks.message(redact)
        calls = calling(("a", "find", {}), ("b", "ask", {}))
        tools = [tool("find"), tool("ask", "required")]
        deny = then in ("answer", "steer")
        async with Scene(
            calls, tools=tools, hooks=hooks, approver=ApproverFake("deny") if deny else None
        ) as scene:
            scene.host.outputs["find"] = ToolOutput(text="hunter2")
            if then == "steer":
                await scene.agent.send_message("Go on.")
            if then == "abort":
                scene.abort_at(ToolFinished)
            await scene.ask()
            if not deny:
                await scene.ask("Well?")
            assert scene.results[0] == "***"
            assert "hunter2" not in str(scene.provider.bodies)
            await scene.verify()

    run(body())


def test_a_hook_that_fails_on_results_is_told_and_takes_nothing_away() -> None:
    async def body() -> None:
        hooks = Hooks()

        @hooks.message(name="clumsy")
        async def clumsy(event: MessageEvent) -> None:
            if event.message.role == "tool":
                raise ValueError("oh")

        async with Scene(calling(("a", "find", {})), tools=[tool("find")], hooks=hooks) as scene:
            answer = await scene.ask()
            assert scene.results == ["find gave {}"]
            assert any("clumsy" in warning for warning in answer.warnings)

    run(body())


def test_a_hook_that_stops_a_request_between_tools_leaves_the_results() -> None:
    async def body() -> None:
        hooks = Hooks()

        @hooks.context(name="strict")
        async def strict(event: ContextEvent) -> None:
            if (
                event.message is not None
                and event.message.role == "tool"
                and not scene.told(WarningIssued)
            ):
                raise ValueError("not now")

        async with Scene(calling(("a", "find", {})), tools=[tool("find")], hooks=hooks) as scene:
            with pytest.raises(HookError):
                await scene.ask()
            hooks.context_hooks.clear()
            await scene.restart()
            assert (await scene.go_on()).ending == "answered"
            assert scene.host.called == ["find"]
            await scene.require_sound()

    run(body())


def watch_ends(endings: list[str]) -> Hooks:
    """Hooks that run at the end of a turn, change L1 there, and keep the answers they saw."""
    hooks = Hooks()

    @hooks.context(reason="turn_end", name="diary")
    async def write(event: ContextEvent) -> SystemPartSet:
        assert event.message is not None
        endings.append(event.message.text)
        return SystemPartSet(name="diary", text=event.message.text, reason="a turn ended")

    return hooks


BROKEN_OFF: dict[str, Script] = {
    "the provider fails": [*spoken("Berth nine"), ProviderError("the line is down")],
    "the stream ends": spoken("Berth nine"),
}


@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize("how", BROKEN_OFF)
def test_an_answer_that_breaks_off_ends_no_turn(how: str, chat: bool) -> None:
    async def body() -> None:
        endings: list[str] = []
        async with Scene(BROKEN_OFF[how], hooks=watch_ends(endings), chat=chat) as scene:
            with pytest.raises(ProviderError):
                await scene.ask()
            await require_no_end(scene, endings, "Berth nine")

    run(body())


@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize("how", ["while it comes in", "when it is there"])
def test_an_answer_that_is_stopped_ends_no_turn(how: str, chat: bool) -> None:
    async def body() -> None:
        endings: list[str] = []
        async with Scene(saying("Berth nine"), hooks=watch_ends(endings), chat=chat) as scene:
            if how == "while it comes in":
                scene.abort_at(BlockDelta, after=1)
            else:
                scene.abort_at(BlockEnded)
            assert (await scene.ask()).ending == "aborted"
            await require_no_end(scene, endings, "Berth nine")

    run(body())


def test_an_answer_whose_caller_is_cancelled_ends_no_turn() -> None:
    async def body() -> None:
        endings: list[str] = []
        script: Script = [*spoken("Berth nine"), anyio.Event()]
        async with Scene(script, hooks=watch_ends(endings)) as scene:
            with anyio.fail_after(5):
                async with anyio.create_task_group() as group:
                    group.start_soon(scene.ask)
                    await scene.provider.waits.wait()
                    group.cancel_scope.cancel()
            await require_no_end(scene, endings, "Berth nine")

    run(body())


async def require_no_end(scene: Scene, endings: list[str], text: str) -> None:
    """What came of the answer is kept, and the hooks ran for the next answer alone."""
    assert scene.history[-1] == ("assistant", text)
    assert endings == []
    assert not [entry for entry in scene.kept(TransformEntry) if entry.transformer == "diary"]
    await scene.require_sound()
    assert endings == ["Done."]
