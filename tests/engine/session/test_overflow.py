"""Overflow: the provider says that a request is too long, whatever was counted here."""

from typing import Any

import pytest
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import (
    World,
    all_text,
    messages_of,
    note,
    placed,
    reported,
    run,
    talk,
    user_of,
    words,
)
from tests.fakes.summarizer import (
    FakeSummarizer,
    compacting,
    compactions,
    require_paired,
    require_sound,
    summaries_in,
)

import lamina
from lamina.core.values.entry import RequestEntry
from lamina.core.values.message import ToolText
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn
from lamina.errors import TurnStateError, WindowExceeded


async def chat(session: Session, turns: int, size: int = 30) -> Turn:
    for number in range(turns):
        turn = await talk(session, words(size, f"q{number}"), answer=words(size, f"r{number}"))
    return turn


async def call(turn: Turn, *ids: str) -> Turn:
    return await turn.commit(openai_reply(None, calls=[(each, "find") for each in ids]))


@pytest.mark.parametrize("summarizer", [None, FakeSummarizer(), FakeSummarizer(OSError("away"))])
@pytest.mark.parametrize("promotion", ["lazy", "eager"])
def test_the_question_is_sent_again_behind_a_summary(
    summarizer: FakeSummarizer | None, promotion: str
) -> None:
    async def body() -> None:
        world = World()
        session = await compacting(summarizer, world, promotion=promotion)
        await chat(session, 10)
        a = note("a.md", words(20, "alpha"))
        failed = await session.prepare("Which berth?", attach=[a])
        turn = await failed.retry_smaller()
        assert compactions(turn) == ["compaction (overflow)"]
        assert len(summaries_in(turn)) == 1
        assert "Which berth?" in user_of(turn)
        assert all_text(turn).count("Which berth?") == 1
        assert all_text(turn).count(words(20, "alpha")) == 1
        assert placed(turn) == placed(failed) == {"a.md": "message"}
        assert turn.prompt.tokens < failed.prompt.tokens
        assert turn.context.agreement.broke is not None
        assert "overflow" in turn.context.agreement.broke.reason
        with pytest.raises(TurnStateError):
            await failed.commit(openai_reply("late"))
        turn = await turn.commit(openai_reply("Nine."))
        after = await session.prepare("And then?")
        assert promotion == "eager" or after.context.agreement.broke is None
        assert all_text(after).count("Which berth?") == 1
        assert "Nine." in all_text(after)
        await require_sound(world, session)

    run(body())


def test_the_failed_request_is_on_no_path_any_more() -> None:
    async def body() -> None:
        session = await compacting(FakeSummarizer())
        await chat(session, 10)
        failed = await session.prepare("Which berth?")
        turn = await failed.retry_smaller()
        ids = [entry.id for entry in session.path]
        assert failed.id not in ids
        assert turn.id in ids
        assert failed.id in [entry.id for entry in session.entries]
        requests = [entry for entry in session.path if isinstance(entry, RequestEntry)]
        assert [entry.retry for entry in requests] == [False] * 10 + [True]

    run(body())


def test_a_second_time_for_the_same_question_is_an_error_and_leaves_the_request_open() -> None:
    async def body() -> None:
        world, summarizer = World(), FakeSummarizer()
        session = await compacting(summarizer, world)
        await chat(session, 10)
        turn = await (await session.prepare("Which berth?")).retry_smaller()
        with pytest.raises(WindowExceeded, match="after a compaction, too") as caught:
            await turn.retry_smaller()
        assert caught.value.sizes["L4"] > 0
        assert summarizer.asked == 1
        assert session.interrupted
        await turn.commit(openai_reply("Nine, after all."))
        assert "Nine, after all." in all_text(await session.prepare("Q"))
        await require_sound(world, session)

    run(body())


def test_a_new_question_may_be_retried_again() -> None:
    async def body() -> None:
        session = await compacting(FakeSummarizer())
        await chat(session, 10)
        turn = await (await session.prepare("First?")).retry_smaller()
        with pytest.raises(WindowExceeded):
            await turn.retry_smaller()
        await session.prepare("Shorter?")
        await chat(session, 7)
        turn = await (await session.prepare("Second?")).retry_smaller()
        assert compactions(turn) == ["compaction (overflow)"]
        assert user_of(turn) == "Second?"

    run(body())


