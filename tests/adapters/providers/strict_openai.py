"""OpenAI's chat completions, as strict as the API."""

import json
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

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_KNOWN = {
    "model", "messages", "tools", "temperature",
    "max_completion_tokens", "reasoning_effort", "prompt_cache_key",
}  # fmt: skip

_USAGE: JSON = {
    "prompt_tokens": 1000,
    "completion_tokens": 20,
    "total_tokens": 1020,
    "prompt_tokens_details": {"cached_tokens": 800, "audio_tokens": 0},
}


class OpenAI:
    target = "openai:gpt-4o"

    def __init__(self) -> None:
        self.usage = _USAGE
        self.server = Server(check, lambda said: {"error": {"message": said, "code": None}})

    @cached_property
    def _client(self) -> Any:
        import openai

        return openai.OpenAI(
            api_key="test", base_url="https://openai.test/v1", max_retries=0,
            http_client=self.server.client(),
        )  # fmt: skip

    def send(self, request: JSON, reply: JSON | bytes) -> Any:
        self.server.reply = reply
        return self._client.chat.completions.create(**request)

    def answer(self, text: str | None, *, stop: str | None = "") -> JSON:
        message: JSON = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
        return self._body(message, "stop" if stop == "" else stop)

    def calling(self, *calls: tuple[str, str, JSON]) -> JSON:
        listed = [
            {"id": call, "type": "function", "function": {"name": name, "arguments": json.dumps(a)}}
            for call, name, a in calls
        ]
        message = {"role": "assistant", "content": None, "refusal": None, "tool_calls": listed}
        return self._body(message, "tool_calls")

    def _body(self, message: JSON, stop: str | None) -> JSON:
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": stop}
        return {
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1794000000,
            "model": "gpt-4o-2024-11-20", "choices": [choice], "usage": self.usage,
            "service_tier": "default", "system_fingerprint": "fp_1",
        }  # fmt: skip

    def system_text(self, request: JSON) -> str:
        first = request["messages"][0]
        return str(first["content"]) if first["role"] == "system" else ""

    def flatten(self, request: JSON) -> Flat:
        return [(message["role"], message) for message in request["messages"]]

    def images(self, request: JSON) -> list[bytes]:
        return [
            b64decode(part["image_url"]["url"].partition(",")[2])
            for message in request["messages"]
            if isinstance(message["content"], list)
            for part in message["content"]
            if part["type"] == "image_url"
        ]


def check(body: JSON) -> None:
    require(set(body) <= _KNOWN, f"unknown arguments: {sorted(set(body) - _KNOWN)}")
    for tool in body.get("tools", ()):
        require(tool["type"] == "function", "not a function")
        require(_NAME.fullmatch(tool["function"]["name"]), "invalid function name")
        check_schema(tool["function"]["parameters"])
    messages = body["messages"]
    require(messages, "messages is empty")
    waiting: set[str] = set()
    for index, message in enumerate(messages):
        role = message["role"]
        if role == "tool":
            call = message["tool_call_id"]
            require(call in waiting, "'tool' must follow a message with its tool_calls")
            require(isinstance(message["content"], str), "a result is a text")
            waiting.discard(call)
            continue
        require(not waiting, f"tool_call_ids without a response: {sorted(waiting)}")
        require(role in ("system", "user", "assistant"), f"invalid role {role!r}")
        require((role == "system") <= (index == 0), "the system message is not the first")
        if role == "assistant":
            waiting = _check_assistant(message)
        else:
            _check_content(message["content"])
    require(not waiting, f"tool_call_ids without a response: {sorted(waiting)}")
    require(messages[-1]["role"] in ("user", "tool"), "nothing is asked")


def _check_assistant(message: JSON) -> set[str]:
    calls = message.get("tool_calls", [])
    content = message["content"]
    require(is_text(content) or (calls and content is None), "an empty assistant message")
    for call in calls:
        require(call["type"] == "function", "not a function call")
        require(isinstance(json.loads(call["function"]["arguments"]), dict), "not an object")
    ids = {call["id"] for call in calls}
    require(len(ids) == len(calls), "ids of calls are not unique")
    return ids


def _check_content(content: str | list[JSON]) -> None:
    if isinstance(content, str):
        require(is_text(content), "an empty message")
        return
    require(content, "an empty message")
    for part in content:
        if part["type"] == "text":
            require(is_text(part["text"]), "an empty part")
        else:
            require(part["type"] == "image_url", f"invalid part {part['type']!r}")
            head, _, data = part["image_url"]["url"].partition(";base64,")
            check_image(head.removeprefix("data:"), data)
