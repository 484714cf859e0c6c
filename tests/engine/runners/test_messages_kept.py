"""Issue 16, B.13: a message that is sent while nothing runs is in the journal, and goes along with
the next turn, whatever happens in between."""

import pytest
from tests.engine.runners.scenes import Scene
from tests.fakes.book import OTHER
from tests.fakes.providers import calling, saying
from tests.fakes.sessions import run, words
from tests.fakes.tools import tool

from lamina.core.values.entry import Delivery, InboxEntry
from lamina.core.values.event import BlockStarted, Event, RequestStarted
from lamina.core.values.message import Message, Text
from lamina.engine.sources.hooks import ContextEvent, Drop, Hooks, MessageEvent
from lamina.errors import InvalidText, ProviderError

deliveries = pytest.mark.parametrize("deliver", ["steer", "follow_up"])


def asked(scene: Scene) -> list[str]:
    return [text for role, text in scene.history if role == "user"]


@deliveries
@pytest.mark.parametrize("chat", [True, False])
def test_a_message_goes_along_with_the_next_question_whose_answer_is_given(
    deliver: Delivery, chat: bool
) -> None:
    async def body() -> None:
        async with Scene(saying("Nine."), saying("Ten."), chat=chat) as scene:
            await scene.runner.send_message("It is about the harbour.", deliver=deliver)
            await scene.restart()
            assert list(scene.runner.session.state.inbox) != []
            answer = await scene.ask("Which berth?")
            assert (answer.text, answer.requests) == ("Nine.", 1)
            sent = [m["content"] for m in scene.provider.bodies[0]["messages"]]
            assert sent[-2:] == ["It is about the harbour.", "Which berth?"]
            assert not scene.runner.session.state.inbox
            await scene.restart()
            assert (await scene.ask("And now?")).requests == 1
            assert asked(scene) == ["It is about the harbour.", "Which berth?", "And now?"]
            await scene.verify()

    run(body())


def test_messages_go_along_in_the_order_they_were_sent_in() -> None:
    async def body() -> None:
        async with Scene(calling(("a", "find", {})), tools=[tool("find")]) as scene:
            await scene.agent.send_message("First.", deliver="follow_up")
            await scene.agent.send_message("Second.")
            await scene.restart()
            await scene.ask("Which berth?")
            assert asked(scene) == ["First.", "Second.", "Which berth?"]
            await scene.verify()

    run(body())


def test_a_message_sent_beside_an_open_question_is_not_left_with_it() -> None:
    async def body() -> None:
        async with Scene([ProviderError("no line")]) as scene:
            with pytest.raises(ProviderError):
                await scene.ask("Which berth?")
            await scene.agent.send_message("In blue!")
            await scene.restart()
            await scene.ask("Which pier?")
            assert asked(scene) == ["In blue!", "Which pier?"]
            await scene.verify()

    run(body())


def test_a_message_stays_in_history_if_the_question_it_went_along_with_gets_no_answer() -> None:
    async def body() -> None:
        async with Scene([ProviderError("no line")]) as scene:
            await scene.agent.send_message("In blue!")
            with pytest.raises(ProviderError):
                await scene.ask("Which berth?")
            await scene.restart()
            await scene.ask("Which pier?")
            assert asked(scene) == ["In blue!", "Which pier?"]
            await scene.verify()

    run(body())


def test_an_answer_that_is_asked_for_again_is_given_and_messages_wait_for_a_question() -> None:
    async def body() -> None:
        async with Scene(saying("Nine."), saying("Ten."), saying("Blue.")) as scene:
            await scene.ask("Which berth?")
            await scene.agent.send_message("In blue!")
            assert (await scene.runner.regenerate()).text == "Ten."
            assert (await scene.ask("Which pier?")).text == "Blue."
            assert asked(scene) == ["Which berth?", "In blue!", "Which pier?"]
            await scene.verify()

    run(body())


