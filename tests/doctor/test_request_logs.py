"""Logs of requests."""

from typing import Any

from tests.adapters.formats.reader import check_laws, conversation, find, state_of, take, whats
from tests.adapters.formats.samples import (
    ASKED,
    CALLED,
    CHAT_STREAM,
    COMPLETION,
    FOUND,
    LOG,
    PNG,
    PNG_TEXT,
    SYSTEM,
    chat,
    lines,
    logged,
    says,
    text,
)

from lamina.adapters.formats.imported_session import ImportedSession
from lamina.core.journal import path_to, replay
from lamina.core.values.entry import (
    CustomEntry,
    MessageEntry,
    ModelEntry,
    SessionEntry,
    TransformEntry,
)
from lamina.core.values.patch import SystemPartsReplace, ToolsReplace
from lamina.core.values.usage import Usage


def file_of(*objects: dict[str, Any]) -> ImportedSession:
    data = lines(*objects)
    session = take(data)
    check_laws(session, data)
    return session


def texts(session: ImportedSession) -> list[str]:
    return [entry.message.text for entry in find(session, MessageEntry)]


def test_the_first_request_says_what_the_header_holds() -> None:
    header = take(LOG).entries[0]
    assert isinstance(header, SessionEntry)
    assert [part.text for part in header.system] == ["Be brief."]
    assert [tool.name for tool in header.tools] == ["find"]


def test_a_request_that_extends_another_adds_only_what_is_new() -> None:
    session = file_of(
        logged(chat(SYSTEM, ASKED), status_code=200, body=COMPLETION),
        logged(chat(SYSTEM, ASKED, CALLED, FOUND), status_code=200, body_raw=CHAT_STREAM),
    )
    assert session.problems == ()
    assert conversation(session) == [
        ("user", "Where is x?"), ("assistant", 'find{"q": "x"}'), ("tool", "in lib.c"),
        ("assistant", "It is in lib.c"),
    ]  # fmt: skip
    assert len(find(session, MessageEntry)) == 4
    first, second = [e for e in find(session, MessageEntry) if e.message.role == "assistant"]
    assert first.usage == Usage(input=50, cached=32, output=5)
    assert first.model == "openai:gpt-5-2025"
    assert second.usage == Usage(input=60, output=4, cache_reported=False)


def test_a_request_that_departs_is_a_branch_from_the_last_shared_message() -> None:
    session = file_of(
        chat(SYSTEM, ASKED, says("assistant", "A"), says("user", "B")),
        chat(SYSTEM, ASKED, says("assistant", "C"), says("user", "D")),
    )
    assert texts(session) == ["Where is x?", "A", "B", "C", "D"]
    assert conversation(session) == [("user", "Where is x?"), ("assistant", "C"), ("user", "D")]


def test_what_has_nothing_in_common_begins_at_the_header() -> None:
    session = file_of(chat(SYSTEM, ASKED), chat(SYSTEM, says("user", "Else")))
    assert conversation(session) == [("user", "Else")]


def test_a_changed_system_prompt_or_tool_set_is_a_transform_with_a_reason() -> None:
    session = file_of(
        chat(SYSTEM, ASKED),
        {**chat(says("system", "Be long."), ASKED, says("user", "more")), "tools": []},
    )
    (transform,) = find(session, TransformEntry)
    parts, tools = transform.patch.ops
    assert isinstance(parts, SystemPartsReplace)
    assert isinstance(tools, ToolsReplace)
    assert parts.reason == "the system prompt changed in the log"
    envelope = state_of(session).envelope
    assert ([part.text for part in envelope.system], envelope.tools) == (["Be long."], ())


def test_a_whole_log_keeps_its_parameters_and_errors() -> None:
    session = take(LOG)
    kept = find(session, CustomEntry)
    assert {"temperature": 0.2} in [entry.data for entry in kept]
    (failed,) = [entry for entry in kept if entry.kind == "request_log.response"]
    assert failed.data["body"] == {"error": {"message": "overloaded"}}
    targets = {entry.target for entry in find(session, ModelEntry)}
    assert targets == {"openai:gpt-5", "anthropic:claude-x"}


