"""Issue 16, B.13: a message that is sent while nothing runs is in the journal, and goes along with
the next turn, whatever happens in between."""

import pytest
from tests.fakes.book import OTHER
from tests.fakes.providers import calling, saying
from tests.fakes.sessions import run, words
from tests.fakes.tools import tool
from tests.runners.scenes import Scene

from lamina.errors import InvalidText, ProviderError, WindowExceeded
from lamina.values.entry import Delivery, InboxEntry
from lamina.values.event import BlockStarted, Event, RequestStarted

deliveries = pytest.mark.parametrize("deliver", ["steer", "follow_up"])


def asked(scene: Scene) -> list[str]:
    return [text for role, text in scene.history if role == "user"]


@deliveries
def test_a_message_survives_a_restart_and_is_asked_once(deliver: Delivery) -> None:
    async def body() -> None:
        async with Scene() as scene:
            await scene.agent.send_message("And where is it?", deliver=deliver)
            await scene.restart()
            assert list(scene.runner.session.state.inbox) != []
            assert (await scene.ask("Which berth?")).requests == 2
            assert asked(scene) == ["Which berth?", "And where is it?"]
            assert not scene.runner.session.state.inbox
            await scene.restart()
            assert (await scene.ask("And now?")).requests == 1
            assert asked(scene) == ["Which berth?", "And where is it?", "And now?"]
            await scene.verify()

    run(body())


def test_messages_come_in_order_and_those_that_steer_first() -> None:
    async def body() -> None:
        async with Scene(calling(("a", "find", {})), tools=[tool("find")]) as scene:
            await scene.agent.send_message("Last.", deliver="follow_up")
            await scene.agent.send_message("First.")
            await scene.agent.send_message("Second.")
            await scene.restart()
            await scene.ask("Which berth?")
            assert asked(scene) == ["Which berth?", "First.", "Second.", "Last."]
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
            assert asked(scene) == ["Which pier?", "In blue!"]
            await scene.verify()

    run(body())


def test_a_message_that_was_asked_and_not_answered_is_not_asked_by_itself_again() -> None:
    async def body() -> None:
        async with Scene(saying("Nine."), [ProviderError("no line")]) as scene:
            await scene.agent.send_message("In blue!")
            with pytest.raises(ProviderError):
                await scene.ask("Which berth?")
            await scene.restart()
            await scene.ask("Which pier?")
            assert asked(scene) == ["Which berth?", "Which pier?"]
            await scene.verify()

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
            assert asked(scene)[-2:] == ["Which pier?", "In blue!"]
            await scene.verify()

    run(body())


def test_a_message_goes_to_whom_the_turn_is_for() -> None:
    async def body() -> None:
        async with Scene() as scene:
            scene.book.put(OTHER)
            await scene.agent.send_message("In blue!")
            await scene.ask("Which berth?", target=OTHER.name)
            assert set(scene.providers.targets) == {OTHER.name}
            started = [event for event in scene.events if isinstance(event, RequestStarted)]
            assert [event.target for event in started] == [OTHER.name] * 2

    run(body())


def test_a_message_that_cannot_be_asked_stands_in_nobodys_way() -> None:
    async def body() -> None:
        async with Scene(window=400, output_reserve=50) as scene:
            await scene.agent.send_message(words(900))
            with pytest.raises(WindowExceeded):
                await scene.ask("Which berth?")
            assert (await scene.ask("Which pier?")).ending == "answered"

    run(body())


def test_a_message_that_cannot_be_sent_is_refused_when_it_is_given() -> None:
    async def body() -> None:
        async with Scene() as scene:
            with pytest.raises(InvalidText):
                await scene.agent.send_message("\ud800")
            assert not scene.kept(InboxEntry)

    run(body())
