"""The builder, the order of entries, and the pairing of calls and results."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.adapters.formats.reader import is_paired, whats
from tests.strategies import thorough

from lamina.adapters.formats.call_pairs import pair_calls, results_of
from lamina.adapters.formats.session_builder import SessionBuilder, order_by_parent
from lamina.core.journal import path_to, replay
from lamina.core.values.entry import (
    CustomEntry,
    Entry,
    EntryBase,
    LeafEntry,
    LeaveEntry,
    MessageEntry,
    TransformEntry,
)
from lamina.core.values.message import Message, Text, ToolCall, ToolResult
from lamina.core.values.patch import OptionsSet, Patch, SystemPartSet


def message(text: str) -> Message:
    return Message(role="user", blocks=(Text(text),))


def builder() -> SessionBuilder:
    return SessionBuilder(session="s", source="test", at=1.0)


def add(
    build: SessionBuilder, own: str, parent: str | None, kind: type[EntryBase], **fields: Any
) -> str:
    place = build.find_parent(own, parent, fields.get("line"))
    return build.put(place, kind, foreign_id=own, **fields)


def test_ids_count_up_and_a_message_has_the_id_of_its_entry() -> None:
    build = builder()
    for number in range(20):
        add(build, f"f{number}", f"f{number - 1}" if number else None, MessageEntry, at=2.0,
                  message=message("x"))  # fmt: skip
    session = build.finish()
    assert [entry.id for entry in session.entries][-2:] == ["000014", "000015"]
    last = session.entries[-2]
    assert isinstance(last, MessageEntry)
    assert last.message.id == last.id


def test_branches_share_what_stands_before_them() -> None:
    build = builder()
    add(build, "a", None, MessageEntry, at=None, message=message("a"))
    add(build, "b", "a", MessageEntry, at=None, message=message("b"))
    add(build, "c", "a", MessageEntry, at=None, message=message("c"))
    session = build.finish(build.find("b"))
    entries = {entry.id: entry for entry in session.entries}
    assert isinstance(session.entries[-1], LeaveEntry)
    assert session.leaf == session.entries[-1].id
    state = replay(path_to(session.entries[-1].id, entries))
    assert [message.text for message in state.envelope.cached] == ["a", "b"]


def test_a_leaf_that_is_not_the_last_entry_is_named_by_one() -> None:
    build = builder()
    add(build, "a", None, MessageEntry, at=None, message=message("a"))
    session = build.finish(build.root)
    last = session.entries[-1]
    assert isinstance(last, LeafEntry)
    assert last.parent == session.leaf == build.root


def test_no_turn_is_under_way_at_the_end() -> None:
    build = builder()
    add(build, "a", None, MessageEntry, at=None, message=message("a"))
    state = replay(build.finish().entries)
    assert state.turn.start is None
    assert len(state.envelope.cached) == 1


def test_an_entry_that_does_not_fold_is_kept_as_data() -> None:
    build = builder()
    bad_patch = Patch(ops=(SystemPartSet(name="library", text="x", reason="r"),))
    add(build, "p", None, TransformEntry, at=None, line=3, raw={"was": 1}, transformer="t",
              patch=bad_patch)  # fmt: skip
    wrong = Patch(ops=(OptionsSet(temperature=-1.0),))
    add(build, "q", "p", TransformEntry, at=None, line=4, raw={"was": 2}, transformer="t",
              patch=wrong)  # fmt: skip
    session = build.finish()
    assert [(p.line, p.what) for p in session.problems] == [(3, "refused"), (4, "refused")]
    data_entries = [entry for entry in session.entries if isinstance(entry, CustomEntry)]
    assert [(entry.kind, entry.data) for entry in data_entries] == [
        ("test.unreadable", {"was": 1}), ("test.unreadable", {"was": 2}),
    ]  # fmt: skip


def test_what_is_put_in_line_stands_between_a_parent_and_its_later_children() -> None:
    build = builder()
    first = add(build, "a", None, MessageEntry, at=None, message=message("a"))
    note = build.keep_data("note", 1)
    second = add(build, "b", "a", MessageEntry, at=None, message=message("b"))
    assert build.path(second) == [second, note, first, build.root]
    assert whats(build.finish()) == []


parents = st.lists(st.none() | st.integers(0, 8), max_size=9)


@thorough
@given(parents)
def test_every_record_is_ordered_once_and_behind_its_parent(
    given_parents: list[int | None],
) -> None:
    def ids(index: int) -> tuple[str, str | None]:
        parent = given_parents[index]
        return str(index), None if parent is None else str(parent)

    order = order_by_parent(range(len(given_parents)), ids)
    assert sorted(record for record, _ in order) == list(range(len(given_parents)))
    earlier: set[int] = set()
    for record, is_cut in order:
        parent = given_parents[record]
        exists = parent is not None and parent < len(given_parents)
        assert is_cut == (exists and parent not in earlier)
        earlier.add(record)


@given(st.permutations(range(6)))
def test_without_forward_references_the_order_is_that_of_the_file(order: list[int]) -> None:
    records = sorted(order)
    new_order = order_by_parent(records, lambda n: (str(n), str(n - 1) if n else None))
    assert new_order == [(n, False) for n in records]


calls = st.sampled_from(["c1", "c2", "c3"])
some = st.lists(calls, max_size=3, unique=True)
messages = st.one_of(
    st.just(message("hi")),
    some.map(lambda ids: Message(
        role="assistant", blocks=tuple(ToolCall(id=id_, name="f") for id_ in ids))),
    st.lists(calls, min_size=1, max_size=3).map(lambda ids: Message(
        role="tool", blocks=tuple(ToolResult(call_id=id_, name="", text="x") for id_ in ids))),
)  # fmt: skip


@thorough
@given(st.lists(messages, max_size=8))
def test_any_messages_can_be_paired(draws: list[Message]) -> None:
    pairs, repairs = pair_calls([*draws, message("end")])
    assert is_paired(list(pairs))
    if is_paired([*draws, message("end")]):
        assert not repairs
        assert len(pairs) == len(draws) + 1


NAMES = ("c1", "c2", "c3", "c4")


def result(call: str) -> Message:
    return Message(role="tool", blocks=(ToolResult(call_id=call, name="f", text=call.upper()),))


def calling(*calls: str) -> Message:
    return Message(role="assistant", blocks=tuple(ToolCall(id=call, name="f") for call in calls))


def results_in(entries: tuple[Entry, ...]) -> list[str]:
    history = replay(entries).envelope.cached
    return [r.call_id for m in history for r in results_of(m)]


@given(st.permutations(NAMES), st.lists(st.booleans(), min_size=4, max_size=4))
def test_results_of_parallel_calls_stand_in_the_order_of_the_calls(
    done: list[str], with_data: list[bool]
) -> None:
    build = builder()
    add(build, "q", None, MessageEntry, at=1.0, message=message("go"))
    add(build, "calls", "q", MessageEntry, at=2.0, message=calling(*NAMES))
    before = "calls"
    for number, (call, beside) in enumerate(zip(done, with_data, strict=True)):
        if beside:
            build.keep_data("k", call, parent=build.find(before), foreign_id=f"d-{call}")
            before = f"d-{call}"
        add(build, call, before, MessageEntry, at=3.0 + number, line=number, message=result(call),
            rest={"id": call})  # fmt: skip
        before = call
    add(build, "end", before, MessageEntry, at=9.0, message=message("and now"))
    session = build.finish()
    assert results_in(session.entries) == list(NAMES)
    # What belongs to a result went along with it, and lines lead to where it is.
    entries = {entry.id: entry for entry in session.entries}
    for number, place in session.lines:
        entry = entries[place]
        assert isinstance(entry, MessageEntry)
        assert entry.message.id == entry.id
        assert entry.extra["test"] == {"id": done[number]}
        assert entry.at == 3.0 + number
        assert results_of(entry.message)[0].call_id == done[number]


def test_results_of_one_message_stand_in_the_order_of_the_calls() -> None:
    both = Message(role="tool", blocks=(*result("c2").blocks, *result("c1").blocks))
    build = builder()
    for given_message in (message("go"), calling("c1", "c2"), both, message("now")):
        build.put(build.last, MessageEntry, at=None, message=given_message)
    assert results_in(build.finish().entries) == ["c1", "c2"]
    pairs, _ = pair_calls([message("go"), calling("c1", "c2"), both, message("now")])
    assert [r.call_id for m in pairs for r in results_of(m)] == ["c1", "c2"]


def test_results_stay_where_a_branch_goes_on_from_between_them() -> None:
    build = builder()
    add(build, "q", None, MessageEntry, at=1.0, message=message("go"))
    add(build, "calls", "q", MessageEntry, at=2.0, message=calling("c1", "c2"))
    add(build, "second", "calls", MessageEntry, at=3.0, message=result("c2"))
    add(build, "first", "second", MessageEntry, at=4.0, message=result("c1"))
    add(build, "again", "second", MessageEntry, at=5.0, message=result("c1"))
    session = build.finish(build.find("first"))
    entries = {entry.id: entry for entry in session.entries}
    for leaf in ("first", "again"):
        place = build.find(leaf)
        assert place is not None
        assert is_paired(list(replay(path_to(place, entries)).envelope.cached))


@thorough
@given(st.lists(messages, max_size=8))
def test_any_messages_can_be_built_into_a_path_that_is_paired(draws: list[Message]) -> None:
    build = builder()
    for drawn_message in draws:
        build.put(build.last, MessageEntry, at=None, message=drawn_message)
    session = build.finish()
    history = replay(session.entries).envelope.cached
    assert is_paired(list(history))
