"""A chat: one request per question, what came of it kept whatever happens."""

from typing import Any

import anyio
import pytest
from msgspec.structs import replace
from tests.engine.runners.scenes import Scene
from tests.fakes.book import SMALL, THINKER
from tests.fakes.providers import SILENT, Script, calling, saying, spoken
from tests.fakes.sessions import run

from lamina.core.values.entry import PROBLEM, CustomEntry, MessageEntry, ReplyEntry
from lamina.core.values.event import (
    BlockDelta,
    BlockEnded,
    BlockStarted,
    PromptProgress,
    RequestStarted,
    TurnEnded,
    UsageReported,
    WarningIssued,
)
from lamina.core.values.message import Message, Text, Thinking
from lamina.core.values.prices import flat_prices
from lamina.core.values.usage import Usage
from lamina.core.values.wire import ProgressPiece, Reply, TextPiece, ThinkingPiece
from lamina.engine.sources.hooks import Hooks, MessageEvent
from lamina.errors import HookError, ModelMissing, ProviderError, ReplyError, TurnStateError


def problems(scene: Scene) -> list[Any]:
    return [entry.data for entry in scene.kept(CustomEntry) if entry.kind == PROBLEM]


def test_a_question_comes_to_an_answer_and_its_events_come_in_order() -> None:
    async def body() -> None:
        pieces: Script = [
            ProgressPiece(done=3, total=4, cached=1),
            ThinkingPiece("Hm."),
            TextPiece("Berth"),
            TextPiece(" nine."),
        ]
        blocks = (Thinking(text="Hm."), Text("Berth nine."))
        usage = Usage(input=4, cached=1, output=5)
        script: Script = [*pieces, Reply(blocks=blocks, usage=usage, stop="stop")]
        async with Scene(script, chat=True) as scene:
            answer = await scene.ask("Which berth?")
            assert (answer.ending, answer.text, answer.requests) == ("answered", "Berth nine.", 1)
            assert answer.usage == usage
            assert answer.turn is not None
            assert scene.events[1:-2] == [
                PromptProgress(done=3, total=4, cached=1),
                BlockStarted(index=0, kind="thinking"),
                BlockDelta(index=0, text="Hm."),
                BlockEnded(index=0),
                BlockStarted(index=1, kind="text"),
                BlockDelta(index=1, text="Berth"),
                BlockDelta(index=1, text=" nine."),
                BlockEnded(index=1),
            ]
            first, reported, ended = scene.events[0], scene.events[-2], scene.events[-1]
            assert isinstance(first, RequestStarted)
            assert first.request == answer.turn.id
            assert first.context == answer.turn.context
            assert isinstance(reported, UsageReported)
            assert reported.usage == usage
            assert reported.first_s is not None
            assert reported.first_s <= reported.total_s
            assert ended == TurnEnded(ending="answered", answer="Berth nine.", requests=1)
            assert not scene.runner.running
            await scene.require_sound()

    run(body())


def test_what_a_request_cost_is_told_in_dollars() -> None:
    async def body() -> None:
        priced = replace(SMALL, prices=flat_prices(2.0, 10.0, read=0.1, write=1.25))
        usage = Usage(input=1_000_000, cached=400_000, written=200_000, output=100_000)
        async with Scene(saying("A", usage=usage), chat=True, target=priced) as scene:
            answer = await scene.ask()
            dollars = 0.4 * 2 + 0.4 * 0.1 * 2 + 0.2 * 1.25 * 2 + 0.1 * 10
            assert answer.cost == pytest.approx(dollars)
            assert scene.told(UsageReported)[0].cost == pytest.approx(dollars)

    run(body())


def test_a_conversation_extends_what_was_sent() -> None:
    async def body() -> None:
        async with Scene(saying("One."), saying("Two."), chat=True) as scene:
            await scene.ask("First?")
            await scene.ask("Second?")
            first, second = (body["messages"] for body in scene.provider.bodies)
            assert second[: len(first)] == first
            assert scene.history == [
                ("user", "First?"),
                ("assistant", "One."),
                ("user", "Second?"),
                ("assistant", "Two."),
            ]

    run(body())


def test_warnings_of_the_request_and_of_its_answer_are_told() -> None:
    async def body() -> None:
        hooks = Hooks()

        @hooks.message(name="clumsy")
        async def clumsy(event: MessageEvent) -> None:
            if event.message.role == "assistant":
                raise ValueError("oh")

        async with Scene(saying("A"), chat=True, hooks=hooks) as scene:
            answer = await scene.ask()
            assert len(answer.warnings) == 1
            assert "hook 'clumsy'" in answer.warnings[0]
            assert [each.text for each in scene.told(WarningIssued)] == list(answer.warnings)
            assert scene.kept(ReplyEntry)[0].warnings == answer.warnings

    run(body())


