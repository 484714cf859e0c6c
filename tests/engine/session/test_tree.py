"""Moving about in a session's tree takes nothing away, and copies of it stand for themselves."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.book import FakeBook
from tests.fakes.clock import FakeClock
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import (
    World,
    all_text,
    digests,
    messages_of,
    note,
    placed,
    rule,
    run,
    system_of,
    talk,
    user_of,
    words,
)
from tests.fakes.workspace import FakeWorkspace
from tests.strategies import modest

import lamina
from lamina.adapters.stores.jsonl import JsonlStore
from lamina.adapters.stores.session_file import file_stem
from lamina.core.audit.session_totals import name_of
from lamina.core.audit.verification import verify
from lamina.core.journal import replay
from lamina.core.values.entry import (
    BranchSummaryEntry,
    Entry,
    LabelEntry,
    LeafEntry,
    MessageEntry,
    ReplyEntry,
    RequestEntry,
    TransformEntry,
)
from lamina.core.values.settings import Settings
from lamina.engine.session.session import Session
from lamina.engine.session.tree import labels_of
from lamina.engine.session.turn import Turn
from lamina.errors import JournalGone, TurnStateError, UnknownSession, UsageError

A, B = note("a.md", "AAA"), note("b.md", "BBB")


def ids(session: Session, kind: type[Entry]) -> list[str]:
    return [entry.id for entry in session.entries if isinstance(entry, kind)]


def said(turn: Turn) -> list[tuple[str, object]]:
    """Who said what in a request, the system aside."""
    return [(m["role"], m.get("content")) for m in messages_of(turn) if m["role"] != "system"]


async def answer_calls(turn: Turn, *calls: str) -> Turn:
    turn = await turn.commit(openai_reply(None, calls=[(call, "find") for call in calls]))
    return await turn.resume({call: f"found by {call}" for call in calls})


async def with_a_loop(world: World, **given: Any) -> Session:
    """Three turns; the second runs tools twice."""
    session = await world.open(system="S", **given)
    await talk(session, "Q1", answer="A1")
    turn = await answer_calls(await session.prepare("Q2"), "c1", "c2")
    turn = await answer_calls(turn, "c3")
    await turn.commit(openai_reply("A2"))
    await talk(session, "Q3", answer="A3")
    return session


# -- where one can go ----------------------------------------------------------------------------


def test_going_to_an_answer_goes_on_behind_it() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        first = await talk(session, "Q1", answer="A1")
        await talk(session, "Q2", answer="A2")
        assert first.message is not None
        position = await session.navigate(first.message.id)
        assert position.text == ""
        assert {position.entry, first.message.id} <= {entry.id for entry in session.path}
        assert not session.interrupted
        assert await session.current_turn() is None
        turn = await session.prepare("Q2, in other words")
        assert said(turn) == [
            ("user", "Q1"), ("assistant", "A1"), ("user", "Q2, in other words")
        ]  # fmt: skip
        assert turn.context.agreement.broke is None

    run(body())


def test_going_to_an_answer_goes_on_behind_it_whatever_was_done_while_it_was_awaited() -> None:
    async def body() -> None:
        world = World({"a.md": "AAA"})
        session = await world.open(system="S")
        turn = await session.prepare("Q1")
        await session.pin("a.md")
        await session.rename("A name")
        first = await turn.commit(openai_reply("A1"))
        await talk(session, "Q2", answer="A2")
        assert first.message is not None
        await session.navigate(first.message.id)
        assert not session.interrupted
        assert [m.text for m in session.envelope.cached] == ["Q1", "A1"]
        turn = await session.prepare("Q2b")
        assert [role for role, _ in said(turn)] == ["user", "assistant", "user"]
        assert "AAA" in all_text(turn)

    run(body())


def test_going_to_the_end_of_a_turn_goes_on_behind_it() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        await talk(session, "Q1", answer="A1")
        end = session.state.leaf
        await talk(session, "Q2", answer="A2")
        await session.navigate(end)
        assert not session.interrupted
        turn = await session.prepare("Q2b")
        assert said(turn) == [("user", "Q1"), ("assistant", "A1"), ("user", "Q2b")]

    run(body())


def test_going_to_a_question_goes_in_front_of_it_and_gives_its_text_back() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        await talk(session, "Q1", A, answer="A1")
        asked = await talk(session, "Q2\nin two lines ", B, answer="A2")
        before = asked.request()
        await talk(session, "Q3", answer="A3")
        question = ids(session, MessageEntry)[2]
        position = await session.navigate(question)
        assert position.text == "Q2\nin two lines "
        assert position.entry == session.path[-2].id
        assert question not in [entry.id for entry in session.path]
        assert [m.text for m in session.envelope.cached] == ["Q1", "A1"]
        turn = await session.prepare(position.text, attach=[B])
        assert turn.request() == before

    run(body())


@pytest.mark.parametrize("promotion", ["lazy", "eager"])
def test_asking_the_first_question_anew_sends_the_same_bytes(promotion: str) -> None:
    async def body() -> None:
        session = await World().open(
            system="S", promotion=promotion, always=[rule("tone", "Be brief.")]
        )
        first = await talk(session, "Q1", A, B)
        await talk(session, "Q2", A)
        position = await session.navigate(ids(session, MessageEntry)[0])
        again = await session.prepare(position.text, attach=[A, B])
        assert again.request() == first.request()
        assert placed(again) == placed(first)

    run(body())


def test_going_to_a_transform_goes_on_with_what_it_changed() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        await talk(session, "Q1", answer="A1")
        await session.set_system("mood", "Be kind.", reason="kindness")
        await talk(session, "Q2", answer="A2")
        await session.set_system("mood", "Be stern.", reason="sternness")
        await talk(session, "Q3", answer="A3")
        kind, stern = ids(session, TransformEntry)
        await session.navigate(kind)
        turn = await session.prepare("Q")
        assert "Be kind." in system_of(turn)
        assert said(turn) == [("user", "Q1"), ("assistant", "A1"), ("user", "Q")]
        await session.navigate(stern)
        assert "Be stern." in system_of(await session.prepare("Q"))

    run(body())


def test_going_to_the_header_begins_anew() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        await talk(session, "Q1", A)
        await session.set_system("mood", "Be kind.", reason="kindness")
        await session.update_settings(window=5_000)
        await session.navigate("000000")
        assert session.settings.window is None
        turn = await session.prepare("Q")
        assert system_of(turn) == "S"
        assert said(turn) == [("user", "Q")]
        assert turn.context.agreement.first

    run(body())


def test_going_to_an_answer_that_calls_tools_waits_for_their_results_again() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        called = await (await session.prepare("Q")).commit(
            openai_reply(None, calls=[("c1", "find")])
        )
        turn = await called.resume({"c1": "found"})
        await turn.commit(openai_reply("A"))
        assert called.message is not None
        await session.navigate(called.message.id)
        with pytest.raises(TurnStateError, match="find"):
            await session.prepare("something else")
        current = await session.current_turn()
        assert current is not None
        assert [call.id for call in current.pending_calls] == ["c1"]
        other = await current.resume({"c1": "found something else"})
        assert said(other)[-1] == ("tool", "found something else")
        assert [role for role, _ in said(other)] == ["user", "assistant", "tool"]

    run(body())


def test_going_to_the_reply_that_calls_tools_waits_for_their_results_again() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        turn = await answer_calls(await session.prepare("Q"), "c1")
        await turn.commit(openai_reply("A"))
        await session.navigate(ids(session, ReplyEntry)[0])
        current = await session.current_turn()
        assert current is not None
        other = await current.resume({"c1": "found something else"})
        assert said(other)[-1] == ("tool", "found something else")
        await other.commit(openai_reply("B"))
        assert [m.text for m in session.envelope.cached][-1] == "B"

    run(body())


def test_what_came_of_a_branch_never_stands_between_a_call_and_its_result() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(system="S")
        turn = await answer_calls(await session.prepare("Q"), "c1")
        await turn.commit(openai_reply("A"))
        before = session.entries
        with pytest.raises(UsageError, match="without a summary"):
            await session.navigate(ids(session, ReplyEntry)[0], summary="It led nowhere.")
        assert session.entries == before
        assert (await world.open(session.id)).state == session.state

    run(body())


def test_going_to_results_leaves_the_rest_of_their_turn() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        turn = await answer_calls(await session.prepare("Q"), "c1")
        await turn.commit(openai_reply("A"))
        results = ids(session, MessageEntry)[2]
        await session.navigate(results)
        turn = await session.prepare("Q2")
        assert [role for role, _ in said(turn)] == ["user", "assistant", "tool", "user"]
        await turn.commit(openai_reply("A2"))
        assert session.state.turn.start is None

    run(body())


def test_going_to_a_request_that_was_answered_goes_on_behind_its_answer() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        sent = await talk(session, "Q1", answer="A1")
        await talk(session, "Q2")
        await session.navigate(sent.id)
        assert await session.current_turn() is None
        assert [m.text for m in session.envelope.cached] == ["Q1", "A1"]

    run(body())


def test_going_to_a_request_that_was_never_answered_can_send_it_again() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        sent = await session.prepare("Q", attach=[A])
        await talk(session, "something else", B)
        await session.navigate(sent.id)
        current = await session.current_turn()
        assert current is not None
        assert current.request() == sent.request()
        await current.commit(openai_reply("another answer"))
        assert [m.text for m in session.envelope.cached] == ["Q", "another answer"]

    run(body())


async def _ask_or_resume(session: Session) -> Turn:
    """The next request, whatever the session waits for."""
    try:
        return await session.prepare("and now")
    except TurnStateError:
        current = await session.current_turn()
        assert current is not None
        return await current.resume(
            {call.id: f"found by {call.id}" for call in current.pending_calls}
        )


def _is_beginning(turn: Turn, whole: Turn) -> bool:
    """Whether the request, less what was asked in it, is a beginning of the whole conversation."""
    messages = messages_of(turn)
    if messages[-1].get("content") == "and now":
        messages = messages[:-1]
    return messages == messages_of(whole)[: len(messages)]


def test_wherever_one_goes_the_model_sees_a_beginning_of_the_conversation() -> None:
    async def body() -> None:
        world = World()
        session = await with_a_loop(world)
        whole = await session.prepare("Q4")
        wrong = []
        for entry in session.entries:
            await session.navigate(entry.id)
            turn = await _ask_or_resume(session)
            if not _is_beginning(turn, whole):
                wrong.append((type(entry).__name__, entry.id, said(turn)))
        assert not wrong
        assert verify(await world.store.read(session.id), world.book).sound

    run(body())


def test_wherever_one_forks_the_model_sees_a_beginning_of_the_conversation() -> None:
    async def body() -> None:
        world = World()
        session = await with_a_loop(world)
        whole = await session.prepare("Q4")
        wrong = []
        for entry in session.entries:
            fork = await session.fork(f"fork at {entry.id}", at=entry.id)
            turn = await _ask_or_resume(fork)
            verdict = verify(await world.store.read(fork.id), world.book)
            if not (_is_beginning(turn, whole) and verdict.sound):
                wrong.append((type(entry).__name__, entry.id, said(turn), verdict.damage))
        assert not wrong

    run(body())


def test_forking_at_an_answer_goes_on_behind_it() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        first = await talk(session, "Q1", answer="A1")
        await talk(session, "Q2", answer="A2")
        assert first.message is not None
        fork = await session.fork("fork", at=first.message.id)
        assert not fork.interrupted
        turn = await fork.prepare("Q2b")
        assert said(turn) == [("user", "Q1"), ("assistant", "A1"), ("user", "Q2b")]

    run(body())


def test_a_fork_at_an_answer_keeps_its_reply_whatever_was_noted_while_it_was_awaited() -> None:
    """Found by the laws of issue 15, listed in its closing note."""

    async def body() -> None:
        world = World({"a.md": "AAA"})
        session = await world.open(system="S")
        turn = await session.prepare("Q1")
        await session.add_custom_entry(
            "lamina.problem", {"where": "provider", "problem": "no line"}
        )
        await session.pin("a.md")
        answered = await turn.commit(openai_reply("A1"))
        assert answered.message is not None
        fork = await session.fork("fork", at=answered.message.id)
        assert isinstance(fork.path[-1], ReplyEntry)
        assert fork.state.requests.sent is not None
        again = await world.open("fork")
        assert again.damage == ()
        turn = await again.prepare("Q2")
        assert said(turn)[:2] == [("user", "Q1"), ("assistant", "A1")]
        assert (await session.navigate(answered.message.id)).entry == fork.path[-1].id

    run(body())


def test_an_entry_is_found_without_the_zeros_in_front() -> None:
    async def body() -> None:
        session = await with_a_loop(World())
        assert (await session.navigate("4")).entry == "000004"
        assert (await session.navigate("0")).entry == "000000"

    run(body())


@pytest.mark.parametrize("where", ["nowhere", "ffffff", "-1", "1 ", "0x1", "00_01", "é", ""])
def test_going_to_an_entry_that_is_not_there_is_refused_and_writes_nothing(where: str) -> None:
    async def body() -> None:
        session = await with_a_loop(World())
        state, entries = session.state, session.entries
        with pytest.raises(UnknownSession) as caught:
            await session.navigate(where)
        assert repr(where) in str(caught.value)
        assert repr(session.id) in str(caught.value)
        with pytest.raises(UnknownSession):
            await session.label(where, "here")
        assert session.state is state
        assert session.entries == entries

    run(body())


# -- what stays ----------------------------------------------------------------------------------


def test_the_chosen_position_survives_a_restart() -> None:
    async def body() -> None:
        world = World()
        session = await with_a_loop(world)
        for entry in (ids(session, ReplyEntry)[0], ids(session, ReplyEntry)[-1], "000000"):
            await session.navigate(entry)
            again = await world.open(session.id)
            assert again.state == session.state
            assert again.path == session.path
            assert again.path[-1].parent == entry

    run(body())


def test_asking_after_going_back_gives_a_sibling() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(system="S")
        await talk(session, "Q1", answer="A1")
        fork_point = session.state.leaf
        await talk(session, "left", answer="L")
        left = session.path
        await session.navigate(fork_point)
        await talk(session, "right", answer="R")
        right = session.path
        at = [entry.id for entry in left].index(fork_point)
        assert left[: at + 1] == right[: at + 1]
        assert left[at + 1].parent == right[at + 1].parent == fork_point
        assert left[at + 1].id != right[at + 1].id
        assert [m.text for m in session.envelope.cached] == ["Q1", "A1", "right", "R"]
        both = {entry.id for entry in (*left, *right)}
        assert both == {entry.id for entry in session.entries}
        again = await world.open(session.id)
        assert "left" not in all_text(await again.prepare("Q"))

    run(body())


def test_only_the_active_path_counts() -> None:
    """Pins, settings, items and system of a branch that was left are not there on another."""

    async def body() -> None:
        world = World({"a.md": "AAA"})
        session = await world.open(system="S")
        await talk(session, "Q1")
        start = session.state.leaf
        await session.pin("a.md")
        await session.update_settings(window=4_000)
        await session.set_system("mood", "Be kind.", reason="kindness")
        await talk(session, "Q2", B)
        await session.navigate(start)
        again = await world.open(session.id)
        for each in (session, again):
            assert each.state.library.pinned == {}
            assert each.settings.window is None
            assert len(each.state.library.items) == 0
            assert [part.name for part in each.envelope.system] == ["system"]
            assert each.state.library.standing == {}
        turn = await again.prepare("Q2b", attach=[B])
        assert placed(turn) == {"b.md": "message"}
        assert "AAA" not in all_text(turn)

    run(body())


def test_what_came_of_a_branch_is_told_to_the_model_on_the_next() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(system="S")
        await talk(session, "Q1", answer="A1")
        start = session.state.leaf
        await talk(session, "Q2", answer="A2")
        left = session.state.leaf
        await session.navigate(start, summary="  The second way is closed.\n")
        (entry,) = (e for e in session.entries if isinstance(e, BranchSummaryEntry))
        assert (entry.branch, entry.summary) == (left, "The second way is closed.")
        for _ in range(2):
            turn = await (await world.open(session.id)).prepare("Q3")
            assert "The second way is closed." in all_text(turn)
            assert "A2" not in all_text(turn)
            assert turn.context.agreement.broke is None
            assert user_of(turn).endswith("Q3")

    run(body())


def test_a_summary_of_nothing_but_space_is_none() -> None:
    async def body() -> None:
        session = await with_a_loop(World())
        await session.navigate("000000", summary=" \n ")
        assert ids(session, BranchSummaryEntry) == []
        assert isinstance(session.path[-1], LeafEntry)

    run(body())


def test_a_summary_told_while_a_request_is_open_is_told_to_the_next_one() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        turn = await session.prepare("Q1")
        await session.navigate(turn.id, summary="Somewhere else was nothing.")
        other = await session.prepare("Q1b")
        assert "Somewhere else was nothing." in all_text(other)
        assert "Q1\n" not in all_text(other)

    run(body())


@modest
@given(st.lists(st.tuples(st.integers(0, 99), st.sampled_from(["", "sum"])), max_size=5))
def test_going_about_never_takes_an_entry_away(moves: list[tuple[int, str]]) -> None:
    async def body() -> None:
        world = World()
        session = await with_a_loop(world)
        for which, summary in moves:
            before = session.entries
            target = before[which % len(before)]
            try:
                await session.navigate(target.id, summary=summary)
            except UsageError:
                assert summary
                assert session.entries == before
            assert session.entries[: len(before)] == before
            assert session.state == replay(session.path)
            assert (await world.open(session.id)).state == session.state

    run(body())


# -- labels and names ----------------------------------------------------------------------------


def test_labels_are_set_changed_and_removed_and_survive() -> None:
    async def body() -> None:
        world = World()
        session = await with_a_loop(world)
        one, two = ids(session, ReplyEntry)[:2]
        await session.label(one, " good ")
        await session.label(two, "bad")
        assert labels_of(session.entries) == {one: "good", two: "bad"}
        await session.label(one, "better")
        await session.label(two, "  ")
        for each in (session, await world.open(session.id)):
            assert labels_of(each.entries) == {one: "better"}

    run(body())


def test_a_label_changes_nothing_of_what_is_sent() -> None:
    async def body() -> None:
        world = World()
        plain, labelled = await with_a_loop(world), await with_a_loop(world)
        await labelled.label(labelled.state.leaf, "here")
        await labelled.rename("A name")
        assert digests(await labelled.prepare("Q")) == digests(await plain.prepare("Q"))

    run(body())


def test_an_entry_of_another_branch_and_a_label_itself_can_be_labelled() -> None:
    async def body() -> None:
        world = World()
        session = await with_a_loop(world)
        left = session.state.leaf
        await session.navigate("000000")
        await session.label(left, "the long way")
        label = ids(session, LabelEntry)[0]
        await session.label(label, "a label")
        await session.label("000000", "the start")
        assert labels_of((await world.open(session.id)).entries) == {
            left: "the long way", label: "a label", "000000": "the start"
        }  # fmt: skip

    run(body())


def test_a_label_of_an_entry_that_a_fork_does_not_have_is_no_harm_there() -> None:
    async def body() -> None:
        world = World()
        session = await with_a_loop(world)
        left = session.state.leaf
        await session.navigate("000000")
        await session.label(left, "elsewhere")
        fork = await session.fork("fork")
        assert left not in {entry.id for entry in fork.entries}
        turn = await fork.prepare("Q")
        assert said(turn) == [("user", "Q")]
        with pytest.raises(UnknownSession):
            await fork.navigate(left)

    run(body())


def test_a_label_while_a_request_is_open_survives_another_question() -> None:
    async def body() -> None:
        world = World()
        session = await world.open()
        turn = await session.prepare("Q1")
        await session.label(turn.id, "open")
        await session.prepare("Q2")
        assert labels_of((await world.open(session.id)).entries)[turn.id] == "open"

    run(body())


def test_a_session_is_called_by_its_first_question_until_it_has_a_name() -> None:
    async def body() -> None:
        world = World()
        session = await world.open()
        assert name_of(session.entries) == ""
        await talk(session, f"\n  {words(30)}\nsecond line")
        assert name_of(session.entries) == f"{words(30)[:79]}…"
        await session.rename("  Notes of May ")
        assert name_of(session.entries) == "Notes of May"
        await session.rename("Notes of June")
        assert name_of((await world.open(session.id)).entries) == "Notes of June"

    run(body())


# -- forks ---------------------------------------------------------------------------------------


def test_a_fork_goes_on_from_the_same_state_and_leaves_the_original_alone() -> None:
    async def body() -> None:
        world = World()
        session = await with_a_loop(world)
        state, entries = session.state, session.entries
        fork = await session.fork("fork")
        assert fork.id == "fork"
        assert fork.state.session.forked_from == session.id
        assert fork.path[1:] == session.path[1:]
        await talk(fork, "only in the fork", answer="F")
        assert session.state is state
        assert session.entries == entries
        again = await world.open(session.id)
        assert again.state == state
        assert "only in the fork" not in all_text(await again.prepare("Q"))
        assert "only in the fork" in all_text(await (await world.open("fork")).prepare("Q"))

    run(body())


@pytest.mark.parametrize("promotion", ["lazy", "eager"])
def test_a_fork_begins_with_the_same_bytes_and_can_be_verified(promotion: str) -> None:
    async def body() -> None:
        world = World()
        session = await world.open(
            system="S", promotion=promotion, always=[rule("tone", "Be brief.")]
        )
        await talk(session, "Q1", A)
        await talk(session, "Q2", A, B)
        middle = session.state.leaf
        third = await talk(session, "Q3", B)
        fork = await session.fork("fork", at=middle)
        turn = await fork.prepare("Q3", attach=[B])
        wire, before = turn.request(), third.request()
        assert wire["messages"] == before["messages"]
        assert digests(turn) == digests(third)
        assert turn.context.agreement == third.context.agreement
        await turn.commit(openai_reply("A3"))
        verdict = verify(await world.store.read("fork"), world.book)
        assert verdict.sound, verdict
        assert len(verdict.checked) == 3

    run(body())


def test_a_fork_keeps_ids_and_holds_only_its_path() -> None:
    async def body() -> None:
        world = World()
        session = await with_a_loop(world)
        first = ids(session, ReplyEntry)[0]
        await session.navigate(first)
        await talk(session, "another way")
        fork = await session.fork("fork")
        assert [entry.id for entry in fork.entries] == [entry.id for entry in session.path]
        for entry in fork.entries:
            if isinstance(entry, RequestEntry) and entry.base:
                assert entry.base in {entry.id for entry in fork.entries}
        again = await world.open("fork")
        await talk(again, "and on")
        assert len({entry.id for entry in again.entries}) == len(again.entries)

    run(body())


def test_forking_onto_a_session_that_is_there_is_refused() -> None:
    async def body() -> None:
        world = World()
        session, other = await with_a_loop(world), await world.open("other")
        await talk(other, "mine")
        before = other.entries
        for name in ("other", session.id):
            with pytest.raises(UsageError, match=f"{name}.*already"):
                await session.fork(name)
            with pytest.raises(UsageError, match=f"{name}.*already"):
                await session.save_as(name)
        assert (await world.open("other")).entries == before

    run(body())


def test_two_forks_in_a_row_need_no_names() -> None:
    async def body() -> None:
        session = await with_a_loop(World())
        one, two = await session.fork(), await session.fork()
        assert len({session.id, one.id, two.id}) == 3

    run(body())


def test_forking_at_an_entry_that_is_not_there_is_refused() -> None:
    async def body() -> None:
        world = World()
        session = await with_a_loop(world)
        with pytest.raises(UnknownSession, match="nowhere"):
            await session.fork("fork", at="nowhere")
        assert not await world.store.has("fork")

    run(body())


def test_a_fork_of_a_fork_says_where_it_is_from() -> None:
    async def body() -> None:
        session = await with_a_loop(World())
        one = await session.fork("one")
        two = await one.fork("two")
        assert [each.state.session.forked_from for each in (session, one, two)] == [
            "", session.id, "one"
        ]  # fmt: skip
        assert replay(two.path).envelope == session.envelope

    run(body())


# -- files ---------------------------------------------------------------------------------------


async def on_disk(folder: Path, session: str | None = None, **given: Any) -> Session:
    store = JsonlStore(folder, wait=0.0)
    if session is None or not await store.has(session):
        given = {"settings": Settings(target="fake:small"), "system": "S"} | given
    return await lamina.open_session(
        session,
        store=store,
        book=FakeBook(),
        clock=FakeClock(),
        workspace=FakeWorkspace(),
        **given,
    )


def test_a_session_whose_file_was_deleted_is_saved_whole_under_another_name(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        async with await on_disk(tmp_path, "gone") as session:
            await talk(session, "Q1", A, answer="A1")
            start = session.state.leaf
            await talk(session, "Q2", answer="A2")
            await session.navigate(start)
            await session.label(start, "here")
            await talk(session, "Q2b", B, answer="A2b")
            JsonlStore(tmp_path).path_of("gone").unlink()
            with pytest.raises(JournalGone, match="save_as"):
                await session.prepare("Q3")
            saved = await session.save_as("kept")
            entries, state = session.entries, session.state
        assert saved.entries[1:] == entries[1:]
        assert saved.envelope == state.envelope
        assert labels_of(saved.entries) == {start: "here"}
        await talk(saved, "Q3", answer="A3")
        await saved.close()
        again = await on_disk(tmp_path, "kept")
        assert [m.text for m in again.envelope.cached] == ["Q1", "A1", "Q2b", "A2b", "Q3", "A3"]
        await again.close()
        assert verify(await JsonlStore(tmp_path).read("kept"), FakeBook()).sound
        assert not JsonlStore(tmp_path).path_of("gone").exists()

    run(body())


def test_a_fork_is_a_file_of_its_own_that_the_original_does_not_need(tmp_path: Path) -> None:
    async def body() -> None:
        async with await on_disk(tmp_path, "one") as session:
            await talk(session, "Q1", A)
            before = JsonlStore(tmp_path).path_of("one").read_bytes()
            fork = await session.fork("two")
            await talk(fork, "Q2", A)
            await fork.close()
            assert JsonlStore(tmp_path).path_of("one").read_bytes() == before
        JsonlStore(tmp_path).path_of("one").unlink()
        async with await on_disk(tmp_path, "two") as again:
            assert again.damage == ()
            assert placed(await again.prepare("Q3", attach=[A])) == {"a.md": "above"}

    run(body())


HOSTILE = [
    "../x", ".", "..", "a/b", "a\\b", "CON", "x" * 300, "é" * 300, "日本語", "\0", "a\nb", "a...",
    "trailing ", " leading", "%2e", "~", "A", "a", "-rf", "*?<>|:\"",
]  # fmt: skip


def test_sessions_with_hostile_ids_stay_apart_and_inside_their_folder(tmp_path: Path) -> None:
    async def body() -> None:
        home = tmp_path / "deep" / "home"
        for each in HOSTILE:
            async with await on_disk(home, each) as session:
                assert session.id == each
                await talk(session, f"I am {each!r}")
                await (await session.fork(f"{each}/fork")).close()
        for each in HOSTILE:
            async with await on_disk(home, each) as session:
                assert [m.text for m in session.envelope.cached] == [f"I am {each!r}", "A"]
                assert session.damage == ()
        assert sorted(await JsonlStore(home).sessions()) == sorted(
            [*HOSTILE, *(f"{each}/fork" for each in HOSTILE)]
        )

    run(body())
    assert [each.name for each in tmp_path.iterdir()] == ["deep"]
    assert {each.name for each in (tmp_path / "deep" / "home").iterdir()} <= {"sessions", "blobs"}


def test_the_empty_id_stands_for_a_new_session_each_time(tmp_path: Path) -> None:
    async def body() -> None:
        async with await on_disk(tmp_path, "") as one, await on_disk(tmp_path, "") as two:
            assert one.id
            assert two.id
            assert one.id != two.id

    run(body())


def test_no_session_has_a_file_name_that_windows_keeps_for_itself() -> None:
    taken = {"con", "prn", "aux", "nul", "com1", "lpt1"}
    ids = ("CON", "PRN", "AUX", "NUL", "COM1", "LPT1", "con", "Nul", "aux.txt")
    assert [each for each in ids if file_stem(each).partition(".")[0].casefold() in taken] == []


def test_ids_that_differ_by_case_have_names_that_differ_where_case_does_not_count() -> None:
    twins = (("A", "a"), ("Notes", "notes"), ("%e9", "%E9"))
    stems = [(file_stem(one).casefold(), file_stem(two).casefold()) for one, two in twins]
    assert [pair for pair in stems if len(set(pair)) == 1] == []


def test_a_session_that_is_not_there_is_named_with_the_place_it_was_looked_for(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        memory: Sequence[Any] = (World().store, JsonlStore(tmp_path))
        for store in memory:
            for act in (store.open, store.read):
                with pytest.raises(UnknownSession, match="'nobody'") as caught:
                    await act("nobody")
                assert caught.value.code == "unknown_session"
        with pytest.raises(UnknownSession, match=str(tmp_path)):
            await JsonlStore(tmp_path).open("nobody")

    run(body())


def test_a_fork_and_a_copy_of_a_branched_session_are_sound_on_disk(tmp_path: Path) -> None:
    """The ids of other branches are missing in a fork; that is no damage."""

    async def body() -> None:
        store = JsonlStore(tmp_path)
        async with await on_disk(tmp_path, "one") as session:
            await talk(session, "Q1", A)
            start = session.state.leaf
            await talk(session, "left")
            await session.navigate(start)
            await talk(session, "right", B)
            for copy in (await session.fork("fork"), await session.save_as("copy")):
                assert copy.damage == ()
                await talk(copy, "and on", A)
                await copy.close()
        for name in ("one", "fork", "copy"):
            journal = await store.read(name)
            assert journal.damage == (), name
            assert verify(journal, FakeBook()).sound, name

    run(body())