def test_an_anthropic_stream_is_put_together() -> None:
    session = take(LOG)
    answer = [e for e in find(session, MessageEntry) if e.message.role == "assistant"][-1]
    assert answer.message.text == "Let me see."
    assert answer.message.calls[0].arguments == '{"q":"y"}'
    assert answer.usage == Usage(input=38, cached=30, output=12)
    assert answer.model == "anthropic:claude-x"


def test_a_retry_with_the_same_answer_is_said_once_and_kept_twice() -> None:
    once = logged(chat(SYSTEM, ASKED), status_code=200, body=COMPLETION)
    session = file_of(once, once)
    assert len([e for e in find(session, MessageEntry) if e.message.calls]) == 1
    assert [e.kind for e in find(session, CustomEntry)].count("request_log.response") == 1


def test_anthropic_messages_with_results_words_and_images_are_read() -> None:
    image = {"type": "image",
             "source": {"type": "base64", "media_type": "image/png", "data": PNG_TEXT}}  # fmt: skip
    call = {"type": "tool_use", "id": "t1", "name": "find", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "x",
              "cache_control": {"type": "ephemeral"}}  # fmt: skip
    body = {"model": "claude-x", "max_tokens": 5, "system": "S", "messages": [
        says("user", [text("look"), image]), says("assistant", [call]),
        says("user", [result, text("and?")]),
    ]}  # fmt: skip
    session = file_of(body)
    assert conversation(session) == [
        ("user", "look"), ("assistant", "find{}"), ("tool", "x"), ("user", "and?"),
    ]  # fmt: skip
    assert session.blobs == (PNG,)
    tool = next(e for e in find(session, MessageEntry) if e.message.role == "tool")
    assert tool.extra["request_log"]["blocks"] == {"0": {"cache_control": {"type": "ephemeral"}}}


def test_a_moved_cache_marker_is_no_other_conversation() -> None:
    marked = {**text("one"), "cache_control": {"type": "ephemeral"}}
    body: dict[str, Any] = {"model": "claude-x", "system": "S"}
    session = file_of(
        {**body, "messages": [says("user", [marked])]},
        {**body, "messages": [says("user", [text("one")]), says("assistant", "two")]},
    )
    assert texts(session) == ["one", "two"]


def test_the_responses_api_is_read_with_its_output() -> None:
    asked = {"model": "gpt-5", "instructions": "Be brief.", "input": [
        says("user", [{"type": "input_text", "text": "hi"}])]}  # fmt: skip
    call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
    answer = {"model": "gpt-5-2025", "output": [{"type": "reasoning", "summary": []}, call],
              "usage": {"input_tokens": 9, "output_tokens": 2,
                        "input_tokens_details": {"cached_tokens": 4}}}  # fmt: skip
    result = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
    follow = {**asked, "input": [*asked["input"], call, result]}
    stream = (
        'data: {"type":"response.created","response":{"model":"gpt-5-2025"}}\n\n'
        'data: {"type":"response.output_item.done","item":{"type":"message","role":"assistant",'
        '"content":[{"type":"output_text","text":"done"}]}}\n\ndata: {"type":"resp'
    )
    session = file_of(
        logged(asked, status_code=200, body=answer),
        logged(follow, status_code=200, body_raw=stream),
    )
    assert conversation(session) == [
        ("user", "hi"), ("assistant", "f{}"), ("tool", "ok"), ("assistant", "done"),
    ]  # fmt: skip
    assert whats(session) == ["unreadable_events"]
    first = next(e for e in find(session, MessageEntry) if e.message.calls)
    assert first.usage == Usage(input=9, cached=4, output=2)


def test_a_branch_of_the_log_can_be_replayed_by_itself() -> None:
    session = take(LOG)
    entries = {entry.id: entry for entry in session.entries}
    for entry in session.entries:
        assert replay(path_to(entry.id, entries)).leaf == entry.id


def test_a_line_that_is_no_request_is_kept() -> None:
    session = file_of(chat(SYSTEM, ASKED), {"level": "info"}, chat(SYSTEM, ASKED, ASKED))
    assert [(p.line, p.what) for p in session.problems] == [(2, "unknown_type")]
    assert conversation(session) == [("user", "Where is x?")] * 2
