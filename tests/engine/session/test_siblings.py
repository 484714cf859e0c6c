"""A question asked otherwise and an answer asked for again stand beside what was there."""

import pytest
from tests.fakes.book import OTHER, SMALL
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import (
    World,
    all_text,
    boundaries,
    digests,
    messages_of,
    note,
    placed,
    reported,
    run,
    talk,
    user_of,
    words,
)

from lamina.core.audit.verification import verify
from lamina.core.values.entry import LeafEntry, MessageEntry, RequestEntry
from lamina.core.values.item import AttachmentSpec
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn
from lamina.errors import BudgetError, TurnStateError, UnknownSession, UsageError


def question(session: Session, text: str) -> str:
    """The entry of a question, the last one of that text."""
    return [
        entry.id
        for entry in session.entries
        if isinstance(entry, MessageEntry) and entry.message.text == text
    ][-1]


def said(turn: Turn) -> list[str]:
    return [str(m["content"]) for m in messages_of(turn) if m["role"] != "system"]


async def sound(world: World, session: Session) -> None:
    verdict = verify(await world.store.read(session.id), world.book)
    assert verdict.sound, verdict


# -- editing -------------------------------------------------------------------------------------


def test_an_edited_question_stands_beside_the_old_one_and_bytes_before_it_do_not_move() -> None:
    async def body() -> None:
        world = World({"a.md": "AAA"})
        session = await world.open(system="S")
        await talk(session, "Q1", "a.md", answer="A1")
        second = await talk(session, "Q2", answer="A2")
        await talk(session, "Q3", answer="A3")
        left_at = session.state.leaf
        turn = await session.edit(question(session, "Q2"), "Q2, in other words")
        assert said(turn)[1:] == ["A1", "Q2, in other words"]
        assert digests(turn)[:-1] == digests(second)[:-1]
        assert turn.context.agreement.broke is None
        assert turn.context.agreement.tokens > 0
        await turn.commit(openai_reply("A2b"))
        assert [m.text for m in session.envelope.cached] == [
            "Q1",
            "A1",
            "Q2, in other words",
            "A2b",
        ]
        await session.navigate(left_at)
        assert [m.text for m in session.envelope.cached][2:] == ["Q2", "A2", "Q3", "A3"]
        await sound(world, session)

    run(body())


def test_the_first_question_can_be_edited() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(system="S")
        first = await talk(session, "Q1", answer="A1")
        turn = await session.edit(question(session, "Q1"), "Q1b")
        assert said(turn) == ["Q1b"]
        assert digests(turn)[:-1] == digests(first)[:-1]
        await turn.commit(openai_reply("A1b"))
        await sound(world, session)

    run(body())


def test_what_was_attached_goes_along_again_with_its_worth_and_as_it_is_now() -> None:
    async def body() -> None:
        world = World({"a.md": "AAA", "b.md": "BBB"})
        session = await world.open(system="S")
        vital = AttachmentSpec(what="a.md", essential=True, priority=3)
        await talk(session, "Q1", vital, note("value.md", "VVV"), answer="A1")
        world.workspace.notes["a.md"] = "AAA, edited"
        turn = await session.edit(question(session, "Q1"), "Q1b")
        assert "AAA, edited" in user_of(turn)
        assert "VVV" in user_of(turn)
        worth = {item.label: (item.priority, item.essential) for item in turn.context.items}
        assert worth == {"a.md": (3, True), "value.md": (5, False)}
        await turn.commit(openai_reply("A"))
        other = await session.edit(question(session, "Q1"), "Q1c", attach=["b.md"])
        assert placed(other) == {"b.md": "message"}
        await other.commit(openai_reply("A"))
        bare = await session.edit(question(session, "Q1"), "Q1d", attach=())
        assert said(bare) == ["Q1d"]

    run(body())


