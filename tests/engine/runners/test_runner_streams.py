"""A turn as a stream of events: all of them, then what went wrong. Leaving it stops the turn."""

import anyio
import pytest
from tests.engine.runners.scenes import Scene
from tests.fakes.providers import Script, saying, spoken
from tests.fakes.sessions import run

from lamina.core.values.event import BlockDelta, TurnEnded
from lamina.errors import ProviderError


def test_a_stream_gives_the_events_that_a_listener_gets() -> None:
    async def body() -> None:
        async with Scene(saying("Berth nine."), chat=True) as scene:
            async with scene.runner.stream("Which berth?") as events:
                seen = [event async for event in events]
            scene.events = seen
            assert scene.kinds == [
                "RequestStarted", "BlockStarted", "BlockDelta", "BlockEnded", "UsageReported",
                "TurnEnded",
            ]  # fmt: skip
            await scene.require_sound()

    run(body())


def test_a_stream_that_is_left_stops_the_turn_and_keeps_what_came() -> None:
    async def body() -> None:
        script: Script = [*spoken("Berth nine"), anyio.Event()]
        async with Scene(script, chat=True) as scene:
            async with scene.runner.stream("Which berth?") as events:
                async for event in events:
                    if isinstance(event, BlockDelta) and event.text == " nine":
                        break
            assert scene.history[-1] == ("assistant", "Berth nine")
            assert not scene.runner.running
            await scene.require_sound()

    run(body())


def test_a_stream_that_nobody_reads_is_stopped_with_its_block() -> None:
    async def body() -> None:
        async with Scene([anyio.Event()], chat=True) as scene:
            with anyio.fail_after(5):
                async with scene.runner.stream("Which berth?"):
                    pass
            assert not scene.runner.running
            scene.provider.scripts.clear()
            await scene.require_sound()

    run(body())


def test_a_stream_tells_everything_that_came_before_an_error() -> None:
    async def body() -> None:
        said = " ".join(f"w{n}" for n in range(20))
        async with Scene([*spoken(said), ProviderError("no line")], chat=True) as scene:
            seen: list[str] = []

            async def read() -> None:
                async with scene.runner.stream("Which berth?") as events:
                    async for event in events:
                        # A reader takes longer than the model.
                        await anyio.wait_all_tasks_blocked()
                        if isinstance(event, BlockDelta):
                            seen.append(event.text)

            with pytest.raises(ProviderError, match="no line"):
                await read()
            assert "".join(seen) == said

    run(body())


def test_without_a_text_a_stream_goes_on() -> None:
    async def body() -> None:
        async with Scene([ProviderError("no line")], saying("Nine."), chat=True) as scene:
            with pytest.raises(ProviderError):
                await scene.ask("Which berth?")
            async with scene.runner.stream(None) as events:
                seen = [event async for event in events]
            assert seen[-1] == TurnEnded(ending="answered", answer="Nine.", requests=1)

    run(body())