def test_a_message_sent_while_calls_wait_reaches_their_turn() -> None:
    async def body() -> None:
        script = calling(("a", "find", {})), saying("Blue.")
        async with Scene(*script, tools=[tool("find", "required")]) as scene:
            assert (await scene.ask("Which berth?")).ending == "waiting"
            await scene.agent.send_message("In blue!")
            await scene.agent.decide("a", "allow_once")
            assert (await scene.go_on()).text == "Blue."
            assert asked(scene) == ["Which berth?", "In blue!"]
            await scene.verify()

    run(body())


def test_message_hooks_see_messages_that_go_along() -> None:
    async def body() -> None:
        hooks = Hooks()

        @hooks.message(name="censor")
        def censor(event: MessageEvent) -> Message | Drop | None:
            if event.message.text == "Forget it.":
                return Drop()
            if event.message.role == "user":
                return Message(role="user", blocks=(Text(event.message.text.upper()),))
            return None

        async with Scene(hooks=hooks) as scene:
            await scene.agent.send_message("In blue!")
            await scene.agent.send_message("Forget it.")
            answer = await scene.ask("Which berth?")
            assert asked(scene) == ["IN BLUE!", "WHICH BERTH?"]
            assert any("a message that waited was not sent" in w for w in answer.warnings)
            assert not scene.runner.session.state.inbox
            await scene.verify()

    run(body())


def test_the_hook_at_the_start_runs_once_a_prompt_whatever_is_sent_meanwhile() -> None:
    async def body() -> None:
        hooks = Hooks()
        started: list[str] = []

        @hooks.context(reason="before_agent_start")
        def start(event: ContextEvent) -> None:
            assert event.message is not None
            started.append(event.message.text)

        script = calling(("a", "find", {})), saying("Blue."), saying("There.")
        async with Scene(*script, tools=[tool("find")], hooks=hooks) as scene:

            async def send(event: Event, number: int) -> None:
                if isinstance(event, RequestStarted) and not scene.provider.bodies:
                    await scene.agent.send_message("In blue!")
                    await scene.agent.send_message("Where?", deliver="follow_up")

            scene.on_event = send
            await scene.agent.send_message("It is about the harbour.")
            assert (await scene.ask("Which berth?")).text == "There."
            assert asked(scene)[1:] == ["Which berth?", "In blue!", "Where?"]
            assert started == ["Which berth?"]

    run(body())


def test_what_was_sent_to_a_turn_that_stopped_is_kept() -> None:
    async def body() -> None:
        async with Scene(saying("Nine of them.")) as scene:

            async def stop(event: Event, number: int) -> None:
                if isinstance(event, BlockStarted):
                    scene.on_event = None
                    await scene.agent.send_message("In blue!")
                    assert not scene.kept(InboxEntry)
                    scene.runner.abort()

            scene.on_event = stop
            assert (await scene.ask("Which berth?")).ending == "aborted"
            await scene.restart()
            await scene.ask("Which pier?")
            assert asked(scene)[-2:] == ["In blue!", "Which pier?"]
            await scene.verify()

    run(body())


def test_a_message_goes_to_whom_the_turn_is_for() -> None:
    async def body() -> None:
        async with Scene() as scene:
            scene.book.put(OTHER)

            async def send(event: Event, number: int) -> None:
                if isinstance(event, RequestStarted) and not scene.provider.bodies:
                    await scene.agent.send_message("In blue!")

            scene.on_event = send
            await scene.ask("Which berth?", target=OTHER.name)
            assert set(scene.providers.targets) == {OTHER.name}
            started = [event for event in scene.events if isinstance(event, RequestStarted)]
            assert [event.target for event in started] == [OTHER.name] * 2

    run(body())


def test_a_message_that_does_not_fit_stands_in_nobodys_way() -> None:
    async def body() -> None:
        async with Scene(window=400, output_reserve=50) as scene:
            await scene.agent.send_message(words(900))
            assert (await scene.ask("Which berth?")).ending == "answered"
            assert scene.context.left_out
            assert (await scene.ask("Which pier?")).ending == "answered"

    run(body())


def test_a_message_that_cannot_be_sent_is_refused_when_it_is_given() -> None:
    async def body() -> None:
        async with Scene() as scene:
            with pytest.raises(InvalidText):
                await scene.agent.send_message("\ud800")
            assert not scene.kept(InboxEntry)

    run(body())