# -- answers that do not end ----------------------------------------------------------------------


def test_an_answer_that_breaks_off_is_kept_and_said_to_be_broken() -> None:
    async def body() -> None:
        async with Scene(spoken("Berth nine is"), chat=True) as scene:
            with pytest.raises(ProviderError, match="broke off; what came of it is kept"):
                await scene.ask("Which berth?")
            assert scene.history[-1] == ("assistant", "Berth nine is")
            answer = scene.kept(MessageEntry)[-1]
            assert answer.interrupted
            assert scene.kept(ReplyEntry)[-1].stop == "broke_off"
            assert problems(scene) == [
                {"where": "provider", "problem": "the answer broke off; what came of it is kept"}
            ]
            assert not scene.runner.session.interrupted
            await scene.require_sound()

    run(body())


def test_an_answer_that_breaks_off_before_its_first_word_leaves_the_question_open() -> None:
    async def body() -> None:
        async with Scene([ThinkingPiece("Hm.")], chat=True) as scene:
            with pytest.raises(ProviderError, match="before its first word"):
                await scene.ask("Which berth?")
            assert scene.runner.session.interrupted
            assert len(problems(scene)) == 1
            scene.plays(saying("Nine."))
            answer = await scene.go_on()
            assert (answer.ending, answer.text) == ("answered", "Nine.")
            assert scene.history == [("user", "Which berth?"), ("assistant", "Nine.")]
            assert scene.provider.bodies[0] == scene.provider.bodies[1]
            await scene.require_sound()

    run(body())


@pytest.mark.parametrize("problem", [ProviderError("no line"), ReplyError("no JSON")])
def test_a_provider_that_fails_at_once_leaves_the_question_open(problem: Exception) -> None:
    async def body() -> None:
        async with Scene([problem], chat=True) as scene:
            with pytest.raises(type(problem)):
                await scene.ask("Which berth?")
            assert scene.runner.session.interrupted
            assert problems(scene) == [{"where": "provider", "problem": str(problem)}]
            scene.plays(saying("Nine."))
            assert (await scene.go_on()).text == "Nine."
            await scene.require_sound()

    run(body())


@pytest.mark.parametrize("problem", [ProviderError("no line"), ReplyError("no JSON")])
def test_a_provider_that_fails_in_the_middle_leaves_what_it_said(problem: Exception) -> None:
    async def body() -> None:
        async with Scene([*spoken("Berth nine is"), problem], chat=True) as scene:
            with pytest.raises(type(problem)):
                await scene.ask("Which berth?")
            assert scene.history[-1] == ("assistant", "Berth nine is")
            assert scene.kept(MessageEntry)[-1].interrupted
            assert problems(scene) == [{"where": "provider", "problem": str(problem)}]
            with pytest.raises(TurnStateError):
                await scene.go_on()
            await scene.require_sound()

    run(body())


def test_a_provider_that_cannot_be_had_leaves_no_question_behind() -> None:
    async def body() -> None:
        async with Scene(chat=True) as scene:
            entries = scene.runner.session.entries
            scene.providers.given = ModelMissing("not here")
            with pytest.raises(ModelMissing):
                await scene.ask()
            assert scene.runner.session.entries == entries
            scene.providers.given = scene.provider
            assert (await scene.ask("Again?")).text == "Done."
            assert scene.history == [("user", "Again?"), ("assistant", "Done.")]
            await scene.require_sound()

    run(body())


def test_a_new_question_leaves_the_one_that_was_not_answered() -> None:
    async def body() -> None:
        async with Scene([ProviderError("no line")], chat=True) as scene:
            with pytest.raises(ProviderError):
                await scene.ask("First?")
            await scene.ask("Second?")
            assert scene.history == [("user", "Second?"), ("assistant", "Done.")]
            await scene.verify()

    run(body())


def test_a_question_that_was_not_answered_can_be_gone_on_with_after_a_restart() -> None:
    async def body() -> None:
        async with Scene([ProviderError("no line")], chat=True) as scene:
            with pytest.raises(ProviderError):
                await scene.ask("Which berth?")
            await scene.restart()
            scene.plays(saying("Nine."))
            assert (await scene.go_on()).text == "Nine."
            await scene.require_sound()

    run(body())


def test_a_listener_that_fails_takes_nothing_away() -> None:
    async def body() -> None:
        def fail(event: object, number: int) -> None:
            if isinstance(event, BlockDelta) and event.text == " nine":
                raise ZeroDivisionError

        async with Scene(saying("Berth nine is free."), chat=True) as scene:
            scene.on_event = fail
            with pytest.raises(ZeroDivisionError):
                await scene.ask()
            scene.on_event = None
            assert scene.history[-1] == ("assistant", "Berth nine")
            assert not scene.runner.running
            await scene.require_sound()

    run(body())


