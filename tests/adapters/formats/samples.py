"""Session files as the systems write them, small and a little messy."""

import base64
import json
from typing import Any

PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)
PNG_TEXT = base64.b64encode(PNG).decode()


def lines(*objects: Any) -> bytes:
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in objects).encode()


def _pi(kind: str, own: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    at = f"2025-12-01T10:00:{len(own):02d}.000Z"
    return {"type": kind, "id": own, "parentId": parent, "timestamp": at, **fields}


def pi_said(own: str, parent: str | None, text: str) -> dict[str, Any]:
    return _pi("message", own, parent, message={"role": "user", "content": text, "timestamp": 1})


def pi_answer(own: str, parent: str | None, *content: Any, **fields: Any) -> dict[str, Any]:
    message = {
        "role": "assistant", "content": list(content), "api": "anthropic-messages",
        "provider": "anthropic", "model": "claude-sonnet-4-5", "stopReason": "stop",
        "usage": {"input": 10, "output": 5, "cacheRead": 100, "cacheWrite": 20,
                  "cost": {"total": 0.01}},
    }  # fmt: skip
    return _pi("message", own, parent, message=message | fields)


def pi_result(own: str, parent: str | None, call: str, text: str) -> dict[str, Any]:
    message = {
        "role": "toolResult", "toolCallId": call, "toolName": "read", "isError": False,
        "content": [{"type": "text", "text": text}], "details": {"bytes": 3},
    }  # fmt: skip
    return _pi("message", own, parent, message=message)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


CALL = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a.md"}}
PI_HEADER = {
    "type": "session", "version": 3, "id": "0b9d", "timestamp": "2025-12-01T10:00:00.000Z",
    "cwd": "/home/ada/notes", "parentSession": "/home/ada/old.jsonl", "flavour": "dark",
}  # fmt: skip
PI_OBJECTS = (
    PI_HEADER,
    _pi("model_change", "m0", None, provider="google", modelId="gemini-2.5-pro"),
    _pi("thinking_level_change", "t0", "m0", thinkingLevel="high"),
    pi_said("u1", "t0", "What is in a.md?"),
    pi_answer("a1", "u1", {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"}, CALL),
    pi_result("r1", "a1", "c1", "alpha"),
    pi_answer("a2", "r1", text("It says alpha.")),
    _pi("label", "l1", "a2", targetId="a2", label="found it"),
    pi_said("u2", "l1", "And b.md?"),
    pi_answer("a3", "u2", text("Nothing.")),
    _pi("branch_summary", "b1", "l1", fromId="a3", summary="b.md holds nothing"),
    _pi("custom", "x1", "b1", customType="todo", data={"open": [1, 2]}),
    _pi("custom_message", "x2", "x1", customType="hint", content="Mind the gap.", display=True,
        rendererId="hints", rendererProps={"tone": "soft"}),
    _pi("message", "x3", "x2", message={"role": "bashExecution", "command": "ls", "output": "a.md",
        "exitCode": 1, "cancelled": False, "truncated": False}),
    pi_said("u3", "x3", "Look at this"),
    pi_answer("a4", "u3", text("I see.")),
    _pi("compaction", "k1", "a4", summary="Notes were read.", firstKeptEntryId="u3",
        tokensBefore=900, details={"readFiles": ["a.md"]}),
    _pi("context_transform", "p1", "k1", schemaVersion=1, transformerName="memory", patch=[
        {"op": "system_part_set", "name": "memory", "text": "Ada likes tea.",
         "invalidateCacheReason": "memory was learned", "scope": "cached"}],
        display={"title": "Memory", "rendererId": "mem", "rendererProps": {"n": 1}}),
    _pi("ephemeral", "e1", "p1", messages=[{"role": "user", "content": "for now only"}]),
    _pi("session_info", "i1", "e1", name="Notes"),
    _pi("message", "u4", "i1", message={"role": "user", "content": [
        text("What is this?"), {"type": "image", "data": PNG_TEXT, "mimeType": "image/png"}]}),
    pi_answer("a5", "u4", text("A picture."), provider="groq", model="llama-4"),
)  # fmt: skip
PI = lines(*PI_OBJECTS)

PI_V1 = lines(
    {"type": "session", "id": "old", "timestamp": "2024-11-01T00:00:00Z", "cwd": "/w",
     "provider": "anthropic"},
    {"type": "message", "timestamp": "2024-11-01T00:00:01Z",
     "message": {"role": "user", "content": "one"}},
    {"type": "message", "timestamp": "2024-11-01T00:00:02Z",
     "message": {"role": "assistant", "content": [text("two")]}},
    {"type": "message", "timestamp": "2024-11-01T00:00:03Z",
     "message": {"role": "user", "content": "three"}},
    {"type": "compaction", "timestamp": "2024-11-01T00:00:04Z", "summary": "counting",
     "firstKeptEntryIndex": 3, "tokensBefore": 9},
    {"type": "message", "timestamp": "2024-11-01T00:00:05Z",
     "message": {"role": "hookMessage", "customType": "h", "content": "hooked", "display": True}},
)  # fmt: skip


def _cc(kind: str, own: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    return {
        "parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": "/home/ada/app",
        "sessionId": "5e55", "version": "2.0.1", "type": kind, "uuid": own,
        "timestamp": "2025-12-01T10:00:00.000Z", **fields,
    }  # fmt: skip


def cc_said(own: str, parent: str | None, content: Any, **fields: Any) -> dict[str, Any]:
    return _cc("user", own, parent, message={"role": "user", "content": content}, **fields)


def cc_part(own: str, parent: str | None, message: str, *content: Any, out: int = 1,
            **fields: Any) -> dict[str, Any]:  # fmt: skip
    body = {
        "id": message, "type": "message", "role": "assistant", "model": "claude-opus-4-5",
        "content": list(content), "stop_reason": None,
        "usage": {"input_tokens": 3, "cache_creation_input_tokens": 40,
                  "cache_read_input_tokens": 500, "output_tokens": out},
    }  # fmt: skip
    return _cc("assistant", own, parent, message=body, requestId=f"req_{message}", **fields)


def use(call: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": "Bash", "input": arguments}


def outcome(call: str, content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": content}


CLAUDE_OBJECTS = (
    {"type": "summary", "summary": "Fixing the build", "leafUuid": "u-9"},
    {"type": "file-history-snapshot", "messageId": "q1", "snapshot": {"files": {}}},
    cc_said("q1", None, "Fix the build"),
    cc_part("a1", "q1", "msg_1", {"type": "thinking", "thinking": "look", "signature": "s1"}),
    cc_part("a2", "a1", "msg_1", text("I will look."), out=2),
    cc_part("a3", "a2", "msg_1", use("t1", command="make")),
    cc_part("a4", "a3", "msg_1", use("t2", command="ls"), out=77),
    cc_said("r1", "a3", [outcome("t1", "error: x")], toolUseResult={"stdout": "error: x"}),
    cc_said("r2", "a4", [outcome("t2", [text("Makefile")])]),
    cc_said("s1", None, "Search for x", isSidechain=True),
    cc_part("s2", "s1", "msg_s", text("x is in lib.c"), isSidechain=True),
    cc_part("a5", "r2", "msg_2", text("x is missing.")),
    _cc("system", "b1", None, subtype="compact_boundary", logicalParentUuid="a5",
        content="Conversation compacted", compactMetadata={"trigger": "auto", "preTokens": 9000}),
    cc_said("k1", "b1", "This session is continued: the build lacks x.", isCompactSummary=True),
    cc_said("q2", "k1", [text("Add it"), {"type": "image", "source": {
        "type": "base64", "media_type": "image/png", "data": PNG_TEXT}}]),
    cc_part("a6", "q2", "msg_3", text("Done.")),
    _cc("progress", "g1", "a6", data={"percent": 100}),
    {"type": "queue-operation", "operation": "enqueue", "sessionId": "5e55"},
    cc_part("s3", "s2", "msg_s2", text("still in lib.c"), isSidechain=True),
)  # fmt: skip
CLAUDE = lines(*CLAUDE_OBJECTS)


def _cx(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2025-12-01T10:00:00.000Z", "type": kind, "payload": payload}


def cx_item(kind: str, **fields: Any) -> dict[str, Any]:
    return _cx("response_item", type=kind, **fields)


def cx_said(role: str, words: str) -> dict[str, Any]:
    part = "output_text" if role == "assistant" else "input_text"
    return cx_item("message", role=role, content=[{"type": part, "text": words}])


def cx_tokens(last: int, cached: int, total: int) -> dict[str, Any]:
    return _cx("event_msg", type="token_count", info={
        "last_token_usage": {"input_tokens": last, "cached_input_tokens": cached,
                             "output_tokens": 7, "reasoning_output_tokens": 2},
        "total_token_usage": {"total_tokens": total}})  # fmt: skip


CODEX_OBJECTS = (
    _cx("session_meta", id="019a", timestamp="2025-12-01T09:59:59Z", cwd="/home/ada/app",
        originator="codex_cli_rs", cli_version="0.65.0", model_provider="openai",
        base_instructions={"text": "You are Codex."}),
    cx_said("developer", "<permissions>read only</permissions>"),
    _cx("turn_context", cwd="/home/ada/app", model="gpt-5-codex", effort="high"),
    cx_said("user", "List the files"),
    _cx("event_msg", type="user_message", message="List the files"),
    cx_item("reasoning", id="rs_1", summary=[{"type": "summary_text", "text": "Use ls."}],
            encrypted_content="gAAA"),
    cx_item("function_call", name="shell", arguments='{"command":["ls"]}', call_id="c1"),
    cx_item("custom_tool_call", name="apply_patch", input="*** Begin", call_id="c2", status="ok"),
    cx_tokens(100, 60, 107),
    cx_item("function_call_output", call_id="c1", output="a.txt"),
    cx_said("user", "quick!"),
    cx_item("custom_tool_call_output", call_id="c2", output={"content": "ok", "success": True}),
    cx_tokens(100, 60, 107),
    _cx("turn_context", cwd="/home/ada/app", model="gpt-5-codex", effort="high"),
    cx_said("assistant", "There is a.txt."),
    cx_tokens(150, 100, 264),
    _cx("compacted", message="", replacement_history=[
        {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "Earlier: files were listed."}]}]),
    _cx("turn_context", cwd="/home/ada/app", model="gpt-5.1", effort="low"),
    cx_said("user", "Thanks"),
    cx_item("local_shell_call", call_id="c3", status="completed",
            action={"type": "exec", "command": ["pwd"]}),
    cx_item("web_search_call", status="completed", action={"type": "search", "query": "x"}),
)  # fmt: skip
CODEX = lines(*CODEX_OBJECTS)

TOOL = {
    "type": "function",
    "function": {
        "name": "find", "description": "Finds", "parameters": {"type": "object", "properties": {}}
    },
}  # fmt: skip


def chat(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "gpt-5", "messages": list(messages), "tools": [TOOL], **fields}


def says(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **fields}


def logged(question: dict[str, Any], **response: Any) -> Any:
    record = {"request": {"timestamp": "2025-12-01T10:00:00Z", "body": question}}
    return record | {"response": response} if response else record


FIND = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"q": "x"}'}}
SYSTEM = says("system", "Be brief.")
ASKED = says("user", "Where is x?")
COMPLETION = {
    "id": "cc-1", "model": "gpt-5-2025", "choices": [{"index": 0, "finish_reason": "tool_calls",
    "message": says("assistant", None, tool_calls=[FIND])}],
    "usage": {"prompt_tokens": 50, "completion_tokens": 5,
              "prompt_tokens_details": {"cached_tokens": 32}},
}  # fmt: skip
CALLED = says("assistant", "", tool_calls=[
    {**FIND, "function": {"name": "find", "arguments": '{"q":"x"}'}}])  # fmt: skip
FOUND = says("tool", "in lib.c", tool_call_id="c1")


def _chunk(**delta: Any) -> str:
    return "data: " + json.dumps({"id": "cc-2", "model": "gpt-5-2025", "choices": [
        {"index": 0, "delta": delta, "finish_reason": None}]}) + "\n\n"  # fmt: skip


CHAT_STREAM = (
    _chunk(role="assistant", content="It is ")
    + ": keep-alive\n\n"
    + _chunk(content="in lib.c")
    + "data: " + json.dumps({"choices": [], "usage": {"prompt_tokens": 60,
        "completion_tokens": 4}}) + "\n\ndata: [DONE]\n\n"
)  # fmt: skip


def _event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


CLAUDE_STREAM = (
    _event("message_start", message={"id": "msg_9", "model": "claude-x", "role": "assistant",
           "content": [], "usage": {"input_tokens": 8, "cache_read_input_tokens": 30,
                                    "output_tokens": 1}})
    + _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    + _event("ping")
    + _event("content_block_delta", index=0, delta={"type": "text_delta", "text": "Let me "})
    + _event("content_block_delta", index=0, delta={"type": "text_delta", "text": "see."})
    + _event("content_block_start", index=1,
             content_block={"type": "tool_use", "id": "tu_1", "name": "find", "input": {}})
    + _event("content_block_delta", index=1,
             delta={"type": "input_json_delta", "partial_json": '{"q":'})
    + _event("content_block_delta", index=1,
             delta={"type": "input_json_delta", "partial_json": ' "y"}'})
    + _event("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 12})
    + _event("message_stop")
)  # fmt: skip
LOG_OBJECTS = (
    logged(chat(SYSTEM, ASKED), status_code=200, body=COMPLETION),
    logged(chat(SYSTEM, ASKED, CALLED, FOUND), status_code=200, body_raw=CHAT_STREAM),
    chat(SYSTEM, ASKED, says("assistant", "Which x?"), says("user", "Mine")),
    chat(says("system", "Be long."), ASKED, says("assistant", "Which x?"), says("user", "Mine"),
         says("assistant", "Ah."), says("user", "So?"), temperature=0.2),
    {"model": "claude-x", "max_tokens": 10, "system": [text("Be kind.")],
     "messages": [says("user", [text("Unrelated")])]},
    logged({"model": "gpt-5", "instructions": "Be brief.", "input": "Hello"}, status_code=500,
           body={"error": {"message": "overloaded"}}),
    logged({"model": "claude-x", "max_tokens": 10, "system": [text("Be kind.")],
            "messages": [says("user", [text("Unrelated")])]}, status_code=200,
           body_raw=CLAUDE_STREAM),
)  # fmt: skip
LOG = lines(*LOG_OBJECTS)

OPENCODE = json.dumps({
    "info": {"id": "ses_1", "title": "Tidy up", "directory": "/w", "version": "1.0",
             "time": {"created": 1764583200000, "updated": 1764583300000}},
    "messages": [
        {"info": {"id": "m1", "role": "user", "time": {"created": 1764583201000}},
         "parts": [{"id": "p1", "type": "text", "text": "Tidy"},
                   {"type": "file", "mime": "image/png", "url": f"data:image/png;base64,{PNG_TEXT}",
                    "filename": "x.png"}]},
        {"info": {"id": "m2", "role": "assistant", "providerID": "anthropic", "modelID": "claude-x",
                  "time": {"created": 1764583202000}, "cost": 0.1,
                  "tokens": {"input": 5, "output": 6, "reasoning": 1,
                             "cache": {"read": 10, "write": 20}}},
         "parts": [{"type": "step-start"}, {"type": "reasoning", "text": "hm"},
                   {"type": "tool", "tool": "bash", "callID": "t1", "state": {
                       "status": "completed", "input": {"c": "ls"}, "output": "a", "title": "ls"}},
                   {"type": "tool", "tool": "bash", "callID": "t2", "state": {
                       "status": "running", "input": {"c": "rm"}}},
                   {"type": "step-finish"}, {"type": "text", "text": "Tidy now."}]},
    ],
}, indent=2).encode()  # fmt: skip


def _co(kind: str, own: str, parent: str | None, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data, "id": own, "timestamp": "2025-12-13T16:26:51.136Z",
            "parentId": parent}  # fmt: skip


COPILOT_OBJECTS = (
    _co("session.start", "e1", None, sessionId="s", version=1, producer="copilot-agent",
        context={"cwd": "/w"}),
    _co("session.model_change", "e2", "e1", newModel="claude-sonnet-4.5"),
    _co("user.message", "e3", "e2", content="Hi", attachments=[]),
    _co("assistant.message", "e4", "e3", messageId="x", content="", toolRequests=[
        {"toolCallId": "t1", "name": "view", "arguments": {"path": "a"}}]),
    _co("tool.execution_start", "e5", "e4", toolCallId="t1", toolName="view"),
    _co("tool.execution_complete", "e6", "e5", toolCallId="t1", success=True,
        result={"content": "alpha"}),
    _co("assistant.message", "e7", "e6", messageId="y", content="It says alpha."),
)  # fmt: skip
COPILOT = lines(*COPILOT_OBJECTS)

GEMINI_OBJECTS: tuple[Any, ...] = (
    {"sessionId": "g1", "projectHash": "5e", "startTime": "2026-01-05T09:00:00Z", "kind": "main"},
    {"id": "1", "timestamp": "2026-01-05T09:00:00Z", "type": "user",
     "content": [{"text": "How deep?"},
                 {"inlineData": {"mimeType": "image/png", "data": PNG_TEXT}}]},
    {"id": "2", "timestamp": "2026-01-05T09:00:04Z", "type": "gemini", "content": "Let me look.",
     "model": "gemini-3-pro", "thoughts": [{"subject": "Depth", "description": "Look it up."}],
     "tokens": {"input": 90, "output": 5, "cached": 10, "thoughts": 2, "tool": 0, "total": 97},
     "toolCalls": [
         {"id": "c1", "name": "read", "args": {"path": "a.md"}, "status": "success",
          "result": [{"functionResponse": {"id": "c1", "name": "read",
                                           "response": {"output": "8 m"}}}],
          "timestamp": "2026-01-05T09:00:05Z", "resultDisplay": "8 m", "displayName": "Read"}]},
    {"id": "3", "timestamp": "2026-01-05T09:00:09Z", "type": "gemini", "content": "Eight metres.",
     "model": "gemini-3-pro"},
    {"id": "4", "timestamp": "2026-01-05T09:00:10Z", "type": "info", "content": "Saved."},
    {"id": "5", "timestamp": "2026-01-05T09:00:11Z", "type": "user", "content": "Oops"},
    {"$rewindTo": "5"},
    {"$set": {"summary": "Depths", "lastUpdated": "2026-01-05T09:00:12Z"}},
)  # fmt: skip
GEMINI = lines(*GEMINI_OBJECTS)

SAMPLES = {
    "pi": PI, "pi_v1": PI_V1, "claude_code": CLAUDE, "codex": CODEX, "request_log": LOG,
    "opencode": OPENCODE, "copilot_cli": COPILOT, "gemini_cli": GEMINI,
}  # fmt: skip
