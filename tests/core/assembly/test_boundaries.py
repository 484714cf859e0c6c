"""Boundaries: the moments at which the prefix is dead anyway, and what is tidied up there."""

import pytest
from tests.fakes.book import SMALL, THINKER
from tests.fakes.replies import anthropic_reply, openai_reply
from tests.fakes.sessions import (
    World,
    all_text,
    boundaries,
    digests,
    library_of,
    note,
    placed,
    reported,
    run,
    system_of,
    talk,
    user_of,
)

from lamina.core.values.message import ToolDefinition
from lamina.core.values.settings import Promotion

A, B = note("a.md", "AAA"), note("b.md", "BBB")
PAUSE = 301.0


def test_the_first_request_is_a_boundary_and_agrees_with_nothing() -> None:
    async def body() -> None:
        turn = await (await World().open(system="S")).prepare("Q", attach=[A])
        assert boundaries(turn) == ["first_request"]
        assert turn.context.agreement.first
        assert turn.context.agreement.reprocessed == turn.prompt.tokens
        assert system_of(turn) == "S"

    run(body())


def test_a_second_request_within_the_lifetime_is_none() -> None:
    async def body() -> None:
        world = World()
        session = await world.open()
        await talk(session, "Q1", A)
        world.clock.pass_by(300)
        assert boundaries(await session.prepare("Q2", attach=[A])) == []
        assert library_of(session) == []

    run(body())


def test_an_expired_lifetime_moves_items_into_the_library_and_drops_stale_names() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(system="S")
        await talk(session, "Q1", A)
        await talk(session, "Q2", A, B)
        world.clock.pass_by(PAUSE)
        turn = await session.prepare("Q3", attach=[B])
        assert boundaries(turn) == ["expired"]
        assert library_of(session) == ["a.md", "b.md"]
        assert placed(turn) == {"b.md": "library"}
        users = [m["content"] for m in turn.request()["messages"] if m["role"] == "user"]
        assert users == [
            "Q1",
            "Q2",
            "Context attached to this message:\n- b.md\n\nFind them in the context above."
            "\n\n---\n\n[User query]:\n\nQ3",
        ]
        assert turn.context.agreement.broke is not None
        assert "301 s" in turn.context.agreement.broke.reason

    run(body())


def test_a_lifetime_of_the_session_overrides_that_of_the_target() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(cache_lifetime_s=3_600.0)
        await talk(session)
        world.clock.pass_by(1_000)
        assert boundaries(await session.prepare("Q")) == []

    run(body())


def test_a_lifetime_of_nothing_makes_every_request_a_boundary() -> None:
    async def body() -> None:
        session = await World().open(cache_lifetime_s=0.0)
        await talk(session)
        assert boundaries(await session.prepare("Q")) == ["expired"]

    run(body())


def test_another_model_is_a_boundary() -> None:
    async def body() -> None:
        session = await World().open()
        await talk(session, "Q1", A)
        turn = await session.prepare("Q2", attach=[A], target="fake:other")
        assert boundaries(turn) == ["model_change"]
        assert library_of(session) == ["a.md"]
        assert turn.request()["model"] == "other"
        assert turn.context.target == "fake:other"

    run(body())


def test_another_vendor_does_not_get_thinking_it_did_not_sign_and_that_has_a_reason() -> None:
    async def body() -> None:
        session = await World().open(target=THINKER.name)
        for text in ("Q1", "Q2"):
            turn = await session.prepare(text)
            await turn.commit(anthropic_reply("A", thinking="hm"))
        turn = await session.prepare("Q3", target=SMALL.name)
        assert "hm" not in all_text(turn)
        assert turn.context.agreement.broke is not None
        assert turn.context.agreement.broke.reason
        assert boundaries(turn) == ["model_change"]

    run(body())


def test_a_changed_system_part_is_a_boundary_with_its_reason() -> None:
    async def body() -> None:
        session = await World().open(system=[("persona", "S"), ("memory", "old")])
        await talk(session, "Q1", A)
        await session.set_system("memory", "new", reason="a memory was saved")
        turn = await session.prepare("Q2", attach=[A])
        assert boundaries(turn) == ["system_change"]
        broke = turn.context.agreement.broke
        assert broke is not None
        # What is personal stands behind the library, which is made anew in front of it.
        assert (broke.layer, broke.source) == ("L2", "system:library")
        assert "a memory was saved" in broke.reason
        assert system_of(turn).startswith("S\n\n## Context Library")
        assert system_of(turn).endswith("\n\nnew")
        assert turn.context.agreement.segments == 1

    run(body())


