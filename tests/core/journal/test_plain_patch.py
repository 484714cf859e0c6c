"""Patch operations as plain data: read exactly, or refused with their name."""

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.strategies import patch_ops, thorough

from lamina.core.journal import open_patch, parse_op, read_patch
from lamina.core.values.envelope import SystemPart
from lamina.core.values.message import Message, Text, ToolDefinition, ToolResult
from lamina.core.values.patch import (
    CompactionApply,
    Display,
    MessagesCachedAppend,
    MessagesCachedReplace,
    MessagesUncachedAppend,
    OptionsSet,
    Patch,
    PatchOp,
    ResultsReplace,
    SystemPartSet,
    SystemPartsReplace,
    ToolsRemove,
    ToolsReplace,
)
from lamina.errors import InvalidPatch

NAMES = sorted(str(kind.__struct_config__.tag) for kind in get_args(PatchOp))
REMOVE = {"op": "tools_remove", "names": ["find"]}


def problem(op: Any) -> str:
    with pytest.raises(InvalidPatch) as raised:
        parse_op(op)
    return str(raised.value)


@thorough
@given(patch_ops)
def test_an_op_written_as_plain_data_is_read_back(op: PatchOp) -> None:
    assert parse_op(msgspec.to_builtins(op)) == op


@thorough
@given(patch_ops)
def test_an_op_read_back_from_json_is_the_same(op: PatchOp) -> None:
    assert parse_op(msgspec.json.decode(msgspec.json.encode(op))) == op


def test_the_reason_has_two_names() -> None:
    want = ToolsRemove(names=("find",), reason="why")
    assert parse_op({**REMOVE, "reason": "why"}) == want
    assert parse_op({**REMOVE, "invalidate_cache_reason": "why"}) == want


def test_a_reason_said_twice_and_differently_is_refused() -> None:
    assert "reason" in problem({**REMOVE, "reason": "a", "invalidate_cache_reason": "b"})


def test_what_was_given_is_not_changed() -> None:
    given_op = {**REMOVE, "scope": "cached", "invalidate_cache_reason": "why"}
    before = dict(given_op)
    parse_op(given_op)
    assert given_op == before


@pytest.mark.parametrize("name", ["", "nope", "SystemPartSet", "system_part_set ", None, 7, ["x"]])
def test_an_unknown_op_is_named_with_the_known_ones(name: Any) -> None:
    said = problem({"op": name})
    assert str(name) in said
    assert all(known in said for known in NAMES)


def test_an_op_without_its_name_is_told_that_op_is_missing() -> None:
    assert "'op'" in problem({"name": "tone", "text": "T"})


@pytest.mark.parametrize("field", ["reasn", "Names", "", "needs_reason"])
def test_an_unknown_field_is_named(field: str) -> None:
    said = problem({**REMOVE, field: "x"})
    assert repr(field) in said
    assert "'tools_remove'" in said


def test_several_unknown_fields_are_all_named_whatever_they_are() -> None:
    said = problem({**REMOVE, "a": 1, 7: 2, None: 3})
    assert "'a'" in said
    assert "7" in said


@pytest.mark.parametrize(
    "op",
    [
        {
            "op": "tools_replace",
            "tools": [{"name": "find", "parameter": {"type": "object"}}],
            "reason": "why",
        },
        {
            "op": "system_parts_replace",
            "parts": [{"name": "a", "text": "A", "role": "x"}],
            "reason": "why",
        },
        {
            "op": "messages_uncached_append",
            "messages": [
                {"role": "user", "blocks": [{"type": "text", "text": "x"}], "content": "y"}
            ],
        },
    ],
    ids=["tool", "part", "message"],
)
def test_an_unknown_field_further_down_is_refused_too(op: dict[str, Any]) -> None:
    assert str(op["op"]) in problem(op)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scope", ["other", "", 7, True, ["cached"], "CACHED"])
def test_a_scope_that_is_none_is_refused(name: str, scope: Any) -> None:
    said = problem({"op": name, "scope": scope})
    assert repr(name) in said
    assert "scope" in said


@pytest.mark.parametrize("name", sorted({*NAMES} - {"messages_uncached_append", "options_set"}))
def test_what_is_cached_does_not_have_the_scope_uncached(name: str) -> None:
    assert "'cached', not 'uncached'" in problem({"op": name, "scope": "uncached"})


