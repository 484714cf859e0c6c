"""Turns in order and out of order: prepare, commit, resume, restart."""

import anyio
import pytest
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import (
    World,
    all_text,
    digests,
    messages_of,
    note,
    placed,
    run,
    talk,
    user_of,
)
from tests.fakes.store import StoreFailed

from lamina.core.journal import path_to
from lamina.core.values.entry import RequestEntry
from lamina.core.values.message import ToolResult
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn
from lamina.errors import (
    InvalidText,
    JournalError,
    ReplyError,
    TurnStateError,
    UnknownTarget,
    UsageError,
)

CALLS = [("c1", "find"), ("c2", "read")]


async def calling(world: World | None = None) -> tuple[Session, Turn]:
    """A turn whose answer waits for two results."""
    session = await (world or World()).open()
    turn = await session.prepare("Q")
    return session, await turn.commit(openai_reply(None, calls=CALLS))


def test_a_turn_is_committed_once() -> None:
    async def body() -> None:
        session = await World().open()
        turn = await session.prepare("Q")
        answered = await turn.commit(openai_reply("A"))
        assert (turn.answer, answered.answer, answered.stop_reason) == ("", "A", "stop")
        entries = session.entries
        for again in (turn, answered):
            with pytest.raises(TurnStateError, match="committed already"):
                await again.commit(openai_reply("B"))
        assert session.entries == entries

    run(body())


def test_an_older_turn_cannot_be_committed_after_a_newer_was_prepared() -> None:
    async def body() -> None:
        session = await World().open()
        older = await session.prepare("Q1")
        newer = await session.prepare("Q2")
        with pytest.raises(TurnStateError, match="another turn was prepared"):
            await older.commit(openai_reply("A1"))
        assert (await newer.commit(openai_reply("A2"))).answer == "A2"

    run(body())


def test_preparing_while_calls_are_pending_is_an_error_that_names_them() -> None:
    async def body() -> None:
        session, turn = await calling()
        entries = session.entries
        with pytest.raises(TurnStateError, match="find, read"):
            await session.prepare("never mind")
        assert session.entries == entries
        assert (await turn.resume({"c1": "1", "c2": "2"})).request()

    run(body())


def test_preparing_again_starts_a_sibling_branch_and_keeps_both() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        sent = await talk(session, "Q1")
        first = await session.prepare("Q2")
        second = await session.prepare("Q2, better")
        assert [m["content"] for m in messages_of(second)] == ["S", "Q1", "A", "Q2, better"]
        entries = {entry.id: entry for entry in session.entries}
        requests = [entry for entry in session.entries if isinstance(entry, RequestEntry)]
        assert [entry.id for entry in requests] == [sent.id, first.id, second.id]
        assert requests[1].before == requests[2].before
        assert first.id not in [entry.id for entry in path_to(second.id, entries)]
        # What the ledger compares with is what is known to have been sent.
        assert requests[2].base == sent.id
        assert second.context.agreement.tokens == sent.prompt.tokens

    run(body())


# -- results -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "results",
    [
        {"c1": "one", "c2": "two"},
        [{"call_id": "c2", "text": "two"}, {"tool_call_id": "c1", "content": "one"}],
        [
            ToolResult(call_id="c1", name="", text="one"),
            {"tool_use_id": "c2", "content": "two", "is_error": True},
        ],
    ],
)
def test_results_come_in_several_forms_and_stand_in_the_order_of_their_calls(
    results: list[ToolResult],
) -> None:
    async def body() -> None:
        _, turn = await calling()
        turn = await turn.resume(results)
        assert messages_of(turn)[-2:] == [
            {"role": "tool", "tool_call_id": "c1", "content": "one"},
            {"role": "tool", "tool_call_id": "c2", "content": "two"},
        ]
        assert turn.context.agreement.broke is None

    run(body())


