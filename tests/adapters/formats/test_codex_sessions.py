"""Sessions of Codex."""

from typing import Any

from tests.adapters.formats.reader import check_laws, conversation, find, take, whats
from tests.adapters.formats.samples import CODEX, CODEX_OBJECTS, cx_item, cx_said, cx_tokens, lines

from lamina.adapters.formats.imported_session import ImportedSession
from lamina.core.journal import path_to, replay
from lamina.core.values.entry import (
    CustomEntry,
    MessageEntry,
    ModelEntry,
    SessionEntry,
    TransformEntry,
)
from lamina.core.values.message import Thinking
from lamina.core.values.patch import CompactionApply, MessagesCachedReplace
from lamina.core.values.usage import Usage

META = CODEX_OBJECTS[0]


def file_of(*objects: dict[str, Any]) -> ImportedSession:
    data = lines(META, *objects)
    session = take(data)
    check_laws(session, data)
    return session


def test_the_header_holds_the_instructions_and_the_folder() -> None:
    header = take(CODEX).entries[0]
    assert isinstance(header, SessionEntry)
    assert [part.text for part in header.system] == ["You are Codex."]
    assert header.workspace == "/home/ada/app"
    assert header.extra["codex"]["cli_version"] == "0.65.0"


def test_what_the_model_gave_in_a_row_is_one_message() -> None:
    answer = find(take(CODEX), MessageEntry)[2]
    assert answer.message.blocks[0] == Thinking(text="Use ls.", provider="openai")
    assert [(call.name, call.arguments) for call in answer.message.calls] == [
        ("shell", '{"command":["ls"]}'), ("apply_patch", '{"input":"*** Begin"}'),
    ]  # fmt: skip
    assert answer.extra["codex"]["items"][0]["encrypted_content"] == "gAAA"


def test_usage_goes_to_the_last_answer_and_repetitions_are_skipped() -> None:
    session = take(CODEX)
    answers = [e for e in find(session, MessageEntry) if e.message.role == "assistant"]
    assert [answer.usage for answer in answers] == [
        Usage(input=100, cached=60, output=7), Usage(input=150, cached=100, output=7), None,
    ]  # fmt: skip
    assert answers[0].model == "openai:gpt-5-codex"


def test_a_result_stands_behind_its_call_whatever_came_between() -> None:
    session = take(CODEX)
    (transform,) = find(session, TransformEntry)
    entries = {entry.id: entry for entry in session.entries}
    before = replay(path_to(str(transform.parent), entries)).envelope.cached
    assert [message.role for message in before] == [
        "user", "user", "assistant", "tool", "tool", "user", "assistant",
    ]  # fmt: skip


def test_a_developer_message_is_the_users_and_says_whose_it_was() -> None:
    first = find(take(CODEX), MessageEntry)[0]
    assert first.message.role == "user"
    assert first.extra["codex"]["items"] == [{"role": "developer"}]


def test_a_model_is_recorded_when_it_changes() -> None:
    session = take(CODEX)
    assert [entry.target for entry in find(session, ModelEntry)] == [
        "openai:gpt-5-codex", "openai:gpt-5.1",
    ]  # fmt: skip
    turns = [e for e in find(session, CustomEntry) if e.kind == "codex.turn_context"]
    assert [turn.data["effort"] for turn in turns] == ["high", "low"]


def test_a_replaced_history_is_the_history_from_then_on() -> None:
    session = take(CODEX)
    (op,) = find(session, TransformEntry)[0].patch.ops
    assert isinstance(op, MessagesCachedReplace)
    assert op.reason == "compacted in Codex"
    assert conversation(session)[:2] == [
        ("user", "Earlier: files were listed."),
        ("user", "Thanks"),
    ]


def test_a_compaction_with_a_summary_only_leaves_that() -> None:
    session = file_of(
        cx_said("user", "hi"), {"type": "compacted", "payload": {"message": "They greeted."}}
    )
    (op,) = find(session, TransformEntry)[0].patch.ops
    assert isinstance(op, CompactionApply)
    assert conversation(session) == [("user", "They greeted.")]


def test_a_replaced_history_is_paired() -> None:
    history = [
        {"type": "function_call_output", "call_id": "c0", "output": "lost"},
        {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": "{}"},
        {"type": "message", "role": "user", "content": "so?"},
    ]
    session = file_of({"type": "compacted", "payload": {"replacement_history": history}})
    assert whats(session) == ["unpaired", "unpaired"]
    assert [role for role, _ in conversation(session)] == ["user", "assistant", "tool", "user"]


def test_what_the_vendor_ran_itself_is_data_and_no_call() -> None:
    session = file_of(
        cx_said("user", "hi"), cx_item("web_search_call", action={"query": "x"}),
        cx_said("assistant", "found"),
    )  # fmt: skip
    assert session.problems == ()
    answer = find(session, MessageEntry)[-1]
    assert answer.message.calls == ()
    assert answer.extra["codex"]["items"][0]["action"] == {"query": "x"}


def test_a_result_without_its_call_is_told_and_a_call_without_its_result_too() -> None:
    session = file_of(
        cx_item("function_call_output", call_id="c0", output="lost"),
        cx_item("function_call", call_id="c1", name="shell", arguments="{}"),
        cx_said("user", "so?"),
    )
    assert whats(session) == ["orphan_result", "missing_result"]


def test_an_event_without_an_answer_is_only_data() -> None:
    session = file_of(cx_tokens(5, 0, 5), cx_said("user", "hi"))
    assert session.problems == ()
    assert find(session, CustomEntry)[0].kind == "codex.token_count"


def test_items_without_payloads_as_in_old_files_are_read() -> None:
    bare = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    session = take(lines({"id": "x", "timestamp": "2025-06-01T00:00:00Z"}, bare, bare))
    assert conversation(session) == [("user", "hi"), ("user", "hi")]
