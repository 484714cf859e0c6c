"""The window: what gives way when a request would not fit, and what never does."""

import re
from itertools import pairwise
from typing import Any

import pytest
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import (
    World,
    all_text,
    boundaries,
    messages_of,
    note,
    placed,
    reported,
    run,
    talk,
    user_of,
    words,
)

from lamina.apps.wiring import attach
from lamina.core.values.message import ToolDefinition
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn
from lamina.errors import WindowExceeded


async def small(world: World | None = None, limit: int = 300, **given: Any) -> Session:
    """A session with `limit` tokens for a request."""
    return await (world or World()).open(window=limit + 100, output_reserve=100, **given)


async def chat(session: Session, turns: int, size: int = 20) -> Turn:
    for number in range(turns):
        turn = await talk(session, words(size, f"q{number}"), answer=words(size, f"r{number}"))
    return turn


def test_a_huge_note_is_left_out_reported_and_told_to_the_model() -> None:
    async def body() -> None:
        session = await small()
        turn = await session.prepare("Q", attach=[note("huge.md", words(500))])
        assert reported(turn) == [("note:huge.md", "window")]
        assert turn.context.left_out[0].tokens == 508
        assert placed(turn) == {}
        assert user_of(turn) == (
            "Attached, but not included here:\n- huge.md (no room left)"
            "\n\n---\n\n[User query]:\n\nQ"
        )

    run(body())


def test_a_huge_essential_note_is_an_error_with_sizes_before_anything_is_written() -> None:
    async def body() -> None:
        world = World()
        session = await small(world, system="S")
        state, writes = session.state, world.store.writes
        with pytest.raises(WindowExceeded) as caught:
            await session.prepare("Q", attach=[attach(note("huge.md", words(500)), essential=True)])
        assert caught.value.limit == 300
        assert caught.value.sizes["L3"] > 500
        assert caught.value.sizes["L1"] == 5
        assert session.state is state
        assert world.store.writes == writes
        assert placed(await session.prepare("Q")) == {}

    run(body())


def test_tools_and_system_prompt_count_against_the_window() -> None:
    async def body() -> None:
        tool = ToolDefinition(name="find", description=words(150))
        session = await small(system=words(140), tools=[tool])
        with pytest.raises(WindowExceeded) as caught:
            await session.prepare("Q")
        assert caught.value.sizes["tools"] > 150
        assert caught.value.sizes["L1"] > 140

    run(body())


def test_a_message_that_is_too_long_by_itself_is_an_error() -> None:
    async def body() -> None:
        with pytest.raises(WindowExceeded, match="shorten the message"):
            await (await small()).prepare(words(400))

    run(body())


def test_a_message_that_fits_without_history_is_sent_without_history() -> None:
    async def body() -> None:
        session = await small()
        await chat(session, 4)
        turn = await session.prepare(words(290, "long"))
        assert user_of(turn) == words(290, "long")
        assert "history" in [reason for _, reason in reported(turn)]

    run(body())


def test_a_new_note_of_low_priority_goes_before_history() -> None:
    async def body() -> None:
        session = await small()
        before = await chat(session, 3)
        low = attach(note("new.md", words(150)), priority=10)
        turn = await session.prepare("Q", attach=[low])
        assert reported(turn) == [("note:new.md", "window")]
        assert turn.context.agreement.broke is None
        assert messages_of(turn)[:5] == messages_of(before)

    run(body())


def test_history_goes_before_a_new_note_of_high_priority() -> None:
    async def body() -> None:
        session = await small()
        await chat(session, 3)
        high = attach(note("new.md", words(150)), priority=3)
        turn = await session.prepare("Q", attach=[high])
        assert placed(turn) == {"new.md": "message"}
        assert [reason for _, reason in reported(turn)] == ["history"]
        assert boundaries(turn) == ["window"]

    run(body())


def test_of_several_new_notes_just_those_that_do_not_fit_are_left_out_by_priority() -> None:
    async def body() -> None:
        session = await small()
        given = [
            attach(note("a.md", words(90)), priority=5),
            attach(note("b.md", words(90)), priority=7),
            attach(note("c.md", words(90)), priority=6),
            attach(note("d.md", words(90)), priority=3),
        ]
        turn = await session.prepare("Q", attach=given)
        assert list(placed(turn)) == ["a.md", "d.md"]
        assert sorted(reported(turn)) == [("note:b.md", "window"), ("note:c.md", "window")]

    run(body())


