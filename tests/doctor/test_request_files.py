"""Requests out of what programs leave behind, in whatever state it is."""

import json
import os
import sqlite3
import tracemalloc
from base64 import b64encode
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.doctor import request_samples as samples
from tests.doctor.request_samples import AT, asked, claude_answer, logged, read, write_lines

from lamina.adapters.formats.agent_stores import files_under, find_stores, store_files
from lamina.adapters.formats.opencode_store import read_database, read_storage
from lamina.doctor.requests.request_files import read_request_bytes
from lamina.errors import UsageError

# What a file is, and what its last request read of how much.
FILES: dict[str, tuple[Any, str, int, int, str]] = {
    "claude.jsonl": (samples.CLAUDE, "claude_code", 3, 21_003, "turn"),
    "codex.jsonl": (samples.CODEX, "codex", 2, 21_000, "loop"),
    "pi.jsonl": (samples.PI, "pi", 2, 21_005, "turn"),
    "copilot.jsonl": (samples.COPILOT, "copilot_cli", 2, 21_000, "loop"),
    "gemini.json": (samples.GEMINI, "gemini_cli", 2, 21_000, "loop"),
    "gemini.jsonl": ((samples.GEMINI_INFO, *samples.GEMINI_MESSAGES), "gemini_cli", 2, 21_000,
                     "loop"),
    "opencode.json": (samples.OPENCODE, "opencode", 2, 21_005, "loop"),
    "log.jsonl": (samples.LOG, "request_log", 2, 21_000, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_the_content_says_which_program_left_it(tmp_path: Path, name: str) -> None:
    content, source, count, total, step = FILES[name]
    values = content if isinstance(content, tuple) else (content,)
    file = read(write_lines(tmp_path / "no-name", *values))
    assert (file.source, len(file.requests), file.problem_count) == (source, count, 0)
    last = file.requests[-1]
    assert (last.usage.input, last.step) == (total, step)
    assert last.at is not None
    pretty = tmp_path / "pretty"
    if not isinstance(content, tuple):
        pretty.write_text(json.dumps(content, indent=2), "utf-8")
        assert read(pretty).requests == tuple(
            r if r.file == "pretty" else _named(r, "pretty") for r in file.requests
        )


def _named(request: Any, name: str) -> Any:
    return replace(request, file=name)


def test_lines_of_one_answer_are_one_request_with_the_figures_of_the_last(tmp_path: Path) -> None:
    first, second, third = read(write_lines(tmp_path / "f.jsonl", *samples.CLAUDE)).requests
    assert first.usage.written_long == 100
    assert second.parent == first.id
    assert (first.step, second.step, third.step) == ("turn", "loop", "turn")
    assert second.at is not None
    assert first.at is not None
    assert second.at - first.at == 120


def test_a_side_chain_and_a_subagents_file_are_conversations_of_their_own(tmp_path: Path) -> None:
    lines = (
        asked("u1", None, 0), claude_answer("a1", "u1", 1, "m1", 0, 20_000),
        asked("x1", None, 2, isSidechain=True),
        claude_answer("x2", "x1", 3, "m2", 0, 9_000, isSidechain=True),
        asked("u2", "a1", 4), claude_answer("a2", "u2", 5, "m3", 20_000, 100),
        asked("y1", None, 4, isSidechain=True, agentId="7"),
        claude_answer("y2", "y1", 5, "m4", 0, 9_000, isSidechain=True, agentId="7"),
    )  # fmt: skip
    requests = read(write_lines(tmp_path / "f.jsonl", *lines)).requests
    assert [r.agent for r in requests] == ["", "side chain", "", "7"]
    assert [r.parent for r in requests] == ["", "", requests[0].id, ""]


def test_what_happened_in_between_is_told(tmp_path: Path) -> None:
    lines = (
        asked("u1", None, 0, permissionMode="default"),
        claude_answer("a1", "u1", 1, "m1", 0, 20_000),
        samples.claude_line("system", "s1", "a1", 2, subtype="compact_boundary"),
        asked("u2", "s1", 3, "[Request interrupted by user]"),
        asked("u3", "u2", 4, "<command-name>/clear</command-name>", permissionMode="plan"),
        claude_answer("a2", "u3", 5, "m2", 0, 5_000),
    )
    last = read(write_lines(tmp_path / "f.jsonl", *lines)).requests[-1]
    assert last.events == ("compaction", "interruption", "command", "permission")


def test_counts_that_did_not_move_are_no_requests(tmp_path: Path) -> None:
    first, second = read(write_lines(tmp_path / "f.jsonl", *samples.CODEX)).requests
    # The result stands in front of the count of the request that asked for it.
    assert (first.step, second.step) == ("turn", "loop")
    assert second.parameters == (("effort", "high"),)


def test_a_log_without_ids_is_told_apart_by_what_was_said(tmp_path: Path) -> None:
    lines = (
        logged(0, 5_000, 0, "sail"), logged(1, 5_000, 0, "row"),
        logged(2, 6_000, 4_000, "sail", "yes", "go"), logged(3, 6_000, 4_000, "row", "no", "so"),
    )  # fmt: skip
    requests = read(write_lines(tmp_path / "f.jsonl", *lines)).requests
    assert [r.session for r in requests] == ["f#1", "f#2", "f#1", "f#2"]
    assert requests[2].parent == requests[0].id
    assert all(r.depth == "bodies" for r in requests)


def test_two_beginnings_at_once_belong_together(tmp_path: Path) -> None:
    long = "brief " * 900
    lines = (
        logged(0, 5_000, 0, long, "ready", "north", ended_at=AT.format(2)),
        logged(1, 5_000, 0, long, "ready", "south", ended_at=AT.format(3)),
    )
    first, second = read(write_lines(tmp_path / "f.jsonl", *lines)).requests
    assert second.is_root
    assert second.session == first.session
    assert second.change is not None
    assert second.change.shared > 5_000


USAGE_LINES = {
    "OpenAI chat": {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}},
    "OpenAI responses": {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4}},
    "Anthropic": {"input_tokens": 3, "cache_read_input_tokens": 4,
                  "cache_creation_input_tokens": 2},
    "Gemini": {"promptTokenCount": 9, "cachedContentTokenCount": 4},
}  # fmt: skip


