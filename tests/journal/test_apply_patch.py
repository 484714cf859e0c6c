"""A patch applies whole or raises and changes nothing."""

from typing import get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.strategies import patch_ops, patches, thorough

from lamina.errors import InvalidPatch
from lamina.journal import SUMMARY, apply_patch
from lamina.values.chain import Chain
from lamina.values.envelope import Envelope, Laid, Options, SystemPart
from lamina.values.item import ItemId, note_id
from lamina.values.message import Context, Message, Text, ToolDefinition, ToolText, Use
from lamina.values.patch import (
    CompactionApply,
    ItemLay,
    ItemSupersede,
    LibraryConsolidate,
    MessagesCachedReplace,
    MessagesUncachedAppend,
    OptionsSet,
    Patch,
    PatchOp,
    SystemPartRemove,
    SystemPartSet,
    SystemPartsReplace,
    ToolsRemove,
    ToolsReplace,
    op_name,
)

A, B = note_id("a.md"), note_id("b.md")
WHY = "because"


def part(name: str, text: str = "") -> SystemPart:
    return SystemPart(name=name, text=text or name.upper())


def said(role: str, text: str, *before: Context) -> Message:
    return Message(role=role, blocks=(*before, Text(text)), id=text)  # type: ignore[arg-type]


def laid(item: ItemId, version: str = "v1") -> Laid:
    return Laid(item=item, version=version)


ATTACHED = Context(uses=(Use(item=B, version="v1", form="full"),))
MESSAGES = (said("user", "q1", ATTACHED), said("assistant", "r1"), said("user", "q2"))
TAIL = (said("user", "tail"),)
TOOLS = (ToolDefinition(name="find"), ToolDefinition(name="read"))
ENVELOPE = Envelope(
    system=(part("a"), part("b", "first"), part("b", "second")),
    library=(laid(A),),
    tools=TOOLS,
    cached=Chain(MESSAGES),
    tool_texts=(ToolText(name="search", text="hit"),),
    uncached=TAIL,
    options=Options(temperature=0.7, max_tokens=100, reasoning="low"),
)


def after(*ops: PatchOp, envelope: Envelope = ENVELOPE, sent: bool = True) -> Envelope:
    return apply_patch(envelope, Patch(ops=ops), sent=sent)[0]


def fields_changed(before: Envelope, now: Envelope) -> set[str]:
    return {f for f in Envelope.__struct_fields__ if getattr(before, f) != getattr(now, f)}


# -- system parts --------------------------------------------------------------------------------


def test_setting_a_part_that_stands_twice_changes_the_first() -> None:
    now = after(SystemPartSet(name="b", text="new", reason=WHY))
    assert now.system == (part("a"), part("b", "new"), part("b", "second"))
    assert fields_changed(ENVELOPE, now) == {"system"}


def test_setting_a_part_that_is_not_there_appends_it() -> None:
    assert after(SystemPartSet(name="c", text="C", reason=WHY)).system[-1] == part("c")


def test_removing_a_part_that_stands_twice_removes_both() -> None:
    now = after(SystemPartRemove(name="b", reason=WHY))
    assert now.system == (part("a"),)
    assert after(SystemPartRemove(name="absent", reason=WHY)) == ENVELOPE


def test_replacing_the_parts_leaves_just_those() -> None:
    assert after(SystemPartsReplace(parts=(part("z"),), reason=WHY)).system == (part("z"),)
    assert after(SystemPartsReplace(parts=(), reason=WHY)).system == ()


@pytest.mark.parametrize(
    "op",
    [
        SystemPartSet(name="library", text="x", reason=WHY),
        SystemPartRemove(name="library", reason=WHY),
        SystemPartsReplace(parts=(part("a"), part("library")), reason=WHY),
    ],
)
def test_the_part_library_is_reserved(op: PatchOp) -> None:
    with pytest.raises(InvalidPatch, match="reserved") as caught:
        after(op)
    assert caught.value.op == op_name(op)


@pytest.mark.parametrize(
    "op",
    [
        SystemPartSet(name=" ", text="x", reason=WHY),
        SystemPartRemove(name="", reason=WHY),
        SystemPartsReplace(parts=(part("\t"),), reason=WHY),
    ],
)
def test_a_part_needs_a_name(op: PatchOp) -> None:
    with pytest.raises(InvalidPatch, match="needs a name"):
        after(op)


