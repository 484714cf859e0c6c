"""Sessions begun with the words of an earlier renderer keep them until their cache is gone."""

from msgspec.structs import replace
from tests.fakes.renderers import renderer
from tests.fakes.sessions import World, all_text, boundaries, rule, run, system_of, talk

from lamina.core.audit.verification import verify
from lamina.core.text.wording import wording
from lamina.core.values.entry import RENDERER
from lamina.core.values.item import Item, note_id
from lamina.engine.session.session import Session

OLD, NEW = wording(2), wording(3)
NOTE = Item(id=note_id("a.md"), content="A plan.", unseen_pictures=2)
TONE = rule("tone", "Be kind.")
UNSEEN = {"count": 2, "more": ""}


async def session_of_before(world: World) -> Session:
    with renderer(2):
        session = await world.open(system="S")
        turn = await talk(session, "Q1", NOTE)
        assert OLD.unseen_pictures.format(**UNSEEN) in all_text(turn)
        assert turn.entry.renderer == 0
        assert session.state.session.renderer == 2
    return await world.open(session.id)


def test_a_session_keeps_its_words_until_its_cache_is_gone_and_says_why_they_change() -> None:
    async def body() -> None:
        world = World()
        session = await session_of_before(world)
        turn = await talk(session, "Q2")
        assert OLD.unseen_pictures.format(**UNSEEN) in all_text(turn)
        assert turn.context.agreement.broke is None
        assert turn.entry.renderer == 0
        world.clock.pass_by(400)
        turn = await talk(session, "Q3")
        assert NEW.unseen_pictures.format(**UNSEEN) in all_text(turn)
        assert OLD.unseen_pictures.format(**UNSEEN) not in all_text(turn)
        assert turn.entry.renderer == RENDERER
        assert "renderer_change" in boundaries(turn)
        broke = turn.context.agreement.broke
        assert broke is not None
        assert "texts of ours are worded more clearly since an upgrade (2, now 3)" in broke.reason
        turn = await talk(session, "Q4")
        assert turn.context.agreement.broke is None
        assert verify(await world.store.read(session.id), world.book).sound

    run(body())


def test_rules_that_come_into_play_later_are_explained_in_the_words_of_the_session() -> None:
    async def body() -> None:
        session = await session_of_before(World())
        assert OLD.rules in system_of(await talk(session, "Q2", TONE))
        # A recorded part stays as it was recorded.
        new = await World().open(system="S")
        assert NEW.rules in system_of(await talk(new, "Q", TONE))

    run(body())


def test_a_new_session_reads_the_words_of_today() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        turn = await talk(session, "Q1", NOTE, replace(NOTE, id=note_id("b.md")))
        assert all_text(turn).count(NEW.unseen_pictures.format(**UNSEEN)) == 2
        assert session.state.session.renderer == RENDERER
        assert turn.entry.renderer == 0

    run(body())
