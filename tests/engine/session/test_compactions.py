"""Compaction as a session meets it: when it happens, what stays, and what it says of itself."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace
from tests.fakes.book import SMALL
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import (
    World,
    all_text,
    boundaries,
    digests,
    library_of,
    messages_of,
    note,
    placed,
    reported,
    rule,
    run,
    talk,
    user_of,
    words,
)
from tests.fakes.summarizer import (
    SAID,
    SUMMARY_MARK,
    FakeSummarizer,
    compacting,
    compactions,
    require_paired,
    require_sound,
    summaries_in,
)

import lamina
from lamina.core.values.envelope import Options
from lamina.core.values.item import Item, Picture, note_id
from lamina.core.values.message import Message, ToolDefinition, ToolText
from lamina.core.values.prices import flat_prices
from lamina.core.values.settings import Settings
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn
from lamina.engine.sources.hooks import Hooks
from lamina.errors import TurnStateError, WindowExceeded

PRICED = replace(SMALL, prices=flat_prices(1.0, 2.0, read=0.1))


async def chat(session: Session, turns: int, size: int = 30) -> Turn:
    for number in range(turns):
        turn = await talk(session, words(size, f"q{number}"), answer=words(size, f"r{number}"))
    return turn


async def loop(session: Session, turn: Turn, rounds: int, size: int) -> list[Turn]:
    made = []
    for number in range(rounds):
        call = f"c{number}"
        answered = await turn.commit(openai_reply(None, calls=[(call, "find")]))
        turn = await answered.resume({call: words(size, f"found{number}")})
        made.append(turn)
    return made


# -- when ----------------------------------------------------------------------------------------


def size_of(messages: Sequence[Message]) -> int:
    return sum(len(message.text.split()) + 4 for message in messages)


@pytest.mark.parametrize(
    ("window", "reserve", "keep"),
    [(1_200, 300, 400), (60_000, 15_000, 20_000), (200_000, 16_384, 20_000)],
)
def test_by_default_it_is_due_above_all_but_a_quarter_and_keeps_a_third(
    window: int, reserve: int, keep: int
) -> None:
    async def body() -> None:
        summarizer = FakeSummarizer()
        session = await compacting(summarizer, window=window)
        size = window // 40
        said = 0
        while not summarizer.asked:
            said += size + 4
            turn = await session.prepare(words(size))
            if not summarizer.asked:
                assert turn.prompt.tokens == said
                said += size + 4
                await turn.commit(openai_reply(words(size)))
        # Names and frames of the next request are reckoned with 24 tokens.
        assert said - size - 4 <= window - reserve - 24 < said
        (gone,) = session.compactions
        kept = (said - size - 4 if session.interrupted else said) - size_of(gone.messages)
        assert keep - 2 * (size + 4) < kept <= keep

    run(body())


def test_a_reserve_and_a_share_to_keep_of_ones_own_are_used() -> None:
    async def body() -> None:
        summarizer = FakeSummarizer()
        session = await compacting(summarizer, compaction_reserve=700, compaction_keep=150,
                                   compaction_summary=60)  # fmt: skip
        await chat(session, 7)
        assert not summarizer.asked
        turn = await session.prepare(words(30))
        assert compactions(turn) == ["compaction (threshold)"]
        (gone,) = session.compactions
        assert len(gone.messages) == 10

    run(body())


def test_it_happens_before_the_request_that_would_be_over() -> None:
    async def body() -> None:
        summarizer = FakeSummarizer()
        session = await compacting(summarizer)
        before = await chat(session, 11)
        assert not summarizer.asked
        turn = await session.prepare(words(250, "long"))
        assert len(summarizer.requests) == 1
        assert compactions(turn) == ["compaction (threshold)"]
        assert len(summaries_in(turn)) == 1
        assert user_of(turn) == words(250, "long")
        assert turn.prompt.tokens <= 900
        assert turn.prompt.tokens < before.prompt.tokens + 250

    run(body())


def test_it_happens_for_a_new_note_that_would_be_over() -> None:
    async def body() -> None:
        summarizer = FakeSummarizer()
        session = await compacting(summarizer)
        await chat(session, 11)
        turn = await session.prepare("Q", attach=[note("new.md", words(250))])
        assert compactions(turn) == ["compaction (threshold)"]
        assert placed(turn) == {"new.md": "message"}
        assert turn.prompt.tokens <= 900

    run(body())


def test_it_happens_for_a_note_whose_new_version_would_be_over() -> None:
    async def body() -> None:
        summarizer = FakeSummarizer()
        session = await compacting(summarizer)
        await talk(session, "Q", note("new.md", "short"))
        await chat(session, 11)
        turn = await session.prepare("Q", attach=[note("new.md", words(300))])
        assert compactions(turn) == ["compaction (threshold)"]
        assert "window" not in boundaries(turn)

    run(body())


def test_it_happens_for_texts_of_planned_tools_that_would_be_over() -> None:
    async def body() -> None:
        summarizer = FakeSummarizer()
        session = await compacting(summarizer)
        await chat(session, 11)
        searched = ToolText(name="search", text=words(300))
        turn = await session.prepare("Q", tool_texts=[searched])
        assert compactions(turn) == ["compaction (threshold)"]
        assert "window" not in boundaries(turn)

    run(body())


@pytest.mark.parametrize("limit", [None, 100])
def test_a_note_that_cannot_be_sent_anyway_is_no_reason_to_compact(limit: int | None) -> None:
    async def body() -> None:
        summarizer = FakeSummarizer()
        session = await compacting(summarizer, attachment_limit=limit)
        low = lamina.attach(note("huge.md", words(5_000)), priority=9)
        for _ in range(10):
            turn = await talk(session, words(30), low, answer=words(30))
            assert [what for what, _ in reported(turn)] == ["note:huge.md"]
        assert turn.prompt.tokens < 850
        assert not summarizer.asked

    run(body())


@pytest.mark.parametrize(
    "given", [{"output_reserve": 500}, {"output_reserve": None, "options": Options(max_tokens=500)}]
)
def test_room_for_a_long_answer_does_not_put_pruning_before_compaction(
    given: dict[str, Any],
) -> None:
    async def body() -> None:
        summarizer = FakeSummarizer()
        session = await compacting(summarizer, **given)
        turns = [await talk(session, words(30), answer=words(30)) for _ in range(20)]
        assert summarizer.asked
        assert not any("window" in boundaries(turn) for turn in turns)

    run(body())


def test_it_happens_at_the_end_of_a_turn_whose_answer_went_over() -> None:
    async def body() -> None:
        summarizer = FakeSummarizer()
        session = await compacting(summarizer)
        await chat(session, 8)
        turn = await session.prepare("Q")
        assert not summarizer.asked
        await turn.commit(openai_reply(words(380, "long")))
        assert len(summarizer.requests) == 1
        assert session.envelope.cached[0].id == "summary"
        assert session.envelope.cached[-1].text == words(380, "long")

    run(body())


def test_the_request_after_a_compaction_at_the_end_of_a_turn_reports_what_went() -> None:
    async def body() -> None:
        session = await compacting(FakeSummarizer())
        await chat(session, 8)
        await talk(session, "Q", answer=words(380, "long"))
        assert session.compactions
        turn = await session.prepare("Q")
        assert "history" in [reason for _, reason in reported(turn)]
        assert compactions(turn) == ["compaction (threshold)"]

    run(body())


def test_the_request_after_a_compaction_by_hand_reports_what_went() -> None:
    async def body() -> None:
        session = await compacting(FakeSummarizer())
        await chat(session, 10)
        assert (await session.compact()).changed
        turn = await session.prepare("Q")
        assert "history" in [reason for _, reason in reported(turn)]

    run(body())


def test_it_happens_between_tool_calls_and_never_between_a_call_and_its_result() -> None:
    async def body() -> None:
        summarizer = FakeSummarizer()
        world = World()
        session = await compacting(summarizer, world)
        await chat(session, 4)
        turns = await loop(session, await session.prepare("Which berth is free?"), 16, 100)
        assert sum(bool(compactions(turn)) for turn in turns) >= 2
        for number, turn in enumerate(turns):
            require_paired(turn)
            assert turn.prompt.tokens <= 1_100
            assert f"found{number} found{number}" in all_text(turn)
        await require_sound(world, session)

    run(body())


@pytest.mark.parametrize("summarizer", [FakeSummarizer(), FakeSummarizer(ValueError("no"))])
def test_a_turn_cut_in_the_middle_keeps_its_question(summarizer: FakeSummarizer) -> None:
    async def body() -> None:
        session = await compacting(summarizer)
        question = "Which berth is free on the third of May, if the tide allows it at all?"
        turns = await loop(session, await session.prepare(question), 20, 100)
        assert sum(bool(compactions(turn)) for turn in turns) >= 3
        assert all(question in all_text(turn) for turn in turns)

    run(body())


@pytest.mark.parametrize("summarizer", [FakeSummarizer(), FakeSummarizer(ValueError("no"))])
def test_a_long_question_is_kept_whole_when_its_turn_is_cut(summarizer: FakeSummarizer) -> None:
    async def body() -> None:
        session = await compacting(summarizer)
        question = " ".join(f"point{number}" for number in range(120))
        turns = await loop(session, await session.prepare(question), 12, 100)
        assert any(map(compactions, turns))
        assert all(question in all_text(turn) for turn in turns)

    run(body())


def test_the_turn_that_was_cut_ends_and_the_next_one_begins_as_usual() -> None:
    async def body() -> None:
        session = await compacting(FakeSummarizer())
        turns = await loop(session, await session.prepare("First?"), 10, 100)
        await turns[-1].commit(openai_reply("Done."))
        turn = await talk(session, "Second?")
        assert messages_of(turn)[-1] == {"role": "user", "content": "Second?"}
        assert messages_of(turn)[-2] == {"role": "assistant", "content": "Done."}
        require_paired(turn)

    run(body())


@pytest.mark.parametrize("pause", [10.0, 301.0])
def test_a_cold_cache_is_when_compaction_costs_least(pause: float) -> None:
    async def body() -> None:
        world, summarizer = World(), FakeSummarizer()
        session = await compacting(summarizer, world)
        turn = await chat(session, 12)
        assert 0.7 * 1_100 < turn.prompt.tokens < 900 - 100
        assert not summarizer.asked
        world.clock.pass_by(pause)
        turn = await session.prepare("Q")
        cold = pause > 300
        assert summarizer.asked == int(cold)
        assert compactions(turn) == ["compaction (cold)"] * cold
        assert ("expired" in boundaries(turn)) == cold
        assert (turn.context.agreement.broke is not None) == cold

    run(body())


def test_a_cold_cache_in_a_short_session_is_no_reason() -> None:
    async def body() -> None:
        world, summarizer = World(), FakeSummarizer()
        session = await compacting(summarizer, world)
        await chat(session, 8)
        world.clock.pass_by(301)
        await session.prepare("Q")
        assert not summarizer.asked

    run(body())


def test_turns_to_come_are_not_reckoned_with_where_a_person_does_not_want_it() -> None:
    async def body() -> None:
        world, summarizer = World(), FakeSummarizer()
        session = await compacting(summarizer, world, compaction_ahead=0)
        last = await chat(session, 12)
        world.clock.pass_by(301)
        turn = await session.prepare("Q")
        assert not summarizer.asked
        assert turn.prompt.tokens > last.prompt.tokens

    run(body())


@pytest.mark.parametrize("answer", ["", words(500), ValueError("no")])
def test_what_fits_stays_if_the_summarizer_fails_while_the_cache_is_cold(answer: Any) -> None:
    async def body() -> None:
        world, summarizer = World(), FakeSummarizer(answer)
        session = await compacting(summarizer, world)
        last = await chat(session, 12)
        world.clock.pass_by(301)
        turn = await session.prepare("Q")
        assert summarizer.asked == 1
        assert turn.prompt.tokens > last.prompt.tokens
        assert boundaries(turn) == ["expired"]
        (warning,) = turn.context.warnings
        assert warning.endswith("; nothing was left out")
        await require_sound(world, session)

    run(body())


def test_a_share_of_ones_own_is_where_a_cold_session_is_compacted() -> None:
    async def body() -> None:
        world, summarizer = World(), FakeSummarizer()
        session = await compacting(summarizer, world, prune_cold_above=0.55, compaction_ahead=0)
        await chat(session, 11)
        world.clock.pass_by(301)
        turn = await session.prepare("Q")
        assert compactions(turn) == ["compaction (threshold)"]

    run(body())


def test_after_a_pause_a_request_says_what_keeping_history_costs_and_what_a_summary_would() -> None:
    async def body() -> None:
        world = World()
        world.book.put(PRICED)
        session = await compacting(None, world)
        warm = await chat(session, 12)
        assert warm.context.history_price is None
        world.clock.pass_by(301)
        price = (await session.prepare("Q")).context.history_price
        assert price is not None
        assert not price.is_summarised
        # Twelve questions and answers of 34 tokens, of which 400 would stay.
        assert (price.tokens, price.older_tokens, price.summary_tokens) == (816, 416, 200)
        assert price.keep_cost == pytest.approx(816 / 1e6)
        assert price.summary_saving == pytest.approx(216 / 1e7)

    run(body())


def test_after_a_pause_a_request_says_what_its_summary_cost() -> None:
    async def body() -> None:
        world = World()
        world.book.put(PRICED)
        session = await compacting(FakeSummarizer(openai_reply(SAID, input=500)), world)
        await chat(session, 12)
        world.clock.pass_by(301)
        price = (await session.prepare("Q")).context.history_price
        assert price is not None
        assert price.is_summarised
        assert price.tokens == 816
        left = 816 - price.older_tokens + price.summary_tokens
        assert price.summary_cost == pytest.approx((500 + 5 * 2 + left) / 1e6)
        await require_sound(world, session)

    run(body())


def test_another_model_is_a_moment_to_compact_too() -> None:
    async def body() -> None:
        summarizer = FakeSummarizer()
        session = await compacting(summarizer)
        await chat(session, 12)
        turn = await session.prepare("Q", target="fake:other")
        assert summarizer.asked == 1
        assert summarizer.requests[0]["model"] == "other"
        assert sorted(boundaries(turn)) == ["compaction", "model_change"]

    run(body())


# -- when not ------------------------------------------------------------------------------------


def test_with_compaction_off_nobody_is_asked_and_pruning_does_it() -> None:
    async def body() -> None:
        summarizer = FakeSummarizer()
        session = await compacting(summarizer, compaction="off")
        turns = [await talk(session, words(30), answer=words(30)) for _ in range(40)]
        assert not summarizer.asked
        assert any("window" in boundaries(turn) for turn in turns)
        assert all(turn.prompt.tokens <= 1_100 for turn in turns)

    run(body())


def test_without_a_summarizer_pruning_does_it_and_compact_works_by_extraction() -> None:
    async def body() -> None:
        world = World()
        session = await compacting(None, world)
        turns = [await talk(session, words(30), answer=words(30)) for _ in range(40)]
        assert any("window" in boundaries(turn) for turn in turns)
        assert not any(map(compactions, turns))
        done = await session.compact()
        assert done.changed
        assert done.by == "extract"
        assert done.problem == ""
        assert done.summary.startswith(f"[{SUMMARY_MARK}")
        assert done.messages > 0
        turn = await talk(session, "Q")
        assert turn.warnings == ()
        assert done.summary in all_text(turn)
        await require_sound(world, session)

    run(body())


def test_compacting_a_short_session_says_why_not_and_writes_nothing() -> None:
    async def body() -> None:
        world, summarizer = World(), FakeSummarizer()
        session = await compacting(summarizer, world)
        assert not (await session.compact()).changed
        await chat(session, 2)
        state, writes = session.state, world.store.writes
        done = await session.compact()
        assert not done.changed
        assert "136 tokens" in done.reason
        assert not summarizer.asked
        assert session.state is state
        assert world.store.writes == writes

    run(body())


def test_compacting_twice_in_a_row_does_it_once() -> None:
    async def body() -> None:
        summarizer = FakeSummarizer()
        session = await compacting(summarizer)
        await chat(session, 10)
        assert (await session.compact()).changed
        again = await session.compact()
        assert not again.changed
        assert again.reason
        assert summarizer.asked == 1

    run(body())


def test_an_open_request_is_not_compacted_under() -> None:
    async def body() -> None:
        session = await compacting(FakeSummarizer())
        await chat(session, 10)
        turn = await session.prepare("Q")
        with pytest.raises(TurnStateError, match="commit its reply first"):
            await session.compact()
        await turn.commit(openai_reply("A"))
        assert (await session.compact()).changed

    run(body())


def test_compacting_by_hand_while_calls_wait_leaves_them_waiting() -> None:
    async def body() -> None:
        world = World()
        session = await compacting(FakeSummarizer(), world)
        await chat(session, 10)
        turn = await session.prepare("Which berth?")
        turn = await turn.commit(openai_reply(None, calls=[("c1", "find"), ("c2", "find")]))
        assert (await session.compact()).changed
        again = await session.current_turn()
        assert again is not None
        assert [call.id for call in again.pending_calls] == ["c1", "c2"]
        turn = await turn.resume({"c1": "one", "c2": "two"})
        require_paired(turn)
        assert "Which berth?" in all_text(turn)
        await turn.commit(openai_reply("A"))
        await require_sound(world, session)

    run(body())


@pytest.mark.parametrize("promotion", ["lazy", "eager"])
def test_a_session_that_cannot_shrink_goes_on_without_asking_again_and_again(
    promotion: str,
) -> None:
    async def body() -> None:
        world, summarizer = World(), FakeSummarizer()
        session = await compacting(
            summarizer, world, system=words(700), promotion=promotion, compaction_summary=100
        )
        before: Turn | None = None
        warned = broken = 0
        for number in range(50):
            turn = await talk(session, f"q{number}", answer=words(3))
            assert turn.prompt.tokens <= 1_100
            warned += any("would not help" in warning for warning in turn.warnings)
            broken += turn.context.agreement.broke is not None
            before = turn
        assert before is not None
        # Due from the start, and nothing to be had but once in many turns.
        assert warned
        assert broken <= 5
        assert summarizer.asked <= 5
        await require_sound(world, session)

    run(body())


def test_a_library_of_essentials_that_fills_the_window_does_not_make_compaction_go_in_circles() -> (
    None
):
    async def body() -> None:
        world, summarizer = World(), FakeSummarizer()
        session = await compacting(summarizer, world)
        big = lamina.attach(note("big.md", words(700)), essential=True)
        turns = [await talk(session, words(5), big, answer=words(5)) for _ in range(50)]
        assert all(turn.prompt.tokens <= 1_100 for turn in turns)
        assert all("big.md" in placed(turn) for turn in turns)
        broken = sum(turn.context.agreement.broke is not None for turn in turns)
        assert broken <= 8
        assert summarizer.asked <= 8

    run(body())


def test_a_spare_library_over_the_threshold_gives_way_so_that_compaction_is_not_due_at_once() -> (
    None
):
    async def body() -> None:
        world, summarizer = World(), FakeSummarizer()
        session = await compacting(summarizer, world)
        for number in range(5):
            await talk(session, f"q{number}", note(f"n{number}.md", words(120)), answer=words(20))
        asked = []
        for number in range(60):
            before = summarizer.asked
            turn = await talk(session, words(15), answer=words(15))
            if summarizer.asked > before:
                asked.append(number)
            assert turn.prompt.tokens <= 1_100
        assert asked
        gaps = [later - earlier for earlier, later in pairwise(asked)]
        assert all(gap > 5 for gap in gaps), asked

    run(body())


# -- what stays ----------------------------------------------------------------------------------


def read_of(path: str) -> dict[str, Any]:
    reply = openai_reply(None, calls=[("c", "read_file")])
    call = reply["choices"][0]["message"]["tool_calls"][0]
    call["function"]["arguments"] = f'{{"path":"{path}"}}'
    return reply


async def read(session: Session, path: str, tool: str = "read_file") -> None:
    turn = await session.prepare(f"Look at {path}")
    reply = read_of(path)
    reply["choices"][0]["message"]["tool_calls"][0]["function"]["name"] = tool
    turn = await (await turn.commit(reply)).resume({"c": "fine"})
    await turn.commit(openai_reply("Seen."))


def test_second_and_third_compactions_carry_the_files_of_the_first() -> None:
    async def body() -> None:
        summarizer = FakeSummarizer("One.", "Two.", "Three.", "Four.")
        session = await compacting(summarizer)
        for number in range(4):
            await read(session, f"read{number}.py")
            await read(session, f"written{number}.py", "write_file")
            while summarizer.asked == number:
                await chat(session, 1)
        turn = await session.prepare("Q")
        (summary,) = summaries_in(turn)
        assert "Four." in summary
        for number in range(3):
            assert f"- read{number}.py" in summary
            assert f"- written{number}.py" in summary
        assert summarizer.jobs[0].previous == ""
        assert "One." in summarizer.jobs[1].previous
        assert "Two." in summarizer.jobs[2].previous
        assert any("One." in str(m) for m in summarizer.requests[1]["messages"][:-1])

    run(body())


@pytest.mark.parametrize("times", [1, 2])
def test_extracted_summaries_carry_goal_and_earlier_summary(times: int) -> None:
    async def body() -> None:
        session = await compacting(FakeSummarizer(ValueError("away")), window=6_000)
        await talk(session, "Plan the harbour of Kiel.")
        await talk(session, "You must never move berth nine.")
        while len(session.compactions) < times:
            await chat(session, 1, 150)
        (summary,) = summaries_in(await session.prepare("Q"))
        assert "Plan the harbour of Kiel." in summary
        assert "never move berth nine" in summary

    run(body())


def test_files_of_what_a_prune_took_are_listed_by_the_next_compaction() -> None:
    async def body() -> None:
        session = await compacting(None)
        await chat(session, 3)
        await read(session, "early.py", "write_file")
        pruned = False
        while not pruned:
            turn = await talk(session, words(30), answer=words(30))
            pruned = "window" in boundaries(turn)
        assert any(
            call.name == "write_file"
            for gone in session.compactions
            for message in gone.messages
            for call in message.calls
        )
        done = await session.compact()
        assert done.changed
        assert "- early.py" in done.summary

    run(body())


def test_there_is_never_more_than_one_summary() -> None:
    async def body() -> None:
        session = await compacting(FakeSummarizer())
        for number in range(60):
            turn = await talk(session, words(40, f"q{number}"), answer=words(40))
            assert len(summaries_in(turn)) <= 1
        assert len(session.compactions) > 5

    run(body())


@pytest.mark.parametrize("promotion", ["lazy", "eager"])
def test_items_attached_earlier_stand_in_the_library_and_are_named(promotion: str) -> None:
    async def body() -> None:
        world, summarizer = World(), FakeSummarizer()
        session = await compacting(summarizer, world, promotion=promotion)
        a, b = note("a.md", words(40, "alpha")), note("b.md", words(40, "beta"))
        await talk(session, "Q", a)
        await talk(session, "Q", b)
        while not summarizer.asked:
            await chat(session, 1)
        assert sorted(library_of(session)) == ["a.md", "b.md"]
        turn = await session.prepare("Q", attach=[a])
        assert placed(turn) == {"a.md": "library"}
        assert all_text(turn).count(words(40, "alpha")) == 1
        assert all_text(turn).count(words(40, "beta")) == 1
        assert "- a.md" in user_of(turn)
        await turn.commit(openai_reply("A"))
        await require_sound(world, session)

    run(body())


@pytest.mark.parametrize("promotion", ["lazy", "eager"])
def test_a_loop_goes_on_naming_its_items_after_a_compaction(promotion: str) -> None:
    async def body() -> None:
        world = World()
        session = await compacting(FakeSummarizer(), world, promotion=promotion)
        a = note("a.md", words(40, "alpha"))
        turns = await loop(session, await session.prepare("Which?", attach=[a]), 14, 100)
        assert any(map(compactions, turns))
        for turn in turns:
            assert all_text(turn).count(words(40, "alpha")) == 1
            assert list(placed(turn)) == ["a.md"]
            assert "a.md" in " ".join(m["content"] or "" for m in messages_of(turn)
                                      if m["role"] == "user")  # fmt: skip
        await require_sound(world, session)

    run(body())


@pytest.mark.parametrize(("window", "least"), [(900, 0), (700, 1), (500, 2), (350, 3)])
def test_what_is_dropped_goes_by_priority_then_least_recently_named_and_is_reported(
    window: int, least: int
) -> None:
    async def body() -> None:
        session = await compacting(FakeSummarizer(), window=3_000)
        low = lamina.attach(note("low.md", words(150)), priority=8)
        await talk(session, "Q1", low)
        await talk(session, "Q2", note("old.md", words(150)))
        await talk(session, "Q3", note("new.md", words(150)))
        await talk(session, "Q4", note("old.md", words(150)))
        await chat(session, 12)
        await session.update_settings(window=window)
        done = await session.compact()
        gone = [report.what for report in done.reports if report.reason == "removed"]
        order = ["note:low.md", "note:new.md", "note:old.md"]
        assert len(gone) >= least
        assert gone == order[: len(gone)]
        assert {f"note:{path}" for path in library_of(session)} == set(order) - set(gone)
        assert all(report.detail for report in done.reports)
        turn = await session.prepare("Q")
        assert turn.prompt.tokens <= window - 100
        assert set(gone) <= {what for what, _ in reported(turn)}

    run(body())


def test_pinned_and_essential_items_never_go_for_want_of_room() -> None:
    async def body() -> None:
        world = World({"pin.md": words(100, "pinned")})
        session = await compacting(FakeSummarizer(), world, window=3_000)
        await session.pin("pin.md")
        vital = lamina.attach(note("vital.md", words(100, "vital")), essential=True, priority=9)
        low = lamina.attach(note("low.md", words(200)), priority=8)
        await talk(session, "Q1", vital, low, note("mid.md", words(200)))
        await chat(session, 12)
        await session.update_settings(window=1_000)
        done = await session.compact()
        gone = [report.what for report in done.reports if report.reason == "removed"]
        assert gone == ["note:low.md"]
        assert sorted(library_of(session)) == ["mid.md", "pin.md", "vital.md"]

    run(body())


def test_pinned_and_essential_items_and_rules_survive_every_compaction() -> None:
    async def body() -> None:
        world, summarizer = World({"pin.md": words(60, "pinned")}), FakeSummarizer()
        session = await compacting(
            summarizer, world, always=[rule("tone", "Be brief.")],
            compaction_keep=200, compaction_summary=60,
        )  # fmt: skip
        await session.pin("pin.md")
        vital = lamina.attach(note("vital.md", words(60, "vital")), essential=True)
        await talk(session, "Q", vital)
        for number in range(60):
            extra = note(f"n{number % 7}.md", words(50, f"extra{number % 7}"))
            turn = await talk(session, words(25), extra, answer=words(25))
            text = all_text(turn)
            assert words(60, "pinned") in text
            assert words(60, "vital") in text
            assert "Be brief." in text
            assert "Rules and references in force from here on:\n- tone" in text
            assert turn.prompt.tokens <= 1_100
        assert summarizer.asked > 3
        await require_sound(world, session)

    run(body())


@pytest.mark.parametrize("window", [420, 620])
def test_an_item_that_is_laid_down_again_is_not_reported_as_removed(window: int) -> None:
    async def body() -> None:
        session = await compacting(FakeSummarizer(), window=2_400)
        now = lamina.attach(note("now.md", words(200, "now")), priority=5)
        idle = lamina.attach(note("idle.md", words(250, "idle")), priority=3)
        await talk(session, "Q1", now, idle)
        await chat(session, 12)
        await session.update_settings(window=window)
        turn = await session.prepare("Q", attach=[now])
        assert compactions(turn)
        here = {item.item for item in turn.context.items}
        assert not here & {omission.what for omission in turn.context.left_out}

    run(body())


def test_superseded_versions_are_gone_after_a_compaction() -> None:
    async def body() -> None:
        world, summarizer = World(), FakeSummarizer()
        session = await compacting(summarizer, world)
        await talk(session, "Q", note("a.md", words(40, "first")))
        await talk(session, "Q", note("a.md", words(40, "second")))
        while not summarizer.asked:
            await chat(session, 1)
        turn = await talk(session, "Q", note("a.md", words(40, "second")))
        assert "first first" not in all_text(turn)
        assert all_text(turn).count(words(40, "second")) == 1
        assert placed(turn) == {"a.md": "library"}
        await require_sound(world, session)

    run(body())


def test_images_in_history_are_in_the_summary_request_and_leave_with_a_report() -> None:
    async def body() -> None:
        world, summarizer = World(), FakeSummarizer()
        digest = await world.store.put_blob(b"image")
        picture = Picture(digest=digest, media_type="image/png", width=10, height=10)
        seen = Item(id=note_id("seen.md"), content=words(10, "seen"), pictures=(picture,))
        session = await compacting(summarizer, world)
        await talk(session, "Look", seen)
        before = await chat(session, 11)
        turn = await session.prepare(words(250))
        assert compactions(turn)
        kept = len(summarizer.requests[0]["messages"]) - 1
        assert summarizer.requests[0]["messages"][:-1] == messages_of(before)[:kept]
        assert "image_url" in str(summarizer.requests[0])
        assert "image_url" not in str(turn.request())
        assert "note:seen.md" in [what for what, _ in reported(turn)]
        await turn.commit(openai_reply("A"))
        again = await talk(session, "Look again", seen)
        assert "image_url" in str(again.request())
        await require_sound(world, session)

    run(body())


def test_an_image_of_the_question_under_way_stays_for_its_loop_while_the_question_does() -> None:
    async def body() -> None:
        world = World()
        digest = await world.store.put_blob(b"image")
        picture = Picture(digest=digest, media_type="image/png", width=10, height=10)
        seen = Item(id=note_id("seen.md"), content=words(10, "seen"), pictures=(picture,))
        session = await compacting(FakeSummarizer(), world)
        await chat(session, 10)
        turn = await session.prepare("Look", attach=[seen])
        (turn,) = await loop(session, turn, 1, 150)
        assert compactions(turn)
        assert "image_url" in str(turn.request())
        assert "seen.md" in placed(turn)
        await require_sound(world, session)

    run(body())


# -- bytes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("promotion", ["lazy", "eager"])
def test_the_break_is_explained_and_the_next_turn_extends_the_prefix_again(promotion: str) -> None:
    async def body() -> None:
        session = await compacting(FakeSummarizer(), promotion=promotion, prefix_check="raise")
        await talk(session, "Q", note("a.md", words(40)))
        broken = []
        for _ in range(40):
            turn = await talk(session, words(30), answer=words(30))
            broke = turn.context.agreement.broke
            broken.append(broke is not None)
            if broke is not None:
                assert broke.reason
        assert sum(broken) >= 2
        # No two breaks in a row, promotion of the note aside.
        assert not any(a and b for a, b in pairwise(broken[1:]))

    run(body())


def test_the_turn_after_a_compaction_extends_its_bytes() -> None:
    async def body() -> None:
        session = await compacting(FakeSummarizer(), system="S")
        await chat(session, 11)
        turn = await session.prepare(words(250))
        assert "compaction" in str(turn.context.agreement.broke)
        await turn.commit(openai_reply("A"))
        after = await session.prepare("Q")
        assert after.context.agreement.broke is None
        assert list(digests(after))[: len(digests(turn))] == list(digests(turn))
        assert messages_of(after)[: len(messages_of(turn))] == messages_of(turn)

    run(body())


def test_the_system_and_the_tools_stand_as_before_a_compaction() -> None:
    async def body() -> None:
        find = ToolDefinition(name="find", description="Finds things.")
        session = await compacting(FakeSummarizer(), system="S", tools=[find])
        before = await chat(session, 11)
        turn = await session.prepare(words(250))
        assert compactions(turn)
        assert turn.request()["tools"] == before.request()["tools"]
        assert messages_of(turn)[0] == messages_of(before)[0]

    run(body())


# -- calibration ---------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [2.0, 3.0, 0.4])
def test_what_the_provider_counts_decides(factor: float) -> None:
    async def body() -> None:
        world, summarizer = World(), FakeSummarizer()
        session = await compacting(summarizer, world)
        for _ in range(70):
            turn = await session.prepare(words(15))
            assert turn.prompt.tokens * turn.context.fit.calibration <= 1_100
            assert "window" not in boundaries(turn)
            counted = round(turn.prompt.tokens * factor)
            if summarizer.asked == 0:
                largest = counted
            await turn.commit(openai_reply(words(15), input=counted))
        assert summarizer.asked
        # What is reported takes room away; it never adds any to what is counted here.
        largest = round(largest / factor * max(1.0, factor))
        assert 900 - 124 * max(1.0, factor) < largest <= 900
        await require_sound(world, session)

    run(body())


# -- hooks, failures, restarts -------------------------------------------------------------------


def test_a_question_that_is_refused_leaves_the_open_request_as_it_was() -> None:
    async def body() -> None:
        session = await compacting(FakeSummarizer())
        await chat(session, 11)
        turn = await session.prepare("Q")
        with pytest.raises(WindowExceeded):
            await session.prepare(words(1_200))
        await turn.commit(openai_reply("The answer."))
        assert "The answer." in all_text(await session.prepare("Next"))

    run(body())


def test_a_question_that_is_refused_after_a_compaction_leaves_the_session_usable() -> None:
    async def body() -> None:
        world = World()
        session = await compacting(FakeSummarizer(), world)
        await chat(session, 11)
        with pytest.raises(WindowExceeded):
            await session.prepare(words(1_200))
        turn = await talk(session, "Shorter?")
        assert user_of(turn) == "Shorter?"
        assert words(3, "r10") in all_text(turn)
        await require_sound(world, session)

    run(body())


def test_hooks_run_once_for_a_request_that_compacts() -> None:
    async def body() -> None:
        ran: list[str] = []
        hooks = Hooks()

        @hooks.context
        def count(event: Any) -> None:
            ran.append(event.reason)

        session = await compacting(FakeSummarizer(), hooks=hooks)
        await chat(session, 11)
        ran.clear()
        turn = await session.prepare(words(250))
        assert compactions(turn)
        assert ran == ["before_request"]

    run(body())


def test_a_session_opened_again_without_a_summarizer_is_what_was_left() -> None:
    async def body() -> None:
        world, summarizer = World(), FakeSummarizer()
        session = await compacting(summarizer, world)
        await loop(session, await session.prepare("Which?"), 12, 100)
        current = await session.current_turn()
        assert current is not None
        asked = summarizer.asked
        assert asked
        state, entries, gone = session.state, session.entries, session.compactions
        await session.close()
        again = await world.open(session.id)
        assert again.state == state
        assert again.entries == entries
        assert again.compactions == gone
        taken_up = await again.current_turn()
        assert taken_up is not None
        assert taken_up.request() == current.request()
        assert summarizer.asked == asked

    run(body())


def test_settings_of_a_larger_window_are_no_reason_to_undo_anything() -> None:
    async def body() -> None:
        world, summarizer = World(), FakeSummarizer()
        world.book.put(replace(SMALL, window=1_200))
        session = await lamina.open_session(
            settings=Settings(target=SMALL.name, output_reserve=100),
            workspace=world.workspace,
            store=world.store,
            book=world.book,
            clock=world.clock,
            summarizer=summarizer,
        )
        await chat(session, 12)
        before = await chat(session, 3)
        assert summarizer.asked == 1
        world.book.put(SMALL)
        turn = await talk(session, "Q")
        assert turn.context.agreement.broke is None
        assert SAID in all_text(turn)
        assert messages_of(turn)[: len(messages_of(before))] == messages_of(before)

    run(body())