@pytest.mark.parametrize("vendor", USAGE_LINES)
def test_usage_alone_is_a_record_too(tmp_path: Path, vendor: str) -> None:
    key = "usageMetadata" if vendor == "Gemini" else "usage"
    line = {"timestamp": AT.format(0), "session_id": "s", "model": "m", key: USAGE_LINES[vendor]}
    (request,) = read(write_lines(tmp_path / "f.jsonl", line)).requests
    assert (request.usage.input, request.usage.cached, request.depth) == (9, 4, "usage")


def test_litellms_payloads_have_bodies_and_times(tmp_path: Path) -> None:
    def payload(start: float, text: str) -> Any:
        usage = {"prompt_tokens": 9_000, "prompt_tokens_details": {"cached_tokens": 0}}
        return {
            "id": str(start), "trace_id": "t", "call_type": "acompletion", "startTime": start,
            "endTime": start + 2, "model": "openai/gpt-5", "custom_llm_provider": "openai",
            "messages": [{"role": "user", "content": text}],
            "model_parameters": {"tools": [{"type": "function", "function": {"name": "a"}}]},
            "metadata": {"usage_object": usage},
        }  # fmt: skip

    lines = (payload(1_790_000_000.0, "one"), payload(1_790_000_060.0, "two"))
    first, second = read(write_lines(tmp_path / "f.jsonl", *lines)).requests
    assert (first.session, first.model, first.provider) == ("t", "gpt-5", "openai")
    assert first.ended == 1_790_000_002.0
    assert second.depth == "bodies"


def test_a_har_file_gives_what_went_to_models_and_nothing_else(tmp_path: Path) -> None:
    body = {
        "model": "claude-opus-4-6",
        "system": "S",
        "messages": [{"role": "user", "content": "x"}],
    }
    usage = {"input_tokens": 5, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 9_000}
    start = json.dumps({"type": "message_start", "message": {"usage": usage}})
    events = f'event: message_start\ndata: {start}\n\ndata: {{"type": "message_stop"}}\n\n'
    entries = [
        {"startedDateTime": AT.format(0), "time": 1500, "response": {"content": {"text": events}},
         "request": {"url": "https://x/v1/messages", "postData": {"text": json.dumps(body)},
                     "headers": [{"name": "X-Session-Id", "value": "h"}]}},
        {"startedDateTime": AT.format(1), "request": {"url": "https://x/", "headers": []},
         "response": {"content": {"text": "<html>"}}},
    ]  # fmt: skip
    path = tmp_path / "f.har"
    path.write_text(json.dumps({"log": {"entries": entries}}, indent=1), "utf-8")
    file = read(path)
    (request,) = file.requests
    assert (file.source, request.session, request.usage.written) == ("har", "h", 9_000)
    assert request.ended is not None
    assert request.at is not None
    assert request.ended - request.at == 1.5
    assert file.problem_count == 0


