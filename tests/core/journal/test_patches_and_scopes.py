"""Behaviours of patches that the original systems promise: reasons, scopes, cuts, uncached text."""

from contextlib import suppress
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.compaction.talk import anything, calls, results, user
from tests.fakes.sessions import World, run
from tests.strategies import patches, sessions, states_along, thorough

from lamina.core.journal import SUMMARY_ID, apply_patch
from lamina.core.journal.plain_patch import parse_op
from lamina.core.values.collections import Chain
from lamina.core.values.entry import Entry
from lamina.core.values.envelope import Envelope, Options, SystemPart, SystemParts
from lamina.core.values.message import Message, Text
from lamina.core.values.patch import (
    CompactionApply,
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
from lamina.engine.sources.hooks import Hooks
from lamina.errors import InvalidPatch

WHY = "because"
BLANKS = ["", "  ", "\t\n", "\u00a0\u2003"]
CACHED: list[PatchOp] = [
    SystemPartSet(name="a", text="x"),
    SystemPartRemove(name="a"),
    SystemPartsReplace(parts=()),
    ToolsReplace(tools=()),
    ToolsRemove(names=()),
    MessagesCachedReplace(messages=()),
    ResultsReplace(message="m", results=()),
    CompactionApply(first_kept=0, summary="S"),
    LibraryConsolidate(items=()),
]
PARTS = tuple(SystemPart(name=name, text=text) for name, text in ("a1", "b1", "b2"))
SAID = (user("q1"), Message(role="assistant", blocks=(Text("r1"),)), user("q2"))
TAIL = (user("tail"),)
ENVELOPE = Envelope(
    system=SystemParts(PARTS),
    cached=Chain(SAID),
    uncached=TAIL,
    options=Options(temperature=0.7, max_tokens=100, reasoning="low"),
)


def after(*ops: PatchOp) -> Envelope:
    return apply_patch(ENVELOPE, Patch(ops=ops))[0]


def with_reason(op: PatchOp, reason: str) -> PatchOp:
    return parse_op({**msgspec.to_builtins(op), "invalidate_cache_reason": reason})


# -- 25: reasons, parts, options -----------------------------------------------------------------


@pytest.mark.parametrize("blank", BLANKS)
@pytest.mark.parametrize("op", CACHED, ids=op_name)
def test_a_cached_op_with_a_blank_reason_is_an_error_that_names_it(op: PatchOp, blank: str) -> None:
    before = ENVELOPE
    with pytest.raises(InvalidPatch) as raised:
        after(with_reason(op, blank))
    assert raised.value.op == op_name(op)
    assert repr(op_name(op)) in str(raised.value)
    assert before == ENVELOPE


@pytest.mark.parametrize("op", CACHED, ids=op_name)
def test_a_blank_reason_anywhere_in_a_patch_undoes_all_of_it(op: PatchOp) -> None:
    first = SystemPartSet(name="a", text="changed", reason=WHY)
    with pytest.raises(InvalidPatch):
        after(first, with_reason(op, "  "))
    assert ENVELOPE.system == PARTS


def test_every_op_says_whether_it_needs_a_reason() -> None:
    needing = {op_name(op) for op in CACHED}
    assert {kind.__struct_config__.tag for kind in get_args(PatchOp) if kind.needs_reason} == (
        needing
    )


def test_of_two_parts_of_a_name_setting_changes_the_first_and_removing_both() -> None:
    changed = after(SystemPartSet(name="b", text="new", reason=WHY))
    assert [part.text for part in changed.system] == ["1", "new", "2"]
    assert after(SystemPartRemove(name="b", reason=WHY)).system == PARTS[:1]


def test_temperature_nought_is_set_and_none_leaves_an_option_as_it_is() -> None:
    op = parse_op({"op": "options_set", "temperature": 0, "max_tokens": None})
    assert after(op).options == Options(temperature=0, max_tokens=100, reasoning="low")
    assert after(OptionsSet(max_tokens=0)).options.max_tokens == 0


@thorough
@given(sessions(), patches)
def test_a_patch_that_fails_leaves_the_envelope_as_it_was(
    entries: list[Entry], patch: Patch
) -> None:
    envelope = states_along(entries)[-1].envelope
    before = envelope.cached.since(0), envelope.uncached, envelope.system, envelope.options
    with suppress(InvalidPatch):
        apply_patch(envelope, patch)
    assert before == (
        envelope.cached.since(0),
        envelope.uncached,
        envelope.system,
        envelope.options,
    )


# -- 26: compaction ------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [-5, -1, 0])
def test_a_cut_at_or_before_the_start_puts_the_summary_in_front_of_everything(index: int) -> None:
    now = after(CompactionApply(first_kept=index, summary="S", reason=WHY))
    assert [m.text for m in now.cached] == ["S", "q1", "r1", "q2"]
    assert now.cached[0].id == SUMMARY_ID
    assert now.uncached == TAIL


@pytest.mark.parametrize("index", [3, 4, 99])
def test_a_cut_at_or_behind_the_end_leaves_the_summary_only(index: int) -> None:
    now = after(CompactionApply(first_kept=index, summary="S", reason=WHY))
    assert [m.text for m in now.cached] == ["S"]
    assert now.uncached == TAIL


@thorough
@given(anything(), st.integers(-9, 99), st.integers(-9, 99), st.sampled_from(["S", ""]))
def test_no_cut_touches_the_uncached_tail_or_invents_messages(
    messages: list[Message], first_kept: int, behind: int, summary: str
) -> None:
    envelope = Envelope(cached=Chain(messages), uncached=TAIL)
    op = CompactionApply(first_kept=first_kept, after=behind, summary=summary, reason=WHY)
    try:
        now, _ = apply_patch(envelope, Patch(ops=(op,)))
    except InvalidPatch:
        return
    assert now.uncached == TAIL
    assert len(now.cached) <= len(messages) + bool(summary)
    assert len(now.cached) - bool(summary) == len(messages) - max(
        0, min(first_kept, len(messages)) - max(0, min(behind, first_kept, len(messages)))
    )


def test_no_cut_parts_a_call_from_its_result() -> None:
    envelope = Envelope(cached=Chain([user(), calls("c"), results("c"), user()]))
    with pytest.raises(InvalidPatch) as raised:
        apply_patch(envelope, Patch(ops=(CompactionApply(first_kept=2, summary="S", reason=WHY),)))
    assert raised.value.op == "compaction_apply"


# -- 27: uncached text ---------------------------------------------------------------------------


def test_uncached_text_comes_behind_the_uncached_text_that_is_there() -> None:
    now = after(MessagesUncachedAppend(messages=(user("one"), user("two"))))
    assert [m.text for m in now.uncached] == ["tail", "one", "two"]
    assert len({m.id for m in now.uncached if m.id}) == 2
    assert now.cached == ENVELOPE.cached


@pytest.mark.parametrize(
    "op",
    [
        MessagesUncachedAppend(messages=(user("psst"),)),
        {"op": "messages_uncached_append", "messages": [], "scope": "uncached"},
        [OptionsSet(temperature=0), MessagesUncachedAppend(messages=())],
    ],
)
@pytest.mark.parametrize("reason", ["before_request", "turn_end"])
def test_uncached_text_outside_an_ephemeral_hook_is_an_error_and_nothing_is_written(
    op: Any, reason: str
) -> None:
    async def body() -> None:
        hooks = Hooks()
        hooks.context(reason=reason, name="whisper")(lambda event: op)  # type: ignore[call-overload]
        session = await World().open(hooks=hooks)
        before = session.entries
        if reason == "before_request":
            with pytest.raises(InvalidPatch, match="messages_uncached_append"):
                await session.prepare("Q")
            assert session.entries == before
            return
        turn = await session.prepare("Q")
        turn = await turn.commit(
            {"choices": [{"message": {"content": "A"}, "finish_reason": "stop"}]}
        )
        assert "messages_uncached_append" in turn.warnings[0]
        assert session.envelope.options == Options()
        assert session.envelope.uncached == ()

    run(body())
