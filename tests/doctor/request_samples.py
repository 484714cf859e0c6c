"""What programs leave behind, small: each two or three requests, one of which lost its cache."""

import json
from pathlib import Path
from typing import Any

from lamina.doctor.requests.request_files import RequestFile, read_request_file

AT = "2026-11-01T10:{:02}:00Z"


def write_lines(path: Path, *values: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values), "utf-8")
    return path


def read(path: Path) -> RequestFile:
    return read_request_file(path)


def claude_line(kind: str, own: str, parent: str | None, minute: int, **fields: Any) -> Any:
    return {
        "type": kind, "uuid": own, "parentUuid": parent, "sessionId": "s", "isSidechain": False,
        "timestamp": AT.format(minute), "version": "2.1.0", **fields,
    }  # fmt: skip


def claude_answer(
    own: str, parent: str, minute: int, message: str, read: int, written: int, **fields: Any
) -> Any:
    usage = {
        "input_tokens": 3, "cache_read_input_tokens": read, "output_tokens": 9,
        "cache_creation_input_tokens": written,
        "cache_creation": {"ephemeral_1h_input_tokens": 100, "ephemeral_5m_input_tokens": 1},
    }  # fmt: skip
    content = [{"type": "text", "text": "x"}]
    body = {
        "id": message, "role": "assistant", "model": "claude-opus-4-6", "content": content,
        "usage": usage,
    }  # fmt: skip
    return claude_line("assistant", own, parent, minute, requestId="q", message=body, **fields)


def asked(own: str, parent: str | None, minute: int, content: Any = "hi", **fields: Any) -> Any:
    message = {"role": "user", "content": content}
    return claude_line("user", own, parent, minute, message=message, **fields)


RESULT = [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]
CLAUDE = (
    {"type": "summary", "summary": "x", "leafUuid": "u"},
    asked("u1", None, 0),
    claude_answer("a1", "u1", 1, "m1", 0, 20_000),
    claude_answer("a2", "a1", 1, "m1", 0, 20_000),
    asked("u2", "a2", 2, RESULT),
    claude_answer("a3", "u2", 3, "m2", 20_000, 500),
    asked("u3", "a3", 4),
    claude_answer("a4", "u3", 5, "m3", 0, 21_000),
)


def codex_count(minute: int, total: int, read: int, so_far: int) -> Any:
    last = {"input_tokens": total, "cached_input_tokens": read, "output_tokens": 5}
    info = {"total_token_usage": {"total_tokens": so_far}, "last_token_usage": last}
    payload = {"type": "token_count", "info": info}
    return {"timestamp": AT.format(minute), "type": "event_msg", "payload": payload}


def codex_item(minute: int, kind: str, **fields: Any) -> Any:
    payload = {"type": kind, **fields}
    return {"timestamp": AT.format(minute), "type": "response_item", "payload": payload}


CODEX = (
    {"timestamp": AT.format(0), "type": "session_meta",
     "payload": {"id": "t", "model_provider": "openai"}},
    {"timestamp": AT.format(0), "type": "turn_context",
     "payload": {"model": "gpt-5", "effort": "high"}},
    codex_item(0, "message", role="user", content=[]),
    codex_item(1, "function_call", name="ls", call_id="c"),
    codex_item(1, "function_call_output", call_id="c", output="x"),
    codex_count(1, 20_000, 0, 20_005),
    codex_count(1, 20_000, 0, 20_005),
    codex_item(2, "message", role="assistant", content=[]),
    codex_count(2, 21_000, 2_432, 41_010),
)  # fmt: skip


def pi_entry(own: str, parent: str | None, minute: int, **message: Any) -> Any:
    return {
        "type": "message", "id": own, "parentId": parent, "timestamp": AT.format(minute),
        "message": message,
    }  # fmt: skip


