"""Second sessions, forks and branches read in their first request what was sent before, at every
emulator and through the vendor's own SDK, and as much as was predicted."""

from functools import partial

import anyio
import pytest

from lamina.adapters.providers.model_book import load_book
from lamina.emulators.openai.emulator import OpenAIEmulator
from warm import (
    SCENES,
    TARGETS,
    Scene,
    Scenes,
    WarmRow,
    below_minimum,
    opening,
    play,
    question_in,
    stage,
)

WARM = [scene for scene in SCENES if scene is not below_minimum]
# Of what is cacheable.
LEAST = 0.95
NEAR = 0.05


def played(target: str, scene: Scene) -> WarmRow:
    return anyio.run(partial(play, target, scene))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("scene", WARM, ids=lambda scene: scene.__name__)
def test_a_first_request_reads_what_is_cacheable_as_predicted(target: str, scene: Scene) -> None:
    row = played(target, scene)
    assert row.cacheable > 7_500
    assert row.read >= LEAST * row.cacheable
    assert abs(row.predicted - row.read) <= NEAR * row.read
    assert row.meaning == "as_expected"


@pytest.mark.parametrize("target", TARGETS)
def test_below_a_vendors_minimum_nothing_is_predicted_and_nothing_is_read(target: str) -> None:
    row = played(target, below_minimum)
    assert (row.predicted, row.read) == (0, 0)


def test_sessions_beyond_what_a_vendor_serves_of_one_key_are_spread_over_several() -> None:
    """Twenty sessions within a minute at a vendor that serves fifteen requests of one key."""

    async def body() -> None:
        target = load_book().find("openai:gpt-5.1")
        async with stage(target, per_minute=15) as scenes:
            assert isinstance(scenes, Scenes)
            rows = []
            for number in range(20):
                given = opening(target, f"person {number}")
                async with await scenes.open(**given) as session:
                    rows.append(scenes.row("one of many", await scenes.ask(session, "Q?")))
            keys = {sent.body["prompt_cache_key"] for sent in scenes.sent}
            cold = [row for row in rows if row.read < LEAST * 8_000]
            assert len(keys) == len(cold) == 3

    anyio.run(body)


def test_a_cache_that_lost_what_another_session_sent_is_no_alarm() -> None:
    async def body() -> None:
        target = load_book().find("openai:gpt-5.1")
        async with stage(target) as scenes:
            async with await scenes.open(**opening(target, "Ann")) as first:
                await scenes.ask(first, "Q?")
            emulator = scenes.emulator
            assert isinstance(emulator, OpenAIEmulator)
            emulator.cache = type(emulator.cache)()
            async with await scenes.open(**opening(target, "Ann")) as second:
                turn = await scenes.ask(second, "Q?")
                verdict = turn.verdict
                assert verdict is not None
                assert verdict.expected > 7_500
                assert (verdict.reported, verdict.meaning) == (0, "nothing_sent_before")
            async with await scenes.open(**opening(target, "Ann")) as third:
                await scenes.ask(third, "Q?")
                emulator.cache = type(emulator.cache)()
                other = await third.edit(question_in(third), "And now?")
                done = await other.commit(await scenes.send(other.request()))
                assert done.verdict is not None
                assert done.verdict.meaning == "routed_elsewhere"

    anyio.run(body)
