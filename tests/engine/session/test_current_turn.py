"""Turns that were left in the middle can be taken up again from the journal alone."""

from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, note, run, talk


def test_a_request_that_was_never_answered_can_be_sent_again_after_a_restart() -> None:
    async def body() -> None:
        world = World()
        session = await world.open()
        await talk(session, "Q1", note("a.md", "alpha"))
        left = await session.prepare("Q2", attach=[note("b.md", "beta")])
        again = await world.open(session.id)
        assert again.interrupted
        turn = await again.current_turn()
        assert turn is not None
        assert turn.request() == left.request()
        turn = await turn.commit(openai_reply("A2"))
        assert turn.answer == "A2"
        assert await again.current_turn() is None

    run(body())


def test_calls_that_wait_for_results_can_be_answered_after_a_restart() -> None:
    async def body() -> None:
        world = World()
        session = await world.open()
        turn = await session.prepare("Q", attach=[note("a.md", "alpha")])
        await turn.commit(openai_reply(None, calls=[("c1", "find")]))
        again = await world.open(session.id)
        taken_up = await again.current_turn()
        assert taken_up is not None
        assert [call.name for call in taken_up.pending_calls] == ["find"]
        on = await taken_up.resume({"c1": "found"})
        assert on.context.agreement.broke is None
        assert on.request()["messages"][-1]["content"] == "found"

    run(body())


def test_a_session_whose_last_turn_is_complete_has_no_current_turn() -> None:
    async def body() -> None:
        session = await World().open()
        assert await session.current_turn() is None
        await talk(session, "Q")
        assert await session.current_turn() is None

    run(body())
