"""Turns that were left in the middle of their loop: over once the next one begins."""

import pytest
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, all_text, messages_of, note, placed, rule, run, words

from lamina.core.values.item import Item, Picture, note_id
from lamina.core.values.settings import Promotion
from lamina.engine.session.session import Session

A = note("a.md", "AAA")
both = pytest.mark.parametrize("promotion", ["lazy", "eager"])


async def leave(session: Session, text: str, *attach: Item) -> None:
    """A turn whose second request is never answered."""
    turn = await session.prepare(text, attach=attach)
    turn = await turn.commit(openai_reply(None, calls=[("c1", "find")]))
    await turn.resume({"c1": "found"})


@both
def test_what_was_found_before_a_turn_was_left_is_there_for_the_next(promotion: Promotion) -> None:
    async def body() -> None:
        session = await World().open(promotion=promotion)
        await leave(session, "Q1")
        turn = await session.prepare("Q2")
        assert [m["role"] for m in messages_of(turn)] == ["user", "assistant", "tool", "user"]
        assert turn.context.agreement.broke is None
        assert (await turn.commit(openai_reply("A2"))).answer == "A2"

    run(body())


@both
def test_a_note_of_a_turn_that_was_left_stands_for_the_next(promotion: Promotion) -> None:
    async def body() -> None:
        session = await World().open(promotion=promotion)
        await leave(session, "Q1", A)
        turn = await session.prepare("Q2", attach=[A])
        assert placed(turn) == {"a.md": "library" if promotion == "eager" else "above"}
        assert all_text(turn).count("AAA") == 1

    run(body())


def test_in_eager_a_note_with_images_is_sent_again_after_its_turn_was_left() -> None:
    async def body() -> None:
        world = World()
        digest = await world.store.put_blob(b"image")
        picture = Picture(digest=digest, media_type="image/png", width=10, height=10)
        seen = Item(id=note_id("seen.md"), content="look", pictures=(picture,))
        session = await world.open(promotion="eager")
        await leave(session, "Q1", seen)
        turn = await session.prepare("Q2", attach=[seen])
        assert placed(turn) == {"seen.md": "message"}
        assert [part["type"] for part in messages_of(turn)[-1]["content"]] == [
            "text", "image_url", "text",
        ]  # fmt: skip

    run(body())


def test_a_turn_that_was_left_gives_way_like_any_other_when_room_is_short() -> None:
    async def body() -> None:
        session = await World().open(
            window=500, output_reserve=100, promotion="eager", always=[rule("tone", "Be brief.")]
        )
        await leave(session, words(150, "first"))
        turn = await session.prepare(words(200, "second"), attach=[A, note("b.md", words(20))])
        assert words(200, "second") in all_text(turn)
        assert "history" in [omission.reason for omission in turn.context.left_out]

    run(body())
