"""Gemini's generateContent, as strict as the API."""

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

_KNOWN = {"contents", "systemInstruction", "tools", "generationConfig"}
_DATA = {"text", "inlineData", "functionCall", "functionResponse"}

_USAGE: JSON = {
    "promptTokenCount": 1000,
    "cachedContentTokenCount": 800,
    "candidatesTokenCount": 15,
    "thoughtsTokenCount": 5,
    "totalTokenCount": 1020,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 1000}],
}


class Gemini:
    target = "gemini:gemini-2.5-flash"

    def __init__(self) -> None:
        self.usage = _USAGE
        self.server = Server(
            check,
            lambda said: {"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}},
        )

    @cached_property
    def _client(self) -> Any:
        from google import genai

        options = genai.types.HttpOptions(httpx_client=self.server.client())
        return genai.Client(api_key="test", http_options=options)

    def send(self, request: JSON, reply: JSON | bytes) -> Any:
        self.server.reply = reply
        return self._client.models.generate_content(**request)

    def answer(self, text: str | None, *, stop: str | None = "") -> JSON:
        parts = None if text is None else [{"text": text}]
        return self.saying(parts, "STOP" if stop == "" else stop)

    def calling(self, *calls: tuple[str, str, JSON]) -> JSON:
        return self.saying(
            [{"functionCall": {"id": call, "name": name, "args": a}} for call, name, a in calls],
            "STOP",
        )

    def saying(self, parts: list[JSON] | None, stop: str | None) -> JSON:
        content: JSON = {"role": "model"} if parts is None else {"role": "model", "parts": parts}
        candidate: JSON = {"content": content, "index": 0}
        if stop:
            candidate["finishReason"] = stop
        return {
            "candidates": [candidate], "usageMetadata": self.usage,
            "modelVersion": "gemini-2.5-flash", "responseId": "r-1",
        }  # fmt: skip

    def system_text(self, request: JSON) -> str:
        return str(request["config"]["system_instruction"])

    def flatten(self, request: JSON) -> Flat:
        return [
            (content["role"], part) for content in request["contents"] for part in content["parts"]
        ]

    def images(self, request: JSON) -> list[bytes]:
        return [
            b64decode(part["inline_data"]["data"])
            for _, part in self.flatten(request)
            if "inline_data" in part
        ]


def check(body: JSON) -> None:
    require(set(body) <= _KNOWN, f"Unknown name {sorted(set(body) - _KNOWN)}")
    for tool in body.get("tools", ()):
        for declared in tool["functionDeclarations"]:
            check_schema(declared["parameters_json_schema"])
    if system := body.get("systemInstruction"):
        require(all(is_text(part["text"]) for part in system["parts"]), "empty instruction")
    contents = body["contents"]
    require(contents, "contents is not specified")
    called: list[tuple[str, str | None]] = []
    for index, content in enumerate(contents):
        require(content["role"] == ("model" if index % 2 else "user"), "roles do not alternate")
        require(content["parts"], "contents.parts must not be empty")
        for part in content["parts"]:
            _check_part(content["role"], part)
        answered = _named(content, "functionResponse")
        require(
            answered == called,
            "the number of function response parts is not that of the function call turn",
        )
        called = _named(content, "functionCall")
    require(contents[-1]["role"] == "user", "the last turn is not the user's")


def _check_part(role: str, part: JSON) -> None:
    data = set(part) & _DATA
    require(len(data) == 1, f"oneof field 'data' must have one initialized field: {sorted(part)}")
    require(set(part) - data <= {"thought", "thoughtSignature"}, f"Unknown name in {sorted(part)}")
    signature = part.get("thoughtSignature")
    if signature is not None:
        require(role == "model", "a signature of the user")
        raw = b64decode(signature.replace("-", "+").replace("_", "/"), validate=True)
        require(raw, "an empty signature")
    match data.pop():
        case "text":
            require(is_text(part["text"]) or signature, "a part without text")
        case "inlineData":
            # The SDK leaves this one in snake case, which the API takes as well.
            check_image(part["inlineData"]["mime_type"], part["inlineData"]["data"])
        case "functionCall":
            require(role == "model", "a call of the user")
        case "functionResponse":
            require(role == "user", "a response of the model")
            require(isinstance(part["functionResponse"]["response"], dict), "not a struct")


def _named(content: JSON, kind: str) -> list[tuple[str, str | None]]:
    return [(p[kind]["name"], p[kind].get("id")) for p in content["parts"] if kind in p]
