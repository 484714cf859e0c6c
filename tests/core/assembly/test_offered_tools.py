"""Which tools a model is told of: they stand first on the wire, so they seldom move."""

from typing import Any

import pytest
from tests.engine.runners.scenes import Scene
from tests.fakes.sessions import run
from tests.fakes.tools import of_host, tool

from lamina.core.values.entry import TransformEntry
from lamina.core.values.tool import WithheldTool
from lamina.errors import ProviderError


def names(body: Any) -> list[str]:
    return of_host(each["function"]["name"] for each in body.get("tools", ()))


def test_a_tool_that_went_away_leaves_the_list_with_a_reason_and_is_reported() -> None:
    """Issue 16, B.6: a definition without an implementation is not sent."""

    async def body() -> None:
        async with Scene(tools=[tool("a"), tool("b")]) as scene:
            await scene.ask()
            scene.host.tools = [tool("b")]
            answer = await scene.ask()
            assert names(scene.provider.bodies[-1]) == ["b"]
            assert answer.turn is not None
            broke = answer.turn.context.agreement.broke
            assert broke is not None
            assert broke.reason == "tools gone: a"
            assert answer.warnings == ("not offered, because nothing here can run it: a",)
            (left,) = answer.turn.context.left_out
            assert (left.what, left.reason) == ("tool:fake/a", "removed")

    run(body())


def test_a_new_tool_comes_last_with_a_reason_and_those_that_went_leave_then() -> None:
    async def body() -> None:
        async with Scene(tools=[tool("a"), tool("b"), tool("c")]) as scene:
            await scene.ask()
            scene.host.tools = [tool("new"), tool("c"), tool("a")]
            answer = await scene.ask()
            assert names(scene.provider.bodies[-1]) == ["a", "c", "new"]
            assert answer.turn is not None
            broke = answer.turn.context.agreement.broke
            assert broke is not None
            assert broke.reason == "tools gone: b; tools new: new"
            assert any("can run it: b" in warning for warning in answer.warnings)
            await scene.require_sound()

    run(body())


def test_tools_in_another_order_are_the_same_tools() -> None:
    async def body() -> None:
        async with Scene(tools=[tool("a"), tool("b")]) as scene:
            await scene.ask()
            scene.host.tools = [tool("b"), tool("a")]
            await scene.restart()
            await scene.ask()
            first, second = scene.provider.bodies
            assert first["tools"] == second["tools"]
            assert len(scene.kept(TransformEntry)) == 1

    run(body())


def test_a_tool_that_says_otherwise_of_itself_keeps_its_place() -> None:
    async def body() -> None:
        async with Scene(tools=[tool("a"), tool("b")]) as scene:
            await scene.ask()
            scene.host.tools = [tool("a", description="Does more."), tool("b")]
            answer = await scene.ask()
            assert names(scene.provider.bodies[-1]) == ["a", "b"]
            assert answer.turn is not None
            broke = answer.turn.context.agreement.broke
            assert broke is not None
            assert "tools changed: a" in broke.reason

    run(body())


def test_before_anything_was_sent_tools_come_and_go_for_nothing() -> None:
    async def body() -> None:
        async with Scene([ProviderError("no line")], tools=[tool("a"), tool("b")]) as scene:
            with pytest.raises(ProviderError):
                await scene.ask()
            scene.host.tools = [tool("b")]
            await scene.ask("Again?")
            assert names(scene.provider.bodies[-1]) == ["b"]
            await scene.require_sound()

    run(body())


def test_a_server_that_is_down_is_told_once() -> None:
    async def body() -> None:
        async with Scene() as scene:
            scene.host.withheld = [
                WithheldTool(what="maps", reason="unreachable", detail="maps does not answer")
            ]
            assert (await scene.ask()).warnings == ("maps: maps does not answer",)
            assert (await scene.ask()).warnings == ()

    run(body())
