"""A patch applies whole or raises and changes nothing."""

from collections.abc import Sequence
from typing import get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.core.compaction.talk import answer, anything, calls, exchanges, parted, results, user
from tests.strategies import envelope_of, patch_ops, patches, thorough

from lamina.core.compaction.cuts import find_cuts
from lamina.core.journal import SUMMARY_ID, apply_patch
from lamina.core.values.collections import Chain
from lamina.core.values.envelope import Envelope, LaidItem, Options, SystemPart, SystemParts
from lamina.core.values.item import ItemId, note_id
from lamina.core.values.message import (
    Context,
    Message,
    Text,
    ToolCall,
    ToolDefinition,
    ToolResult,
    ToolText,
    Use,
)
from lamina.core.values.patch import (
    CompactionApply,
    ItemLay,
    ItemSupersede,
    LibraryConsolidate,
    MessagesCachedReplace,
    MessagesUncachedAppend,
    OptionsSet,
    Patch,
    PatchOp,
    ResultsReplace,
    SystemPartRemove,
    SystemPartSet,
    SystemPartsReplace,
    ToolsRemove,
    ToolsReplace,
    op_name,
)
from lamina.errors import InvalidPatch

A, B = note_id("a.md"), note_id("b.md")
WHY = "because"


def part(name: str, text: str = "") -> SystemPart:
    return SystemPart(name=name, text=text or name.upper())


def said(role: str, text: str, *before: Context) -> Message:
    return Message(role=role, blocks=(*before, Text(text)), id=text)  # type: ignore[arg-type]


def laid(item: ItemId, version: str = "v1") -> LaidItem:
    return LaidItem(item=item, version=version)