def test_a_note_without_room_stays_out_while_it_stays_attached() -> None:
    async def body() -> None:
        session = await small()
        huge = note("huge.md", words(500))
        await talk(session, "Q1", huge)
        second = await talk(session, "Q2", huge)
        assert reported(second) == [("note:huge.md", "still_out")]
        assert second.context.agreement.broke is None
        await talk(session, "Q3")
        assert reported(await session.prepare("Q4", attach=[huge])) == [("note:huge.md", "window")]

    run(body())


@pytest.mark.parametrize("turns", [0, 1, 30])
@pytest.mark.parametrize("place", [0, 10, 20])
@pytest.mark.parametrize("priority", [3, 5, 10])
def test_an_attachment_over_the_window_costs_nothing_but_itself(
    turns: int, place: int, priority: int
) -> None:
    async def body() -> None:
        session = await small(limit=2_000)
        if turns:
            await chat(session, turns)
        wanted: list[Any] = [attach(note(f"n{n}.md", words(60))) for n in range(20)]
        wanted.insert(place, attach(note("huge.md", words(5_000)), priority=priority))
        turn = await session.prepare("Q", attach=wanted)
        out = [each for each in reported(turn) if each[0].startswith("note:")]
        assert out == [("note:huge.md", "window")]
        assert turn.prompt.tokens <= 2_000

    run(body())


@pytest.mark.parametrize("turns", [0, 1, 30])
def test_no_more_attachments_go_than_have_to(turns: int) -> None:
    async def body() -> None:
        session = await small(limit=2_000)
        if turns:
            await chat(session, turns)
        wanted = [note(f"n{n}.md", words(100)) for n in range(21)]
        turn = await session.prepare("Q", attach=wanted)
        out = [what for what, _ in reported(turn) if what.startswith("note:")]
        assert out == [f"note:n{n}.md" for n in range(len(out))]
        block = next(item.tokens for item in turn.context.items)
        assert 2_000 - block < turn.prompt.tokens <= 2_000

    run(body())


def test_a_prune_takes_the_middle_and_keeps_the_bytes_of_the_head() -> None:
    async def body() -> None:
        session = await small(limit=1_000, system="S", summary_tokens=60)
        first = await talk(session, "begin", note("a.md", words(100)))
        turn = first
        while "window" not in boundaries(turn):
            before = turn
            turn = await talk(session, words(30), answer=words(40))
        agreement = turn.context.agreement
        assert agreement.broke is not None
        assert agreement.broke.layer == "L4"
        assert "window" in agreement.broke.reason
        assert messages_of(turn)[:2] == messages_of(first)[:2]
        # The latest exchange stays, what lay between is told in short.
        assert messages_of(turn)[-3:-1] == [
            messages_of(before)[-1],
            {"role": "assistant", "content": words(40)},
        ]
        summaries = [m for m in messages_of(turn) if "Earlier messages were removed" in str(m)]
        assert len(summaries) == 1
        assert turn.prompt.tokens < 700

    run(body())


def test_a_prune_carries_what_an_earlier_one_said_of_what_went() -> None:
    async def body() -> None:
        session = await small(limit=1_000, summary_tokens=150)
        pruned = []
        for number in range(80):
            turn = await talk(session, f"fact{number} " + words(19), answer=words(20))
            pruned += [turn] if "window" in boundaries(turn) else []
        first = re.findall(r"Asked: (fact\d+)", all_text(pruned[0]))
        assert first
        assert len(pruned) > 3
        for later in pruned[1:]:
            assert first[0] in all_text(later)
            assert later.prompt.tokens <= 1_000

    run(body())


def test_after_a_prune_there_is_room_for_many_turns() -> None:
    async def body() -> None:
        session = await small(limit=1_000)
        turns = [await talk(session, words(20), answer=words(20)) for _ in range(60)]
        pruned = [number for number, turn in enumerate(turns) if "window" in boundaries(turn)]
        assert pruned
        assert all(later - earlier > 5 for earlier, later in pairwise(pruned))

    run(body())


