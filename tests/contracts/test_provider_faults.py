"""What goes wrong between a session and a vendor: nothing that was said is lost, and the session
goes on. The embedded model has no network between.
"""

import pytest
from tests.contracts.houses import VENDORS, House
from tests.contracts.talk import (
    LONG,
    Watch,
    agent_with,
    asked_in,
    calling,
    chat_with,
    messages,
    offered,
    replies,
    require_sound,
    text_of,
)

from lamina.emulators.faults import FaultKind
from lamina.errors import ProviderError

pytestmark = pytest.mark.anyio
vendors = pytest.mark.parametrize("name", VENDORS)
PASSING: tuple[FaultKind, ...] = ("429", "500", "503", "529", "throttle", "html", "empty", "reset")


@vendors
async def test_what_passes_is_not_noticed(house: House) -> None:
    house.says("All is well.")
    async with await chat_with(house) as chat:
        for kind in PASSING:
            house.fails(kind, times=2)
            assert (await chat.run(f"How is it after {kind}?")).text == "All is well.", kind
        assert len(house.bodies) == len(replies(chat.session)) == len(PASSING)
        require_sound(chat.session)


@vendors
@pytest.mark.parametrize("kind", ["429", "500", "html", "empty", "reset", "401"])
async def test_a_question_without_an_answer_is_not_lost(house: House, kind: FaultKind) -> None:
    house.says("All is well.")
    async with await chat_with(house) as chat:
        await chat.run("First?")
        house.fails(kind, times=3)
        with pytest.raises(ProviderError):
            await chat.run("Second?")
        assert chat.session.interrupted
        house.begin()
        house.says("It is again.")
        assert (await chat.resume()).text == "It is again."
        assert "Second?" in text_of(house.bodies[-1])
        house.fails(kind, times=3)
        with pytest.raises(ProviderError):
            await chat.run("Third?")
        house.begin()
        answer = await chat.run("Fourth?")
        assert answer.ending == "answered"
        sent = text_of(house.bodies[-1])
        assert all(f"{word}?" in sent for word in ("First", "Second", "Fourth"))
        assert "Third?" not in sent
        # Something else was asked in its place: it stands in the journal, on a branch of its own.
        assert "Third?" in asked_in(chat.session)
        require_sound(chat.session)


@vendors
@pytest.mark.parametrize("kind", ["cut", "silent"])
async def test_an_answer_that_breaks_off_is_kept_as_far_as_it_came(
    house: House, kind: FaultKind
) -> None:
    house.says(LONG)
    watch = Watch()
    async with await chat_with(house) as chat:
        await chat.run("First?")
        house.fails(kind)
        with pytest.raises(ProviderError):
            await chat.run("Second?", on_event=watch)
        kept = messages(chat.session)[-1]
        assert kept.role == "assistant"
        assert kept.text == watch.said
        assert LONG.startswith(kept.text)
        assert kept.text
        assert not chat.session.interrupted
        # Words were said: they are not asked for again behind anybody's back.
        assert len(house.bodies) == 2
        answer = await chat.run("Third?")
        assert answer.text == LONG
        assert kept.text.strip() in text_of(house.bodies[-1])
        assert [message.role for message in messages(chat.session)] == ["user", "assistant"] * 3
        require_sound(chat.session)


@vendors
@pytest.mark.parametrize("kind", ["cut", "silent"])
async def test_a_call_that_breaks_off_is_not_run(house: House, kind: FaultKind) -> None:
    house.says(calling(*["depth"] * 6, text="Let me look at it."), "Never mind.")
    host = offered()
    async with await agent_with(house, host) as agent:
        house.fails(kind)
        with pytest.raises(ProviderError):
            await agent.run("How deep is it?")
        assert not host.calls
        assert (await agent.run("And now?")).text == "Never mind."
        sent = text_of(house.bodies[-1])
        assert "How deep is it?" in sent
        assert "Let me look at it." in sent
        require_sound(agent.session)