def test_what_is_uncached_does_not_have_the_scope_cached() -> None:
    op = {"op": "messages_uncached_append", "messages": [], "scope": "cached"}
    assert "'uncached', not 'cached'" in problem(op)
    assert parse_op({**op, "scope": "uncached"}) == MessagesUncachedAppend(messages=())


def test_options_have_either_scope_and_the_one_request_has_two_names() -> None:
    op = {"op": "options_set", "temperature": 0.5}
    assert parse_op(op) == OptionsSet(temperature=0.5)
    cached = OptionsSet(temperature=0.5, scope="cached", reason="calmer")
    assert parse_op({**op, "scope": "cached", "reason": "calmer"}) == cached
    for scope in ("uncached", "ephemeral"):
        assert parse_op({**op, "scope": scope}) == OptionsSet(temperature=0.5, scope="uncached")


def test_a_reason_for_an_op_that_takes_none_is_named_as_it_was_given() -> None:
    op = {"op": "messages_uncached_append", "messages": [], "invalidate_cache_reason": "why"}
    assert "'invalidate_cache_reason'" in problem(op)


@pytest.mark.parametrize(
    ("op", "field"),
    [
        ({"op": "system_part_set", "name": "a"}, "text"),
        ({"op": "system_part_set", "name": "a", "text": None}, "text"),
        ({"op": "system_part_set", "name": "a", "text": 7}, "text"),
        ({"op": "system_part_set", "name": "a", "text": "A", "reason": None}, "reason"),
        ({"op": "tools_remove", "names": "find"}, "names"),
        ({"op": "options_set", "temperature": "hot"}, "temperature"),
        ({"op": "options_set", "max_tokens": 1.5}, "max_tokens"),
        ({"op": "compaction_apply", "first_kept": "all"}, "first_kept"),
        ({"op": "messages_cached_replace", "messages": [{"role": "system"}]}, "messages"),
        ({"op": "messages_cached_replace", "messages": [{"role": "user"}]}, "blocks"),
    ],
)
def test_a_field_that_is_missing_or_of_the_wrong_type_is_named(
    op: dict[str, Any], field: str
) -> None:
    said = problem(op)
    assert repr(op["op"]) in said
    assert field in said


# -- the names of the original documents ----------------------------------------------------------

USER = {"role": "user", "content": "[marker]"}
MARKER = Message(role="user", blocks=(Text("[marker]"),))
THEIRS: list[tuple[dict[str, Any], PatchOp]] = [
    (
        {"op": "system_part_set", "scope": "cached", "partName": "tone", "content": "Be brief.",
         "invalidateCacheReason": "asked"},
        SystemPartSet(name="tone", text="Be brief.", reason="asked"),
    ),
    (
        {"op": "tools_remove", "toolNames": ["find"], "invalidateCacheReason": "asked"},
        ToolsRemove(names=("find",), reason="asked"),
    ),
    (
        {"op": "tools_replace", "tools": [{"name": "find", "inputSchema": {"aB": 1}}],
         "invalidateCacheReason": "asked"},
        ToolsReplace(tools=(ToolDefinition(name="find", parameters={"aB": 1}),), reason="asked"),
    ),
    (
        {"op": "options_set", "scope": "cached", "options": {"maxTokens": 5, "topP": 0.5},
         "invalidateCacheReason": "asked"},
        OptionsSet(max_tokens=5, top_p=0.5, scope="cached", reason="asked"),
    ),
    (
        {"op": "messages_cached_append", "messages": [USER]},
        MessagesCachedAppend(messages=(MARKER,)),
    ),
    (
        {"op": "messages_cached_replace", "messages": [MARKER, USER],
         "invalidateCacheReason": "add marker"},
        MessagesCachedReplace(messages=(MARKER, MARKER), reason="add marker"),
    ),
    (
        {"op": "compaction_apply", "summary": "S", "firstKeptEntryId": "m2",
         "invalidateCacheReason": "long"},
        CompactionApply(summary="S", first_kept=1, reason="long"),
    ),
    (
        {"op": "results_replace", "message": "t", "reason": "long",
         "results": [{"toolCallId": "c", "toolName": "find", "text": "x", "isError": True}]},
        ResultsReplace(message="t", reason="long", results=(
            ToolResult(call_id="c", name="find", text="x", is_error=True),
        )),
    ),
]  # fmt: skip
HISTORY = tuple(replace(MARKER, id=name) for name in ("m1", "m2"))


