"""Two openings of one session never lose what the other wrote."""

import pytest
from tests.fakes.sessions import World, run, talk

from lamina.errors import SessionMoved, UsageError


def test_an_opening_that_is_behind_writes_nothing_and_says_so() -> None:
    async def body() -> None:
        world = World()
        one = await world.open()
        two = await world.open(one.id)
        await talk(one, "from one")
        before = two.state
        with pytest.raises(SessionMoved, match=one.id):
            await two.prepare("from two")
        assert two.state is before
        again = await world.open(one.id)
        assert again.envelope.cached[0].text == "from one"
        await talk(again, "from two")
        texts = [m.text for m in (await world.open(one.id)).envelope.cached]
        assert texts[::2] == ["from one", "from two"]

    run(body())


def test_a_string_instead_of_a_list_of_attachments_is_refused() -> None:
    async def body() -> None:
        session = await World().open()
        with pytest.raises(UsageError, match=r"attach=\['a.md'\]"):
            await session.prepare("Q", attach="a.md")

    run(body())
