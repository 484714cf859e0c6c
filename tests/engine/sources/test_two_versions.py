"""Issue 16, B.13: two versions of one item in one `attach`. The one attached last applies, unless
the first is the open note; the other is reported, and never sent."""

import pytest
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, all_text, note, placed, reported, run

import lamina
from lamina.core.values.item import AttachmentSpec

FIRST, LAST = note("a.md", "as it was"), note("a.md", "as it is")


def test_the_version_attached_last_applies_and_the_other_is_reported() -> None:
    async def body() -> None:
        session = await World().open("s")
        turn = await session.prepare("Q", attach=[FIRST, note("b.md", "BBB"), LAST])
        assert reported(turn) == [(FIRST.id, "superseded")]
        (omission,) = turn.context.left_out
        assert "two versions" in omission.detail
        assert FIRST.version[:8] in omission.detail
        assert list(placed(turn)) == ["a.md", "b.md"]
        assert "as it is" in all_text(turn)
        assert "as it was" not in all_text(turn)
        await turn.commit(openai_reply("A"))
        # It was a slip of one question: the next one has nothing to report.
        assert reported(await session.prepare("Q2", attach=[LAST])) == []

    run(body())


def test_the_open_note_applies_as_it_is_shown() -> None:
    async def body() -> None:
        session = await World().open("s")
        shown = AttachmentSpec(what=FIRST, shape="active")
        turn = await session.prepare("Q", attach=[shown, LAST])
        assert reported(turn) == [(FIRST.id, "superseded")]
        assert "that of the open note applies" in turn.context.left_out[0].detail
        assert "as it was" in all_text(turn)
        assert "as it is" not in all_text(turn)

    run(body())


@pytest.mark.parametrize("priority", [3, 10])
def test_one_version_attached_twice_is_nothing_to_report(priority: int) -> None:
    async def body() -> None:
        session = await World({"a.md": "as it is"}).open("s")
        turn = await session.prepare("Q", attach=["a.md", lamina.attach(LAST, priority=priority)])
        assert reported(turn) == []
        assert [item.priority for item in turn.context.items] == [priority]

    run(body())