def test_a_file_that_is_gone_goes_along_as_it_was_and_that_is_said() -> None:
    async def body() -> None:
        world = World({"a.md": "AAA"})
        session = await world.open(system="S")
        await talk(session, "Q1", "a.md", answer="A1")
        del world.workspace.notes["a.md"]
        turn = await session.edit(question(session, "Q1"), "Q1b")
        assert "AAA" in user_of(turn)
        assert turn.warnings == ("a.md cannot be read any more; it is sent as it was",)

    run(body())


def test_what_could_not_be_read_then_gets_another_try() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(system="S")
        first = await talk(session, "Q1", "a.md", answer="A1")
        assert reported(first) == [("note:a.md", "missing")]
        world.workspace.notes["a.md"] = "AAA"
        turn = await session.edit(question(session, "Q1"), "Q1b")
        assert "AAA" in user_of(turn)
        assert not reported(turn)

    run(body())


def test_settings_and_pins_of_now_hold_on_the_new_branch() -> None:
    async def body() -> None:
        world = World({"a.md": "AAA", "b.md": "BBB"})
        session = await world.open(system="S")
        await session.pin("b.md")
        await talk(session, "Q1", answer="A1")
        await talk(session, "Q2", answer="A2")
        await session.pin("a.md")
        await session.unpin("b.md")
        await session.update_settings(target=OTHER.name, window=9_000)
        turn = await session.edit(question(session, "Q2"), "Q2b")
        assert turn.context.target == OTHER.name
        assert turn.context.fit.window == 9_000
        assert "AAA" in user_of(turn)
        assert list(session.state.library.pinned) == ["note:a.md"]
        assert [b.kind for b in turn.context.boundaries] == ["model_change"]

    run(body())


def test_a_question_that_cannot_be_asked_leaves_the_session_where_it_was() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(system="S", window=2_000)
        await talk(session, "Q1", answer="A1")
        await talk(session, "Q2", answer="A2")
        with pytest.raises(BudgetError):
            await session.edit(question(session, "Q1"), words(5_000))
        assert [m.text for m in session.envelope.cached] == ["Q1", "A1", "Q2", "A2"]
        turn = await talk(session, "Q3", answer="A3")
        assert turn.context.agreement.broke is None
        await sound(world, session)

    run(body())


def test_only_questions_can_be_edited() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        first = await talk(session, "Q1", answer="A1")
        before = session.entries
        with pytest.raises(UsageError, match="is not a question"):
            await session.edit(first.id, "Q")
        with pytest.raises(UnknownSession):
            await session.edit("ffffff", "Q")
        assert session.entries == before

    run(body())


def test_a_cache_that_the_other_branch_kept_alive_is_not_taken_for_dead() -> None:
    async def body() -> None:
        world = World({"a.md": "AAA"})
        session = await world.open(system="S")
        await talk(session, "Q1", "a.md", answer="A1")
        for text in ("Q2", "Q3"):
            world.clock.pass_by(200)
            await talk(session, text, answer="A")
        world.clock.pass_by(100)
        turn = await session.edit(question(session, "Q2"), "Q2b")
        assert boundaries(turn) == []
        assert turn.context.agreement.broke is None
        agreeing = turn.context.agreement.tokens
        reply = openai_reply("A", input=turn.prompt.tokens, cached=agreeing)
        answered = await turn.commit(reply)
        assert answered.verdict is not None
        assert answered.verdict.meaning == "as_expected"
        world.clock.pass_by(400)
        late = await session.edit(question(session, "Q2b"), "Q2c")
        assert boundaries(late) == ["expired"]

    run(body())


# -- asking for an answer again ------------------------------------------------------------------


