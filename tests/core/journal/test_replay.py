"""The state of a session is a pure fold over one path of its tree."""

import copy
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.strategies import entries_after, header, modest, opening, sessions, states_along

from lamina.core.codec import canonical_bytes, decode_entry
from lamina.core.journal import (
    LaidVersions,
    MovedParts,
    RecordedReason,
    State,
    awaits_results,
    fold_entry,
    path_to,
    replay,
)
from lamina.core.values.collections import Chain, FrozenMap
from lamina.core.values.entry import (
    Entry,
    EphemeralEntry,
    ForgetEntry,
    ItemEntry,
    MessageEntry,
    PinEntry,
    ReplyEntry,
    RequestEntry,
    SettingsEntry,
    TransformEntry,
)
from lamina.core.values.envelope import Envelope
from lamina.core.values.item import Item, ItemId, note_id
from lamina.core.values.message import Context, Form, Message, Text, ToolCall, ToolText, Use
from lamina.core.values.patch import LibraryConsolidate, OptionsSet, Patch, PatchOp, SystemPartSet
from lamina.core.values.request import RequestContext
from lamina.core.values.settings import Settings
from lamina.core.values.usage import Usage
from lamina.errors import InvalidPatch, JournalError

A = note_id("a.md")


def frozen_copy(state: State) -> State:
    """The state as it is now, safe from whoever shares its tables."""
    envelope = replace(state.envelope, cached=Chain(state.envelope.cached))
    library = replace(state.library, items=copy.copy(state.library.items))
    return replace(state, library=library, envelope=envelope)


def without_items(state: State) -> State:
    return replace(state, library=replace(state.library, items=FrozenMap()))


# -- laws ----------------------------------------------------------------------------------------


@modest
@given(sessions(), st.data())
def test_replaying_a_prefix_and_then_the_rest_is_replaying_it_all(
    entries: list[Entry], data: st.DataObject
) -> None:
    whole = replay(entries)
    state = replay(entries[: data.draw(st.integers(1, len(entries)))])
    for entry in entries[len(entries) - _left(entries, state) :]:
        state = fold_entry(state, entry)
    assert state == whole
    assert state.leaf == entries[-1].id


def _left(entries: list[Entry], state: State) -> int:
    at = [entry.id for entry in entries].index(state.leaf)
    return len(entries) - at - 1


@modest
@given(sessions())
def test_folding_changes_no_state_that_came_before(entries: list[Entry]) -> None:
    states = states_along(entries[:1])
    kept = [frozen_copy(states[0])]
    for entry in entries[1:]:
        states.append(fold_entry(states[-1], entry))
        kept.append(frozen_copy(states[-1]))
    for state, as_it_was in zip(states, kept, strict=True):
        assert without_items(state) == without_items(as_it_was)


def test_an_item_kept_on_one_branch_is_not_known_on_another() -> None:
    """Else a sibling would leave out the entry that its own replay needs."""
    base = replay([header()])
    entry = ItemEntry(id="i1", parent="e0", at=1.0, item=Item(id=A, content="x"))
    assert len(fold_entry(base, entry).library.items) == 1
    assert base.library.items == {}
    assert fold_entry(base, PinEntry(id="p1", parent="e0", at=1.0, item=A)).library.items == {}


@modest
@given(sessions(), st.data())
def test_two_branches_do_not_disturb_one_another(entries: list[Entry], data: st.DataObject) -> None:
    trunk = replay(entries)
    left = data.draw(entries_after(trunk, "l", most=5))
    right = data.draw(entries_after(trunk, "r", most=5))
    one = two = trunk
    for number in range(max(len(left), len(right))):
        for entry in left[number : number + 1]:
            one = fold_entry(one, entry)
        for entry in right[number : number + 1]:
            two = fold_entry(two, entry)
    assert one == replay(entries + left)
    assert two == replay(entries + right)


@modest
@given(sessions())
def test_a_session_read_back_from_its_bytes_is_the_same_session(entries: list[Entry]) -> None:
    assert replay(map(decode_entry, map(canonical_bytes, entries))) == replay(entries)


def _standing_versions(envelope: Envelope) -> dict[ItemId, set[str]]:
    found: dict[ItemId, set[str]] = {}
    for laid in envelope.library:
        found.setdefault(laid.item, set()).add(laid.version)
    for message in envelope.cached:
        for use in message.context.uses if message.context else ():
            if use.form == "full":
                found.setdefault(use.item, set()).add(use.version)
    return found


