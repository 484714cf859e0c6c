"""An agent: it runs what the model calls, gives the results back, and asks again."""

import anyio
import pytest
from tests.engine.runners.scenes import Scene
from tests.fakes.providers import calling, saying
from tests.fakes.renderers import WORDS
from tests.fakes.sessions import run
from tests.fakes.tools import CLOSED, PATH, tool

from lamina.core.values.entry import MessageEntry, ResultEntry
from lamina.core.values.event import (
    BlockStarted,
    Event,
    ToolFinished,
    ToolStarted,
    UsageReported,
    WarningIssued,
)
from lamina.core.values.patch import CompactionApply
from lamina.core.values.tool import ToolOutput
from lamina.core.values.usage import Usage
from lamina.engine.runners.runner import AgentRunner
from lamina.errors import ProviderError, TurnStateError, UsageError


def test_a_tool_is_run_and_its_result_goes_back() -> None:
    async def body() -> None:
        usage = Usage(input=10, cached=4, output=2)
        first = calling(("a", "find", {"path": "x"}), text="Let me see.", usage=usage)
        script = (first, saying("Nine.", usage=usage))
        async with Scene(*script, tools=[tool("find", parameters=PATH)]) as scene:
            answer = await scene.ask("Which berth?")
            assert (answer.ending, answer.text, answer.requests) == ("answered", "Nine.", 2)
            assert answer.usage == Usage(input=20, cached=8, output=4)
            assert scene.host.calls == [("find", {"path": "x"})]
            assert scene.kinds == [
                "RequestStarted", "BlockStarted", "BlockDelta", "BlockEnded", "BlockStarted",
                "BlockDelta", "BlockEnded", "UsageReported", "ToolStarted", "ToolFinished",
                "RequestStarted", "BlockStarted", "BlockDelta", "BlockEnded", "UsageReported",
                "TurnEnded",
            ]  # fmt: skip
            started = scene.told(BlockStarted)
            assert [(each.kind, each.name) for each in started] == [
                ("text", ""), ("action", "find"), ("text", ""),
            ]  # fmt: skip
            assert scene.told(ToolStarted)[0].label == "fake · find"
            assert scene.results == ["find gave {'path': 'x'}"]
            first_body, second = scene.provider.bodies
            assert second["messages"][: len(first_body["messages"])] == first_body["messages"]
            await scene.require_sound()

    run(body())


def test_calls_of_one_answer_run_together_and_their_results_stand_in_order() -> None:
    async def body() -> None:
        calls = calling(("a", "slow", {"n": 1}), ("b", "quick", {"n": 2}), ("c", "slow", {"n": 3}))
        async with Scene(calls, tools=[tool("slow"), tool("quick")]) as scene:
            release = scene.host.held["slow"] = anyio.Event()

            def watch(event: Event, number: int) -> None:
                if isinstance(event, ToolFinished) and event.result.name == "quick":
                    release.set()

            scene.on_event = watch
            with anyio.fail_after(5):
                await scene.ask()
            assert scene.host.together == 3
            ran = [each.result.call_id for each in scene.told(ToolFinished)]
            assert ran[0] == "b"
            assert [each.result.call_id for each in scene.kept(ResultEntry)] == ran
            assert scene.results == [
                "slow gave {'n': 1}",
                "quick gave {'n': 2}",
                "slow gave {'n': 3}",
            ]
            await scene.require_sound()

    run(body())


def test_calls_that_came_under_one_id_are_told_apart() -> None:
    async def body() -> None:
        calls = calling(("a", "find", {"n": 1}), ("a", "find", {"n": 2}), ("a-2", "find", {}))
        async with Scene(calls, tools=[tool("find")]) as scene:
            assert (await scene.ask()).ending == "answered"
            assert scene.results == ["find gave {'n': 1}", "find gave {'n': 2}", "find gave {}"]
            ids = [body["tool_call_id"] for body in scene.provider.bodies[-1]["messages"]
                   if body["role"] == "tool"]  # fmt: skip
            assert len(set(ids)) == 3
            await scene.require_sound()

    run(body())


