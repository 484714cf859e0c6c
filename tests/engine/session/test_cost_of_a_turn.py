"""What a turn costs does not grow with the length of the session."""

import pytest
from tests.fakes.sessions import World, note, run, talk, words

from lamina.core.codec import canonical_bytes
from lamina.core.values.settings import Promotion


def test_a_late_turn_counts_no_more_tokens_than_an_early_one() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(window=1_000_000)
        asked = []
        for number in range(80):
            before = world.book.words.asked
            await talk(session, f"Q{number}", note(f"{number}.md", words(5)), note("a.md", "A"))
            asked.append(world.book.words.asked - before)
        assert max(asked[-10:]) <= max(asked[1:10])

    run(body())


@pytest.mark.parametrize("promotion", ["lazy", "eager"])
def test_a_late_turn_writes_no_more_than_an_early_one(promotion: Promotion) -> None:
    async def body() -> None:
        session = await World().open(window=1_000_000, promotion=promotion)
        written = []
        for _ in range(80):
            before = len(session.entries)
            await talk(session, words(20), note("a.md", "A"), answer=words(20))
            written.append(sum(len(canonical_bytes(entry)) for entry in session.entries[before:]))
        assert written[-1] < written[3] * 1.2

    run(body())


def test_a_session_opened_again_does_not_count_what_was_counted_before_twice() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(window=1_000_000)
        for number in range(20):
            await talk(session, f"Q{number}", note("a.md", "A"))
        again = await world.open(session.id)
        before = world.book.words.asked
        await again.prepare("Q")
        # Once for each text that stands in the request, and not once more.
        assert world.book.words.asked - before < 20 * 5

    run(body())


@pytest.mark.parametrize("promotion", ["lazy", "eager"])
def test_a_question_is_counted_once_and_not_again_when_it_becomes_history(
    promotion: Promotion,
) -> None:
    async def body() -> None:
        world = World()
        session = await world.open(window=1_000_000, promotion=promotion)
        await talk(session, "Q1")
        before = world.book.words.asked
        await session.prepare("Q2")
        # The answer to the first one, and the second.
        assert world.book.words.asked - before == 2

    run(body())
