"""Sessions of pi."""

from typing import Any

import pytest
from tests.adapters.formats.reader import (
    active,
    check_laws,
    conversation,
    find,
    state_of,
    take,
    whats,
)
from tests.adapters.formats.samples import (
    CALL,
    PI,
    PI_HEADER,
    PI_OBJECTS,
    PI_V1,
    PNG,
    lines,
    pi_answer,
    pi_result,
    pi_said,
    text,
)

from lamina.adapters.formats.imported_session import ImportedSession
from lamina.core.journal import path_to, replay
from lamina.core.values.entry import (
    BranchSummaryEntry,
    CustomEntry,
    EphemeralEntry,
    InfoEntry,
    LabelEntry,
    LeaveEntry,
    MessageEntry,
    ModelEntry,
    SessionEntry,
    TransformEntry,
)
from lamina.core.values.message import Image, Thinking
from lamina.core.values.patch import CompactionApply, Display, OptionsSet, SystemPartSet
from lamina.core.values.usage import Usage


def ours(session: ImportedSession, foreign: str) -> Any:
    """The entry of a pi id."""
    return next(e for e in session.entries if e.extra.get("pi", {}).get("id") == foreign)


def file_of(*objects: dict[str, Any]) -> ImportedSession:
    session = take(lines(PI_HEADER, *objects))
    check_laws(session)
    return session


def entry(kind: str, own: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "id": own, "parentId": parent, **fields}


def test_a_whole_file_is_taken_without_a_problem() -> None:
    session = take(PI)
    assert session.problems == ()
    assert len(session.entries) == len(PI_OBJECTS) + len(find(session, LeaveEntry))
    assert session.blobs == (PNG,)


def test_the_header_keeps_where_it_came_from() -> None:
    header = take(PI).entries[0]
    assert isinstance(header, SessionEntry)
    assert (header.session, header.source, header.workspace) == ("s", "pi", "/home/ada/notes")
    assert header.forked_from == "/home/ada/old.jsonl"
    assert header.extra == {"pi": {"version": 3, "id": "0b9d", "flavour": "dark"}}
    assert header.at == 1764583200.0


def test_usage_counts_what_was_cached_as_input() -> None:
    answer = ours(take(PI), "a2")
    assert answer.usage == Usage(input=130, cached=100, written=20, output=5)
    assert answer.model == "anthropic:claude-sonnet-4-5"
    assert answer.extra["pi"]["message"]["usage"] == {"cost": {"total": 0.01}}


def test_thinking_keeps_its_signature_and_a_call_its_arguments() -> None:
    message = ours(take(PI), "a1").message
    assert message.blocks[0] == Thinking(text="hm", signature="sig", provider="anthropic")
    assert message.calls[0].arguments == '{"path":"a.md"}'


def test_models_get_our_names_and_others_are_compatible() -> None:
    session = take(PI)
    assert find(session, ModelEntry)[0].target == "gemini:gemini-2.5-pro"
    assert ours(session, "m0").extra["pi"]["provider"] == "google"
    foreign = ours(session, "a5")
    assert foreign.model == "compatible:llama-4"
    assert foreign.extra["pi"]["message"]["provider"] == "groq"


def test_a_thinking_level_is_an_option() -> None:
    (level, *_) = find(take(PI), TransformEntry)
    assert level.patch.ops == (OptionsSet(reasoning="high"),)


def test_the_branch_that_was_left_is_there_and_its_summary_is_told() -> None:
    session = take(PI)
    summary = ours(session, "b1")
    assert isinstance(summary, BranchSummaryEntry)
    assert summary.branch == ours(session, "a3").id
    entries = {entry.id: entry for entry in session.entries}
    branch_state = replay(path_to(summary.branch, entries))
    assert [m.text for m in branch_state.envelope.cached][-2:] == ["And b.md?", "Nothing."]
    here = replay(path_to(summary.id, entries))
    assert "b.md holds nothing" in here.envelope.cached[-1].text


def test_a_compaction_leaves_the_summary_and_what_was_kept() -> None:
    session = take(PI)
    op = ours(session, "k1").patch.ops[0]
    assert isinstance(op, CompactionApply)
    assert (op.summary, op.first_kept) == ("Notes were read.", 7)
    assert conversation(session)[:3] == [
        ("user", "Notes were read."), ("user", "Look at this"), ("assistant", "I see."),
    ]  # fmt: skip
    assert ours(session, "k1").extra["pi"]["details"] == {"readFiles": ["a.md"]}