def test_one_id_in_two_answers_means_two_calls() -> None:
    async def body() -> None:
        again = calling(("a", "find", {"n": 2}))
        async with Scene(calling(("a", "find", {"n": 1})), again, tools=[tool("find")]) as scene:
            await scene.ask()
            assert scene.results == ["find gave {'n': 1}", "find gave {'n': 2}"]
            await scene.require_sound()

    run(body())


def test_what_a_tool_says_went_wrong_is_marked_as_an_error() -> None:
    async def body() -> None:
        async with Scene(calling(("a", "find", {})), tools=[tool("find")]) as scene:
            scene.host.outputs["find"] = ToolOutput(text="no such \ud800 file", is_error=True)
            await scene.ask()
            result = scene.kept(ResultEntry)[0].result
            assert result.is_error
            assert result.text.startswith("no such ")
            await scene.require_sound()

    run(body())


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("seek", "{}", "There is no tool 'seek'. Tools: find, look, read_result."),
        ("find", '{"path": ', "The arguments are not valid JSON"),
        ("find", "[1]", "The arguments have to be a JSON object."),
        ("find", '"x"', "The arguments have to be a JSON object."),
        ("find", '{"path": 1}', "The arguments do not fit the tool: `path`"),
        ("find", "{}", "The arguments do not fit the tool: arguments: 'path' is a required"),
        ("find", "", "The arguments do not fit the tool: arguments: 'path' is a required"),
        ("find", '{"path": "x", "deep": 1}', "The arguments do not fit the tool"),
    ],
)
def test_what_is_wrong_with_a_call_is_its_result(name: str, arguments: str, problem: str) -> None:
    async def body() -> None:
        calls = calling(("a", name, arguments), ("b", "look", {}))
        tools = [tool("find", parameters=CLOSED), tool("look")]
        async with Scene(calls, tools=tools) as scene:
            answer = await scene.ask()
            assert answer.ending == "answered"
            assert scene.host.called == ["look"]
            wrong, right = (entry.result for entry in scene.kept(ResultEntry))
            assert wrong.is_error
            assert wrong.text.startswith(problem), wrong.text
            assert not right.is_error
            await scene.require_sound()

    run(body())


def test_arguments_that_a_schema_does_not_forbid_may_be_more() -> None:
    async def body() -> None:
        calls = calling(("a", "find", {"path": "x", "deep": 1}))
        async with Scene(calls, tools=[tool("find", parameters=PATH)]) as scene:
            await scene.ask()
            assert scene.host.calls == [("find", {"path": "x", "deep": 1})]

    run(body())


def test_a_tool_that_the_model_was_not_told_of_is_none() -> None:
    async def body() -> None:
        async with Scene(calling(("a", "late", {})), tools=[tool("find")]) as scene:

            def comes(event: Event, number: int) -> None:
                scene.host.tools = [tool("find"), tool("late")]

            scene.on_event = comes
            await scene.ask()
            assert scene.results == ["There is no tool 'late'. Tools: find, read_result."]
            assert scene.host.calls == []

    run(body())


def test_arguments_are_checked_by_the_definition_that_was_sent() -> None:
    async def body() -> None:
        calls = calling(("a", "find", {"path": "x"}))
        approver = None
        tools = [tool("find", "required", parameters=CLOSED)]
        async with Scene(calls, tools=tools, approver=approver) as scene:
            assert (await scene.ask()).ending == "waiting"
            stricter = {"type": "object", "required": ["depth"]}
            scene.host.tools = [tool("find", "free", parameters=stricter)]
            # Another definition, and one that may run unasked; the arguments are right by the old.
            assert (await scene.go_on()).ending == "answered"
            assert scene.host.calls == [("find", {"path": "x"})]
            await scene.require_sound()

    run(body())


