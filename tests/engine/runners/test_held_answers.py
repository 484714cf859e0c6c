"""Hooks that change answers: what a person is told is what is kept."""

from typing import Any

import anyio
import pytest
from msgspec.structs import replace
from tests.engine.runners.scenes import Scene
from tests.fakes.providers import Script, calling, saying, spoken
from tests.fakes.sessions import run
from tests.fakes.tools import tool

import lamina
from lamina.core.values.event import (
    AnswerChanged,
    AnswerHeld,
    BlockDelta,
    BlockStarted,
    TurnEnded,
    WarningIssued,
)
from lamina.core.values.message import Message, Text
from lamina.engine.sources.hooks import Hooks, MessageEvent
from lamina.errors import ProviderError


def cleaning(*, declared: bool, name: str = "cleaner", **given: Any) -> Hooks:
    """A hook that takes a word out of answers."""
    hooks = Hooks()

    @hooks.message(name=name, changes_answers=declared, **given)
    async def clean(event: MessageEvent) -> Message | None:
        if event.message.role != "assistant":
            return None
        text = event.message.text.replace("dirty", "clean")
        others = tuple(block for block in event.message.blocks if not isinstance(block, Text))
        return replace(event.message, blocks=(Text(text), *others))

    return hooks


def words_of(scene: Scene) -> str:
    """What was told of the answer while it came."""
    return "".join(event.text for event in scene.told(BlockDelta))


@pytest.mark.parametrize("chat", [True, False])
def test_a_hook_that_declares_it_holds_the_answer_back_and_what_is_told_is_what_is_kept(
    chat: bool,
) -> None:
    async def body() -> None:
        hooks = cleaning(declared=True)
        async with Scene(saying("All is dirty."), hooks=hooks, chat=chat) as scene:
            answer = await scene.ask()
            assert words_of(scene) == answer.text == "All is clean."
            assert scene.history[-1] == ("assistant", "All is clean.")
            assert scene.told(AnswerHeld) == [AnswerHeld(hooks=("cleaner",))]
            assert scene.kinds == [
                "RequestStarted", "AnswerHeld", "BlockStarted", "BlockDelta", "BlockEnded",
                "UsageReported", "TurnEnded",
            ]  # fmt: skip
            assert not scene.told(AnswerChanged)
            await scene.require_sound()

    run(body())


def test_faces_are_told_that_they_wait_before_the_hook_has_run() -> None:
    async def body() -> None:
        hooks, go = Hooks(), anyio.Event()

        @hooks.message(name="slow", changes_answers=True)
        async def wait(event: MessageEvent) -> None:
            if event.message.role == "assistant":
                await go.wait()

        async with Scene(saying("Berth nine."), hooks=hooks) as scene:
            scene.on_event = lambda event, _: go.set() if isinstance(event, AnswerHeld) else None
            with anyio.fail_after(20):
                assert (await scene.ask()).text == "Berth nine."
            assert words_of(scene) == "Berth nine."

    run(body())


def test_a_hook_that_does_not_declare_it_is_told_of_afterwards_and_recorded_right() -> None:
    async def body() -> None:
        hooks = cleaning(declared=False)
        async with Scene(saying("All is dirty."), hooks=hooks) as scene:
            answer = await scene.ask()
            assert words_of(scene) == "All is dirty."
            (changed,) = scene.told(AnswerChanged)
            assert changed == AnswerChanged(hooks=("cleaner",), text="All is clean.")
            assert answer.text == "All is clean."
            assert scene.history[-1] == ("assistant", "All is clean.")
            assert scene.told(TurnEnded)[0].answer == "All is clean."
            await scene.require_sound()

    run(body())


@pytest.mark.parametrize("declared", [True, False])
def test_an_answer_that_no_hook_changes_is_told_once(declared: bool) -> None:
    async def body() -> None:
        hooks = cleaning(declared=declared)
        async with Scene(saying("Fine."), hooks=hooks) as scene:
            await scene.ask()
            assert words_of(scene) == "Fine."
            assert not scene.told(AnswerChanged)
            assert len(scene.told(AnswerHeld)) == declared

    run(body())