def test_messages_of_extensions_and_of_bash_are_seen_by_the_model() -> None:
    session = take(PI)
    hint, bash = ours(session, "x2"), ours(session, "x3")
    (added,) = hint.patch.ops
    (message,) = added.messages
    assert (message.text, message.custom_type, message.shown) == ("Mind the gap.", "hint", True)
    assert hint.extra["pi"]["rendererProps"] == {"tone": "soft"}
    assert hint.extra["pi"]["display"] is True
    assert bash.message.text == "Ran `ls`\n```\na.md\n```\n\nCommand exited with code 1"
    assert bash.extra["pi"]["message"]["output"] == "a.md"


def test_a_message_of_an_extension_asks_nothing_and_can_be_the_first_that_is_kept() -> None:
    hint = entry("custom_message", "x1", "u1", customType="hint", content="Mind.", display=False)
    session = file_of(pi_said("u1", None, "hi"), hint)
    assert conversation(session) == [("user", "hi"), ("user", "Mind.")]
    assert state_of(session).envelope.cached[-1].shown is False
    cut = entry("compaction", "k1", "x1", summary="so far", firstKeptEntryId="x1")
    session = file_of(pi_said("u1", None, "hi"), hint, cut)
    assert conversation(session) == [("user", "so far"), ("user", "Mind.")]


def test_data_labels_and_names_are_no_part_of_the_context() -> None:
    session = take(PI)
    (todo,) = find(session, CustomEntry)
    assert (todo.kind, todo.data) == ("todo", {"open": [1, 2]})
    (label,) = find(session, LabelEntry)
    assert (label.target, label.label) == (ours(session, "a2").id, "found it")
    assert find(session, InfoEntry)[0].name == "Notes"


def test_a_transform_is_a_patch_and_its_renderer_survives() -> None:
    session = take(PI)
    transform = ours(session, "p1")
    assert transform.transformer == "memory"
    assert transform.patch.ops == (
        SystemPartSet(name="memory", text="Ada likes tea.", reason="memory was learned"),
    )
    assert transform.patch.display == Display(title="Memory")
    rest = transform.extra["pi"]
    assert rest["display"] == {"rendererId": "mem", "rendererProps": {"n": 1}}
    assert rest["patch"] == {"0": {"scope": "cached"}}
    assert state_of(session).envelope.system[0].text == "Ada likes tea."


def test_ops_of_a_transform_may_name_the_entry_they_keep_and_both_names_of_a_field() -> None:
    cut = {"op": "compaction_apply", "summary": "so far", "firstKeptEntryId": "u2",
           "invalidateCacheReason": "long"}  # fmt: skip
    calm = {"op": "options_set", "scope": "cached", "options": {"maxTokens": 9},
            "invalidateCacheReason": "calmer"}  # fmt: skip
    session = file_of(
        pi_said("u1", None, "one"), pi_said("u2", "u1", "two"),
        entry("context_transform", "t1", "u2", transformerName="cutter", patch=[cut, calm]),
    )  # fmt: skip
    assert session.problems == ()
    assert conversation(session) == [("user", "so far"), ("user", "two")]
    assert state_of(session).envelope.options.max_tokens == 9
    torn = {**cut, "reason": "another"}
    session = file_of(
        pi_said("u1", None, "one"), pi_said("u2", "u1", "two"),
        entry("context_transform", "t1", "u2", transformerName="cutter", patch=[torn]),
    )  # fmt: skip
    (problem,) = session.problems
    assert "'reason'" in problem.detail
    assert "'invalidateCacheReason'" in problem.detail


def test_what_was_for_one_request_only_is_kept_and_not_sent_again() -> None:
    session = take(PI)
    (ephemeral,) = find(session, EphemeralEntry)
    assert ephemeral.messages[0].text == "for now only"
    assert state_of(session).envelope.uncached == ()
    at_the_end = file_of(
        pi_said("u1", None, "hi"),
        entry("ephemeral", "e1", "u1", messages=[{"role": "user", "content": "now"}]),
    )
    assert state_of(at_the_end).envelope.uncached == ()


