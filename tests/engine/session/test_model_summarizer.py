"""Summaries from the session's own model: when they are wanted, and what happens without them."""

from typing import Any

import anyio
import pytest
from tests.engine.runners.scenes import Scene
from tests.fakes.providers import Script, calling, saying, spoken
from tests.fakes.sessions import run, words
from tests.fakes.summarizer import SUMMARY_MARK
from tests.fakes.tools import tool

from lamina.core.values.event import TurnEnded, UsageReported, WarningIssued
from lamina.core.values.tool import ToolOutput
from lamina.core.values.wire import ThinkingPiece
from lamina.engine.session.summarizer import ModelSummarizer
from lamina.errors import ProviderError, RequestTooLong

SAID = "## Goal\nThe harbour plan."
LIMITS: dict[str, Any] = {"window": 1_200, "output_reserve": 100}


class Harbour(Scene):
    """A scene whose summaries come from its own provider; compaction is due above 900 tokens."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**LIMITS, **given)
        self._given["summarizer"] = ModelSummarizer(self.providers)

    async def fill(self) -> None:
        """History up to just below the threshold."""
        for number in range(4):
            self.plays(saying(words(100, f"a{number}")))
            await self.ask(words(100, f"q{number}"))

    async def pass_threshold(self, *summary: Any) -> Any:
        """The turn whose end asks for a summary, and what the model says to that."""
        self.plays(saying(words(90, "last")), *summary)
        return await self.ask(words(20, "question"))


def wanted(scene: Scene) -> list[Any]:
    return [b for b in scene.provider.bodies if "Next Steps" in str(b["messages"][-1]["content"])]


def test_past_the_threshold_the_model_is_asked_with_what_it_has_cached() -> None:
    async def body() -> None:
        async with Harbour() as scene:
            await scene.fill()
            assert wanted(scene) == []
            answer = await scene.pass_threshold(saying(SAID))
            assert answer.text == words(90, "last")
            (job,) = wanted(scene)
            kept = job["messages"][:-1]
            assert kept == scene.provider.bodies[-2]["messages"][: len(kept)]
            assert answer.warnings == ()
            # A summary is no request of the turn, and paid for all the same.
            reports = scene.told(UsageReported)
            assert answer.requests == 1
            assert [report.request == "summary" for report in reports] == [True, False]
            await scene.require_sound()
            sent = str(scene.provider.bodies[-1]["messages"])
            assert "The harbour plan." in sent
            assert SUMMARY_MARK in sent

    run(body())


FAILURES: dict[str, Script] = {
    "an error": [ProviderError("no line")],
    "too long": [RequestTooLong("4,100 tokens")],
    "breaks off": spoken("## Goal and then"),
    "says nothing": saying(" "),
    "calls a tool": calling(("x", "find", {})),
    "fails in the middle": [*spoken("## Goal"), ProviderError("no line")],
}


@pytest.mark.parametrize("failure", list(FAILURES))
def test_without_a_summary_it_is_extracted_and_the_person_is_told(failure: str) -> None:
    async def body() -> None:
        async with Harbour(tools=[tool("find")]) as scene:
            await scene.fill()
            answer = await scene.pass_threshold(list(FAILURES[failure]))
            assert answer.ending == "answered"
            (warning,) = answer.warnings
            assert warning.startswith("compaction: the summarizer ")
            assert warning.endswith("the summary was extracted")
            assert [each.text for each in scene.told(WarningIssued)] == [warning]
            assert scene.host.calls == []
            assert not scene.runner.session.interrupted
            await scene.require_sound()
            assert SUMMARY_MARK in str(scene.provider.bodies[-1]["messages"])

    run(body())


def test_thinking_is_no_part_of_a_summary() -> None:
    async def body() -> None:
        async with Harbour() as scene:
            await scene.fill()
            await scene.pass_threshold([ThinkingPiece("Hm."), *saying(SAID)])
            await scene.require_sound()
            assert "Hm." not in str(scene.provider.bodies[-1]["messages"])

    run(body())


def test_a_model_that_takes_too_long_is_not_waited_for() -> None:
    async def body() -> None:
        async with Harbour(summary_timeout_s=0.01) as scene:
            await scene.fill()
            with anyio.fail_after(5):
                answer = await scene.pass_threshold([anyio.Event()])
            assert "took longer than 0.01 s" in answer.warnings[0]
            assert scene.provider.closed == len(scene.provider.bodies)
            await scene.require_sound()

    run(body())


def test_a_turn_stopped_while_its_history_is_summarised_keeps_its_answer() -> None:
    async def body() -> None:
        async with Harbour() as scene:
            await scene.fill()
            async with anyio.create_task_group() as group:
                group.start_soon(scene.pass_threshold, [anyio.Event()])
                await scene.provider.waits.wait()
                assert scene.runner.abort()
            assert scene.events[-1] == TurnEnded(ending="aborted", answer=words(90, "last"))
            scene.plays(saying(SAID))
            answer = await scene.ask("And now?")
            assert answer.ending == "answered"
            assert "The harbour plan." in str(scene.provider.bodies[-1]["messages"])
            await scene.verify()

    run(body())


def test_between_tools_a_summary_is_asked_for_before_the_results_are_sent() -> None:
    async def body() -> None:
        async with Harbour(tools=[tool("find")]) as scene:
            await scene.fill()
            scene.host.outputs["find"] = ToolOutput(text=words(90, "found"))
            scene.plays(calling(("a", "find", {})), saying(SAID), saying("Nine."))
            answer = await scene.ask("Which berth?")
            assert answer.text == "Nine."
            assert len(wanted(scene)) == 1
            sent = str(scene.provider.bodies[-1]["messages"])
            assert "The harbour plan." in sent
            assert words(90, "found") in sent
            assert "Which berth?" in sent
            await scene.require_sound()

    run(body())