ATTACHED = Context(uses=(Use(item=B, version="v1", form="full"),))
MESSAGES = (said("user", "q1", ATTACHED), said("assistant", "r1"), said("user", "q2"))
TAIL = (said("user", "tail"),)
TOOLS = (ToolDefinition(name="find"), ToolDefinition(name="read"))
ENVELOPE = Envelope(
    system=SystemParts((part("a"), part("b", "first"), part("b", "second"))),
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


def test_results_become_shorter_where_they_stand() -> None:
    call = Message(
        role="assistant", blocks=(ToolCall(id="c", name="find", arguments="{}"),), id="a"
    )
    long = (found("c", "many lines"), found("d", "few"))
    answer = Message(role="tool", blocks=long, id="t")
    envelope = replace(ENVELOPE, cached=Chain((call, answer, *MESSAGES)))
    now = after(results_of("t", found("c", "lines")), envelope=envelope)
    short = replace(answer, blocks=(found("c", "lines"), long[1]))
    assert tuple(now.cached) == (call, short, *MESSAGES)
    assert fields_changed(envelope, now) == {"cached"}


@pytest.mark.parametrize(("message", "call"), [("nobody", "c"), ("t", "other")])
def test_results_that_are_not_there_are_not_replaced(message: str, call: str) -> None:
    answer = Message(role="tool", blocks=(found("c", "many lines"),), id="t")
    envelope = replace(ENVELOPE, cached=Chain((*MESSAGES, answer)))
    with pytest.raises(InvalidPatch, match=message) as caught:
        after(results_of(message, found(call, "lines")), envelope=envelope)
    assert caught.value.op == "results_replace"


@pytest.mark.parametrize(
    ("results", "problem"),
    [
        ((), "one result for each call"),
        (("c", "c"), "one result for each call"),
        (("other tool",), "one of 'find', not of 'read'"),
    ],
)
def test_results_are_replaced_by_one_of_the_same_tool(results: Sequence[str], problem: str) -> None:
    answer = Message(role="tool", blocks=(found("c", "many lines"),), id="t")
    envelope = replace(ENVELOPE, cached=Chain((*MESSAGES, answer)))
    given = [found("c", text) for text in results]
    if results == ("other tool",):
        given = [replace(found("c", "lines"), name="read")]
    with pytest.raises(InvalidPatch, match=problem):
        after(results_of("t", *given), envelope=envelope)


def found(call: str, text: str) -> ToolResult:
    return ToolResult(call_id=call, name="find", text=text)


def results_of(message: str, *results: ToolResult) -> ResultsReplace:
    return ResultsReplace(message=message, results=results, reason=WHY)


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
    assert (summary.id, summary.role, summary.text) == (SUMMARY_ID, "user", "so far")
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
    rows += [SUMMARY_ID] if summary else []
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


# -- calls and their results ---------------------------------------------------------------------

LOOP = (user(), calls("a", "b"), results("a"), results("b"), answer(), user("next"))


def cut(
    history: Sequence[Message], first_kept: int, after: int = 0, summary: str = "s"
) -> Envelope:
    op = CompactionApply(first_kept=first_kept, after=after, summary=summary, reason=WHY)
    return apply_patch(envelope_of(*history), Patch(ops=(op,)))[0]


def put(history: Sequence[Message], messages: Sequence[Message]) -> Envelope:
    op = MessagesCachedReplace(messages=tuple(messages), reason=WHY)
    return apply_patch(envelope_of(*history), Patch(ops=(op,)))[0]


@pytest.mark.parametrize("first_kept", [2, 3])
def test_a_compaction_that_parts_a_call_from_its_result_is_refused(first_kept: int) -> None:
    envelope = envelope_of(*LOOP)
    op = CompactionApply(first_kept=first_kept, summary="s", reason=WHY)
    with pytest.raises(InvalidPatch, match=r"would part the call '[ab]' \(message 1\)") as caught:
        apply_patch(envelope, Patch(ops=(SystemPartSet(name="x", text="x", reason=WHY), op)))
    assert caught.value.op == "compaction_apply"
    assert envelope == envelope_of(*LOOP)


@pytest.mark.parametrize(
    ("after", "first_kept"),
    [(2, 4), (2, 3), (0, 2), (2, 2), (3, 3)],
)
def test_a_head_keeps_its_calls_with_their_results_and_nothing_comes_between(
    after: int, first_kept: int
) -> None:
    with pytest.raises(InvalidPatch, match="would part"):
        cut(LOOP, first_kept, after)


@pytest.mark.parametrize(
    ("after", "first_kept"), [(0, -5), (0, 0), (0, 1), (1, 4), (4, 5), (0, 5), (0, 99), (99, 99)]
)
def test_calls_may_go_or_stay_together_with_their_results(after: int, first_kept: int) -> None:
    stop = max(0, min(first_kept, len(LOOP)))
    start = min(after, stop)
    rest = [message.blocks for message in cut(LOOP, first_kept, after).cached]
    kept = [message.blocks for message in (*LOOP[:start], *LOOP[stop:])]
    assert rest == [*kept[:start], (Text("s"),), *kept[start:]]


def test_calls_under_way_have_no_results_to_be_parted_from() -> None:
    assert len(cut((user(), answer(), calls("a")), 2).cached) == 2
    assert len(cut((user(), calls("a"), user()), 2).cached) == 2
    assert len(put(LOOP, (user(), calls("c"))).cached) == 2
    assert len(put(LOOP, LOOP[:2]).cached) == 2


def test_an_id_that_is_used_again_is_another_call() -> None:
    twice = (user(), calls("a"), results("a"), user(), calls("a"), results("a"))
    assert len(cut(twice, 3).cached) == 4
    for first_kept in (2, 5):
        with pytest.raises(InvalidPatch, match="would part"):
            cut(twice, first_kept)
    with pytest.raises(InvalidPatch, match="would part"):
        cut(twice, 5, 3)
    beside = (user(), calls("", ""), results("", ""), answer())
    assert len(put(beside, beside).cached) == 4
    given_up = (user(), calls("a"), user(), *twice[4:], user())
    assert len(cut(given_up, 5).cached) == 2


@pytest.mark.parametrize(
    "messages",
    [LOOP[2:], (LOOP[0], LOOP[2]), (LOOP[0], LOOP[2], LOOP[1]), (calls("a"), LOOP[2], LOOP[2])],
)
def test_replaced_messages_hold_no_result_without_its_call(messages: Sequence[Message]) -> None:
    with pytest.raises(InvalidPatch, match="without its call") as caught:
        put(LOOP, messages)
    assert caught.value.op == "messages_cached_replace"


def test_replaced_messages_hold_no_call_that_lost_its_result() -> None:
    with pytest.raises(InvalidPatch, match="the call 'b' would stay without the result"):
        put(LOOP, (*LOOP[:3], *LOOP[4:]))
    assert len(put(LOOP, (LOOP[0], *LOOP[4:])).cached) == 3


def test_what_was_amiss_before_a_patch_does_not_stand_in_its_way() -> None:
    broken = (results("x"), user(), answer(), user())
    assert len(cut(broken, 2).cached) == 3
    assert len(put(broken, broken[:3]).cached) == 3


@thorough
@given(anything() | exchanges(), st.integers(-1, 12), st.integers(-1, 12))
def test_whatever_the_history_a_compaction_parts_nothing_or_is_refused(
    history: list[Message], first_kept: int, after: int
) -> None:
    stop = max(0, min(first_kept, len(history)))
    start = max(0, min(after, stop))
    if parted(history, start) or parted(history, stop):
        with pytest.raises(InvalidPatch) as caught:
            cut(history, first_kept, after)
        assert caught.value.op == "compaction_apply"
    else:
        cut(history, first_kept, after)


@thorough
@given(anything() | exchanges())
def test_every_cut_that_compaction_finds_is_applied(history: list[Message]) -> None:
    for index in find_cuts(history):
        cut(history, index)


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
    assert context.uses == (Use(item=B, version="v2", form="full", replaces=True),)
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
    assert free == {
        "messages_cached_append", "messages_uncached_append", "options_set", "item_lay",
        "item_supersede",
    }  # fmt: skip


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
    whole = _outcome(envelope, [patch], start, sent)
    assert whole == _outcome(envelope, [Patch(ops=(op,)) for op in patch.ops], start, sent)
    assert envelope == ENVELOPE
    if not isinstance(whole, str):
        now, moved = whole
        assert moved is None or 0 <= moved <= len(now.cached)


def _outcome(
    envelope: Envelope, given: Sequence[Patch], start: int | None, sent: bool
) -> tuple[Envelope, int | None] | str:
    """The envelope after these patches, or why one of them is refused."""
    try:
        for patch in given:
            envelope, start = apply_patch(envelope, patch, start, sent)
    except InvalidPatch as error:
        return str(error)
    return envelope, start
