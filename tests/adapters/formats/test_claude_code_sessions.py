"""Sessions of Claude Code."""

from typing import Any

from tests.adapters.formats.reader import check_laws, conversation, find, take, whats
from tests.adapters.formats.samples import (
    CLAUDE,
    PNG,
    cc_part,
    cc_said,
    lines,
    outcome,
    text,
    use,
)

from lamina.adapters.formats.imported_session import ImportedSession
from lamina.core.journal import path_to, replay
from lamina.core.values.entry import (
    CustomEntry,
    InfoEntry,
    MessageEntry,
    ModelEntry,
    TransformEntry,
)
from lamina.core.values.message import Thinking
from lamina.core.values.patch import CompactionApply
from lamina.core.values.usage import Usage


def file_of(*objects: dict[str, Any]) -> ImportedSession:
    data = lines(*objects)
    session = take(data)
    check_laws(session, data)
    return session


def test_a_whole_file_is_taken_without_a_problem() -> None:
    session = take(CLAUDE)
    assert session.problems == ()
    assert session.blobs == (PNG,)
    assert session.entries[0].extra == {"claude_code": {"sessionId": "5e55"}}


def test_lines_of_one_message_are_one_answer_with_the_last_usage() -> None:
    answer = find(take(CLAUDE), MessageEntry)[1]
    assert answer.message.blocks[0] == Thinking(text="look", signature="s1", provider="anthropic")
    assert answer.message.text == "I will look."
    assert [call.id for call in answer.message.calls] == ["t1", "t2"]
    assert answer.usage == Usage(input=543, cached=500, written=40, output=77)
    assert answer.extra["claude_code"]["output_tokens_untrusted"] is True
    assert [line["uuid"] for line in answer.extra["claude_code"]["merged"]] == ["a2", "a3", "a4"]


def test_results_that_hang_on_different_lines_follow_one_another() -> None:
    session = take(CLAUDE)
    first, second = [e for e in find(session, MessageEntry) if e.message.role == "tool"]
    assert second.parent == first.id
    assert first.extra["claude_code"]["toolUseResult"] == {"stdout": "error: x"}


def test_a_compaction_leaves_its_summary_on_the_path_it_belongs_to() -> None:
    session = take(CLAUDE)
    (transform,) = find(session, TransformEntry)
    (op,) = transform.patch.ops
    assert isinstance(op, CompactionApply)
    assert op.reason == "compacted in Claude Code (auto)"
    entries = {entry.id: entry for entry in session.entries}
    before = replay(path_to(str(transform.parent), entries))
    assert len(before.envelope.cached) == op.first_kept == 5
    assert conversation(session)[0] == ("user", "This session is continued: the build lacks x.")
    boundary = entries[str(transform.parent)]
    assert isinstance(boundary, CustomEntry)
    assert boundary.data["compactMetadata"] == {"trigger": "auto", "preTokens": 9000}


def test_a_side_chain_is_a_branch_of_its_own_and_never_the_leaf() -> None:
    session = take(CLAUDE)
    assert conversation(session)[-1] == ("assistant", "Done.")
    aside = [e for e in find(session, MessageEntry) if e.message.text.endswith("in lib.c")]
    entries = {entry.id: entry for entry in session.entries}
    side = replay(path_to(aside[-1].id, entries))
    assert [message.text for message in side.envelope.cached] == [
        "Search for x", "x is in lib.c", "still in lib.c",
    ]  # fmt: skip


def test_names_and_other_lines_stand_in_line() -> None:
    session = take(CLAUDE)
    assert [entry.name for entry in find(session, InfoEntry)] == ["Fixing the build"]
    assert {entry.kind for entry in find(session, CustomEntry)} == {
        "claude_code.file-history-snapshot", "claude_code.compact_boundary",
        "claude_code.progress", "claude_code.queue-operation",
    }  # fmt: skip
    assert {entry.target for entry in find(session, ModelEntry)} == {"anthropic:claude-opus-4-5"}


def test_parts_that_come_between_results_still_make_one_answer() -> None:
    session = file_of(
        cc_said("q", None, "go"), cc_part("a", "q", "m", use("t1")),
        cc_said("r1", "a", [outcome("t1", "one")]), cc_part("b", "r1", "m", use("t2")),
        cc_said("r2", "b", [outcome("t2", "two")]), cc_part("c", "r1", "n", text("done")),
    )  # fmt: skip
    assert session.problems == ()
    assert [role for role, _ in conversation(session)] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]


def test_a_second_try_of_a_call_is_a_branch() -> None:
    session = file_of(
        cc_part("a", None, "m", use("t1")), cc_said("r1", "a", [outcome("t1", "one")]),
        cc_part("b", "r1", "n", text("old")), cc_said("r2", "a", [outcome("t1", "two")]),
        cc_part("c", "r2", "o", text("new")),
    )  # fmt: skip
    assert session.problems == ()
    assert [text for _, text in conversation(session)][1:] == ["two", "new"]


def test_words_beside_a_result_are_a_message_of_their_own() -> None:
    session = file_of(
        cc_part("a", None, "m", use("t1")),
        cc_said("r", "a", [text("and hurry"), outcome("t1", "one")]),
        cc_part("b", "r", "n", text("ok")),
    )
    assert conversation(session)[1:] == [
        ("tool", "one"),
        ("user", "and hurry"),
        ("assistant", "ok"),
    ]


def test_an_image_that_a_tool_returned_is_kept_and_told() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                           "data": "iVBORw0KGgo="}}  # fmt: skip
    session = file_of(
        cc_part("a", None, "m", use("t1")), cc_said("r", "a", [outcome("t1", [picture])])
    )
    assert whats(session) == ["image"]
    assert conversation(session)[1][1].startswith("[image image/png, sha256 4c4b6a3b")
    assert session.blobs == (b"\x89PNG\r\n\x1a\n",)


def test_a_copied_line_is_not_said_twice() -> None:
    part = cc_part("a", None, "m", text("once"))
    session = file_of(part, part)
    assert whats(session) == ["duplicate"]
    assert conversation(session) == [("assistant", "once")]


def test_a_side_chain_without_its_beginning_does_not_join_the_conversation() -> None:
    session = file_of(
        cc_said("q", None, "go"), cc_part("s", "gone", "m", text("aside"), isSidechain=True),
        cc_part("a", "q", "n", text("done")),
    )  # fmt: skip
    assert whats(session) == ["missing_parent"]
    assert conversation(session) == [("user", "go"), ("assistant", "done")]


def test_a_boundary_without_its_summary_is_reported_and_cuts_nothing() -> None:
    session = file_of(
        cc_said("q", None, "go"),
        cc_said("b", None, "", logicalParentUuid="q") | {"type": "system",
                                                         "subtype": "compact_boundary"},
        cc_part("a", "b", "m", text("done")),
    )  # fmt: skip
    assert whats(session) == ["missing_summary"]
    assert conversation(session) == [("user", "go"), ("assistant", "done")]
