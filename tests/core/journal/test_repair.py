"""A path with holes gives a state that can be sent."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.strategies import modest, sessions

from lamina.core.journal import State, replay, replay_repaired
from lamina.core.journal.repair import LOST_RESULT
from lamina.core.values.entry import (
    BranchSummaryEntry,
    Entry,
    LeaveEntry,
    MessageEntry,
    ReplyEntry,
    RequestEntry,
    SessionEntry,
    TransformEntry,
)
from lamina.core.values.item import note_id
from lamina.core.values.message import Message, Text, ToolCall, ToolResult
from lamina.core.values.patch import CompactionApply, ItemLay, MessagesCachedReplace, Patch
from lamina.core.values.request import RequestContext
from lamina.core.values.usage import Usage
from lamina.errors import JournalError

HEADER = SessionEntry(id="e0", parent=None, at=0.0, session="s")


def path(*made: Any) -> list[Entry]:
    """Entries one behind the other, from messages and from entries without a place."""
    entries: list[Entry] = [HEADER]
    for number, each in enumerate(made, 1):
        place = {"id": f"e{number}", "parent": f"e{number - 1}", "at": 0.0}
        if isinstance(each, Message):
            entries.append(MessageEntry(message=replace(each, id=f"e{number}"), **place))  # type: ignore[arg-type]
        else:
            entries.append(replace(each, **place))
    return entries


def ask(text: str = "Q") -> Message:
    return Message(role="user", blocks=(Text(text),))


def answer(*calls: str) -> Message:
    made = tuple(ToolCall(id=call, name="find") for call in calls)
    return Message(role="assistant", blocks=made or (Text("A"),))


def results(*calls: str) -> Message:
    made = tuple(ToolResult(call_id=call, name="find", text=f"found {call}") for call in calls)
    return Message(role="tool", blocks=made)


def request() -> RequestEntry:
    return RequestEntry(
        id="", parent=None, at=0.0, target="fake:m", context=RequestContext(target="fake:m"),
        before="e0", base=None, kept=0, digests=(), cached_run=0, tokens=1, cached_tokens=0,
    )  # fmt: skip


def reply(to: str, tokens: int = 1) -> ReplyEntry:
    return ReplyEntry(
        id="", parent=None, at=0.0, request=to, usage=Usage(input=tokens), stop="stop"
    )


def unpaired(state: State) -> list[str]:
    """Calls without a result right behind them, except at the end, and results without a call."""
    waiting: set[str] = set()
    wrong: list[str] = []
    for message in state.envelope.cached:
        given = {block.call_id for block in message.blocks if isinstance(block, ToolResult)}
        wrong += given - waiting
        waiting -= given
        if message.role != "tool":
            wrong += waiting
            waiting = {call.id for call in message.calls}
    return wrong


# -- laws ----------------------------------------------------------------------------------------


@modest
@given(sessions())
def test_a_sound_path_that_pairs_its_calls_is_replayed(entries: list[Entry]) -> None:
    assume(all(e.message.blocks for e in entries if isinstance(e, MessageEntry)))
    mended, damage = replay_repaired(entries)
    assume(not damage)
    assert mended == replay(entries)


def test_a_sound_path_is_replayed_without_a_word() -> None:
    whole = path(ask(), request(), answer("c1", "c2"), reply("e2"), results("c1", "c2"), answer())
    assert replay_repaired(whole) == (replay(whole), [])


@pytest.mark.parametrize("history", [(), (ask(),), (ask(), answer()), (answer(),)])
def test_history_that_was_replaced_while_a_request_was_open_is_no_damage(
    history: tuple[Message, ...],
) -> None:
    replaced = TransformEntry(
        id="", parent=None, at=0.0, transformer="hook",
        patch=Patch(ops=(MessagesCachedReplace(messages=history, reason="told anew"),)),
    )  # fmt: skip
    whole = path(ask(), request(), replaced, answer("c1"), reply("e2"), results("c1"), answer())
    for end in range(1, len(whole) + 1):
        assert replay_repaired(whole[:end]) == (replay(whole[:end]), [])


@modest
@given(sessions(), st.data())
def test_any_entries_lost_leave_a_state(entries: list[Entry], data: st.DataObject) -> None:
    lost = data.draw(st.sets(st.integers(1, len(entries)), max_size=5))
    kept = [entry for index, entry in enumerate(entries) if index not in lost]
    state, _ = replay_repaired(kept)
    assert state.leaf == kept[-1].id


@modest
@given(sessions(), st.data())
def test_going_on_from_a_state_is_replaying_it_all(
    entries: list[Entry], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(1, len(entries)))
    state, first = replay_repaired(entries[:cut])
    after, second = replay_repaired(entries[cut:], state)
    assert (after, first + second) == replay_repaired(entries)


LOOP = path(
    ask(), request(), answer("c1", "c2"), reply("e2"), results("c1", "c2"), request(),
    answer("c3"), reply("e6"), results("c3"), request(), answer(), reply("ea"), ask("more"),
    request(), answer(), reply("ee"),
)  # fmt: skip


@pytest.mark.parametrize("lost", range(1, len(LOOP)))
@pytest.mark.parametrize("also", range(1, len(LOOP)))
def test_calls_and_results_stay_in_pairs_whichever_two_entries_are_lost(
    lost: int, also: int
) -> None:
    kept = [entry for index, entry in enumerate(LOOP) if index not in (lost, also)]
    state, _ = replay_repaired(kept)
    assert unpaired(state) == []


# -- what is said --------------------------------------------------------------------------------


def test_lost_results_are_said_to_the_model_and_to_the_person() -> None:
    state, damage = replay_repaired(path(ask(), answer("c1", "c2"), answer()))
    results = state.envelope.cached[2]
    assert [(b.call_id, b.text, b.is_error) for b in results.blocks if isinstance(b, ToolResult)] \
        == [("c1", LOST_RESULT, True), ("c2", LOST_RESULT, True)]  # fmt: skip
    assert [each.kind for each in damage] == ["lost_results"]
    assert "2 calls before 'e3'" in damage[0].detail


def test_results_of_lost_calls_are_left_out() -> None:
    state, damage = replay_repaired(path(ask(), results("c1"), answer()))
    assert [message.role for message in state.envelope.cached] == ["user", "assistant"]
    assert [each.kind for each in damage] == ["lost_results"]


def test_calls_at_the_end_may_still_get_their_results() -> None:
    state, damage = replay_repaired(path(ask(), answer("c1")))
    assert damage == []
    assert state.envelope.cached[-1].calls


def test_a_reply_to_a_lost_request_is_left_out_and_said() -> None:
    state, damage = replay_repaired(path(ask(), answer(), reply("gone")))
    assert [each.kind for each in damage] == ["not_applicable"]
    assert state.leaf == "e3"


def test_a_patch_of_a_lost_item_is_left_out_and_said() -> None:
    lay = TransformEntry(
        id="", parent=None, at=0.0, transformer="t",
        patch=Patch(ops=(ItemLay(item=note_id("a.md"), version="v"),)),
    )  # fmt: skip
    state, damage = replay_repaired(path(lay, ask()))
    assert [each.kind for each in damage] == ["not_applicable"]
    assert [message.text for message in state.envelope.cached] == ["Q"]


def test_a_compaction_that_no_longer_fits_parts_no_pair() -> None:
    cut = TransformEntry(
        id="", parent=None, at=0.0, transformer="t",
        patch=Patch(ops=(CompactionApply(first_kept=2, summary="So far.", reason="room"),)),
    )  # fmt: skip
    state, damage = replay_repaired(path(ask(), answer("c1"), results("c1"), answer(), cut, ask()))
    assert [each.kind for each in damage] == ["not_applicable"]
    assert unpaired(state) == []


@pytest.mark.parametrize(
    "behind",
    [
        BranchSummaryEntry(id="", parent=None, at=0.0, branch="e1", summary="nothing"),
        TransformEntry(
            id="", parent=None, at=0.0, transformer="t",
            patch=Patch(ops=(CompactionApply(first_kept=1, summary="So.", reason="room"),)),
        ),
        LeaveEntry(id="", parent=None, at=0.0),
    ],
)  # fmt: skip
def test_whatever_stands_behind_calls_whose_results_are_lost_parts_no_pair(behind: Any) -> None:
    state, _ = replay_repaired(path(ask(), answer("c1"), behind, ask("more"), answer()))
    assert unpaired(state) == []


def test_numbers_that_no_provider_would_count_do_not_stop_it() -> None:
    """A line may say anything of any size and prove itself."""
    state, _ = replay_repaired(path(ask(), request(), answer(), reply("e2", 10**400)))
    assert state.leaf == "e4"


def test_a_path_without_a_header_is_an_error() -> None:
    with pytest.raises(JournalError, match="begins with its header, not with 'e1'"):
        replay_repaired(path(ask())[1:])
    with pytest.raises(JournalError, match="nothing to replay"):
        replay_repaired([])