def test_an_answer_asked_for_again_is_the_same_request_as_a_sibling() -> None:
    async def body() -> None:
        world = World({"a.md": "AAA"})
        session = await world.open(system="S")
        await talk(session, "Q1", answer="A1")
        second = await talk(session, "Q2", "a.md", answer="A2")
        world.workspace.notes["a.md"] = "AAA, edited"
        turn = await session.regenerate()
        assert digests(turn) == digests(second)
        assert turn.request() == second.request()
        again = await turn.commit(openai_reply("A2b"))
        assert [m.text for m in session.envelope.cached][-2:] == ["Q2", "A2b"]
        siblings = [
            entry.parent for entry in session.entries if isinstance(entry, LeafEntry)
        ]  # fmt: skip
        assert siblings == [second.entry.before]
        assert second.message is not None
        await session.navigate(second.message.id)
        assert [m.text for m in session.envelope.cached][-2:] == ["Q2", "A2"]
        assert again.message is not None
        await session.navigate(again.message.id)
        await talk(session, "Q3", answer="A3")
        assert [m.text for m in session.envelope.cached][-3:] == ["A2b", "Q3", "A3"]
        await sound(world, session)

    run(body())


def test_an_earlier_answer_is_named_by_its_entry_its_request_or_its_question() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        first = await talk(session, "Q1", answer="A1")
        await talk(session, "Q2", answer="A2")
        assert first.message is not None
        for entry in (first.message.id, first.id, question(session, "Q1")):
            turn = await session.regenerate(entry)
            assert digests(turn) == digests(first)
            await turn.commit(openai_reply("again"))

    run(body())


def test_an_answer_in_the_middle_of_calls_is_asked_for_with_the_results_before_it() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(system="S")
        turn = await session.prepare("Q1")
        first = await turn.commit(openai_reply(None, calls=[("c1", "find")]))
        middle = await first.resume({"c1": "found"})
        second = await middle.commit(openai_reply(None, calls=[("c2", "find")]))
        last = await second.resume({"c2": "found more"})
        await last.commit(openai_reply("A1"))
        again = await session.regenerate(second.id)
        assert digests(again) == digests(middle)
        assert again.request() == middle.request()
        await again.commit(openai_reply("A1, at once"))
        texts = [m.text for m in session.envelope.cached]
        assert texts == ["Q1", "", "", "A1, at once"]
        final = await session.regenerate(last.id)
        assert digests(final) == digests(last)
        await final.commit(openai_reply("A1b"))
        whole = await session.regenerate(question(session, "Q1"))
        assert digests(whole) == digests(turn)
        await whole.commit(openai_reply("A1c"))
        await sound(world, session)

    run(body())


def test_another_model_can_give_the_answer() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(system="S")
        await talk(session, "Q1", answer="A1")
        turn = await session.regenerate(target=OTHER.name)
        assert turn.context.target == OTHER.name
        await turn.commit(openai_reply("A1b"))
        assert session.settings.target == SMALL.name
        await session.update_settings(target=OTHER.name)
        assert (await session.regenerate()).context.target == OTHER.name

    run(body())


def test_an_interrupted_request_can_be_asked_again() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        await talk(session, "Q1", answer="A1")
        left = await session.prepare("Q2")
        turn = await session.regenerate()
        assert digests(turn) == digests(left)
        requests = [entry for entry in session.path if isinstance(entry, RequestEntry)]
        assert [entry.id for entry in requests][-1] == turn.id
        assert left.id not in {entry.id for entry in requests}

    run(body())


def test_there_has_to_be_an_answer() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        with pytest.raises(TurnStateError, match="nothing to repeat"):
            await session.regenerate()
        await session.label((await talk(session, "Q1")).id, "here")
        with pytest.raises(UsageError, match="neither a question nor an answer"):
            await session.regenerate(session.state.leaf)

    run(body())


def test_what_the_request_rested_on_is_the_same_after_a_restart() -> None:
    async def body() -> None:
        world = World({"a.md": "AAA"})
        session = await world.open("talk", system="S")
        turn = await talk(session, "Q1", "a.md", answer="A1")
        await session.close()
        session = await world.open("talk")
        again = await session.regenerate()
        assert digests(again) == digests(turn)
        assert all_text(again) == all_text(turn)
        await session.close()
        session = await world.open("talk")
        assert session.interrupted
        left = await session.current_turn()
        assert left is not None
        assert digests(left) == digests(turn)

    run(body())