@pytest.mark.parametrize(
    ("results", "problem"),
    [
        ({"c1": "one"}, r"missing \['c2'\], unknown \[\]"),
        ({}, r"missing \['c1', 'c2'\]"),
        ({"c1": "one", "c2": "two", "c3": "three"}, r"missing \[\], unknown \['c3'\]"),
        ([{"call_id": "c1"}], "needs 'call_id' and 'text'"),
        ({"c1": 1, "c2": 2}, "needs 'call_id' and 'text'"),
    ],
)
def test_results_that_do_not_match_the_calls_are_an_error_and_the_turn_waits(
    results: dict[str, str], problem: str
) -> None:
    async def body() -> None:
        session, turn = await calling()
        state = session.state
        with pytest.raises(UsageError, match=problem):
            await turn.resume(results)
        assert session.state is state
        await turn.resume({"c1": "one", "c2": "two"})

    run(body())


def test_a_turn_without_pending_calls_cannot_be_resumed() -> None:
    async def body() -> None:
        session = await World().open()
        turn = await session.prepare("Q")
        for each in (turn, await turn.commit(openai_reply("A"))):
            with pytest.raises(TurnStateError, match="no tool calls are pending"):
                await each.resume({})

    run(body())


def test_resuming_twice_never_doubles_the_results() -> None:
    async def body() -> None:
        _, turn = await calling()
        await turn.resume({"c1": "one", "c2": "two"})
        try:
            again = await turn.resume({"c1": "uno", "c2": "dos"})
        except TurnStateError:
            return
        results = [m["content"] for m in messages_of(again) if m["role"] == "tool"]
        assert results == ["uno", "dos"]

    run(body())


def test_a_new_message_after_an_unanswered_resume_leaves_no_call_without_result() -> None:
    async def body() -> None:
        session, turn = await calling()
        await turn.resume({"c1": "one", "c2": "two"})
        try:
            after = await session.prepare("never mind")
        except TurnStateError:
            return
        roles = [m["role"] for m in messages_of(after)]
        assert roles == ["user", "assistant", "tool", "tool", "user"]

    run(body())


def test_a_turn_that_was_resumed_cannot_be_resumed_from_an_earlier_answer() -> None:
    async def body() -> None:
        _, first = await calling()
        second = await first.resume({"c1": "one", "c2": "two"})
        await second.commit(openai_reply(None, calls=[("c3", "find")]))
        with pytest.raises(TurnStateError, match="latest answer"):
            await first.resume({"c1": "one", "c2": "two"})

    run(body())


# -- replies -------------------------------------------------------------------------------------


def test_a_reply_that_cannot_be_read_leaves_the_turn_open() -> None:
    async def body() -> None:
        session = await World().open()
        turn = await session.prepare("Q")
        with pytest.raises(ReplyError, match="overloaded"):
            await turn.commit({"error": {"message": "overloaded"}})
        assert session.interrupted
        assert (await turn.commit(openai_reply("A"))).answer == "A"
        assert not session.interrupted

    run(body())


def test_a_reply_that_was_cut_off_is_kept_and_marked() -> None:
    async def body() -> None:
        session = await World().open()
        turn = await session.prepare("Q")
        answered = await turn.commit(openai_reply("half an ans", stop=None))
        assert answered.interrupted
        assert "half an ans" in all_text(await session.prepare("go on"))

    run(body())


# -- restarts and failures -----------------------------------------------------------------------


def test_a_session_opened_again_goes_on_where_it_was() -> None:
    async def body() -> None:
        world = World({"a.md": "AAA"})
        session = await world.open(system="S")
        await talk(session, "Q1", "a.md")
        again = await world.open(session.id)
        assert again.state == session.state
        assert not again.interrupted
        live = digests(await session.prepare("Q2", attach=["a.md"]))
        # Opened anew, for an opening that is behind may not write.
        turn = await (await world.open(session.id)).prepare("Q2", attach=["a.md"])
        assert placed(turn) == {"a.md": "above"}
        assert turn.context.agreement.broke is None
        assert digests(turn) == live

    run(body())


def test_a_request_that_was_never_answered_is_found_after_a_restart() -> None:
    async def body() -> None:
        world = World()
        session = await world.open()
        sent = await talk(session, "Q1")
        lost = await session.prepare("Q2")
        again = await world.open(session.id)
        assert again.interrupted
        turn = await again.prepare("Q2")
        assert digests(turn) == digests(lost)
        assert turn.context.agreement.tokens == sent.prompt.tokens
        assert (await turn.commit(openai_reply("A2"))).answer == "A2"

    run(body())


