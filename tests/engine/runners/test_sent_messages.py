"""A message that is sent while a turn runs reaches every runner, and is asked behind its answer."""

import pytest
from tests.engine.runners.scenes import Scene
from tests.fakes.providers import saying
from tests.fakes.sessions import run

from lamina.core.values.entry import Delivery
from lamina.core.values.event import Event, RequestStarted
from lamina.errors import UsageError

deliveries = pytest.mark.parametrize("deliver", ["steer", "follow_up"])


def asked(scene: Scene) -> list[str]:
    return [text for role, text in scene.history if role == "user"]


@deliveries
def test_a_chat_asks_what_was_sent_meanwhile_behind_its_answer(deliver: Delivery) -> None:
    async def body() -> None:
        async with Scene(saying("Nine."), saying("At the pier."), chat=True) as scene:

            async def send(event: Event, number: int) -> None:
                if isinstance(event, RequestStarted) and len(asked(scene)) == 1:
                    await scene.runner.send_message("And where is it?", deliver=deliver)

            scene.on_event = send
            answer = await scene.ask("Which berth?")
            assert (answer.text, answer.requests) == ("At the pier.", 2)
            assert asked(scene) == ["Which berth?", "And where is it?"]
            await scene.verify()

    run(body())


def test_a_chat_keeps_a_message_that_is_sent_between_turns() -> None:
    async def body() -> None:
        async with Scene(chat=True) as scene:
            await scene.runner.send_message("And where is it?")
            await scene.restart()
            assert (await scene.ask("Which berth?")).requests == 1
            assert asked(scene) == ["And where is it?", "Which berth?"]
            assert not scene.runner.session.state.inbox

    run(body())


@pytest.mark.parametrize("chat", [True, False])
def test_a_blank_message_is_refused(chat: bool) -> None:
    async def body() -> None:
        async with Scene(chat=chat) as scene:
            with pytest.raises(UsageError, match="blank"):
                await scene.runner.send_message("  ")

    run(body())