def har_entry(minute: int, answer: str, **content: Any) -> Any:
    body = {"model": "claude-opus-4-6", "messages": [{"role": "user", "content": f"x{minute}"}]}
    return {
        "startedDateTime": AT.format(minute), "time": 1500,
        "request": {"url": "https://x/v1/messages", "postData": {"text": json.dumps(body)},
                    "headers": []},
        "response": {"content": {"text": answer, **content}},
    }  # fmt: skip


def test_answers_of_a_har_file_may_be_in_base64(tmp_path: Path) -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 9_000}
    start = json.dumps({"type": "message_start", "message": {"usage": usage}})
    events = f'event: message_start\ndata: {start}\n\ndata: {{"type": "message_stop"}}\n\n'
    whole, streamed = (
        b64encode(t.encode()).decode() for t in (json.dumps({"usage": usage}), events)
    )
    page = {**har_entry(4, "%%%", encoding="base64")}
    page["request"] = page["request"] | {"postData": {"text": "name=value"}}
    entries = [
        har_entry(0, whole, encoding="base64"), har_entry(1, streamed, encoding="Base64"),
        har_entry(2, f"{whole[:40]}\n{whole[40:]}", encoding="base64"),
        har_entry(3, whole[:41], encoding="base64"), page,
    ]  # fmt: skip
    path = tmp_path / "f.har"
    path.write_text(json.dumps({"log": {"entries": entries}}), "utf-8")
    file = read(path)
    assert [request.usage.written for request in file.requests] == [9_000] * 3
    assert [(p.line, p.what, p.detail) for p in file.problems] == [
        (4, "unreadable", "the answer's base64 is broken")
    ]


# -- files in a bad state ------------------------------------------------------------------------


def test_torn_and_glued_lines_are_reported_and_what_is_whole_is_read(tmp_path: Path) -> None:
    lines = [json.dumps(line) for line in samples.CLAUDE]
    text = "\n".join([*lines[:4], lines[4] + lines[5], lines[6], lines[7][:-40]])
    path = tmp_path / "f.jsonl"
    path.write_text(text, "utf-8")
    file = read(path)
    assert len(file.requests) == 2
    assert [(p.line, p.what) for p in file.problems] == [(5, "glued"), (7, "torn")]


DAMAGED = ("claude.jsonl", "codex.jsonl", "pi.jsonl", "copilot.jsonl", "gemini.jsonl", "log.jsonl")
JUNK = ("npm warn: {old} package", json.dumps({"level": "info", "text": "starting"}))


def glue(lines: list[str], kind: str) -> str:
    """A file after a writer lost line ends, or with what another program wrote in front."""
    match kind:
        case "pairs":
            return "\n".join("".join(lines[n : n + 2]) for n in range(0, len(lines), 2))
        case "one line":
            return "".join(lines)
        case "old line ends":
            return "\r".join(lines)
        case _:
            return "\n".join([*JUNK * 25, *lines])


@pytest.mark.parametrize("kind", ["pairs", "one line", "old line ends", "behind junk"])
@pytest.mark.parametrize("name", DAMAGED)
def test_a_file_without_a_whole_line_among_its_first_is_still_known(
    tmp_path: Path, name: str, kind: str
) -> None:
    content, source, count, total, _ = FILES[name]
    path = tmp_path / name
    path.write_text(glue([json.dumps(line) for line in content], kind), "utf-8")
    file = read(path)
    assert (file.source, len({r.id for r in file.requests})) == (source, count)
    assert file.requests[-1].usage.input == total
    assert file.problem_count