@modest
@given(sessions())
def test_an_item_stands_exactly_while_a_block_of_it_stands_in_the_envelope(
    entries: list[Entry],
) -> None:
    for state in states_along(entries):
        standing = {item: set(each.versions) for item, each in state.library.standing.items()}
        assert standing == _standing_versions(state.envelope)


@modest
@given(sessions())
def test_reasons_are_those_of_the_patches_since_the_last_request_that_was_sent(
    entries: list[Entry],
) -> None:
    open_at = 0
    for entry, (before, after) in zip(entries[1:], pairwise(states_along(entries)), strict=True):
        if isinstance(entry, RequestEntry):
            open_at = len(after.requests.reasons)
        if isinstance(entry, ReplyEntry):
            # What was recorded while the request was under way is for the next one to explain.
            assert after.requests.reasons == before.requests.reasons[open_at:]
        else:
            assert after.requests.reasons[: len(before.requests.reasons)] == before.requests.reasons
        # An op that moved nothing still has its reason.
        assert all(reason.text.strip() for reason in after.requests.reasons)


# -- one entry at a time -------------------------------------------------------------------------


class Story:
    """Entries written one after another onto a header."""

    def __init__(self, *entries: Entry) -> None:
        self.entries: list[Entry] = list(entries) or [header()]

    def add(self, kind: type[Any], **fields: Any) -> "Story":
        last = self.entries[-1]
        entry = kind(id=f"e{len(self.entries)}", parent=last.id, at=last.at + 1, **fields)
        return Story(*self.entries, entry)

    def asks(self, text: str = "Q", *uses: Use) -> "Story":
        blocks = (Context(uses=uses), Text(text)) if uses else (Text(text),)
        return self.add(MessageEntry, message=Message(role="user", blocks=blocks))

    def answers(self, *blocks: Any) -> "Story":
        message = Message(role="assistant", blocks=blocks or (Text("R"),))
        return self.add(MessageEntry, message=message)

    def requests(self, tokens: int = 100) -> "Story":
        return self.add(
            RequestEntry, target="fake:m", context=RequestContext(target="fake:m"), before="e0",
            base=None, kept=0, digests=(), cached_run=0, tokens=tokens, cached_tokens=0,
        )  # fmt: skip

    def replied(self, used: int = 0) -> "Story":
        request = next(e.id for e in reversed(self.entries) if isinstance(e, RequestEntry))
        return self.add(ReplyEntry, request=request, usage=Usage(input=used), stop="end")

    def patched(self, *ops: PatchOp) -> "Story":
        return self.add(TransformEntry, transformer="test", patch=Patch(ops=ops))

    @property
    def state(self) -> State:
        return replay(self.entries)


def use(version: str, form: Form = "full") -> Use:
    return Use(item=A, version=version, form=form)


def test_a_turn_lasts_from_the_question_to_the_final_answer() -> None:
    asked = Story().asks().requests()
    assert (asked.state.turn_count, asked.state.turn.start) == (1, 0)
    called = asked.answers(ToolCall(id="c", name="find")).replied()
    assert awaits_results(called.state)
    assert called.state.turn.start == 0
    done = called.add(MessageEntry, message=Message(role="tool", blocks=())).requests()
    ended = done.answers().replied()
    assert (ended.state.turn_count, ended.state.turn.start) == (1, None)
    again = ended.asks()
    assert (again.state.turn_count, again.state.turn.start) == (2, 4)


def test_text_for_one_request_is_gone_when_the_turn_ends_or_the_next_begins() -> None:
    texts = (ToolText(name="search", text="hit"),)
    asked = Story().asks().add(EphemeralEntry, tool_texts=texts)
    assert asked.state.envelope.tool_texts == texts
    assert asked.asks().state.envelope.tool_texts == ()
    assert asked.requests().answers().replied().state.envelope.tool_texts == ()
    calling = asked.requests().answers(ToolCall(id="c", name="find")).replied()
    assert calling.state.envelope.tool_texts == texts


def test_a_reply_closes_its_request_and_clears_the_reasons() -> None:
    op = SystemPartSet(name="persona", text="x", reason=" new persona ")
    story = Story().patched(op, OptionsSet(temperature=0)).asks().requests()
    assert story.state.requests.open is story.entries[-1]
    moved = MovedParts(sources=("system:persona",))
    reason = RecordedReason(text="new persona", op="system_part_set", moved=moved)
    assert story.state.requests.reasons == (reason,)
    closed = story.answers().replied()
    assert closed.state.requests.open is None
    assert closed.state.requests.sent is story.entries[-1]
    assert closed.state.requests.reasons == ()