# -- tools, messages, options --------------------------------------------------------------------


def test_tools_are_replaced_whole_and_removed_by_name() -> None:
    assert after(ToolsReplace(tools=TOOLS[1:], reason=WHY)).tools == TOOLS[1:]
    assert after(ToolsRemove(names=("find", "absent"), reason=WHY)).tools == TOOLS[1:]


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidPatch, match="not unique"):
        after(ToolsReplace(tools=(TOOLS[0], TOOLS[0]), reason=WHY))


def test_replacing_cached_messages_leaves_the_uncached_tail() -> None:
    now = after(MessagesCachedReplace(messages=MESSAGES[2:], reason=WHY))
    assert tuple(now.cached) == MESSAGES[2:]
    assert fields_changed(ENVELOPE, now) == {"cached"}


def test_appending_to_the_uncached_tail_needs_no_reason_and_touches_nothing_else() -> None:
    now = after(MessagesUncachedAppend(messages=MESSAGES[:1]))
    assert now.uncached == TAIL + MESSAGES[:1]
    assert fields_changed(ENVELOPE, now) == {"uncached"}


def test_options_that_are_none_stay_and_zero_is_a_value() -> None:
    now = after(OptionsSet(temperature=0, max_tokens=None))
    assert now.options == Options(temperature=0, max_tokens=100, reasoning="low")
    assert fields_changed(ENVELOPE, now) == {"options"}


@pytest.mark.parametrize("op", [OptionsSet(temperature=-1), OptionsSet(max_tokens=-1)])
def test_an_option_out_of_range_is_refused_by_the_name_of_the_op(op: PatchOp) -> None:
    with pytest.raises(InvalidPatch) as caught:
        after(op)
    assert caught.value.op == "options_set"


# -- compaction ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first_kept", "kept"),
    [(-5, MESSAGES), (0, MESSAGES), (1, MESSAGES[1:]), (2, MESSAGES[2:]), (3, ()), (99, ())],
)
def test_compaction_keeps_a_summary_and_what_follows_the_index(
    first_kept: int, kept: tuple[Message, ...]
) -> None:
    now = after(CompactionApply(first_kept=first_kept, summary="so far", reason=WHY))
    summary, *rest = now.cached
    assert (summary.id, summary.role, summary.text) == (SUMMARY, "user", "so far")
    assert tuple(rest) == kept
    assert now.uncached == TAIL
    assert fields_changed(ENVELOPE, now) == {"cached"}


def test_compaction_without_a_summary_only_cuts() -> None:
    assert tuple(after(CompactionApply(first_kept=1, reason=WHY)).cached) == MESSAGES[1:]


def test_compaction_may_keep_a_head_and_then_stale_names_go() -> None:
    named = said("user", "q3", Context(uses=(Use(item=B, version="v1", form="named"),)))
    envelope = replace(ENVELOPE, cached=Chain((*MESSAGES, named)))
    op = CompactionApply(first_kept=2, after=1, summary="so far", reason=WHY)
    head, summary, *rest = after(op, envelope=envelope).cached
    assert (head, summary.text) == (MESSAGES[0], "so far")
    assert rest == [MESSAGES[2], said("user", "q3")]


@thorough
@given(st.integers(-3, 6), st.integers(-1, 5), st.sampled_from(["", "so far"]), st.integers(0, 3))
def test_the_turn_under_way_starts_where_it_did_or_with_the_summary_that_took_its_start(
    first_kept: int, head: int, summary: str, start: int
) -> None:
    op = CompactionApply(first_kept=first_kept, after=head, summary=summary, reason=WHY)
    now, moved = apply_patch(ENVELOPE, Patch(ops=(op,)), start)
    cut = max(0, min(first_kept, len(MESSAGES)))
    removed = range(max(0, min(head, cut)), cut)
    rows = [message.id for message in MESSAGES[: removed.start]]
    rows += [SUMMARY] if summary else []
    rows += [message.id for message in MESSAGES[cut:]]
    assert [message.id for message in now.cached] == rows
    if start in removed:
        assert moved == removed.start
    elif start == len(MESSAGES):
        assert moved == len(rows)
    else:
        assert moved is not None
        assert rows[moved] == MESSAGES[start].id
    assert apply_patch(ENVELOPE, Patch(ops=(op,)), None)[1] is None