PI_MODEL = {"provider": "anthropic", "model": "claude-opus-4-6", "content": []}
PI = (
    {"type": "session", "id": "p", "timestamp": AT.format(0), "cwd": "/x"},
    pi_entry("1", None, 0, role="user", content="hi"),
    pi_entry("2", "1", 1, role="assistant", **PI_MODEL,
             usage={"input": 5, "output": 1, "cacheRead": 0, "cacheWrite": 20_000}),
    {"type": "thinking_level_change", "id": "3", "parentId": "2", "timestamp": AT.format(1),
     "thinkingLevel": "high"},
    pi_entry("4", "3", 2, role="user", content="and"),
    pi_entry("5", "4", 3, role="assistant", **PI_MODEL,
             usage={"input": 5, "output": 1, "cacheRead": 0, "cacheWrite": 21_000}),
)  # fmt: skip
COPILOT = (
    {"type": "session.start", "id": "1", "timestamp": AT.format(0), "parentId": None,
     "data": {"sessionId": "c", "selectedModel": "claude-sonnet-4-5"}},
    {"type": "user.message", "id": "2", "timestamp": AT.format(0), "parentId": "1", "data": {}},
    {"type": "assistant.usage", "id": "3", "timestamp": AT.format(1), "parentId": "2",
     "data": {"inputTokens": 20_000, "cacheReadTokens": 0, "cacheWriteTokens": 19_000}},
    {"type": "assistant.usage", "id": "4", "timestamp": AT.format(2), "parentId": "3",
     "data": {"inputTokens": 21_000, "cacheReadTokens": 0, "cacheWriteTokens": 20_500}},
)  # fmt: skip


def gemini_message(id: str, kind: str, minute: int, **fields: Any) -> Any:
    return {"id": id, "type": kind, "timestamp": AT.format(minute), "content": "x", **fields}


def gemini_tokens(total: int, read: int) -> Any:
    return {"input": total, "output": 9, "cached": read, "thoughts": 1, "tool": 0}


GEMINI_CALL = {
    "id": "c1", "name": "read", "args": {"path": "a"}, "status": "success",
    "timestamp": AT.format(1),
    "result": [{"functionResponse": {"name": "read", "response": {"output": "8 m"}}}],
}  # fmt: skip
GEMINI_MESSAGES = (
    gemini_message("1", "user", 0),
    gemini_message("2", "gemini", 1, model="gemini-3-pro", tokens=gemini_tokens(20_000, 0),
                   toolCalls=[GEMINI_CALL]),
    gemini_message("3", "gemini", 2, model="gemini-3-pro", tokens=gemini_tokens(21_000, 0)),
    gemini_message("4", "info", 2),
)  # fmt: skip
GEMINI_INFO = {"sessionId": "g", "projectHash": "h", "startTime": AT.format(0)}
GEMINI = {**GEMINI_INFO, "messages": list(GEMINI_MESSAGES)}


def opencode_answer(id: str, created: int, read: int, written: int) -> Any:
    tokens = {"input": 5, "output": 2, "reasoning": 0, "cache": {"read": read, "write": written}}
    return {
        "id": id, "role": "assistant", "providerID": "anthropic", "modelID": "claude-opus-4-6",
        "time": {"created": created}, "tokens": tokens,
    }  # fmt: skip


OPENCODE: dict[str, Any] = {
    "info": {"id": "o", "title": "Tides", "directory": "/x", "time": {"created": 1_790_000_000}},
    "messages": [
        {"info": {"id": "1", "role": "user", "time": {"created": 1_790_000_000_000}},
         "parts": [{"type": "text", "text": "hi"}]},
        {"info": opencode_answer("2", 1_790_000_001_000, 0, 20_000),
         "parts": [{"type": "text", "text": "yes"}]},
        {"info": opencode_answer("3", 1_790_000_002_000, 0, 21_000),
         "parts": [{"type": "text", "text": "no"}]},
    ],
}  # fmt: skip


def logged(minute: int, total: int, read: int, *messages: str, **fields: Any) -> Any:
    """A line of a request log to OpenAI."""
    body = {
        "model": "gpt-5",
        "messages": [{"role": "user" if n % 2 == 0 else "assistant", "content": text}
                     for n, text in enumerate(messages)],
    }  # fmt: skip
    usage = {"prompt_tokens": total, "prompt_tokens_details": {"cached_tokens": read}}
    return {
        "request": {"timestamp": AT.format(minute), "body": body},
        "response": {"status_code": 200, "body": {"usage": usage}}, "provider": "openai", **fields,
    }  # fmt: skip


LOG = (
    logged(0, 20_000, 0, "hi there " * 9_000, "yes", "so", session_id="l"),
    logged(1, 21_000, 0, "HI there " * 9_000, "yes", "so", "hm", "and", session_id="l"),
)
