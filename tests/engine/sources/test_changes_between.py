"""What a person changes between turns, and while an answer is still awaited."""

import pytest
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, library_of, note, placed, run, system_of, talk

from lamina.core.values.message import ToolText
from lamina.errors import InvalidSetting, UsageError

A = note("a.md", "AAA")


def test_what_was_changed_while_a_request_was_open_is_not_lost_with_it() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        await session.prepare("Q")
        await session.update_settings(history_messages=6)
        await session.set_system("system", "T", reason="second thoughts")
        turn = await session.prepare("Q again")
        assert session.settings.history_messages == 6
        assert system_of(turn) == "T"

    run(body())


def test_what_was_changed_between_request_and_reply_has_its_reason_on_the_next_turn() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        await talk(session, "Q1")
        turn = await session.prepare("Q2")
        await session.set_system("system", "T", reason="a memory was saved")
        await turn.commit(openai_reply("A2"))
        turn = await session.prepare("Q3")
        assert system_of(turn) == "T"
        assert turn.context.agreement.broke is not None
        assert turn.context.agreement.broke.reason == "a memory was saved"

    run(body())


def test_a_pin_made_while_a_request_is_open_outlives_that_request() -> None:
    async def body() -> None:
        session = await World({"a.md": "AAA"}).open()
        await session.prepare("Q1")
        await session.pin("a.md")
        turn = await session.prepare("Q1 again")
        assert placed(turn) == {"a.md": "message"}

    run(body())


def test_what_was_changed_outlives_more_than_one_abandoned_request() -> None:
    async def body() -> None:
        session = await World({"a.md": "AAA"}).open(system="S")
        await session.prepare("Q")
        await session.set_system("system", "T", reason="second thoughts")
        await session.pin("a.md")
        for text in ("again", "and again", "and once more"):
            turn = await session.prepare(text)
            assert system_of(turn) == "T"
            assert placed(turn) == {"a.md": "message"}

    run(body())


def test_a_pin_of_what_only_the_abandoned_request_brought_can_be_used() -> None:
    async def body() -> None:
        session = await World().open()
        await session.prepare("Q", attach=[A])
        await session.pin(A)
        turn = await session.prepare("Q again")
        assert placed(turn) == {"a.md": "message"}

    run(body())


@pytest.mark.parametrize("promotion", ["lazy", "eager"])
def test_consolidating_while_a_request_is_open_does_not_break_what_follows(promotion: str) -> None:
    async def body() -> None:
        world = World()
        session = await world.open(promotion=promotion)
        await talk(session, "Q1", note("b.md", "BBB"))
        await session.prepare("Q2", attach=[A])
        await session.rebuild_library("tidy up")
        turn = await session.prepare("Q2 again")
        assert placed(turn) == {}
        await turn.commit(openai_reply())
        assert "a.md" not in library_of(session)
        assert (await world.open(session.id)).state == session.state

    run(body())


def test_consolidating_while_a_request_is_open_holds_for_the_turn_after_it() -> None:
    async def body() -> None:
        session = await World().open()
        turn = await session.prepare("Q1", attach=[A])
        await session.rebuild_library("tidy up")
        await turn.commit(openai_reply())
        turn = await session.prepare("Q2", attach=[A])
        assert placed(turn) == {"a.md": "library"}
        assert turn.context.agreement.broke is not None
        assert turn.context.agreement.broke.reason == "tidy up"

    run(body())


@pytest.mark.parametrize(("old", "new"), [("lazy", "eager"), ("eager", "lazy")])
def test_a_promotion_changed_while_a_turn_goes_on_holds_from_the_next_turn_on(
    old: str, new: str
) -> None:
    async def body() -> None:
        session = await World().open(promotion=old)
        await talk(session, "Q1", A)
        turn = await session.prepare("Q2", attach=[A], tool_texts=[ToolText(name="t", text="x")])
        await session.update_settings(promotion=new)  # type: ignore[arg-type]
        turn = await turn.commit(openai_reply(None, calls=[("c1", "find")]))
        turn = await turn.resume({"c1": "found"})
        assert turn.context.agreement.broke is None
        await turn.commit(openai_reply())
        turn = await session.prepare("Q3", attach=[A])
        assert placed(turn) == {"a.md": "library"}
        assert session.settings.promotion == new

    run(body())


def test_forgetting_while_a_request_is_open_holds_at_the_next_boundary() -> None:
    async def body() -> None:
        world = World()
        session = await world.open()
        await talk(session, "Q1", A)
        await session.prepare("Q2")
        assert await session.forget("a.md")
        await talk(session, "Q2 again")
        world.clock.pass_by(301)
        await session.prepare("Q3")
        assert library_of(session) == []

    run(body())


@pytest.mark.parametrize(
    "setting",
    [{"promotion": "Lazy"}, {"window": "large"}, {"history": "none"}, {"prune_to": 7.0}],
)
def test_a_setting_that_cannot_be_is_refused_and_not_written(setting: dict[str, object]) -> None:
    async def body() -> None:
        world = World()
        session = await world.open()
        with pytest.raises(InvalidSetting):
            await session.update_settings(**setting)  # type: ignore[arg-type]
        assert (await world.open(session.id)).state == session.state

    run(body())


def test_an_unknown_setting_is_refused_by_name() -> None:
    async def body() -> None:
        session = await World().open()
        with pytest.raises((UsageError, TypeError), match="windwo"):
            await session.update_settings(windwo=5)  # type: ignore[call-arg]
        assert len(session.entries) == 1

    run(body())
