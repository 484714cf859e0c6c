"""L4 under limits of its own: messages, tokens, or a summary and the last turns."""

from itertools import pairwise
from typing import Any

import pytest
from tests.fakes.sessions import World, boundaries, messages_of, note, placed, run, talk, words

from lamina.engine.session.turn import Turn


def earlier(turn: Turn) -> list[str]:
    """What stands before the question of this turn."""
    return [str(m["content"]) for m in messages_of(turn)[:-1]]


def count(texts: list[str]) -> int:
    return sum(len(text.split()) for text in texts)


async def chat(turns: int, size: int = 10, **limits: Any) -> list[Turn]:
    session = await World().open(**limits)
    return [
        await talk(session, words(size, f"q{n}"), answer=words(size, f"r{n}")) for n in range(turns)
    ]


def test_without_limits_all_of_history_is_sent() -> None:
    async def body() -> None:
        turns = await chat(30)
        assert len(earlier(turns[-1])) == 58

    run(body())


def test_a_limit_in_messages_is_kept_and_history_gives_way_in_big_steps() -> None:
    async def body() -> None:
        turns = await chat(30, history_messages=10)
        assert all(len(earlier(turn)) <= 10 for turn in turns)
        cut = [turn for turn in turns if "history" in boundaries(turn)]
        assert 0 < len(cut) <= 10
        broke = cut[0].context.agreement.broke
        assert broke is not None
        assert broke.reason == "history is over its limit"
        assert [omission.reason for omission in cut[0].context.left_out] == ["history"]

    run(body())


@pytest.mark.parametrize(
    "limit",
    [{"history_messages": most} for most in range(8)]
    + [{"history_tokens": most} for most in (30, 60, 100, 200, 300)],
)
def test_no_answer_is_sent_without_its_question(limit: dict[str, int]) -> None:
    async def body() -> None:
        for turn in await chat(14, **limit):
            sent = messages_of(turn)
            assert len(sent) - 1 <= limit.get("history_messages", 99)
            for before, message in pairwise([{"content": ""}, *sent]):
                if message["role"] == "assistant":
                    number = str(message["content"]).split()[0].removeprefix("r")
                    assert f"q{number}" in str(before["content"]).split()[:1]

    run(body())


def test_a_limit_of_four_messages_keeps_the_last_question_with_its_answer() -> None:
    async def body() -> None:
        turn = (await chat(4, history_messages=4))[-1]
        assert len(earlier(turn)) == 3
        assert earlier(turn)[1:] == [words(10, "q2"), words(10, "r2")]

    run(body())


def test_a_limit_in_tokens_is_kept_and_history_gives_way_in_big_steps() -> None:
    async def body() -> None:
        turns = await chat(40, history_tokens=600)
        assert all(count(earlier(turn)) <= 600 for turn in turns)
        cut = [turn for turn in turns if "history" in boundaries(turn)]
        assert 0 < len(cut) <= 13

    run(body())


def test_a_limit_in_tokens_below_the_size_of_a_summary_is_kept_too() -> None:
    async def body() -> None:
        turns = await chat(30, history_tokens=150)
        assert all(count(earlier(turn)) <= 150 for turn in turns)
        cut = [turn for turn in turns if "history" in boundaries(turn)]
        assert 0 < len(cut) <= 10

    run(body())


def test_the_limit_in_tokens_does_not_count_the_notes_that_stand_in_history() -> None:
    async def body() -> None:
        session = await World().open(history_tokens=100)
        await talk(session, "Q1", note("long.md", words(500)))
        turn = await session.prepare("Q2")
        assert boundaries(turn) == []

    run(body())


def test_a_note_in_history_that_gives_way_moves_into_the_library() -> None:
    async def body() -> None:
        session = await World().open(history_messages=4)
        a = note("a.md", "AAA")
        await talk(session, "Q1", a)
        for _ in range(3):
            turn = await talk(session, "Q", a)
        assert any("AAA" in text for text in earlier(turn)[:1])
        assert placed(turn) == {"a.md": "library"}

    run(body())


def test_stripped_history_is_a_short_summary_and_the_last_two_turns() -> None:
    async def body() -> None:
        turns = await chat(13, size=60, history="strip")
        assert [boundaries(turn) for turn in turns[1:]] == [[]] * 12
        session_turns = await chat(14, size=60, history="strip")
        turn = session_turns[-1]
        assert boundaries(turn) == ["history"]
        said = earlier(turn)
        assert len(said) == 5
        assert said[0].startswith("[Earlier messages were removed")
        assert len(said[0].split()) <= 300
        kept = [words(60, "q11"), words(60, "r11"), words(60, "q12"), words(60, "r12")]
        assert said[1:] == kept

    run(body())


def test_the_summary_of_stripped_history_tells_what_was_asked_last() -> None:
    async def body() -> None:
        session = await World().open(history="strip", strip_after_turns=3)
        for number in range(5):
            turn = await talk(session, f"Question {number}?", answer=f"Answer {number}.")
        summary = earlier(turn)[0]
        assert "Asked: Question 1?" in summary
        assert "Answered: Answer 1." in summary

    run(body())


def test_limits_can_be_changed_from_one_turn_to_the_next() -> None:
    async def body() -> None:
        session = await World().open()
        for _ in range(5):
            await talk(session)
        await session.update_settings(history_messages=4)
        turn = await session.prepare("Q")
        assert boundaries(turn) == ["history"]
        assert len(earlier(turn)) <= 4

    run(body())


def test_a_strip_begins_after_as_many_turns_the_second_time_as_the_first() -> None:
    async def body() -> None:
        turns = await chat(40, history="strip", strip_after_turns=6, strip_turns=2)
        cut = [number for number, turn in enumerate(turns) if "history" in boundaries(turn)]
        # Six earlier turns stay whole; of the seventh on, two stay beside the summary.
        assert cut[:4] == [7, 12, 17, 22]

    run(body())