def test_pending_calls_are_pending_after_a_restart() -> None:
    async def body() -> None:
        world = World()
        session, _ = await calling(world)
        again = await world.open(session.id)
        with pytest.raises(TurnStateError, match="find, read"):
            await again.prepare("never mind")

    run(body())


def test_an_append_that_fails_leaves_the_session_as_it_was_and_usable() -> None:
    async def body() -> None:
        world = World({"a.md": "AAA"})
        session = await world.open(system="S")
        await talk(session, "Q1")
        state, entries = session.state, session.entries
        world.store.failing = True
        with pytest.raises(StoreFailed):
            await session.prepare("Q2", attach=["a.md"])
        with pytest.raises(StoreFailed):
            await session.pin("a.md")
        with pytest.raises(StoreFailed):
            await session.set_system("system", "T", reason="why not")
        assert session.state is state
        assert session.entries == entries
        world.store.failing = False
        turn = await session.prepare("Q2", attach=["a.md"])
        assert placed(turn) == {"a.md": "message"}
        again = await world.open(session.id)
        assert again.state == session.state

    run(body())


def test_a_commit_that_cannot_be_stored_can_be_tried_again() -> None:
    async def body() -> None:
        world = World()
        session = await world.open()
        turn = await session.prepare("Q")
        world.store.failing = True
        with pytest.raises(StoreFailed):
            await turn.commit(openai_reply("A"))
        world.store.failing = False
        assert (await turn.commit(openai_reply("A"))).answer == "A"

    run(body())


def test_preparing_is_one_write() -> None:
    async def body() -> None:
        world = World({"a.md": "AAA"})
        session = await world.open(promotion="eager")
        await talk(session, "Q1", "a.md")
        writes = world.store.writes
        turn = await session.prepare("Q2", attach=["a.md"])
        assert world.store.writes == writes + 1
        await turn.commit(openai_reply("A"))
        assert world.store.writes == writes + 2

    run(body())


def test_prepares_at_the_same_time_are_taken_one_after_another() -> None:
    async def body() -> None:
        world = World({"a.md": "AAA"})
        session = await world.open()
        made: list[Turn] = []

        async def prepare(text: str) -> None:
            made.append(await session.prepare(text, attach=["a.md"]))

        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(prepare, f"Q{number}")
        assert len({entry.id for entry in session.entries}) == len(session.entries)
        requests = [entry for entry in session.entries if isinstance(entry, RequestEntry)]
        assert len({entry.before for entry in requests}) == 1
        assert all("AAA" in user_of(turn) for turn in made)
        assert (await world.open(session.id)).state == session.state

    run(body())


# -- what is refused before anything happens -----------------------------------------------------


def test_text_that_no_provider_can_carry_is_refused() -> None:
    async def body() -> None:
        session = await World().open()
        with pytest.raises(InvalidText):
            await session.prepare("\ud800")
        with pytest.raises(InvalidText):
            await session.prepare("Q", attach=[note("a.md", "\ud800")])
        assert len(session.entries) == 1

    run(body())


def test_an_empty_message_without_anything_is_refused() -> None:
    async def body() -> None:
        session = await World().open()
        with pytest.raises(UsageError, match="nothing to send"):
            await session.prepare(" \n")

    run(body())


def test_an_unknown_target_is_refused_and_the_next_turn_is_fine() -> None:
    async def body() -> None:
        session = await World().open()
        with pytest.raises(UnknownTarget, match="fake:small"):
            await session.prepare("Q", target="nobody:nothing")
        assert (await talk(session)).answer == "A"

    run(body())


def test_a_session_that_the_store_does_not_hold_is_begun_under_that_name() -> None:
    async def body() -> None:
        world = World()
        session = await world.open("monday")
        assert session.id == "monday"
        with pytest.raises(JournalError, match="tuesday"):
            await world.store.read("tuesday")

    run(body())
