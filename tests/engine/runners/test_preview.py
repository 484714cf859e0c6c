"""Previews: what a runner would send is what it sends, and looking asks nobody."""

from collections.abc import Callable

import pytest
from tests.engine.runners.scenes import Scene
from tests.engine.sources.note_scenes import PlanScene, QaScene
from tests.fakes.providers import calling, saying
from tests.fakes.sessions import run
from tests.fakes.tools import tool

from lamina.core.values.event import Event
from lamina.engine.runners.answer import NoProviders, PlanPreview, Preview
from lamina.engine.runners.runner import ChatRunner
from lamina.errors import TurnStateError, UsageError

QUESTION = "Which berths are for ferries?"
SCENES: dict[str, Callable[[], Scene]] = {
    "chat": lambda: Scene(chat=True),
    "agent": lambda: Scene(tools=[tool("find")]),
    "qa": QaScene,
}


@pytest.mark.parametrize("mode", SCENES)
def test_a_preview_is_the_request_that_is_sent(mode: str) -> None:
    async def body() -> None:
        async with SCENES[mode]() as scene:
            scene.workspace.notes["plan.md"] = "Nine berths."
            preview = await scene.runner.preview(QUESTION, attach=["plan.md"])
            assert isinstance(preview, Preview)
            assert scene.provider.bodies == []
            assert scene.host.calls == []
            assert (preview.search_result is not None) == (mode == "qa")
            request = preview.turn.request()
            await scene.go_on()
            assert scene.provider.bodies == [request]
            await scene.verify()

    run(body())


def test_of_a_planned_question_the_request_for_the_plan_is_shown() -> None:
    async def body() -> None:
        plan = calling(("a", "find", {}))
        async with PlanScene(plan, saying("Nine."), tools=[tool("find")]) as scene:
            before = list(scene.runner.session.entries)
            preview = await scene.runner.preview(QUESTION)
            assert isinstance(preview, PlanPreview)
            assert scene.provider.bodies == []
            assert scene.host.calls == []
            assert list(scene.runner.session.entries) == before
            await scene.ask(QUESTION)
            assert scene.provider.bodies[0] == preview.body

    run(body())


def test_a_preview_has_the_warnings_of_its_question_alone() -> None:
    async def body() -> None:
        async with PlanScene(tools=[tool("find")]) as scene:
            first = await scene.runner.preview(QUESTION, attach=["nowhere.md"])
            assert isinstance(first, PlanPreview)
            assert [omission.what for omission in first.left_out] == ["note:nowhere.md"]
            second = await scene.runner.preview(QUESTION)
            assert isinstance(second, PlanPreview)
            assert not second.left_out
            assert not second.warnings

    run(body())


def test_nothing_is_previewed_while_a_turn_is_under_way() -> None:
    async def body() -> None:
        async with Scene(chat=True) as scene:
            problems: list[TurnStateError] = []

            async def look(_event: Event) -> None:
                try:
                    await scene.runner.preview("And this?")
                except TurnStateError as error:
                    problems.append(error)

            await scene.runner.run(QUESTION, on_event=look)
            # The end of the turn is reported when it is over, so that last look is allowed.
            assert problems
            assert scene.runner.session.interrupted

    run(body())


def test_a_runner_that_only_previews_sends_nothing() -> None:
    async def body() -> None:
        async with Scene(chat=True) as scene:
            runner = ChatRunner(scene.runner.session, NoProviders())
            await runner.preview(QUESTION)
            with pytest.raises(UsageError, match="preview"):
                await runner.resume()

    run(body())