def test_version_one_is_a_line_and_its_index_counts_the_header() -> None:
    session = take(PI_V1)
    assert session.problems == ()
    assert conversation(session) == [("user", "counting"), ("user", "three"), ("user", "hooked")]
    assert session.entries[0].extra["pi"]["provider"] == "anthropic"
    hook_entry = session.entries[-2]
    assert hook_entry.extra["pi"]["message"]["customType"] == "h"


def test_the_last_entry_of_the_file_is_where_it_goes_on() -> None:
    session = file_of(
        pi_said("u1", None, "one"), pi_said("u2", "u1", "two"), pi_said("u3", "u1", "three")
    )
    assert conversation(session) == [("user", "one"), ("user", "three")]
    # A child that the file has before its parent is written after it.
    reverse = file_of(pi_said("u2", "u1", "two"), pi_said("u1", None, "one"))
    assert conversation(reverse) == [("user", "one")]
    assert reverse.entries[-1].parent == "000001"


def test_a_missing_parent_is_reported_and_the_entry_follows_the_one_before_it() -> None:
    session = file_of(pi_said("u1", None, "one"), pi_said("u3", "gone", "three"))
    assert [(p.line, p.what) for p in session.problems] == [(3, "missing_parent")]
    assert conversation(session) == [("user", "one"), ("user", "three")]


def test_a_cycle_of_parents_is_cut_and_reported() -> None:
    session = file_of(
        pi_said("u1", "u3", "one"), pi_said("u2", "u1", "two"), pi_said("u3", "u2", "three")
    )
    assert [(p.line, p.what) for p in session.problems] == [(2, "cycle")]
    assert [text for _, text in conversation(session)] == ["one", "two", "three"]
    alone = file_of(pi_said("u1", "u1", "me"))
    assert whats(alone) == ["cycle"]


def test_a_line_that_stands_twice_counts_once() -> None:
    twice = pi_said("u1", None, "one")
    session = file_of(twice, twice, pi_said("u1", None, "other"))
    assert whats(session) == ["duplicate", "duplicate"]
    assert sorted(e.message.text for e in find(session, MessageEntry)) == ["one", "other"]


def test_a_result_without_its_call_is_told_as_a_text() -> None:
    session = file_of(pi_said("u1", None, "hi"), pi_result("r1", "u1", "c9", "alpha"))
    assert whats(session) == ["orphan_result"]
    assert conversation(session)[1] == (
        "user", "[A tool result of read whose call is not part of this conversation]\nalpha",
    )  # fmt: skip
    assert session.entries[-2].extra["lamina"]["orphan_result"]["call_id"] == "c9"


def test_a_call_without_its_result_gets_one_that_says_so() -> None:
    session = file_of(
        pi_answer("a1", None, CALL), pi_said("u1", "a1", "stop"), pi_answer("a2", "u1", CALL)
    )
    assert whats(session) == ["missing_result", "missing_result"]
    assert [role for role, _ in conversation(session)] == [
        "assistant", "tool", "user", "assistant", "tool",
    ]  # fmt: skip


def test_a_result_that_comes_twice_between_calls_and_results_is_kept_as_data() -> None:
    other = {**CALL, "id": "c2"}
    session = file_of(
        pi_answer("a1", None, CALL, other), pi_result("r1", "a1", "c1", "one"),
        pi_result("r2", "r1", "c1", "again"), pi_result("r3", "r2", "c2", "two"),
    )  # fmt: skip
    assert whats(session) == ["orphan_result"]
    assert [text for _, text in conversation(session)][1:] == ["one", "two"]


def test_a_compaction_never_keeps_a_result_without_its_call() -> None:
    session = file_of(
        pi_said("u1", None, "hi"), pi_answer("a1", "u1", CALL), pi_result("r1", "a1", "c1", "x"),
        entry("compaction", "k1", "r1", summary="so far", firstKeptEntryId="r1"),
    )  # fmt: skip
    assert [role for role, _ in conversation(session)] == ["user", "assistant", "tool"]


def test_a_compaction_whose_kept_entry_is_unknown_keeps_none_and_says_so() -> None:
    session = file_of(
        pi_said("u1", None, "hi"),
        entry("compaction", "k1", "u1", summary="so far", firstKeptEntryId="nope"),
    )
    assert whats(session) == ["missing_kept"]
    assert conversation(session) == [("user", "so far")]