# -- items ---------------------------------------------------------------------------------------


def test_before_anything_was_sent_an_item_is_laid_at_the_end_of_the_library() -> None:
    now = after(ItemLay(item=B, version="v2"), sent=False)
    assert now.library == (laid(A), laid(B, "v2"))
    again = after(ItemLay(item=A, version="v9"), envelope=now, sent=False)
    assert again.library == (laid(B, "v2"), laid(A, "v9"))
    assert fields_changed(ENVELOPE, now) == {"library"}


def test_once_something_was_sent_an_item_is_laid_behind_the_messages() -> None:
    now = after(ItemLay(item=B, version="v2"))
    assert now.library == ENVELOPE.library
    assert now.cached.until(3) == ENVELOPE.cached
    context = now.cached[-1].context
    assert context is not None
    assert context.uses == (Use(item=B, version="v2", form="full"),)
    twice = after(ItemLay(item=B, version="v2"), ItemLay(item=A, version="v1"))
    assert len({message.id for message in twice.cached}) == len(twice.cached)


def test_superseding_an_item_moves_no_bytes() -> None:
    assert after(ItemSupersede(item=A, version="v1")) == ENVELOPE


def test_consolidating_rebuilds_the_library_and_leaves_only_what_was_typed_and_answered() -> None:
    now = after(LibraryConsolidate(items=(laid(B), laid(A)), reason=WHY))
    assert now.library == (laid(B), laid(A))
    assert tuple(now.cached) == (said("user", "q1"), *MESSAGES[1:])
    assert fields_changed(ENVELOPE, now) == {"library", "cached"}


# -- whole or not at all -------------------------------------------------------------------------


def test_the_ops_that_need_no_reason_are_these() -> None:
    free = {op_name(op) for op in get_args(PatchOp) if not op.needs_reason}
    assert free == {"messages_uncached_append", "options_set", "item_lay", "item_supersede"}


@thorough
@given(patch_ops, st.sampled_from(["", " ", "  ", "\n\t", "\u2003"]))
def test_a_cached_op_with_a_blank_reason_is_refused_by_name(op: PatchOp, blank: str) -> None:
    assume(op.needs_reason)
    unexplained = replace(op, reason=blank)
    with pytest.raises(InvalidPatch, match="reason") as caught:
        after(unexplained)
    assert caught.value.op == op_name(op)
    assert caught.value.code == "invalid_patch"
    assert repr(op_name(op)) in str(caught.value)


INVALID: tuple[PatchOp, ...] = (
    SystemPartSet(name="a", text="x", reason="  "),
    SystemPartSet(name="library", text="x", reason=WHY),
    ToolsReplace(tools=(TOOLS[0], TOOLS[0]), reason=WHY),
)


def _copied(envelope: Envelope) -> Envelope:
    return replace(envelope, cached=Chain(envelope.cached))


@thorough
@given(patches, st.sampled_from(INVALID), st.booleans())
def test_nothing_is_applied_when_a_later_op_is_invalid(
    valid: Patch, invalid: PatchOp, sent: bool
) -> None:
    envelope = _copied(ENVELOPE)
    with pytest.raises(InvalidPatch):
        apply_patch(envelope, Patch(ops=(*valid.ops, invalid)), 1, sent)
    assert envelope == ENVELOPE


@thorough
@given(patches, st.none() | st.integers(0, 3), st.booleans())
def test_a_patch_is_its_ops_one_after_another_and_leaves_its_envelope_alone(
    patch: Patch, start: int | None, sent: bool
) -> None:
    envelope = _copied(ENVELOPE)
    whole = apply_patch(envelope, patch, start, sent)
    one_by_one = (envelope, start)
    for op in patch.ops:
        one_by_one = apply_patch(one_by_one[0], Patch(ops=(op,)), one_by_one[1], sent)
    assert whole == one_by_one
    assert envelope == ENVELOPE
    moved = whole[1]
    assert moved is None or 0 <= moved <= len(whole[0].cached)