def test_a_reply_to_a_request_that_is_not_open_is_refused() -> None:
    story = Story().asks().requests().answers().replied()
    with pytest.raises(JournalError, match="not open"):
        story.replied().state  # noqa: B018


def test_calibration_follows_what_was_reported_by_halves_and_not_beyond_reason() -> None:
    def turn(story: Story, reported: int) -> Story:
        return story.asks().requests(100).answers().replied(reported)

    once = turn(Story(), 120)
    assert once.state.calibration == {"fake:m": 1.2}
    assert turn(once, 100).state.calibration == pytest.approx({"fake:m": 1.1})
    assert turn(once, 0).state.calibration == {"fake:m": 1.2}
    assert turn(Story(), 300).state.calibration == {"fake:m": 3.0}
    assert turn(Story(), 50).state.calibration == {"fake:m": 0.5}
    for beyond in (10_000, 301, 49, 1):
        assert turn(Story(), beyond).state.calibration == {}
        assert turn(once, beyond).state.calibration == {"fake:m": 1.2}


def test_a_new_version_stands_beside_the_old_one_and_a_name_can_choose_between_them() -> None:
    story = Story().asks("1", use("v1")).asks("2", use("v2"))
    assert story.state.library.standing[A] == LaidVersions(versions=("v1", "v2"), current="v2")
    back = story.asks("3", use("v1", "named"))
    assert back.state.library.standing[A] == LaidVersions(versions=("v1", "v2"), current="v1")
    patched = back.patched(SystemPartSet(name="p", text="x", reason="r"))
    assert patched.state.library.standing == back.state.library.standing


def test_what_removes_a_block_makes_its_item_new_again() -> None:
    story = Story().asks("1", use("v1"))
    gone = story.patched(LibraryConsolidate(items=(), reason="r"))
    assert gone.state.library.standing == {}


def test_pinning_brings_back_what_was_forgotten() -> None:
    forgotten = Story().add(ForgetEntry, item=A)
    assert forgotten.state.library.forgotten == {A}
    pinned = forgotten.add(PinEntry, item=A, version="v1")
    assert (pinned.state.library.forgotten, pinned.state.library.pinned) == (frozenset(), {A: "v1"})
    assert pinned.add(PinEntry, item=A, pinned=False).state.library.pinned == {}


def test_settings_apply_from_their_entry_on() -> None:
    changed = Settings(window=5)
    assert Story().add(SettingsEntry, settings=changed).state.settings == changed


def test_a_patch_that_does_not_apply_does_not_replay() -> None:
    with pytest.raises(InvalidPatch):
        Story().patched(SystemPartSet(name="a", text="x", reason=" ")).state  # noqa: B018


# -- the tree ------------------------------------------------------------------------------------


def tree(**parents: str | None) -> dict[str, Entry]:
    return {
        name: ForgetEntry(id=name, parent=parent, at=0.0, item=A)
        for name, parent in parents.items()
    }


def test_the_path_to_a_leaf_leaves_its_siblings_out() -> None:
    entries = tree(a=None, b="a", c="b", d="b")
    assert [entry.id for entry in path_to("d", entries)] == ["a", "b", "d"]


def test_a_missing_parent_is_reported_by_name() -> None:
    with pytest.raises(JournalError, match="'gone' is missing"):
        path_to("c", tree(b="gone", c="b"))
    with pytest.raises(JournalError, match="'x' is missing"):
        path_to("x", {})


@pytest.mark.parametrize(
    "parents", [{"a": "a"}, {"a": "b", "b": "a"}, {"a": "c", "b": "c", "c": "b"}]
)
def test_a_cycle_of_parents_is_reported_and_ends(parents: dict[str, str | None]) -> None:
    with pytest.raises(JournalError, match="its own ancestor"):
        path_to("a", tree(**parents))


def test_a_session_has_one_header_and_it_comes_first() -> None:
    with pytest.raises(JournalError, match="nothing to replay"):
        replay([])
    with pytest.raises(JournalError, match="begins with its header"):
        replay(opening()[1:])
    with pytest.raises(JournalError, match="second session header"):
        replay([header(), header()])