def test_a_system_part_set_before_anything_was_sent_breaks_nothing() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        await session.set_system("system", "T", reason="second thoughts")
        turn = await session.prepare("Q")
        assert boundaries(turn) == ["first_request"]
        assert turn.context.agreement.broke is None
        assert system_of(turn) == "T"

    run(body())


def test_changed_tools_are_a_boundary_in_front_of_everything() -> None:
    async def body() -> None:
        session = await World().open(system="S", tools=[ToolDefinition(name="one")])
        await talk(session, "Q1", A)
        await session.set_tools([ToolDefinition(name="two")], reason="another server")
        turn = await session.prepare("Q2")
        assert boundaries(turn) == ["tools_change"]
        broke = turn.context.agreement.broke
        assert broke is not None
        assert (broke.layer, broke.segment, broke.source) == ("tools", 0, "tool:two")
        assert [tool["function"]["name"] for tool in turn.request()["tools"]] == ["two"]

    run(body())


@pytest.mark.parametrize(("old", "new"), [("lazy", "eager"), ("eager", "lazy")])
def test_another_promotion_is_a_boundary_with_a_reason(old: Promotion, new: Promotion) -> None:
    async def body() -> None:
        world = World()
        session = await world.open(promotion=old)
        await talk(session, "Q1", A)
        world.clock.pass_by(PAUSE)
        await talk(session, "Q2", A)
        await talk(session, "Q3")
        await session.update_settings(promotion=new)
        turn = await session.prepare("Q4", attach=[A])
        assert placed(turn) == {"a.md": "library"}
        broke = turn.context.agreement.broke
        assert broke is None or broke.reason

    run(body())


def test_a_changed_promotion_survives_a_restart() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(promotion="eager")
        await talk(session, "Q1", A)
        await talk(session, "Q2", A)
        await session.update_settings(promotion="lazy")
        here = await session.prepare("Q3", attach=[A])
        again = await world.open(session.id)
        there = await again.prepare("Q3", attach=[A])
        assert here.context.agreement == there.context.agreement
        assert digests(here) == digests(there)

    run(body())


def test_consolidating_by_hand_needs_a_reason_and_says_whether_it_did_anything() -> None:
    async def body() -> None:
        session = await World().open()
        assert not await session.rebuild_library("nothing stands yet")
        await talk(session, "Q1", A)
        assert await session.rebuild_library("tidy up")
        assert library_of(session) == ["a.md"]
        assert not await session.rebuild_library("again")
        turn = await session.prepare("Q2", attach=[A])
        assert turn.context.agreement.broke is not None
        assert turn.context.agreement.broke.reason == "tidy up"
        assert "Find them in the context above." in user_of(turn)

    run(body())


def test_what_goes_when_consolidating_by_hand_is_reported_with_the_next_request() -> None:
    async def body() -> None:
        session = await World().open()
        await talk(session, "Q1", A, B)
        await session.forget("a.md")
        await session.rebuild_library("tidy up")
        assert library_of(session) == ["b.md"]
        assert ("note:a.md", "removed") in reported(await session.prepare("Q2"))

    run(body())


def test_a_boundary_with_nothing_to_tidy_writes_no_patch() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(system="S")
        await talk(session)
        world.clock.pass_by(PAUSE)
        turn = await session.prepare("Q2")
        assert boundaries(turn) == ["expired"]
        assert turn.context.agreement.broke is None
        kinds = [type(entry).__name__ for entry in session.entries]
        assert "TransformEntry" not in kinds

    run(body())


def test_a_pause_inside_a_tool_loop_moves_nothing() -> None:
    async def body() -> None:
        world = World()
        session = await world.open()
        turn = await session.prepare("Q", attach=[A])
        turn = await turn.commit(openai_reply(None, calls=[("c1", "find")]))
        world.clock.pass_by(PAUSE)
        turn = await turn.resume({"c1": "found"})
        assert turn.context.agreement.broke is None
        assert placed(turn) == {"a.md": "message"}

    run(body())
