"""Anthropic's messages, as strict as the API."""

import re
from base64 import b64decode
from functools import cached_property
from typing import Any

from tests.adapters.providers.strict import (
    JSON,
    Flat,
    Server,
    check_image,
    check_schema,
    is_text,
    require,
)

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_KNOWN = {
    "model", "max_tokens", "messages", "system", "tools", "output_config", "temperature",
    "diagnostics",
}  # fmt: skip
_FIELDS = {
    "text": {"text"},
    "image": {"source"},
    "tool_use": {"id", "name", "input"},
    "tool_result": {"tool_use_id", "content", "is_error"},
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
}
_OF_USER = {"text", "image", "tool_result"}

_USAGE: JSON = {
    "input_tokens": 50,
    "cache_read_input_tokens": 800,
    "cache_creation_input_tokens": 150,
    "cache_creation": {"ephemeral_5m_input_tokens": 150, "ephemeral_1h_input_tokens": 0},
    "output_tokens": 20,
    "service_tier": "standard",
}


class Anthropic:
    target = "anthropic:claude-sonnet-5"

    def __init__(self) -> None:
        self.usage = _USAGE
        self.server = Server(
            check,
            lambda said: {
                "type": "error",
                "error": {"type": "invalid_request_error", "message": said},
            },
        )

    @cached_property
    def _client(self) -> Any:
        import anthropic

        return anthropic.Anthropic(
            api_key="test", base_url="https://anthropic.test", max_retries=0,
            http_client=self.server.client(),
        )  # fmt: skip

    def send(self, request: JSON, reply: JSON | bytes) -> Any:
        self.server.reply = reply
        return self._client.messages.create(**request)

    def answer(self, text: str | None, *, stop: str | None = "") -> JSON:
        content = [] if text is None else [{"type": "text", "text": text}]
        return self.saying(content, "end_turn" if stop == "" else stop)

    def calling(self, *calls: tuple[str, str, JSON]) -> JSON:
        return self.saying(
            [{"type": "tool_use", "id": call, "name": name, "input": a} for call, name, a in calls],
            "tool_use",
        )

    def saying(self, content: list[JSON], stop: str | None) -> JSON:
        return {
            "id": "msg_01", "type": "message", "role": "assistant",
            "model": "claude-sonnet-5", "content": content, "stop_reason": stop,
            "stop_sequence": None, "usage": self.usage,
        }  # fmt: skip

    def system_text(self, request: JSON) -> str:
        return "".join(block["text"] for block in request.get("system", ()))

    def flatten(self, request: JSON) -> Flat:
        return [
            (message["role"], {k: v for k, v in block.items() if k != "cache_control"})
            for message in request["messages"]
            for block in message["content"]
        ]

    def images(self, request: JSON) -> list[bytes]:
        return [
            b64decode(block["source"]["data"])
            for _, block in self.flatten(request)
            if block["type"] == "image"
        ]


def check(body: JSON) -> None:
    require(set(body) <= _KNOWN, f"{sorted(set(body) - _KNOWN)}: Extra inputs are not permitted")
    require(body["max_tokens"] > 0, "max_tokens: must be positive")
    for tool in body.get("tools", ()):
        require(set(tool) <= {"name", "description", "input_schema"}, "tools: Extra inputs")
        require(_NAME.fullmatch(tool["name"]), "tools.name: does not match the pattern")
        check_schema(tool["input_schema"])
    system, messages = body.get("system", []), body["messages"]
    for block in system:
        require(block["type"] == "text", "system: only text blocks")
        _check_block("system", block)
    require(messages, "messages: at least one message is required")
    for index, message in enumerate(messages):
        role = "assistant" if index % 2 else "user"
        require(message["role"] == role, f"messages.{index}: roles do not alternate")
        require(message["content"], f"messages.{index}: content is empty")
        for block in message["content"]:
            _check_block(role, block)
    _check_pairs(messages)
    last = messages[-1]["content"][-1]
    if len(messages) % 2 == 0 and last["type"] == "text":
        require(last["text"] == last["text"].rstrip(), "final assistant content ends with space")
    blocks = [*system, *(block for message in messages for block in message["content"])]
    marked = [block for block in blocks if "cache_control" in block]
    require(len(marked) <= 4, f"A maximum of 4 blocks with cache_control, found {len(marked)}")


def _check_block(role: str, block: JSON) -> None:
    kind = block["type"]
    require(kind in _FIELDS, f"invalid block {kind!r}")
    extra = set(block) - _FIELDS[kind] - {"type"}
    if kind not in ("thinking", "redacted_thinking"):
        extra.discard("cache_control")
    require(not extra, f"{kind}.{sorted(extra)}: Extra inputs are not permitted")
    if role != "system":
        require(kind == "text" or (kind in _OF_USER) == (role == "user"), f"{kind} of the {role}")
    match kind:
        case "text":
            require(is_text(block["text"]), "text content blocks must contain non-whitespace text")
        case "image":
            require(block["source"]["type"] == "base64", "not base64")
            check_image(block["source"]["media_type"], block["source"]["data"])
        case "tool_use":
            require(_NAME.fullmatch(block["id"]), f"tool_use.id: {block['id']!r} is invalid")
            require(isinstance(block["input"], dict), "tool_use.input: not a dictionary")
        case "tool_result":
            said = block.get("content")
            require(said is None or is_text(said), "tool_result.content: is blank")
            require(said or not block.get("is_error"), "content cannot be empty if is_error")
        case "thinking":
            require(block["signature"] == sign(block["thinking"]), "invalid `signature`")


def _check_pairs(messages: list[JSON]) -> None:
    seen: set[str] = set()
    waiting: list[str] = []
    for message in messages:
        results = [b["tool_use_id"] for b in message["content"] if b["type"] == "tool_result"]
        first = [b.get("tool_use_id") for b in message["content"][: len(results)]]
        require(results == first, "tool_result blocks must come first")
        require(sorted(results) == sorted(waiting), f"{waiting} answered by {results}")
        waiting = [b["id"] for b in message["content"] if b["type"] == "tool_use"]
        require(not seen & set(waiting), "`tool_use` ids must be unique")
        require(len(set(waiting)) == len(waiting), "`tool_use` ids must be unique")
        seen |= set(waiting)
    require(not waiting, f"`tool_use` ids without `tool_result`: {waiting}")


def sign(thought: str) -> str:
    """The server's signature of a thought: it refuses one that was touched."""
    return f"signed:{len(thought)}:{thought[:8]}"