def test_without_such_a_hook_an_answer_is_told_as_it_comes() -> None:
    async def body() -> None:
        async with Scene(saying("One two three.")) as scene:
            await scene.ask()
            assert len(scene.told(BlockDelta)) > 1
            assert not scene.told(AnswerHeld)

    run(body())


def test_a_declared_hook_that_fails_leaves_the_answer_which_is_told_then() -> None:
    async def body() -> None:
        hooks = Hooks()

        @hooks.message(name="bad", changes_answers=True)
        def fail(event: MessageEvent) -> None:
            if event.message.role == "assistant":
                raise LookupError("no such row")

        async with Scene(saying("Berth nine."), hooks=hooks) as scene:
            answer = await scene.ask()
            assert words_of(scene) == answer.text == "Berth nine."
            assert any("'bad'" in event.text for event in scene.told(WarningIssued))

    run(body())


def test_words_in_front_of_a_call_are_held_too_and_the_call_is_run() -> None:
    async def body() -> None:
        script = [*spoken("dirty look."), *calling(("a", "find", {}))]
        hooks = cleaning(declared=True)
        async with Scene(script, saying("Done."), tools=[tool("find")], hooks=hooks) as scene:
            answer = await scene.ask()
            assert answer.text == "Done."
            assert scene.host.called == ["find"]
            assert "dirty" not in words_of(scene)
            assert len(scene.told(AnswerHeld)) == 2
            kinds = [event.kind for event in scene.told(BlockStarted)]
            assert kinds[-1] == "text"
            assert "action" in kinds

    run(body())


BROKEN_OFF: dict[str, Script] = {
    "the provider fails": [*spoken("dirty nine"), ProviderError("the line is down")],
    "the stream ends": spoken("dirty nine"),
}


@pytest.mark.parametrize("how", BROKEN_OFF)
def test_what_is_told_of_an_answer_that_breaks_off_is_what_is_kept(how: str) -> None:
    async def body() -> None:
        async with Scene(BROKEN_OFF[how], hooks=cleaning(declared=True)) as scene:
            with pytest.raises(ProviderError):
                await scene.ask()
            assert words_of(scene) == "clean nine"
            assert scene.history[-1] == ("assistant", "clean nine")

    run(body())


def test_an_answer_that_is_stopped_while_it_is_held_is_told_as_it_is_kept() -> None:
    async def body() -> None:
        script: Script = [*spoken("dirty nine"), anyio.Event()]
        async with Scene(script, hooks=cleaning(declared=True)) as scene:
            with anyio.fail_after(20):
                async with anyio.create_task_group() as group:
                    group.start_soon(scene.ask)
                    await scene.provider.waits.wait()
                    scene.runner.abort()
            assert words_of(scene) == "clean nine"
            assert scene.history[-1] == ("assistant", "clean nine")

    run(body())


def test_stopping_while_a_hook_has_the_answer_keeps_it_within_a_moment() -> None:
    async def body() -> None:
        hooks, begun = Hooks(), anyio.Event()

        @hooks.message(name="slow", timeout=600, changes_answers=True)
        async def wait(event: MessageEvent) -> None:
            if event.message.role == "assistant":
                begun.set()
                await anyio.Event().wait()

        async with Scene(saying("Berth nine."), hooks=hooks) as scene:
            with anyio.fail_after(60):
                async with anyio.create_task_group() as group:
                    group.start_soon(scene.ask)
                    await begun.wait()
                    scene.runner.abort()
            assert scene.history[-1] == ("assistant", "Berth nine.")
            assert words_of(scene) == "Berth nine."

    run(body())


def test_hooks_keep_what_they_declared_when_they_are_joined() -> None:
    hooks = lamina.Hooks().joined(cleaning(declared=True)).copy()
    assert hooks.answer_changers == ("cleaner",)