def test_a_long_file_on_one_line_is_read(tmp_path: Path) -> None:
    lines = [json.dumps(logged(0, 9, 4, f"{n} " + "x" * 50_000, session_id="s")) for n in range(90)]
    path = tmp_path / "f.jsonl"
    path.write_text("".join(lines) + '{"torn', "utf-8")
    file = read(path)
    assert (file.source, len({r.id for r in file.requests})) == ("request_log", 90)
    assert [(p.line, p.what, p.detail) for p in file.problems] == [
        (1, "glued", "90 of 91 records on the line could be read")
    ]


def test_conversations_that_share_a_line_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text(json.dumps(logged(0, 9, 4, "a")) + json.dumps(logged(1, 9, 4, "b")), "utf-8")
    assert [r.session for r in read(path).requests] == ["f#1", "f#1.2"]


def test_a_document_over_many_lines_is_no_file_of_glued_records(tmp_path: Path) -> None:
    entries = ",\n".join(json.dumps(line) for line in samples.LOG)
    path = tmp_path / "f.json"
    path.write_text(f"[\n{entries},\n{json.dumps(samples.LOG[1], indent=1)}\n]", "utf-8")
    file = read(path)
    assert (file.source, len(file.requests), file.problem_count) == ("request_log", 3, 0)


def negative(value: Any) -> Any:
    """The same records with every figure of the cache below nothing."""
    if isinstance(value, dict):
        return {k: -7 if k in CACHE_FIGURES else negative(inner) for k, inner in value.items()}
    return [negative(inner) for inner in value] if isinstance(value, list | tuple) else value


CACHE_FIGURES = (
    "cache_read_input_tokens", "cached_input_tokens", "cacheRead", "cacheReadTokens", "cached",
    "read", "cached_tokens",
)  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_figures_below_nothing_are_reported_as_odd_and_count_as_nothing(
    tmp_path: Path, name: str
) -> None:
    content, source, count, _, _ = FILES[name]
    values = negative(content) if isinstance(content, tuple) else (negative(content),)
    file = read(write_lines(tmp_path / "f", *values))
    assert (file.source, len(file.requests)) == (source, count)
    assert {p.what for p in file.problems} == {"odd"}
    assert len(file.problems) >= count
    assert all(f"{p.detail.split()[0]} is -7 and counts as 0" == p.detail for p in file.problems)
    assert {r.usage.cached for r in file.requests} == {0}


