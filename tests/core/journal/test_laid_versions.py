"""What stands is known from what stood: history is not looked through again for one more item."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import patches, thorough

from lamina.core.journal.patch_effects import apply_op
from lamina.core.journal.state import StandingItems, apply_lay_ops, find_laid_versions
from lamina.core.values.collections import Chain
from lamina.core.values.envelope import Envelope, LaidItem
from lamina.core.values.item import ItemId, note_id
from lamina.core.values.message import Context, Message, Text, Use
from lamina.core.values.patch import ItemLay, ItemSupersede, Patch
from lamina.errors import InvalidPatch

A, B = note_id("a.md"), note_id("b.md")


def bringing(item: ItemId, version: str) -> Message:
    use = Use(item=item, version=version, form="full")
    return Message(role="user", blocks=(Context(uses=(use,)), Text("Q")), id=f"{item}{version}")


def long_talk(messages: int) -> Envelope:
    talk = (Message(role="user", blocks=(Text("Q"),), id=f"m{n}") for n in range(messages))
    brought = (bringing(A, "v1"), bringing(A, "v2"), bringing(B, "v1"))
    library = (LaidItem(item=note_id("lib.md"), version="v1"),)
    return Envelope(library=library, cached=Chain((*brought, *talk)))


def standing_in(envelope: Envelope) -> StandingItems:
    return StandingItems(envelope=envelope, standing=find_laid_versions(envelope, {}))


lays = st.builds(
    ItemLay,
    item=st.sampled_from((A, B, note_id("lib.md"), note_id("new.md"))),
    version=st.sampled_from(("v1", "v2", "v3")),
    in_force=st.none() | st.just((A,)),
)


@thorough
@given(st.lists(patches.map(lambda patch: patch.ops) | lays.map(lambda lay: (lay,)), max_size=4))
def test_what_stood_before_a_patch_spares_looking_through_history_and_changes_nothing(
    drawn: list[tuple[object, ...]],
) -> None:
    envelope, start = long_talk(3), None
    stood = standing_in(envelope)
    for op in (op for ops in drawn for op in ops):
        try:
            expected = apply_op(envelope, op, start, True)  # type: ignore[arg-type]
        except InvalidPatch:
            continue
        assert apply_op(envelope, op, start, True, stood) == expected  # type: ignore[arg-type]
        envelope, start = expected


@pytest.mark.parametrize("item", [A, note_id("lib.md"), note_id("new.md")])
def test_laying_an_item_down_takes_the_same_steps_however_long_history_is(item: ItemId) -> None:
    steps = []
    for messages in (10, 2_000):
        envelope = long_talk(messages)
        stood = standing_in(envelope)
        seen: list[str] = []
        sys.setprofile(lambda _frame, event, _argument, seen=seen: seen.append(event))  # type: ignore[misc]
        try:
            after, _ = apply_op(envelope, ItemLay(item=item, version="new"), None, True, stood)
        finally:
            sys.setprofile(None)
        context = after.cached[-1].context
        assert context is not None
        assert context.uses[0].replaces == (item != note_id("new.md"))
        steps.append(len(seen))
    assert steps[0] == steps[1]


def test_a_version_that_is_laid_down_applies_and_one_that_is_superseded_does_not() -> None:
    standing = find_laid_versions(long_talk(0), {})
    again = apply_lay_ops(standing, Patch(ops=(ItemLay(item=A, version="v1"),)))
    assert again[A].current == "v1"
    gone = apply_lay_ops(again, Patch(ops=(ItemSupersede(item=A, version="v1"),)))
    assert gone[A].current == ""
    late = apply_lay_ops(again, Patch(ops=(ItemSupersede(item=A, version="v2"),)))
    assert late[A].current == "v1"
    assert gone[B] is standing[B]
