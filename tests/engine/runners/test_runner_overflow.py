"""A provider that says the request is too long: compacted and tried once more, never for ever."""

from typing import Any

import pytest
from tests.engine.runners.scenes import Scene
from tests.fakes.providers import calling, saying, spoken
from tests.fakes.sessions import run, words
from tests.fakes.summarizer import SUMMARY_MARK, FakeSummarizer
from tests.fakes.tools import tool

from lamina.core.values.entry import PROBLEM, CustomEntry, RequestEntry
from lamina.core.values.event import BlockDelta, RequestRetried, RequestStarted, TurnEnded
from lamina.core.values.message import Message, Text
from lamina.core.values.patch import MessagesUncachedAppend, OptionsSet
from lamina.core.values.tool import ToolOutput
from lamina.engine.sources.hooks import ContextEvent, Hooks
from lamina.errors import ProviderError, RequestTooLong, WindowExceeded

TOO_LONG = RequestTooLong("4,100 tokens are over 4,096", 4_100, 4_096)
LIMITS: dict[str, Any] = {"window": 2_000, "output_reserve": 100}


async def chat(scene: Scene, turns: int = 12) -> None:
    for number in range(turns):
        scene.plays(saying(words(60, f"a{number}")))
        await scene.ask(words(40, f"q{number}"))


def texts(body: Any) -> str:
    return "\n".join(str(message["content"]) for message in body["messages"])


def test_a_request_that_is_too_long_is_compacted_and_sent_again_once() -> None:
    async def body() -> None:
        async with Scene(summarizer=FakeSummarizer(), **LIMITS) as scene:
            await chat(scene)
            scene.plays([TOO_LONG], saying("Nine."))
            answer = await scene.ask("Which berth?")
            assert (answer.ending, answer.text) == ("answered", "Nine.")
            assert scene.kinds == [
                "RequestStarted", "RequestRetried", "RequestStarted",
                "BlockStarted", "BlockDelta", "BlockEnded",
                "UsageReported",
                "TurnEnded",
            ]  # fmt: skip
            assert scene.told(RequestRetried) == [RequestRetried(reason=str(TOO_LONG))]
            failed, retried = scene.provider.bodies[-2:]
            assert SUMMARY_MARK in texts(retried)
            assert len(texts(retried)) < len(texts(failed))
            assert retried["messages"][-1] == failed["messages"][-1]
            assert scene.kept(RequestEntry)[-1].retry
            assert answer.turn is not None
            assert answer.turn.id == scene.told(RequestStarted)[-1].request
            await scene.require_sound()

    run(body())


def test_words_that_came_before_the_refusal_are_void() -> None:
    async def body() -> None:
        async with Scene(summarizer=FakeSummarizer(), **LIMITS) as scene:
            await chat(scene)
            scene.plays([*spoken("Berth eight"), TOO_LONG], saying("Nine."))
            assert (await scene.ask("Which berth?")).text == "Nine."
            assert "".join(each.text for each in scene.told(BlockDelta)) == "Berth eightNine."
            assert "Berth eight" not in str(scene.history)
            await scene.require_sound()

    run(body())


@pytest.mark.parametrize("restarts", [False, True])
def test_a_second_refusal_is_an_error_and_the_session_goes_on(restarts: bool) -> None:
    async def body() -> None:
        summarizer = FakeSummarizer()
        async with Scene(summarizer=summarizer, **LIMITS) as scene:
            await chat(scene)
            scene.plays([TOO_LONG], [TOO_LONG])
            with pytest.raises(WindowExceeded, match="after a compaction, too"):
                await scene.ask("Which berth?")
            assert summarizer.asked == 1
            assert not scene.runner.running
            assert scene.runner.session.interrupted
            problems = [e for e in scene.runner.session.entries
                        if isinstance(e, CustomEntry) and e.kind == PROBLEM]  # fmt: skip
            assert [problem.data["problem"] for problem in problems] == [str(TOO_LONG)] * 2
            if restarts:
                await scene.restart()
            scene.plays(saying("Nine."))
            assert (await scene.go_on()).text == "Nine."
            await scene.require_sound()

    run(body())


def test_where_nothing_can_give_way_the_refusal_is_an_error_at_once() -> None:
    async def body() -> None:
        async with Scene([TOO_LONG]) as scene:
            with pytest.raises(WindowExceeded, match="refused the request as too long, and"):
                await scene.ask("Which berth?")
            assert scene.runner.session.interrupted
            await scene.require_sound()

    run(body())