def test_a_small_head_is_lengthened_by_the_next_prune_with_its_bytes() -> None:
    async def body() -> None:
        session = await small(limit=1_000, system="S", summary_tokens=60)
        await talk(session, "begin", answer="begun")
        await talk(session, words(450), answer=words(450))
        turns = [await talk(session, words(20), answer=words(20)) for _ in range(40)]
        pruned = [turn for turn in turns if "window" in boundaries(turn)]
        assert len(pruned) > 1
        # The first could keep no more than the beginning; the others keep what follows as well.
        assert pruned[0].prompt.tokens < 350
        assert all(turn.prompt.tokens > 400 for turn in pruned[1:])
        for earlier, later in pairwise(pruned):
            assert messages_of(later)[:4] == messages_of(earlier)[:4]

    run(body())


@pytest.mark.parametrize("pause", [10.0, 1_000.0])
def test_a_pause_is_no_reason_to_forget_what_fits(pause: float) -> None:
    async def body() -> None:
        world = World()
        session = await small(world, limit=1_000)
        last = await chat(session, 20)
        assert last.prompt.tokens > 920
        world.clock.pass_by(pause)
        turn = await session.prepare("And now?")
        assert all(words(20, f"{who}{n}") in all_text(turn) for who in "qr" for n in range(20))
        assert boundaries(turn) == ["expired"] * (pause > 300)
        assert not reported(turn)

    run(body())


def test_a_prune_while_the_cache_is_cold_keeps_the_latest_rather_than_the_head() -> None:
    async def body() -> None:
        world = World()
        session = await small(
            world, limit=1_000, system="S", summary_tokens=60, prune_cold_above=0.7
        )
        for number in range(17):
            await talk(session, words(20, f"q{number}."), answer=words(20, f"r{number}."))
        world.clock.pass_by(1_000)
        turn = await session.prepare("And now?")
        assert boundaries(turn) == ["expired"]
        assert any(reason == "history" for _, reason in reported(turn))
        whole = [n for n in range(17) if words(20, f"r{n}.") in all_text(turn)]
        assert whole[0] == 0
        assert whole[-6:] == list(range(11, 17))
        assert len(whole) < 11

    run(body())


def test_a_library_that_outgrew_the_window_drops_by_priority_then_the_least_recently_named() -> (
    None
):
    async def body() -> None:
        world = World()
        session = await small(world, limit=400, prune_cold_above=0.7)
        old, kept = note("old.md", words(100)), note("kept.md", words(100))
        await talk(session, "Q1", attach(note("low.md", words(80)), priority=8))
        await talk(session, "Q2", old)
        await talk(session, "Q3", kept)
        world.clock.pass_by(301)
        turn = await session.prepare("Q4", attach=[kept])
        gone = [what for what, reason in reported(turn) if reason == "removed"]
        assert "note:low.md" in gone
        assert "note:kept.md" not in gone
        assert placed(turn) == {"kept.md": "library"}

    run(body())


# -- calibration ---------------------------------------------------------------------------------


def test_what_the_provider_counts_moves_the_budget() -> None:
    async def body() -> None:
        session = await small(limit=300)
        turn = await session.prepare(words(100))
        assert turn.context.fit.calibration == 1.0
        await turn.commit(openai_reply("A", input=turn.prompt.tokens * 2))
        turn = await session.prepare("Q")
        assert turn.context.fit.calibration == 2.0
        assert turn.context.fit.tokens == turn.prompt.tokens * 2
        with pytest.raises(WindowExceeded) as caught:
            await session.prepare(words(151))
        assert caught.value.limit == 150

    run(body())


def test_one_odd_count_moves_the_budget_half_way_and_one_beyond_reason_not_at_all() -> None:
    async def body() -> None:
        session = await World().open()
        for counted in (1.0, 2.0, 1_000.0):
            turn = await session.prepare(words(50))
            await turn.commit(openai_reply("A", input=round(turn.prompt.tokens * counted)))
        factors = [
            turn.context.fit.calibration,
            (await session.prepare("Q")).context.fit.calibration,
        ]
        assert factors == [pytest.approx(1.5, abs=0.01)] * 2

    run(body())


def test_each_target_is_calibrated_by_itself() -> None:
    async def body() -> None:
        session = await World().open()
        turn = await session.prepare("Q")
        await turn.commit(openai_reply("A", input=turn.prompt.tokens * 2))
        turn = await session.prepare("Q", target="fake:other")
        assert turn.context.fit.calibration == 1.0

    run(body())