HOSTILE = {
    "deep": b'{"a":' * 100_000,
    "deep and closed": b"[" * 5_000 + b"]" * 5_000,
    "nul": b"\x00" * 999,
    "binary": bytes(range(256)) * 40,
    "empty": b"",
    "number": b"1e999\n",
    "huge number": b'{"type":"assistant","uuid":"u","isSidechain":false,"message":{"id":"m",'
    b'"usage":{"input_tokens":' + b"9" * 400 + b"}}}\n",
    "wrong types": b'{"type":5,"uuid":[],"isSidechain":"x","message":7}\n' * 3,
    "sqlite": b"SQLite format 3\x00" + b"\x00" * 4_000,
    "utf16": '{"type":"user"}'.encode("utf-16"),
    "null": b"null\n",
    "braces": b'{"' * 500_000,
    "openings": b'x{"a":1' * 200_000,
    "figures": b'{"usage":{"prompt_tokens":1e400,"input_tokens":' + b"9" * 5_000 + b"}}\n",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_passed_over_and_said(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "f.jsonl"
    path.write_bytes(HOSTILE[kind])
    file = read(path)
    assert not file.requests
    assert file.problem_count


def test_a_hostile_line_costs_itself_alone(tmp_path: Path) -> None:
    lines = [json.dumps(line).encode() for line in samples.CLAUDE]
    for content in HOSTILE.values():
        first_line = content.split(b"\n")[0]
        path = tmp_path / "f.jsonl"
        path.write_bytes(b"\n".join([*lines[:5], first_line, *lines[5:]]))
        assert len(read(path).requests) == 3


@given(st.binary(max_size=400))
def test_no_bytes_make_reading_fail(data: bytes) -> None:
    head = json.dumps(samples.CLAUDE[1]).encode() + b"\n"
    for content in (data, head + data, data + b"\n" + head):
        read_request_bytes(BytesIO(content), "x")


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    for path, kind in ((tmp_path / "pipe.jsonl", "a named pipe"), (tmp_path, "a folder"),
                       (Path("/dev/zero"), "a device")):  # fmt: skip
        with pytest.raises(OSError, match=f"it is {kind}, and only regular files are read"):
            read(path)


# -- where programs keep them --------------------------------------------------------------------


def test_the_stores_of_a_machine_are_found_with_their_subagents(tmp_path: Path) -> None:
    projects = tmp_path / ".claude" / "projects" / "p"
    write_lines(projects / "s.jsonl", *samples.CLAUDE)
    write_lines(projects / "s" / "subagents" / "agent-7.jsonl", *samples.CLAUDE)
    write_lines(tmp_path / ".codex" / "sessions" / "2026" / "rollout-1.jsonl", *samples.CODEX)
    write_lines(tmp_path / ".pi" / "agent" / "sessions" / "x" / "1.jsonl", *samples.PI)
    write_lines(tmp_path / ".copilot" / "session-state" / "1" / "events.jsonl", *samples.COPILOT)
    write_lines(tmp_path / ".gemini" / "tmp" / "h" / "chats" / "session-1.json", samples.GEMINI)
    stores = find_stores(tmp_path, {})
    names = [(store.program, len(store_files(store))) for store in stores]
    assert names == [
        ("Claude Code", 2), ("Codex", 1), ("pi", 1), ("Copilot CLI", 1), ("Gemini CLI", 1),
    ]  # fmt: skip
    elsewhere = find_stores(tmp_path, {"CLAUDE_CONFIG_DIR": str(tmp_path / "none")})
    assert "Claude Code" not in [store.program for store in elsewhere]
    assert len(files_under(tmp_path)) == 6


def make_database(path: Path) -> Path:
    document = samples.OPENCODE
    database = sqlite3.connect(path)
    database.executescript(
        "create table session(id text, project_id text, parent_id text, directory text,"
        " title text, time_created integer, time_updated integer);"
        "create table message(id text, session_id text, time_created integer, data text);"
        "create table part(id text, message_id text, session_id text, data text);"
        "insert into session values('o', 'p', null, '/x', 'Tides', 1, 2);"
        "insert into message values('bad', 'o', 0, '{torn');"
    )
    for index, message in enumerate(document["messages"]):
        info = {key: value for key, value in message["info"].items() if key != "id"}
        own = message["info"]["id"]
        row = (own, "o", index, json.dumps(info))
        database.execute("insert into message values(?, ?, ?, ?)", row)
        for part in message["parts"]:
            database.execute("insert into part values('p', ?, 'o', ?)", (own, json.dumps(part)))
    database.commit()
    database.close()
    return path


def test_opencodes_database_and_its_folder_hold_what_an_export_holds(tmp_path: Path) -> None:
    (document,) = read_database(make_database(tmp_path / "opencode.db"))
    assert [m["info"]["id"] for m in document["messages"]] == ["1", "2", "3"]
    assert document["info"]["title"] == "Tides"
    assert [r.usage.input for r in read(tmp_path / "opencode.db").requests] == [20_005, 21_005]
    storage = tmp_path / "storage"
    write_lines(storage / "session" / "p" / "o.json", samples.OPENCODE["info"])
    for message in samples.OPENCODE["messages"]:
        own = message["info"]["id"]
        write_lines(storage / "message" / "o" / f"{own}.json", message["info"])
        write_lines(storage / "part" / own / "1.json", message["parts"][0])
    (stored,) = read_storage(storage)
    assert stored == samples.OPENCODE


def test_another_database_is_refused_with_what_is_missing(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "x.db").executescript("create table part(id text)")
    with pytest.raises(UsageError, match="lacks the tables message, session"):
        list(read_database(tmp_path / "x.db"))


def test_bodies_of_many_long_sessions_are_not_all_kept(tmp_path: Path) -> None:
    """What a log's reader holds is a few bodies a session, each part of them once."""
    text = "long " * 4_000
    lines = []
    for turn in range(8):
        messages = [text, *("and", text) * turn]
        lines += [logged(turn, 5_000, 0, *messages, session_id=f"s{n}") for n in range(40)]
    path = write_lines(tmp_path / "f.jsonl", *lines)
    tracemalloc.start()
    file = read(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(file.requests) == 320
    assert path.stat().st_size > 25_000_000
    assert peak < 20_000_000