def test_a_tool_that_went_away_meanwhile_is_said_to_be_away() -> None:
    async def body() -> None:
        async with Scene(calling(("a", "find", {})), tools=[tool("find", "required")]) as scene:
            assert (await scene.ask()).ending == "waiting"
            scene.host.tools = []
            assert (await scene.go_on()).ending == "answered"
            assert scene.results == ["The tool 'find' is not available at present."]
            await scene.require_sound()

    run(body())


# -- how long -------------------------------------------------------------------------------------


def test_the_last_request_that_is_allowed_still_runs_its_tools() -> None:
    async def body() -> None:
        scripts = [calling((f"c{n}", "find", {"n": n})) for n in range(3)]
        async with Scene(*scripts, tools=[tool("find")], max_requests=2) as scene:
            answer = await scene.ask("Which berth?")
            assert (answer.ending, answer.requests) == ("limit", 2)
            assert "stopped after 2 requests" in answer.warnings[0]
            assert scene.told(WarningIssued)
            assert len(scene.host.calls) == 2
            answer = await scene.go_on()
            assert (answer.ending, answer.requests) == ("answered", 2)
            assert len(scene.host.calls) == 3
            await scene.require_sound()

    run(body())


def test_a_question_after_the_limit_finds_the_results() -> None:
    async def body() -> None:
        async with Scene(calling(("a", "find", {})), tools=[tool("find")], max_requests=1) as scene:
            assert (await scene.ask()).ending == "limit"
            await scene.restart()
            await scene.require_sound("What did you find?")
            assert scene.results == ["find gave {}"]
            assert len(scene.host.calls) == 1

    run(body())


def test_an_agent_that_may_not_ask_is_refused() -> None:
    async def body() -> None:
        async with Scene() as scene:
            with pytest.raises(UsageError, match="at least one request"):
                AgentRunner(scene.runner.session, scene.providers, scene.host, max_requests=0)

    run(body())


def test_a_provider_that_fails_between_tools_can_be_asked_again() -> None:
    async def body() -> None:
        script = (calling(("a", "find", {})), [ProviderError("no line")])
        async with Scene(*script, tools=[tool("find")]) as scene:
            with pytest.raises(ProviderError):
                await scene.ask("Which berth?")
            await scene.restart()
            scene.plays(saying("Nine."))
            answer = await scene.go_on()
            assert answer.text == "Nine."
            assert scene.host.called == ["find"]
            assert scene.provider.bodies[1] == scene.provider.bodies[2]
            await scene.require_sound()

    run(body())


def test_a_question_instead_of_a_failed_request_keeps_the_results() -> None:
    async def body() -> None:
        script = (calling(("a", "find", {})), [ProviderError("no line")])
        async with Scene(*script, tools=[tool("find")]) as scene:
            with pytest.raises(ProviderError):
                await scene.ask("Which berth?")
            await scene.require_sound("Never mind. And then?")
            assert scene.results == ["find gave {}"]

    run(body())


# -- saying something meanwhile -------------------------------------------------------------------


def test_steering_comes_with_the_next_request_after_the_results() -> None:
    async def body() -> None:
        async with Scene(calling(("a", "find", {})), tools=[tool("find")]) as scene:

            async def steer(event: Event, number: int) -> None:
                if isinstance(event, ToolStarted):
                    await scene.agent.send_message("Only the north pier.")

            scene.on_event = steer
            answer = await scene.ask("Which berth?")
            assert (answer.ending, answer.requests) == ("answered", 2)
            assert [m["role"] for m in scene.provider.bodies[-1]["messages"]] == [
                "user", "assistant", "tool", "user",
            ]  # fmt: skip
            assert scene.history[3] == ("user", "Only the north pier.")
            assert scene.results == ["find gave {}"]
            await scene.require_sound()

    run(body())