def test_thinking_without_a_signature_is_not_sent_to_a_vendor_who_wants_one() -> None:
    async def body() -> None:
        script: Script = [ThinkingPiece("Hm."), TextPiece("Nine")]
        async with Scene(script, chat=True, target=THINKER) as scene:
            with pytest.raises(ProviderError):
                await scene.ask()
            await scene.ask("And now?")
            answers = [m for m in scene.provider.bodies[-1]["messages"] if m["role"] == "assistant"]
            assert [block["type"] for block in answers[0]["content"]] == ["text"]

    run(body())


def test_half_a_letter_does_not_cost_the_rest_of_an_answer() -> None:
    async def body() -> None:
        async with Scene(
            [TextPiece("Nine \ud83d"), TextPiece("\ude00 \udc00")], chat=True
        ) as scene:
            with pytest.raises(ProviderError, match="is kept"):
                await scene.ask()
            assert scene.history[-1][1].startswith("Nine ")
            await scene.require_sound()

    run(body())


# -- going on -------------------------------------------------------------------------------------


def test_there_is_nothing_to_go_on_with_after_an_answer() -> None:
    async def body() -> None:
        async with Scene(chat=True) as scene:
            with pytest.raises(TurnStateError, match="nothing to continue"):
                await scene.go_on()
            await scene.ask()
            with pytest.raises(TurnStateError, match="nothing to continue"):
                await scene.go_on()
            assert len(scene.provider.bodies) == 1

    run(body())


def test_calls_in_a_chat_are_for_its_caller_and_cost_no_second_request() -> None:
    async def body() -> None:
        async with Scene(calling(("c", "find", {})), chat=True) as scene:
            answer = await scene.ask()
            assert answer.ending == "called"
            assert answer.turn is not None
            assert [call.id for call in answer.turn.pending_calls] == ["c"]
            again = await scene.go_on()
            assert again.ending == "called"
            assert again.turn is not None
            assert [call.id for call in again.turn.pending_calls] == ["c"]
            assert len(scene.provider.bodies) == 1
            turn = await again.turn.resume({"c": "found"})
            await turn.commit(Reply(blocks=(Text("Nine."),), usage=SILENT, stop="stop"))
            await scene.require_sound()

    run(body())


def test_two_turns_at_a_time_are_refused_and_the_first_goes_on() -> None:
    async def body() -> None:
        release = anyio.Event()
        async with Scene([release, *saying("Nine.")], chat=True) as scene:
            async with anyio.create_task_group() as group:
                group.start_soon(scene.ask)
                await scene.provider.waits.wait()
                assert scene.runner.running
                with pytest.raises(TurnStateError, match="in progress"):
                    await scene.runner.run("Me, too")
                with pytest.raises(TurnStateError, match="in progress"):
                    async with scene.runner.stream("Me, too") as events:
                        assert [event async for event in events] == []
                assert scene.runner.running
                release.set()
            assert scene.history[-1] == ("assistant", "Nine.")

    run(body())


# -- hooks ----------------------------------------------------------------------------------------


def test_a_message_hook_changes_the_answer_that_is_kept_and_given() -> None:
    async def body() -> None:
        hooks = Hooks()

        @hooks.message
        async def shout(event: MessageEvent) -> Message | None:
            if event.message.role != "assistant":
                return None
            return Message(role="assistant", blocks=(Text(event.message.text.upper()),))

        async with Scene(saying("nine"), spoken("ten and"), chat=True, hooks=hooks) as scene:
            assert (await scene.ask()).text == "NINE"
            with pytest.raises(ProviderError):
                await scene.ask()
            assert scene.history[-1] == ("assistant", "TEN AND")

    run(body())


def test_a_context_hook_that_fails_sends_nothing() -> None:
    async def body() -> None:
        hooks = Hooks()
        failing = True

        @hooks.context(reason="before_agent_start")
        async def fail(event: object) -> None:
            if failing:
                raise ValueError("oh")

        async with Scene(chat=True, hooks=hooks) as scene:
            with pytest.raises(HookError):
                await scene.ask()
            assert scene.provider.bodies == []
            assert not scene.runner.running
            failing = False
            await scene.require_sound()

    run(body())


def test_what_a_person_is_told_of_a_request_is_told_once() -> None:
    async def body() -> None:
        target = replace(SMALL, takes_sampling=False)
        async with Scene(saying("Yes."), chat=True, target=target, temperature=0.5) as scene:
            await scene.ask("Well?")
            (warning,) = scene.told(WarningIssued)
            assert "temperature: it is not sent" in warning.text

    run(body())
