"""A prune takes what it has to, and no more than it said: large results are shortened, not lost."""

import re

from hypothesis import given
from hypothesis import strategies as st
from tests.engine.session.test_tool_loops import loop
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, all_text, boundaries, messages_of, reported, run, words
from tests.strategies import modest

from lamina.core.audit.verification import verify
from lamina.core.values.message import ToolResult
from lamina.engine.session.turn import Turn

LIMIT = 20_000


async def grown(*sizes: int, world: World | None = None) -> list[Turn]:
    """The requests of one turn whose calls gave results of so many tokens."""
    session = await (world or World()).open("s", window=LIMIT, output_reserve=0)
    turn = await session.prepare("Which berth is free?")
    turns = [turn]
    for number, size in enumerate(sizes):
        answered = await turn.commit(openai_reply(None, calls=[(f"c{number}", "read")]))
        turn = await answered.resume({f"c{number}": words(size, f"found{number}")})
        turns.append(turn)
    return turns


def test_a_result_that_filled_the_window_is_shortened_when_it_has_to_give_way() -> None:
    async def body() -> None:
        turn = (await grown(19_000, 1_900))[-1]
        assert boundaries(turn) == ["window"]
        assert ("result:c0", "window") in reported(turn)
        said = next(each for each in turn.context.left_out if each.what == "result:c0")
        assert "of its 19,000 tokens" in said.detail
        first, second = (m["content"] for m in messages_of(turn) if m["role"] == "tool")
        assert first.startswith("found0 found0")
        assert first.endswith("found0 found0")
        assert "tokens removed to fit the context window" in first
        assert second == words(1_900, "found1")
        assert LIMIT * 0.4 < turn.prompt.tokens < LIMIT * 0.6
        assert turn.context.agreement.broke is not None
        assert turn.context.agreement.broke.reason == "over the window"

    run(body())


def test_what_stands_before_a_shortened_result_keeps_its_bytes() -> None:
    async def body() -> None:
        before, after = (await grown(19_000, 1_900))[-2:]
        assert messages_of(after)[:2] == messages_of(before)[:2]
        assert after.context.agreement.segments >= 2

    run(body())


def test_a_shortened_result_stays_as_it_is_afterwards() -> None:
    async def body() -> None:
        *_, pruned, after = await grown(19_000, 1_900, 900)
        assert messages_of(after)[: len(messages_of(pruned))] == messages_of(pruned)
        assert after.context.agreement.broke is None

    run(body())


def test_requests_with_shortened_results_are_rebuilt_from_the_journal() -> None:
    async def body() -> None:
        world = World()
        turns = await grown(19_000, 1_900, 900, 15_000, 900, world=world)
        last = messages_of(turns[-1])
        verdict = verify(await world.store.read("s"), world.book)
        assert verdict.sound, verdict
        again = await world.open("s")
        going = await again.current_turn()
        assert going is not None
        assert messages_of(going) == last

    run(body())


def test_a_result_that_is_shortened_twice_says_all_that_is_missing() -> None:
    async def body() -> None:
        # Shortened before it is sent, for want of room, and once more by a prune.
        turn = (await grown(26_000, 3_000))[-1]
        first, _ = (m["content"] for m in messages_of(turn) if m["role"] == "tool")
        gaps = re.findall(r"\[\.\.\. ([\d,]+) tokens removed", first)
        assert len(gaps) == 1
        left = first.count("found0")
        assert abs(int(gaps[0].replace(",", "")) - (26_000 - left)) < 100
        assert [what for what, _ in reported(turn)].count("result:c0") == 1

    run(body())


def test_what_a_prune_took_out_of_a_result_can_be_read_back() -> None:
    async def body() -> None:
        world = World()
        await grown(19_000, 1_900, world=world)
        session = await world.open("s")
        (gone,) = session.compactions
        assert gone.reason == "over the window"
        (message,) = gone.messages
        (result,) = message.blocks
        assert isinstance(result, ToolResult)
        assert result.text == words(19_000, "found0")
        assert gone.summary == "The same results, shortened."

    run(body())


def test_of_results_that_are_gone_nothing_is_said_any_more() -> None:
    async def body() -> None:
        *_, last = await grown(30_000, 30_000, 30_000)
        assert [what for what, _ in reported(last) if what.startswith("result:")] == ["result:c2"]

    run(body())


def test_what_was_done_is_told_even_if_the_next_result_fills_the_window() -> None:
    async def body() -> None:
        *_, last = await grown(30_000, 30_000)
        first = messages_of(last)[0]
        assert "Which berth is free?" in first["content"]
        assert "called read" in first["content"]

    run(body())


def test_where_the_head_is_short_more_of_the_latest_stays() -> None:
    async def body() -> None:
        # One large result after a short question: the head ends in front of it.
        turns = await grown(11_000, *[400] * 24)
        pruned = next(turn for turn in turns if "window" in boundaries(turn))
        assert pruned.prompt.tokens > LIMIT * 0.4
        assert "found20" in all_text(pruned)

    run(body())


@modest
@given(st.lists(st.integers(1, LIMIT), min_size=2, max_size=8))
def test_a_prune_leaves_at_least_half_of_what_it_aims_at(sizes: list[int]) -> None:
    async def body() -> None:
        before: Turn | None = None
        for turn in await grown(*sizes):
            if "window" in boundaries(turn):
                assert before is not None
                there = min(LIMIT, before.prompt.tokens + turn.prompt.tokens // 2)
                assert turn.prompt.tokens >= min(there, LIMIT // 4) - 1_000
            assert turn.prompt.tokens <= LIMIT
            before = turn

    run(body())


def test_many_rounds_of_small_results_move_the_prefix_rarely() -> None:
    async def body() -> None:
        session = await World().open(window=LIMIT, output_reserve=0)
        turns = await loop(session, await session.prepare("Q"), 120, 400)
        moved = [turn for turn in turns if turn.context.agreement.broke]
        assert 2 <= len(moved) <= 6

    run(body())