def test_another_question_may_be_refused_once_again() -> None:
    async def body() -> None:
        async with Scene(summarizer=FakeSummarizer(), **LIMITS) as scene:
            for number, turns in enumerate((12, 6)):
                await chat(scene, turns)
                scene.plays([TOO_LONG], saying("Nine."))
                assert (await scene.ask(f"Which berth {number}?")).text == "Nine."
            await scene.require_sound()

    run(body())


def test_between_tools_the_results_stay_with_their_calls() -> None:
    async def body() -> None:
        async with Scene(summarizer=FakeSummarizer(), tools=[tool("find")], **LIMITS) as scene:
            await chat(scene)
            scene.host.outputs["find"] = ToolOutput(text=words(50, "found"))
            calls = calling(("a", "find", {"n": 1}), ("b", "find", {"n": 2}))
            scene.plays(calls, [TOO_LONG], calling(("c", "find", {})), saying("Nine."))
            answer = await scene.ask("Which berth?")
            assert (answer.ending, answer.text) == ("answered", "Nine.")
            assert len(scene.host.calls) == 3
            retried = scene.provider.bodies[-2]
            assert SUMMARY_MARK in texts(retried)
            assert texts(retried).count(words(50, "found")) == 2
            assert "Which berth?" in texts(retried)
            await scene.require_sound()

    run(body())


def test_between_tools_a_second_refusal_leaves_results_that_are_not_run_again() -> None:
    async def body() -> None:
        async with Scene(summarizer=FakeSummarizer(), tools=[tool("find")], **LIMITS) as scene:
            await chat(scene)
            scene.plays(calling(("a", "find", {})), [TOO_LONG], [TOO_LONG])
            with pytest.raises(WindowExceeded):
                await scene.ask("Which berth?")
            await scene.restart()
            assert (await scene.go_on()).ending == "answered"
            assert scene.host.called == ["find"]
            await scene.require_sound()

    run(body())


def test_a_provider_that_fails_after_the_refusal_leaves_the_smaller_request_open() -> None:
    async def body() -> None:
        async with Scene(summarizer=FakeSummarizer(), **LIMITS) as scene:
            await chat(scene)
            scene.plays([TOO_LONG], [ProviderError("no line")], saying("Nine."))
            with pytest.raises(ProviderError, match="no line"):
                await scene.ask("Which berth?")
            assert (await scene.go_on()).text == "Nine."
            assert scene.provider.bodies[-1] == scene.provider.bodies[-2]
            await scene.require_sound()

    run(body())


def test_hooks_on_requests_see_the_second_try_too() -> None:
    async def body() -> None:
        hooks = Hooks()
        seen: list[str] = []

        @hooks.context(reason="ephemeral")
        async def date(event: ContextEvent) -> MessagesUncachedAppend:
            assert event.message is not None
            seen.append(event.message.text)
            return MessagesUncachedAppend(
                messages=(Message(role="user", blocks=(Text("It is May."),)),)
            )

        async with Scene(summarizer=FakeSummarizer(), hooks=hooks, **LIMITS) as scene:
            await chat(scene)
            seen.clear()
            scene.plays([TOO_LONG], saying("Nine."))
            await scene.ask("Which berth?")
            assert seen == ["Which berth?"] * 2
            assert texts(scene.provider.bodies[-1]).count("It is May.") == 1

    run(body())


def test_stopping_between_the_refusal_and_the_second_try_leaves_a_session_that_goes_on() -> None:
    async def body() -> None:
        async with Scene(summarizer=FakeSummarizer(), **LIMITS) as scene:
            await chat(scene)
            scene.plays([TOO_LONG])
            scene.abort_at(RequestRetried)
            assert (await scene.ask("Which berth?")).ending == "aborted"
            assert scene.events[-1] == TurnEnded(ending="aborted", answer="")
            assert (await scene.go_on()).text == "Done."
            await scene.require_sound()

    run(body())


def test_what_a_hook_set_at_the_start_stands_in_the_retry() -> None:
    async def body() -> None:
        hooks = Hooks()

        @hooks.context(reason="before_agent_start")
        def cool(event: ContextEvent) -> OptionsSet:
            return OptionsSet(temperature=0.3)

        async with Scene(summarizer=FakeSummarizer(), hooks=hooks, **LIMITS) as scene:
            await chat(scene)
            scene.plays([TOO_LONG], saying("Nine."))
            await scene.ask("Which berth?")
            assert scene.provider.bodies[-1]["temperature"] == 0.3
            await scene.verify()

    run(body())