def test_asking_anew_after_a_second_refusal_starts_from_the_compacted_history() -> None:
    async def body() -> None:
        world = World()
        session = await compacting(FakeSummarizer(), world)
        await chat(session, 10)
        turn = await (await session.prepare("First?")).retry_smaller()
        with pytest.raises(WindowExceeded):
            await turn.retry_smaller()
        again = await talk(session, "Shorter?")
        assert "First?" not in all_text(again)
        assert len(summaries_in(again)) == 1
        await require_sound(world, session)

    run(body())


@pytest.mark.parametrize("summarizer", [None, FakeSummarizer()])
def test_inside_a_tool_loop_the_results_are_sent_again_beside_their_calls(
    summarizer: FakeSummarizer | None,
) -> None:
    async def body() -> None:
        world = World()
        session = await compacting(summarizer, world)
        await chat(session, 10)
        turn = await call(await session.prepare("Which berth?"), "c1", "c2")
        failed = await turn.resume({"c1": words(20, "one"), "c2": words(20, "two")})
        turn = await failed.retry_smaller()
        assert compactions(turn) == ["compaction (overflow)"]
        require_paired(turn)
        assert "Which berth?" in all_text(turn)
        assert messages_of(turn)[-2:] == messages_of(failed)[-2:]
        assert turn.prompt.tokens < failed.prompt.tokens
        turn = await call(turn, "c3")
        failed = await turn.resume({"c3": "three"})
        require_paired(failed)
        with pytest.raises(WindowExceeded):
            await failed.retry_smaller()
        await failed.commit(openai_reply("Nine."))
        require_paired(await talk(session, "Next?"))
        await require_sound(world, session)

    run(body())


def test_a_loop_whose_own_turn_is_all_there_is_can_be_cut_in_the_middle() -> None:
    async def body() -> None:
        world = World()
        session = await compacting(FakeSummarizer(), world)
        question = "Which berth is free?"
        turn = await session.prepare(question)
        for number in range(6):
            turn = await (await call(turn, f"c{number}")).resume({f"c{number}": words(110)})
        failed = turn
        turn = await failed.retry_smaller()
        require_paired(turn)
        assert question in all_text(turn)
        assert "c5" in str(turn.request())
        assert turn.prompt.tokens < failed.prompt.tokens
        await require_sound(world, session)

    run(body())


@pytest.mark.parametrize("in_loop", [False, True])
def test_it_works_on_a_request_that_was_taken_up_after_a_restart(in_loop: bool) -> None:
    async def body() -> None:
        world = World()
        session = await compacting(FakeSummarizer(), world)
        await chat(session, 10)
        a = note("a.md", words(20, "alpha"))
        searched = ToolText(name="search", text=words(12, "searched"))
        turn = await session.prepare("Which berth?", attach=[a], tool_texts=[searched])
        if in_loop:
            turn = await (await call(turn, "c1")).resume({"c1": "one"})
        await session.close()

        session = await compacting(FakeSummarizer(), world, session=session.id)
        again = await session.current_turn()
        assert again is not None
        retried = await again.retry_smaller()
        require_paired(retried)
        assert "Which berth?" in all_text(retried)
        assert words(20, "alpha") in all_text(retried)
        assert words(12, "searched") in all_text(retried)
        await session.close()

        session = await compacting(FakeSummarizer(), world, session=session.id)
        again = await session.current_turn()
        assert again is not None
        assert again.request() == retried.request()
        with pytest.raises(WindowExceeded, match="after a compaction, too"):
            await again.retry_smaller()
        await again.commit(openai_reply("Nine."))
        await talk(session, "Next?")
        await require_sound(world, session)

    run(body())


def test_when_nothing_can_be_compacted_it_says_so_and_the_session_stays_usable() -> None:
    async def body() -> None:
        world, summarizer = World(), FakeSummarizer()
        session = await compacting(summarizer, world)
        await chat(session, 2)
        turn = await session.prepare("Which berth?")
        state, entries = session.state, session.entries
        with pytest.raises(WindowExceeded, match="too long, and all of history"):
            await turn.retry_smaller()
        assert not summarizer.asked
        assert session.state is state
        assert session.entries == entries
        # Either way goes on: the answer comes after all, or another question is asked.
        await turn.commit(openai_reply("Nine."))
        turn = await session.prepare("Then?")
        with pytest.raises(WindowExceeded):
            await turn.retry_smaller()
        after = await talk(session, "Shorter?")
        assert "Then?" not in all_text(after)
        assert "Nine." in all_text(after)
        await require_sound(world, session)

    run(body())


