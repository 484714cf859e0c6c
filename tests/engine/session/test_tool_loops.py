"""The agent loop within the window: what gives way while a turn goes on, and what never does."""

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
    rule,
    run,
    talk,
    words,
)

from lamina.core.values.item import Item, Picture, note_id
from lamina.core.values.message import ToolDefinition, ToolText
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


async def loop(session: Session, turn: Turn, rounds: int, size: int) -> list[Turn]:
    made = []
    for number in range(rounds):
        call = f"c{number}"
        answered = await turn.commit(openai_reply(None, calls=[(call, "find")]))
        turn = await answered.resume({call: words(size, f"found{number}")})
        made.append(turn)
    return made


def test_the_question_survives_a_long_tool_loop() -> None:
    async def body() -> None:
        session = await small(limit=500)
        await chat(session, 3)
        question = "Which berth is free on the third of May?"
        turns = await loop(session, await session.prepare(question), 12, 60)
        assert any("window" in boundaries(turn) for turn in turns)
        assert all(question in all_text(turn) for turn in turns)
        assert all(f"found{n}" in all_text(turn) for n, turn in enumerate(turns))

    run(body())


def test_a_tool_that_outlives_the_cache_takes_nothing_away_that_fits() -> None:
    async def body() -> None:
        world = World()
        session = await small(world, limit=1_000)
        await chat(session, 17)
        turn = await session.prepare("How long does it take?")
        answered = await turn.commit(openai_reply(None, calls=[("slow", "find")]))
        world.clock.pass_by(1_000)
        later = await answered.resume({"slow": "an hour"})
        assert later.prompt.tokens > 800
        assert later.context.agreement.broke is None
        assert not reported(later)

    run(body())


def test_a_tool_that_outlives_the_cache_is_a_moment_to_prune_for_who_wants_that() -> None:
    async def body() -> None:
        world = World()
        session = await small(world, limit=1_000, summary_tokens=60, prune_cold_above=0.7)
        await chat(session, 17)
        turn = await session.prepare("How long does it take?")
        answered = await turn.commit(openai_reply(None, calls=[("slow", "find")]))
        world.clock.pass_by(1_000)
        later = await answered.resume({"slow": "an hour"})
        assert boundaries(later) == ["expired"]
        assert "pruned while the cache is cold" in str(later.context.agreement.broke)
        assert any(reason == "history" for _, reason in reported(later))
        assert later.prompt.tokens < 600
        assert "How long does it take?" in all_text(later)
        assert "an hour" in all_text(later)

    run(body())


def test_a_tool_that_outlives_the_cache_of_a_small_request_moves_nothing() -> None:
    async def body() -> None:
        world = World()
        session = await small(world, limit=1_000)
        turn = await session.prepare("How long does it take?")
        answered = await turn.commit(openai_reply(None, calls=[("slow", "find")]))
        world.clock.pass_by(1_000)
        later = await answered.resume({"slow": "an hour"})
        assert boundaries(later) == []
        assert later.context.agreement.broke is None

    run(body())


def test_a_pinned_note_survives_a_long_tool_loop() -> None:
    async def body() -> None:
        world = World({"pin.md": words(60, "pinned")})
        session = await small(world, limit=700, summary_tokens=40)
        await chat(session, 4)
        await session.pin("pin.md")
        turns = await loop(session, await session.prepare("Q"), 16, 60)
        assert sum("window" in boundaries(turn) for turn in turns) >= 2
        assert all("pinned pinned" in all_text(turn) for turn in turns)
        assert all(list(placed(turn)) == ["pin.md"] for turn in turns)

    run(body())


@pytest.mark.parametrize("promotion", ["lazy", "eager"])
def test_a_turn_still_names_what_applies_to_it_after_a_prune_in_its_loop(promotion: str) -> None:
    async def body() -> None:
        session = await small(limit=500, promotion=promotion)
        a = note("a.md", words(20, "alpha"))
        await talk(session, "Q0", a)
        question = await session.prepare("Q", attach=[a, "gone.md"])
        turns = await loop(session, question, 12, 60)
        assert any("window" in boundaries(turn) for turn in turns)
        for turn in turns:
            text = all_text(turn)
            assert list(placed(turn)) == ["a.md"]
            assert text.count("alpha alpha") > 0
            assert "Context attached to this message:\n- a.md" in text
            assert "- gone.md (not found)" in text

    run(body())


