"""The limit that attachments may have of their own, apart from the window."""

import pytest
from tests.fakes.sessions import World, note, placed, reported, rule, run, talk, user_of, words

from lamina.apps.wiring import attach
from lamina.core.values.item import Item
from lamina.errors import EssentialsTooLarge

# The wrapper of a note is 8 words: 20 tokens each.
A, B, C = (note(f"{name}.md", words(12, name)) for name in "abc")


def test_without_a_limit_everything_that_fits_the_window_is_attached() -> None:
    async def body() -> None:
        turn = await (await World().open()).prepare("Q", attach=[note("a.md", words(5_000))])
        assert reported(turn) == []

    run(body())


def test_exactly_at_the_limit_nothing_goes() -> None:
    async def body() -> None:
        turn = await (await World().open(attachment_limit=60)).prepare("Q", attach=[A, B, C])
        assert list(placed(turn)) == ["a.md", "b.md", "c.md"]

    run(body())


def test_over_the_limit_the_highest_priority_number_goes_first() -> None:
    async def body() -> None:
        session = await World().open(attachment_limit=59)
        turn = await session.prepare("Q", attach=[A, attach(B, priority=10), attach(C, priority=7)])
        assert list(placed(turn)) == ["a.md", "c.md"]
        assert reported(turn) == [("note:b.md", "attachment_limit")]
        assert "- b.md (no room left for attachments)" in user_of(turn)
        assert turn.context.left_out[0].tokens == 20

    run(body())


def test_among_equals_the_earliest_added_goes_first() -> None:
    async def body() -> None:
        session = await World().open(attachment_limit=40)
        turn = await session.prepare("Q", attach=[B, A, C])
        assert list(placed(turn)) == ["a.md", "c.md"]

    run(body())


def test_adding_again_replaces_the_value_and_keeps_its_place_in_line() -> None:
    async def body() -> None:
        session = await World().open(attachment_limit=40)
        turn = await session.prepare("Q", attach=[B, A, C, attach(B, priority=5)])
        assert list(placed(turn)) == ["a.md", "c.md"]
        turn = await session.prepare("Q", attach=[B, A, C, attach(B, priority=3)])
        assert list(placed(turn)) == ["b.md", "c.md"]

    run(body())


def test_essentials_never_go() -> None:
    async def body() -> None:
        session = await World().open(attachment_limit=20)
        turn = await session.prepare("Q", attach=[attach(A, essential=True), B, C])
        assert list(placed(turn)) == ["a.md"]
        turn = await session.prepare("Q", attach=[B, C, attach(A, priority=0)])
        assert list(placed(turn)) == ["a.md"]

    run(body())


def test_essentials_over_the_limit_are_an_error_with_sizes_before_anything_is_written() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(attachment_limit=39)
        state, writes = session.state, world.store.writes
        with pytest.raises(EssentialsTooLarge) as caught:
            await session.prepare("Q", attach=[attach(A, essential=True), attach(B, priority=0), C])
        assert caught.value.limit == 39
        assert list(caught.value.sizes.values()) == [20, 20]
        assert "a.md 20" in str(caught.value)
        assert session.state is state
        assert world.store.writes == writes
        assert len((await world.store.read(session.id)).entries) == 1

    run(body())


def test_pins_count_as_essentials() -> None:
    async def body() -> None:
        session = await World().open(attachment_limit=30)
        await session.pin(A)
        assert list(placed(await talk(session, "Q", B))) == ["a.md"]
        await session.pin(B)
        with pytest.raises(EssentialsTooLarge):
            await session.prepare("Q")

    run(body())


def test_items_that_are_only_named_count_too() -> None:
    async def body() -> None:
        session = await World().open(attachment_limit=40)
        await talk(session, "Q1", A, B)
        turn = await session.prepare("Q2", attach=[A, B, C])
        assert list(placed(turn)) == ["b.md", "c.md"]
        assert "stays in the context until the next boundary" in turn.context.left_out[0].detail

    run(body())


def test_rules_are_no_attachments() -> None:
    async def body() -> None:
        session = await World().open(attachment_limit=20)
        turn = await session.prepare("Q", attach=[A, rule("tone", words(50))])
        assert reported(turn) == []

    run(body())


def test_a_limit_of_nothing_leaves_out_even_an_empty_note() -> None:
    async def body() -> None:
        session = await World().open(attachment_limit=0)
        empty: Item = note("empty.md", "")
        turn = await session.prepare("Q", attach=[empty])
        assert reported(turn) == [("note:empty.md", "attachment_limit")]

    run(body())