def test_a_turn_that_is_not_open_cannot_overflow() -> None:
    async def body() -> None:
        session = await compacting(FakeSummarizer())
        await chat(session, 10)
        turn = await session.prepare("Q")
        answered = await turn.commit(openai_reply("A"))
        for each in (turn, answered):
            with pytest.raises(TurnStateError):
                await each.retry_smaller()

    run(body())


def test_it_says_again_what_could_not_be_attached() -> None:
    async def body() -> None:
        session = await compacting(FakeSummarizer())
        await chat(session, 10)
        failed = await session.prepare("Q", attach=["gone.md", "../secret.md"])
        out = {("note:gone.md", "missing"), ("note:../secret.md", "refused")}
        assert out <= set(reported(failed))
        turn = await failed.retry_smaller()
        assert out <= set(reported(turn))
        assert "gone.md" in user_of(turn)

    run(body())


def test_what_had_no_room_is_attached_or_reported_again() -> None:
    async def body() -> None:
        session = await compacting(FakeSummarizer(), compaction="off")
        await chat(session, 10)
        huge = lamina.attach(note("huge.md", words(2_000)), priority=9)
        failed = await session.prepare("Q", attach=[huge])
        assert ("note:huge.md", "window") in reported(failed)
        turn = await failed.retry_smaller()
        assert "note:huge.md" in [what for what, _ in reported(turn)] or placed(turn)

    run(body())


def test_a_shortened_result_is_still_reported_as_shortened() -> None:
    async def body() -> None:
        session = await compacting(FakeSummarizer(), compaction="off")
        await chat(session, 10)
        turn = await call(await session.prepare("Q"), "c1")
        failed = await turn.resume({"c1": words(3_000, "found")})
        assert ("result:c1", "window") in reported(failed)
        turn = await failed.retry_smaller()
        assert ("result:c1", "window") in reported(turn)

    run(body())


def test_what_is_pinned_meanwhile_is_in_the_second_try() -> None:
    async def body() -> None:
        world = World({"pin.md": words(20, "pinned")})
        session = await compacting(FakeSummarizer(), world)
        await chat(session, 10)
        failed = await session.prepare("Q")
        await session.pin("pin.md")
        turn = await failed.retry_smaller()
        assert words(20, "pinned") in all_text(turn)
        assert "pin.md" in placed(turn)

    run(body())


def test_it_goes_to_the_target_that_refused() -> None:
    async def body() -> None:
        world, summarizer = World(), FakeSummarizer()
        session = await compacting(summarizer, world, compaction_ahead=0)
        await chat(session, 10)
        failed = await session.prepare("Q", target="fake:thinker")
        turn = await failed.retry_smaller()
        assert turn.context.target == "fake:thinker"
        assert turn.request()["model"] == summarizer.requests[0]["model"] == "thinker"
        await require_sound(world, session)

    run(body())


def test_the_second_try_is_smaller_also_where_the_summary_is_long() -> None:
    async def body() -> None:
        def long(job: Any) -> str:
            # As much as passes for a summary.
            return words(min(job.max_tokens, 340))

        session = await compacting(FakeSummarizer(long))
        await talk(session, "Q", note("a.md", words(20)))
        await chat(session, 10)
        failed = await session.prepare("Q")
        turn = await failed.retry_smaller()
        assert turn.prompt.tokens < failed.prompt.tokens - 64

    run(body())


def test_overflow_before_anything_was_ever_answered_is_a_clear_error() -> None:
    async def body() -> None:
        world = World()
        session = await compacting(FakeSummarizer(), world)
        turn = await session.prepare(words(1_000))
        with pytest.raises(WindowExceeded):
            await turn.retry_smaller()
        assert (await talk(session, "Shorter?")).answer == "A"
        await require_sound(world, session)

    run(body())


def test_a_retry_that_does_not_fit_leaves_the_calls_waiting_and_the_session_usable() -> None:
    async def body() -> None:
        world = World()
        session = await compacting(FakeSummarizer(), world)
        await chat(session, 10)
        called = await call(await session.prepare("Which berth?"), "c1")
        failed = await called.resume({"c1": words(50, "found")})
        await session.set_system("system", words(1_090), reason="a long one")
        with pytest.raises(WindowExceeded):
            await failed.retry_smaller()
        await session.set_system("system", "short", reason="a short one")
        turn = await session.current_turn()
        assert turn is not None
        if turn.pending_calls:
            turn = await turn.resume({"c1": words(50, "found")})
        require_paired(turn)
        await turn.commit(openai_reply("Nine."))
        await talk(session, "Next?")
        await require_sound(world, session)

    run(body())