def test_results_that_are_too_large_lose_their_middle_and_that_is_reported() -> None:
    async def body() -> None:
        session = await small(limit=500)
        turn = await session.prepare("Q")
        turn = await turn.commit(openai_reply(None, calls=[("big", "read"), ("little", "find")]))
        turn = await turn.resume({"big": words(2_000, "long"), "little": "short"})
        assert reported(turn)[0] == ("result:big", "window")
        assert "2,000" in turn.context.left_out[0].detail
        results = {m["tool_call_id"]: m["content"] for m in messages_of(turn)[-2:]}
        assert results["little"] == "short"
        assert "tokens removed to fit the context window" in results["big"]
        assert results["big"].startswith("long long")
        assert results["big"].endswith("long long")
        assert turn.prompt.tokens > 350

    run(body())


@pytest.mark.parametrize("limit", [400, 600, 800])
def test_results_are_shortened_by_as_much_as_it_takes(limit: int) -> None:
    async def body() -> None:
        world = World()
        digest = await world.store.put_blob(b"image")
        picture = Picture(digest=digest, media_type="image/png", width=10, height=10)
        seen = Item(id=note_id("seen.md"), content=words(10), pictures=(picture,))
        tools = [ToolDefinition(name="find")]
        session = await small(world, limit, tools=tools, always=[rule("tone", "Be brief.")])
        texts = [ToolText(name="search", text=words(15))]
        turn = await session.prepare(words(50, "why"), attach=[seen], tool_texts=texts)
        turn = await turn.commit(openai_reply(None, calls=[("c1", "find"), ("c2", "find")]))
        turn = await turn.resume({"c1": words(400), "c2": words(400)})
        assert words(50, "why") in all_text(turn)
        assert limit * 0.8 < turn.prompt.tokens <= limit

    run(body())


def test_what_was_sent_of_a_shortened_result_stays_as_it_was() -> None:
    async def body() -> None:
        session = await small(limit=500)
        turn = await session.prepare("Q")
        turn = await turn.commit(openai_reply(None, calls=[("big", "read")]))
        turn = await turn.resume({"big": words(2_000, "long")})
        sent = messages_of(turn)
        turn = await turn.commit(openai_reply("A"))
        after = await session.prepare("thanks")
        if after.context.agreement.broke is None:
            assert messages_of(after)[: len(sent)] == sent
        else:
            assert after.context.agreement.broke.reason

    run(body())


def test_results_that_cannot_fit_at_all_are_an_error_and_the_turn_waits() -> None:
    async def body() -> None:
        session = await small(limit=60)
        turn = await session.prepare(words(40))
        calls = [(f"c{number}", "find") for number in range(9)]
        turn = await turn.commit(openai_reply(None, calls=calls))
        state = session.state
        with pytest.raises(WindowExceeded):
            await turn.resume({call: words(50) for call, _ in calls})
        assert session.state is state
        assert len(turn.pending_calls) == 9

    run(body())


def test_a_note_without_room_stays_out_over_a_tool_loop() -> None:
    async def body() -> None:
        session = await small()
        huge = note("huge.md", words(500))
        turn = await session.prepare("Q1", attach=[huge])
        turn = await turn.commit(openai_reply(None, calls=[("c1", "find")]))
        turn = await turn.resume({"c1": "found"})
        await turn.commit(openai_reply("A"))
        turn = await session.prepare("Q2", attach=[huge])
        assert reported(turn) == [("note:huge.md", "still_out")]

    run(body())


def test_what_was_left_out_is_not_listed_as_present_when_the_turn_goes_on() -> None:
    async def body() -> None:
        session = await small()
        turn = await session.prepare("Q", attach=[note("huge.md", words(500))])
        turn = await turn.commit(openai_reply(None, calls=[("c1", "find")]))
        turn = await turn.resume({"c1": "found"})
        assert placed(turn) == {}

    run(body())