def test_a_kept_entry_that_is_no_message_keeps_what_follows_it() -> None:
    session = file_of(
        pi_said("u1", None, "one"),
        entry("model_change", "m1", "u1", provider="openai", modelId="gpt-5"),
        pi_said("u2", "m1", "two"),
        entry("compaction", "k1", "u2", summary="so far", firstKeptEntryId="m1"),
    )
    assert conversation(session) == [("user", "so far"), ("user", "two")]


def test_empty_answers_and_two_questions_in_a_row_are_taken() -> None:
    session = file_of(
        pi_said("u1", None, "one"), pi_said("u2", "u1", "two"),
        pi_answer("a1", "u2", stopReason="aborted"), pi_answer("a2", "a1", text("")),
    )  # fmt: skip
    assert session.problems == ()
    assert [role for role, _ in conversation(session)] == ["user", "user", "assistant", "assistant"]
    assert find(session, MessageEntry)[2].interrupted


@pytest.mark.parametrize(
    "op",
    [
        {"op": "system_part_levitate"},
        {"op": "system_part_set", "name": "x"},
        {"op": "system_part_set", "name": "x", "text": "y", "reason": "  "},
        {"op": "tools_replace", "tools": [{"name": "a"}, {"name": "a"}], "reason": "r"},
        {"op": "item_lay", "item": "note:a.md", "version": "1"},
        {"op": "messages_cached_replace", "messages": [{"role": "sage"}], "reason": "r"},
        "not an op",
    ],
)
def test_a_patch_that_cannot_be_read_or_applied_is_kept_as_data(op: Any) -> None:
    session = file_of(
        pi_said("u1", None, "hi"),
        entry("context_transform", "p1", "u1", transformerName="t", patch=[op]),
    )
    assert len(session.problems) == 1
    assert session.problems[0].line == 3
    (kept,) = find(session, CustomEntry)
    assert kept.data["patch"] == [op]


def test_fields_of_ops_may_be_in_either_case() -> None:
    said_in_camel = [
        {"op": "options_set", "maxTokens": 9, "temperature": 0},
        {"op": "messages_cached_replace", "messages": [{"role": "user", "content": "new"}],
         "invalidate_cache_reason": "rewritten"},
        {"op": "compaction_apply", "firstKept": 1, "summary": "s", "invalidateCacheReason": "c"},
    ]  # fmt: skip
    session = file_of(
        pi_said("u1", None, "old"), entry("context_transform", "p1", "u1", patch=said_in_camel)
    )
    assert session.problems == ()
    state = state_of(session)
    assert state.envelope.options.max_tokens == 9
    assert [message.text for message in state.envelope.cached] == ["s"]


def test_unknown_types_and_roles_are_kept_and_reported() -> None:
    session = file_of(
        entry("moon_phase", "x1", None, phase="full"),
        entry("message", "x2", "x1", message={"role": "oracle", "content": "hm"}),
        entry("label", "x3", "x2", targetId="nobody", label="l"),
        entry("model_change", "x4", "x3", provider="openai", modelId=""),
    )
    assert whats(session) == ["unknown_type", "unknown_role", "missing_target", "unknown_model"]
    assert [e.kind for e in find(session, CustomEntry)] == [
        "pi.moon_phase", "pi.message", "pi.label", "pi.model_change",
    ]  # fmt: skip


def test_a_broken_image_is_reported_and_its_part_is_kept() -> None:
    part = {"type": "image", "data": "!!!", "mimeType": "image/png"}
    session = file_of(entry("message", "u1", None, message={"role": "user", "content": [part]}))
    assert "image" in whats(session)
    assert session.entries[1].extra["pi"]["message"]["blocks"] == {"0": part}
    assert session.blobs == ()


def test_an_image_stands_in_its_message() -> None:
    message = ours(take(PI), "u4").message
    assert isinstance(message.blocks[1], Image)
    assert message.blocks[1].picture.media_type == "image/png"


def test_a_file_without_its_header_is_read_all_the_same() -> None:
    session = take(lines(*PI_OBJECTS[1:]))
    assert whats(session) == ["no_header"]
    assert conversation(session) == conversation(take(PI))
    assert len(active(session)) == len(active(take(PI)))
