"""The persona where nobody wrote one: sessions keep the words that they began with."""

from tests.fakes.sessions import World, run, system_of, talk

from lamina.apps.wiring import session_contents
from lamina.apps.wiring.session_contents import DEFAULT_PERSONA

[FORMER] = session_contents._FORMER_PERSONAS


def test_the_default_persona_in_other_words_does_not_move_a_session_that_has_it() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(system=[("persona", FORMER)])
        await talk(session, "Q1")
        session = await world.open(session.id, system=[("persona", DEFAULT_PERSONA)])
        turn = await talk(session, "Q2")
        assert system_of(turn) == FORMER
        assert turn.context.agreement.broke is None

    run(body())


def test_a_persona_that_somebody_wrote_takes_its_place() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(system=[("persona", FORMER)])
        await talk(session, "Q1")
        session = await world.open(session.id, system=[("persona", "You are a clerk.")])
        assert system_of(await talk(session, "Q2")) == "You are a clerk."

    run(body())