def test_steering_that_comes_too_late_is_said_after_the_answer() -> None:
    async def body() -> None:
        async with Scene(saying("Nine."), saying("North.")) as scene:

            async def steer(event: Event, number: int) -> None:
                if isinstance(event, BlockStarted) and len(scene.provider.bodies) == 1:
                    await scene.agent.send_message("Then this.", deliver="follow_up")
                    await scene.agent.send_message("First that.")

            scene.on_event = steer
            answer = await scene.ask("Which berth?")
            assert (answer.text, answer.requests) == ("Done.", 3)
            assert [text for role, text in scene.history if role == "user"] == [
                "Which berth?",
                "First that.",
                "Then this.",
            ]
            await scene.require_sound()

    run(body())


def test_a_follow_up_waits_for_the_answer() -> None:
    async def body() -> None:
        script = (calling(("a", "find", {})), saying("Nine."), saying("North."))
        async with Scene(*script, tools=[tool("find")]) as scene:

            async def follow(event: Event, number: int) -> None:
                if isinstance(event, BlockStarted) and len(scene.provider.bodies) == 1:
                    await scene.agent.send_message("And where is it?", deliver="follow_up")

            scene.on_event = follow
            answer = await scene.ask("Which berth?")
            assert (answer.text, answer.requests) == ("North.", 3)
            assert [role for role, _ in scene.history] == [
                "user", "assistant", "tool", "assistant", "user", "assistant",
            ]  # fmt: skip

    run(body())


def test_a_message_is_delivered_in_one_of_two_ways() -> None:
    async def body() -> None:
        async with Scene() as scene:
            with pytest.raises(UsageError, match="'steer' or 'follow_up'"):
                await scene.agent.send_message("Now!", deliver="now")  # type: ignore[arg-type]

    run(body())


# -- calls that wait when something else is said --------------------------------------------------


def test_a_new_question_gives_up_the_calls_that_wait_and_the_model_is_told() -> None:
    async def body() -> None:
        calls = calling(("a", "free", {}), ("b", "asked", {}))
        async with Scene(calls, tools=[tool("free"), tool("asked", "required")]) as scene:
            answer = await scene.ask("Which berth?")
            assert answer.ending == "waiting"
            await scene.require_sound("Something else?")
            assert scene.results == ["free gave {}", WORDS.call_superseded]
            with pytest.raises(TurnStateError, match="call 'b' is not waiting"):
                await scene.agent.decide("b", "allow_once")
            tool_message = [e for e in scene.kept(MessageEntry) if e.message.role == "tool"]
            assert len(tool_message) == 1

    run(body())


def test_closing_an_agent_closes_its_tools() -> None:
    async def body() -> None:
        async with Scene() as scene:
            assert not scene.host.closed
        assert scene.host.closed

    run(body())


def test_costs_of_a_turn_add_up_over_its_requests() -> None:
    async def body() -> None:
        usage = Usage(input=7, cached=0, output=1, cache_reported=False)
        known = Usage(input=5, cached=5, output=1)
        script = (calling(("a", "find", {}), usage=known), saying("Nine.", usage=usage))
        async with Scene(*script, tools=[tool("find")]) as scene:
            answer = await scene.ask()
            assert answer.usage == Usage(input=12, cached=5, output=2, cache_reported=False)
            assert len(scene.told(UsageReported)) == 2

    run(body())


def test_a_question_that_a_patch_took_away_is_not_in_the_way_of_the_next_boundary() -> None:
    async def body() -> None:
        script = (calling(("c1", "pay", {})), saying("Nothing is due."))
        async with Scene(*script, tools=[tool("pay", "required")]) as scene:
            assert (await scene.ask("Pay it.")).ending == "waiting"
            cut = CompactionApply(first_kept=2, reason="all of it is wrong")
            await scene.runner.session.apply("guard", cut)
            scene.clock.pass_by(400)
            assert (await scene.ask("What is due?")).text == "Nothing is due."
            await scene.verify()

    run(body())
