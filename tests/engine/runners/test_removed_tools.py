"""Issue 16, B.6: a tool that a person or a hook removes leaves at once and stays away until it is
given back; one that nobody here can run is not offered. `test_offered_is_recorded.py` has the law
for whatever happens."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.engine.runners.scenes import Scene
from tests.engine.runners.test_offered_is_recorded import names_on_wire
from tests.fakes.book import SMALL
from tests.fakes.index import IndexFake
from tests.fakes.providers import calling, saying
from tests.fakes.sessions import run
from tests.fakes.tools import ApproverFake, of_host, tool

from lamina.core.values.entry import TransformEntry
from lamina.core.values.message import ToolCall, ToolDefinition
from lamina.core.values.patch import ToolsRemove, ToolsReplace
from lamina.core.values.settings import Target
from lamina.core.values.tool import Decision, OfferedTool
from lamina.engine.runners.caller import REMOVED
from lamina.engine.sources.hooks import ContextEvent, Hooks

BARS = replace(SMALL, model="bars", restricts_tools=True)
EMBEDDED = replace(BARS, model="embedded", wire="llamacpp")
ANTHROPIC = replace(SMALL, model="claude", wire="anthropic")
# A file of models may claim it; the wire has no way to say it.
GEMINI = replace(SMALL, model="flash", wire="gemini", restricts_tools=True)
PLAIN = (SMALL, ANTHROPIC, GEMINI)
OWN = ToolDefinition(name="own", description="An application's own.")


def listed(scene: Scene) -> list[str]:
    """What stands on the wire of the last request; it is what the journal says of it."""
    target = scene.book.find(scene.context.target)
    names = names_on_wire(scene.provider.bodies[-1], target)
    assert names == [row.name for row in scene.context.tools]
    return of_host(names)


def offered(scene: Scene) -> list[str]:
    return [name for name in listed(scene) if scene.context.allows(name)]


def broke(scene: Scene) -> str:
    agreement = scene.context.agreement
    return agreement.broke.reason if agreement.broke else ""


def left(scene: Scene) -> list[tuple[str, str]]:
    return [(omission.what, omission.reason) for omission in scene.context.left_out]


def remove(*names: str) -> ToolsRemove:
    return ToolsRemove(names=names, reason="too dangerous")


@pytest.mark.parametrize("target", PLAIN)
def test_a_tool_that_a_patch_removed_stays_away_from_every_later_turn(target: Target) -> None:
    async def body() -> None:
        async with Scene(tools=[tool("a"), tool("b")], target=target) as scene:
            await scene.ask()
            await scene.runner.session.apply("me", remove("b"))
            await scene.ask()
            assert (listed(scene), broke(scene)) == (["a"], "too dangerous")
            assert left(scene) == [("tool:fake/b", "removed")]
            await scene.restart()
            await scene.ask()
            assert (listed(scene), broke(scene), left(scene)) == (["a"], "", [])

    run(body())


def test_a_tool_that_a_hook_removes_after_the_first_turn_is_gone_from_the_second_on() -> None:
    async def body() -> None:
        hooks = Hooks()

        @hooks.context(reason="turn_end", name="guard")
        def guard(event: ContextEvent) -> Any:
            return remove("b")

        async with Scene(tools=[tool("a"), tool("b")], hooks=hooks) as scene:
            await scene.ask()
            assert listed(scene) == ["a", "b"]
            for _ in range(3):
                scene.plays(calling((f"c{len(scene.provider.bodies)}", "b", {})), saying("Well."))
                await scene.ask()
                assert offered(scene) == ["a"]
                assert scene.results[-1] == REMOVED
            assert scene.host.called == []
            # The hook says the same every time, and that is one change.
            changes = [e for e in scene.kept(TransformEntry) if e.transformer == "guard"]
            assert len(changes) == 1
            await scene.verify()

    run(body())


def test_a_tool_can_be_removed_before_it_was_ever_offered() -> None:
    async def body() -> None:
        index = IndexFake({"seek": {"tool:fake/c": 0.9}})
        tools = [tool("a"), replace(tool("c"), include="agent")]
        hooks = Hooks()
        hooks.context(reason="turn_end", name="guard")(lambda event: remove("c"))
        async with Scene(tools=tools, index=index, hooks=hooks, whole_pool_tokens=0) as scene:
            await scene.ask("Hello")
            await scene.ask("seek it")
            assert "c" not in listed(scene)
            assert [item.item for item in scene.context.items] == []
            await scene.verify()

    run(body())


@pytest.mark.parametrize("target", PLAIN)
def test_what_a_person_takes_out_leaves_the_wire_and_the_record_at_once(target: Target) -> None:
    async def body() -> None:
        async with Scene(tools=[tool("a"), tool("b")], target=target) as scene:
            await scene.ask()
            assert await scene.runner.session.remove("tool:fake/b")
            await scene.ask()
            assert (listed(scene), broke(scene)) == (["a"], "tools removed: b")
            await scene.ask()
            assert (listed(scene), broke(scene)) == (["a"], "")

    run(body())


@pytest.mark.parametrize("target", [BARS, EMBEDDED])
@pytest.mark.parametrize("by_hand", [True, False])
def test_where_a_request_can_bar_tools_a_removal_moves_nothing(
    target: Target, by_hand: bool
) -> None:
    async def body() -> None:
        async with Scene(tools=[tool("a"), tool("b"), tool("c")], target=target) as scene:
            session = scene.runner.session
            await scene.ask()
            if by_hand:
                await session.remove("tool:fake/b")
            else:
                await session.apply("me", remove("b"))
            assert "b" not in [row.name for row in session.envelope.tools] or by_hand
            for _ in range(2):
                await scene.ask()
                assert (listed(scene), offered(scene)) == (["a", "b", "c"], ["a", "c"])
                assert (broke(scene), scene.context.boundaries) == ("", ())
                # Hooks see what is offered.
                assert of_host(row.name for row in session.envelope.tools) == ["a", "c"]
            # Where the prefix is dead anyway, it leaves the list.
            await session.set_system("mood", "Be kind.", reason="a kinder mood")
            await scene.ask()
            assert listed(scene) == ["a", "c"]

    run(body())


def test_a_removed_tool_returns_with_the_reason_of_whoever_gives_it_back() -> None:
    async def body() -> None:
        a, b = tool("a"), tool("b")
        async with Scene(tools=[a, b]) as scene:
            session = scene.runner.session
            await scene.ask()
            await session.apply("me", remove("b"))
            await scene.ask()
            await session.set_tools([a.definition, b.definition], reason="it is safe by now")
            await scene.ask()
            assert (listed(scene), broke(scene)) == (["a", "b"], "it is safe by now")
            await session.apply("me", remove("b"))
            await scene.ask()
            assert await session.add("tool:fake/b")
            assert not await session.add("tool:fake/b")
            await scene.ask()
            assert (listed(scene), broke(scene)) == (["a", "b"], "tools new: b")
            await scene.verify()

    run(body())


def test_a_barred_tool_that_is_given_back_moves_nothing_either() -> None:
    async def body() -> None:
        async with Scene(tools=[tool("a"), tool("b")], target=BARS) as scene:
            session = scene.runner.session
            await scene.ask()
            await session.apply("me", remove("b"))
            await scene.ask()
            await scene.restart()
            assert await scene.runner.session.add("tool:fake/b")
            await scene.ask()
            assert (offered(scene), scene.context.allowed_tools) == (["a", "b"], None)
            assert broke(scene) == ""
            scene.plays(calling(("c1", "b", {})), saying("Done."))
            await scene.ask()
            assert scene.host.called == ["b"]
            await scene.verify()

    run(body())


def test_replacing_the_tools_removes_those_that_are_not_named() -> None:
    async def body() -> None:
        a, b = tool("a"), tool("b")
        async with Scene(tools=[a, b]) as scene:
            await scene.ask()
            op = ToolsReplace(tools=(a.definition,), reason="one will do")
            await scene.runner.session.apply("me", op)
            await scene.ask()
            assert (listed(scene), broke(scene)) == (["a"], "one will do")

    run(body())


def test_a_hook_that_filters_the_tools_does_not_give_back_what_is_barred() -> None:
    async def body() -> None:
        hooks = Hooks()

        @hooks.context(reason="before_request", name="filter")
        def without_c(event: ContextEvent) -> Any:
            tools = tuple(row for row in event.envelope.tools if row.name != "c")
            return ToolsReplace(tools=tools, reason="no c")

        tools = [tool("a"), tool("b"), tool("c")]
        async with Scene(tools=tools, target=BARS, hooks=hooks) as scene:
            await scene.ask()
            await scene.runner.session.apply("me", remove("b"))
            for _ in range(2):
                await scene.ask()
                assert offered(scene) == ["a"]
            await scene.verify()

    run(body())


# -- who can run it --------------------------------------------------------------------------------


def test_a_definition_that_the_runner_cannot_run_is_not_offered_and_reported() -> None:
    async def body() -> None:
        async with Scene(tools=[tool("a")], definitions=[OWN]) as scene:
            answer = await scene.ask()
            assert listed(scene) == ["a"]
            assert left(scene) == [("tool:/own", "removed")]
            assert answer.turn is not None
            warning = "not offered, because nothing here can run it: own"
            assert warning in scene.context.warnings

    run(body())


def test_a_session_that_goes_on_without_its_tools_does_not_send_their_definitions() -> None:
    async def body() -> None:
        async with Scene(tools=[tool("a"), tool("b")]) as scene:
            await scene.ask()
            scene.kind = "chat"
            await scene.restart()
            await scene.ask()
            assert (listed(scene), broke(scene)) == ([], "tools gone: a, b")
            assert left(scene) == [("tool:fake/a", "removed"), ("tool:fake/b", "removed")]
            scene.kind = "agent"
            await scene.restart()
            await scene.ask()
            assert (listed(scene), broke(scene)) == (["a", "b"], "tools new: a, b")
            await scene.verify()

    run(body())


def test_what_an_application_brings_is_its_own_to_run_in_a_chat() -> None:
    async def body() -> None:
        async with Scene(definitions=[OWN], chat=True) as scene:
            scene.plays(calling(("c1", "own", {})))
            answer = await scene.ask()
            assert listed(scene) == ["own"]
            assert answer.turn is not None
            assert [call.name for call in answer.turn.pending_calls] == ["own"]

    run(body())


def test_the_answer_of_a_plan_is_recorded_as_one_that_calls_nothing() -> None:
    async def body() -> None:
        async with Scene(tools=[tool("a")], target=BARS) as scene:
            await scene.ask()
            scene.kind = "plan"
            await scene.restart()
            await scene.ask()
            assert (listed(scene), offered(scene), broke(scene)) == (["a"], [], "")
            assert scene.provider.bodies[-1]["tool_choice"] == "none"

    run(body())


# -- calls of what was removed ---------------------------------------------------------------------


class Hesitant(ApproverFake):
    """Somebody who has the tool removed while they are asked, and then allows it."""

    def __init__(self) -> None:
        super().__init__()
        self.scene: Scene | None = None

    async def decide(self, call: ToolCall, tool: OfferedTool) -> Decision:
        assert self.scene is not None
        await self.scene.runner.session.remove(tool.id)
        return "allow_once"


def test_a_tool_that_is_removed_while_its_call_waits_is_not_run() -> None:
    async def body() -> None:
        approver = Hesitant()
        async with Scene(tools=[tool("a"), tool("b", "required")], approver=approver) as scene:
            approver.scene = scene
            scene.plays(calling(("c1", "b", {})), saying("Well."))
            await scene.ask()
            assert scene.host.called == []
            assert scene.results == [REMOVED]
            assert listed(scene) == ["a"]
            await scene.verify()

    run(body())


def test_a_described_tool_that_is_removed_cannot_be_called_and_the_model_is_told_once() -> None:
    async def body() -> None:
        index = IndexFake({"seek": {"tool:fake/c": 0.9}})
        tools = [tool("a"), *(replace(tool(name), include="agent") for name in ("c", "d"))]
        async with Scene(tools=tools, index=index, tool_joins=0, whole_pool_tokens=0) as scene:
            session = scene.runner.session
            await scene.ask("Hello")
            await scene.ask("seek it")
            assert [item.item for item in scene.context.items] == ["tool:fake/c"]
            await session.remove("tool:fake/c")
            inner = {"name": "c", "arguments": {}}
            scene.plays(calling(("c1", "use_tool", inner), ("c2", "c", {})), saying("Well."))
            await scene.ask("seek it again")
            assert scene.results == [REMOVED, REMOVED]
            assert scene.host.called == []
            assert ("tool:fake/c", "refused") in left(scene)
            told = "- the tool fake/c (it was removed from this session and cannot be called)"
            assert str(scene.provider.bodies[-1]).count(told) == 1
            await scene.ask("seek it once more")
            assert str(scene.provider.bodies[-1]).count(told) == 1
            # Its description leaves with the next boundary.
            scene.clock.pass_by(301)
            await scene.ask("And now?")
            assert "Does c." not in str(scene.provider.bodies[-1])
            await scene.verify()

    run(body())


# -- the engine's own ------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [SMALL, ANTHROPIC, BARS])
@pytest.mark.parametrize("name", ["find_tools", "use_tool", "read_result"])
def test_the_engines_tools_are_removed_and_added_by_name_as_any_other(
    name: str, target: Target
) -> None:
    async def body() -> None:
        tools = [tool("a"), replace(tool("b"), include="agent")]
        searched: dict[str, Any] = {"index": IndexFake({}), "whole_pool_tokens": 0}
        async with Scene(tools=tools, target=target, **searched) as scene:
            session = scene.runner.session
            await scene.ask()
            before = names_on_wire(scene.provider.bodies[-1], target)
            assert name in before
            assert await session.remove(f"tool:{name}")
            assert not await session.remove(f"tool:/{name}")
            assert f"tool:/{name}" not in [item.item for item in await session.items()]
            await scene.ask()
            rows = [row.name for row in scene.context.tools]
            assert name not in [row for row in rows if scene.context.allows(row)]
            assert (f"tool:/{name}", "removed") in left(scene)
            if target is not BARS:
                assert broke(scene).startswith("tools removed: ")
            await scene.restart()
            session = scene.runner.session
            await scene.ask()
            assert not [row for row in scene.context.tools if row.name == name] or target is BARS
            assert await session.add(f"tool:{name.upper()}")
            assert not await session.add(f"tool:{name}")
            await scene.ask()
            rows = [row.name for row in scene.context.tools]
            assert sorted(row for row in rows if scene.context.allows(row)) == sorted(before)
            assert not left(scene)
            if target is not BARS:
                assert name in broke(scene)
            assert not [item for item in await session.items() if item.missing]
            # It stays without another break, and can go again.
            await scene.ask()
            assert not broke(scene)
            assert await session.remove(f"tool:{name}")
            await scene.verify()

    run(body())


def test_an_engines_name_that_somebody_has_is_theirs_and_without_tools_there_is_none() -> None:
    async def body() -> None:
        own = replace(tool("find_tools"), include="agent")
        async with Scene(tools=[own, tool("a")], index=IndexFake({})) as scene:
            await scene.ask()
            assert not await scene.runner.session.remove("tool:find_tools")
        async with Scene(chat=True) as scene:
            assert not await scene.runner.session.remove("tool:find_tools")

    run(body())