@pytest.mark.parametrize(("op", "want"), THEIRS, ids=[str(op["op"]) for op, _ in THEIRS])
def test_names_of_the_documents_are_read_as_ours(op: dict[str, Any], want: PatchOp) -> None:
    assert parse_op(op, HISTORY) == want


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"reason": "a", "invalidateCacheReason": "b"}, ["'reason'", "'invalidateCacheReason'"]),
        ({"name": "a", "partName": "b"}, ["'name'", "'partName'"]),
        (
            {"invalidate_cache_reason": "a", "invalidateCacheReason": "b"},
            ["'invalidate_cache_reason'", "'invalidateCacheReason'"],
        ),
    ],
)
def test_two_names_of_a_field_that_differ_are_both_named(
    fields: dict[str, str], names: list[str]
) -> None:
    said = problem({"op": "system_part_set", "name": "a", "text": "T", **fields})
    assert all(name in said for name in names)


def test_two_names_of_a_field_that_agree_are_one() -> None:
    op = {"op": "system_part_set", "name": "a", "partName": "a", "text": "T", "content": "T"}
    assert parse_op(op) == SystemPartSet(name="a", text="T")


def test_options_that_stand_beside_and_within_and_differ_are_refused() -> None:
    op = {"op": "options_set", "maxTokens": 5, "options": {"max_tokens": 6}}
    assert "'max_tokens'" in problem(op)


def test_an_entry_that_is_not_in_history_is_named() -> None:
    op = {"op": "compaction_apply", "firstKeptEntryId": "gone", "reason": "long"}
    assert "'gone'" in problem(op)


def test_a_patch_of_the_documents_is_opened() -> None:
    ops = [{"op": "tools_remove", "names": ["find"], "invalidateCacheReason": "why"}]
    given_patch = {"schemaVersion": 1, "transformerName": "marker", "patch": ops,
                   "display": {"title": "Marked"}}  # fmt: skip
    plain = open_patch(given_patch)
    assert plain is not None
    assert (plain.transformer, plain.display) == ("marker", Display(title="Marked"))
    want = Patch(ops=(ToolsRemove(names=("find",), reason="why"),), display=Display(title="Marked"))
    assert read_patch("marker", [given_patch]) == want
    with pytest.raises(InvalidPatch, match="'marker', and applied as 'other'"):
        read_patch("other", [given_patch])
    with pytest.raises(InvalidPatch, match="version 2"):
        open_patch({**given_patch, "schemaVersion": 2})
    with pytest.raises(InvalidPatch, match="'colour'"):
        open_patch({**given_patch, "colour": "red"})


def test_temperature_nought_is_not_nothing() -> None:
    assert parse_op({"op": "options_set", "temperature": 0, "max_tokens": None}) == OptionsSet(
        temperature=0
    )


def test_values_may_stand_inside_a_dict() -> None:
    part = SystemPart(name="a", text="A")
    message = Message(role="user", blocks=(Text("hi"),))
    assert parse_op(
        {"op": "system_parts_replace", "parts": [part], "reason": "why"}
    ) == SystemPartsReplace(parts=(part,), reason="why")
    assert parse_op(
        {"op": "messages_uncached_append", "messages": (message,)}
    ) == MessagesUncachedAppend(messages=(message,))


def test_a_lone_surrogate_is_read_as_it_is() -> None:
    # What cannot be sent is refused where it would be written, with its place.
    op = parse_op({"op": "system_part_set", "name": "a", "text": "\ud800"})
    assert op == SystemPartSet(name="a", text="\ud800")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(object()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
FIELDS = sorted({field for kind in get_args(PatchOp) for field in kind.__struct_fields__})


@thorough
@given(
    st.sampled_from(NAMES) | ANYTHING,
    st.dictionaries(st.sampled_from([*FIELDS, "scope"]) | st.text(), ANYTHING, max_size=4),
)
def test_whatever_is_given_is_an_op_or_an_invalid_patch(name: Any, fields: dict[str, Any]) -> None:
    try:
        op = parse_op({**fields, "op": name})
    except InvalidPatch:
        return
    assert isinstance(op, PatchOp)
