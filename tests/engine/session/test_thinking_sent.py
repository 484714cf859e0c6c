"""Claude's newest models refuse thinking once what stood before it changed. What a session sends
them then, and what it says of it."""

from itertools import pairwise
from typing import Any

from tests.core.layers.bound_sessions import TARGETS, EmulatedVendor, claude_reply, is_thought
from tests.fakes.clock import FakeClock
from tests.fakes.sessions import run
from tests.golden.draw import Draw
from tests.golden.wires import WireBook

import lamina
from lamina.core.ports import JournalStore
from lamina.core.values.item import ItemId
from lamina.core.values.patch import CompactionApply, SystemPartSet
from lamina.engine.session.session import Session

OPUS, FABLE = "anthropic:claude-opus-5-5", "anthropic:claude-fable-5-1"
OLDER = "anthropic:claude-opus-5"
VENDOR = EmulatedVendor()


class AlwaysThinking(Draw):
    """Chances turn out so that every answer has one block of thinking before it."""

    def chance(self, share: float) -> bool:
        return share >= 0.7


async def opened(store: JournalStore | None = None, **given: Any) -> Session:
    return await lamina.open_session(
        "s", store=store or lamina.MemoryStore(), book=WireBook(TARGETS), clock=FakeClock(),
        **{"target": OPUS, "system": "You are a clerk.", **given},
    )  # fmt: skip


async def ask(session: Session, question: str, **given: Any) -> tuple[list[str], lamina.Turn]:
    """The answers whose thinking went along, by their texts, and the turn."""
    turn = await session.prepare(question, **given)
    body = turn.request()
    assert all(verdict.is_valid for verdict in VENDOR.judge(body)), "it would be refused"
    texts = []
    for message in body["messages"]:
        blocks = message["content"]
        for block, following in pairwise(blocks):
            if is_thought(block):
                texts.append(following["text"])
    answer = claude_reply(
        AlwaysThinking(0), VENDOR, body, f"re {question}", [], len(session.entries)
    )
    return texts, await turn.commit(answer)


def left_out(turn: lamina.Turn) -> list[str]:
    return [o.detail for o in turn.context.left_out if o.reason == "thinking"]


def test_thinking_goes_back_while_nothing_before_it_changes() -> None:
    async def body() -> None:
        session = await opened()
        await ask(session, "one")
        await ask(session, "two")
        thoughts, turn = await ask(session, "three")
        assert thoughts == ["re one", "re two"]
        assert left_out(turn) == []

    run(body())


def test_after_a_changed_system_part_earlier_thinking_stays_out_and_later_thinking_goes_along() -> (
    None
):
    async def body() -> None:
        session = await opened()
        await ask(session, "one")
        await ask(session, "two")
        await session.apply("me", SystemPartSet(name="mood", text="Be brief.", reason="asked to"))
        thoughts, turn = await ask(session, "three")
        assert thoughts == []
        first, second, *_ = [message.id for message in session.envelope.cached if message.thinks]
        assert left_out(turn) == [
            f"the thinking of 2 answers ({first}, {second}) is not sent: what stood before it has "
            "changed"
        ]
        assert turn.context.agreement.unexplained == ()
        thoughts, turn = await ask(session, "four")
        assert thoughts == ["re three"]
        assert left_out(turn) == [], "it was reported when it went"

    run(body())


def test_what_stands_before_a_cut_in_the_middle_keeps_its_thinking() -> None:
    async def body() -> None:
        session = await opened()
        for question in ("one", "two", "three", "four"):
            await ask(session, question)
        cut = CompactionApply(first_kept=6, after=2, summary="They counted.", reason="too long")
        await session.apply("me", cut)
        thoughts, turn = await ask(session, "five")
        assert thoughts == ["re one"]
        assert len(left_out(turn)) == 1
        thoughts, _ = await ask(session, "six")
        assert thoughts == ["re one", "re five"]

    run(body())


def test_text_for_one_request_only_costs_the_thinking_of_its_answer() -> None:
    async def body() -> None:
        session = await opened()
        await ask(session, "one")
        noon = lamina.ToolText(name="clock", text="It is noon.")
        await ask(session, "two", tool_texts=[noon])
        thoughts, turn = await ask(session, "three")
        assert thoughts == ["re one"]
        assert len(left_out(turn)) == 1

    run(body())


def test_thinking_survives_being_handed_to_another_model_and_back() -> None:
    async def body() -> None:
        session = await opened()
        await ask(session, "one")
        thoughts, _ = await ask(session, "two", target=FABLE)
        assert thoughts == ["re one"]
        # Opus cannot read it; it is dropped there, and left in its place all the same.
        thoughts, _ = await ask(session, "three", target=OPUS)
        assert thoughts == ["re one", "re two"]
        thoughts, _ = await ask(session, "four", target=FABLE)
        assert thoughts == ["re one", "re two", "re three"]

    run(body())


def test_models_that_bind_nothing_get_their_own_thinking_alone_as_before() -> None:
    async def body() -> None:
        session = await opened(target=OLDER)
        await ask(session, "one")
        await session.apply("me", SystemPartSet(name="mood", text="Be brief.", reason="asked to"))
        thoughts, _ = await ask(session, "two")
        assert thoughts == ["re one"]
        thoughts, _ = await ask(session, "three", target=OPUS)
        assert thoughts == ["re one", "re two"], "they are bound to nothing, and it reads them"
        thoughts, _ = await ask(session, "four", target=OLDER)
        assert thoughts == ["re one", "re two"]

    run(body())


def test_a_session_that_is_opened_again_sends_the_same_thinking() -> None:
    async def body() -> None:
        store = lamina.MemoryStore()
        session = await opened(store)
        for question in ("one", "two"):
            await ask(session, question)
        await session.apply("me", SystemPartSet(name="mood", text="Be brief.", reason="asked to"))
        for question in ("three", "four"):
            await ask(session, question)
        await session.close()
        session = await opened(store)
        thoughts, _ = await ask(session, "five")
        assert thoughts == ["re three", "re four"]

    run(body())


def test_a_change_that_is_taken_back_brings_earlier_thinking_back() -> None:
    async def body() -> None:
        session = await opened()
        await ask(session, "one")
        await session.apply("me", SystemPartSet(name="system", text="A pilot.", reason="a try"))
        await ask(session, "two")
        await session.apply(
            "me", SystemPartSet(name="system", text="You are a clerk.", reason="no good")
        )
        thoughts, _ = await ask(session, "three")
        assert thoughts == ["re one"]

    run(body())


def test_another_promotion_moves_what_is_remembered_without_being_refused() -> None:
    async def body() -> None:
        session = await opened(
            memory="They like ferries.",
            always=[lamina.Item(id=ItemId("rule:tone"), content="Be brief.")],
            settings=lamina.Settings(promotion="eager"),
        )
        await ask(session, "one")
        await session.update_settings(promotion="lazy")
        _, turn = await ask(session, "two")
        assert turn.context.agreement.broke is not None
        assert turn.context.agreement.unexplained == ()

    run(body())
