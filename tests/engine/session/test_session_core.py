"""What a session is made of is not what people see of it."""

from tests.fakes.sessions import World, run

from lamina.engine.session.session import core_of


def test_of_the_parts_of_a_session_people_see_only_those_they_use() -> None:
    async def body() -> None:
        session = await World().open("s")
        shared = {name for name in {*dir(session)} & {*dir(core_of(session))} if name[0] != "_"}
        assert shared == {"close", "hooks"}

    run(body())


def test_a_copy_of_a_session_has_its_own_journal_and_the_same_parts() -> None:
    async def body() -> None:
        session = await World().open("s")
        copy = await session.fork("t")
        core, copied_core = core_of(session), core_of(copy)
        assert (session.id, copy.id) == ("s", "t")
        assert copied_core.record is not core.record
        assert copied_core.lock is not core.lock
        assert copied_core.turns.tools.selector is core.turns.tools.selector
        assert copied_core.ports.workspace is core.ports.workspace
        assert copied_core.ports.closing == core.ports.closing

    run(body())
