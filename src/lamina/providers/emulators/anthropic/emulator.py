"""Anthropic's Messages API on the loopback, as strict as the real one.

Laws: what it says of its cache comes from the bodies it got and from nothing else; a request that
is refused or fails costs nothing and leaves nothing in the cache.
"""

import itertools
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import anyio
import msgspec

from lamina.errors import UnknownTarget
from lamina.providers.emulators.answers import EmulatedRequest
from lamina.providers.emulators.anthropic.cache import (
    AnthropicCache,
    AnthropicCacheUse,
    as_blocks,
    read_blocks,
)
from lamina.providers.emulators.anthropic.checks import AnthropicRefusal, check_body
from lamina.providers.emulators.anthropic.message import AnthropicMessage, compose_message
from lamina.providers.emulators.emulator import BAD_GATEWAY_HTML, Emulator
from lamina.providers.emulators.faults import FaultKind
from lamina.providers.tokens import counter_for
from lamina.values.settings import Target
from lamina.values.usage import Usage

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

JSON = dict[str, Any]
EmulatedRole = Literal["system", "user", "assistant", "tool"]
# Status, type and words of what goes wrong before there is an answer.
_FAILURES: dict[FaultKind, tuple[int, str, str]] = {
    "429": (429, "rate_limit_error", "This request would exceed the rate limit for your "
            "organization of 50 requests per minute."),
    "throttle": (429, "rate_limit_error", "This request would exceed the rate limit for your "
                 "organization of 40,000 input tokens per minute. Please reduce the prompt length "
                 "or the maximum tokens requested, or try again later."),
    "500": (500, "api_error", "Internal server error"),
    "503": (503, "api_error", "Service temporarily unavailable"),
    "529": (529, "overloaded_error", "Overloaded"),
    "401": (401, "authentication_error", "invalid x-api-key"),
}  # fmt: skip
_ASKED_TO_WAIT = ("429", "throttle", "529")
SLOW_S = 1.0


class AnthropicEmulator(Emulator):
    """`requests` holds the bodies in order, `dropped` counts the answers whose client went away."""

    vendor = "anthropic"

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.cache = AnthropicCache()
        self.requests: list[JSON] = []
        self.accounts: list[AnthropicCacheUse] = []
        self.dropped = 0
        self._numbers = itertools.count(1)

    def routes(self) -> "Sequence[Route]":
        from starlette.routing import Route

        return [
            Route("/v1/messages", self._messages, methods=["POST"]),
            Route("/v1/messages/count_tokens", self._count, methods=["POST"]),
            Route("/v1/models", self._models),
            Route("/v1/models/{model}", self._model),
        ]

    # -- messages --------------------------------------------------------------------------------

    async def _messages(self, request: "Request") -> "Response":
        from starlette.responses import StreamingResponse

        now = self.clock.now()
        fault = self.faults.next()
        try:
            body, target = await self._read(request)
            self.requests.append(body)
            if fault is not None and (failed := await self._fail(request, fault, target)):
                return failed
            account = self._admit(body, target, now)
        except AnthropicRefusal as refused:
            return self._refuse(refused.status, refused.kind, str(refused))
        said = await self.answers.answer(_asked(body))
        message = compose_message(
            said,
            number=next(self._numbers),
            body=body,
            account=account,
            diagnostics=self.cache.diagnose(account),
            count=counter_for(target).count,
        )
        self.accounts.append(account)
        self.cache.keep_fingerprint(message.id, account)
        if not body.get("stream"):
            self.cache.begin(account)
            self._note(account, target, message.output)
            return self._json(message.whole())
        events = self._stream(request, message, account, target, fault)
        return StreamingResponse(
            events, media_type="text/event-stream; charset=utf-8", headers=_headers(message.number)
        )

    async def _read(self, request: "Request", *, counting: bool = False) -> tuple[JSON, Target]:
        if not request.headers.get("x-api-key") and not request.headers.get("authorization"):
            raise AnthropicRefusal(
                "x-api-key header is required", status=401, kind="authentication_error"
            )
        if not request.headers.get("anthropic-version"):
            raise AnthropicRefusal("anthropic-version: header is required")
        try:
            body = msgspec.json.decode(await request.body(), type=dict[str, Any])
        except msgspec.MsgspecError as error:
            raise AnthropicRefusal("The request body is not valid JSON") from error
        target = self._find(str(body.get("model", "")))
        check_body(body, target, counting=counting)
        return body, target

    def _find(self, model: str) -> Target:
        try:
            if not model.startswith("claude-"):
                raise UnknownTarget(model, ())
            return self.book.find(f"anthropic:{model}")
        except UnknownTarget as error:
            raise AnthropicRefusal(f"model: {model}", status=404, kind="not_found_error") from error

    def _admit(self, body: JSON, target: Target, now: float) -> AnthropicCacheUse:
        """What the request comes to, if it fits."""
        tokens = _input_tokens(body, target)
        if tokens > target.window:
            raise AnthropicRefusal(_too_long(tokens, target))
        return self.cache.look_up(body, target, now)

    async def _stream(
        self,
        request: "Request",
        message: AnthropicMessage,
        account: AnthropicCacheUse,
        target: Target,
        fault: FaultKind | None,
    ) -> AsyncIterator[bytes]:
        """The events of an answer; from the first one on its request can be read from the cache."""
        events = list(message.events())
        if fault in ("cut", "silent"):
            # In the middle of the words: neither what ends them nor what ends the message comes.
            events = events[: max(3, len(events) // 2 - 1)]
        ended = False
        self.cache.begin(account)
        try:
            for event in events:
                yield event
                if fault == "slow" and event.startswith(b"event: content_block_delta"):
                    await anyio.sleep(SLOW_S)
                await anyio.lowlevel.checkpoint()
            if fault == "cut":
                _hang_up(request)
                ended = True
                await anyio.sleep_forever()
            ended = True
        finally:
            self.dropped += not ended
            self._note(account, target, message.output if ended and fault is None else 1)

    def _note(self, account: AnthropicCacheUse, target: Target, output: int) -> None:
        self.report.add(account.at, target, account.usage(output), missed=account.missed)

    # -- faults ----------------------------------------------------------------------------------

    async def _fail(
        self, request: "Request", fault: FaultKind, target: Target
    ) -> "Response | None":
        """What is answered instead of an answer; None if the fault is of the stream."""
        from starlette.responses import HTMLResponse, Response

        if fault in _FAILURES:
            status, kind, words = _FAILURES[fault]
            wait = {"retry-after": f"{self.faults.retry_after(fault):g}"}
            return self._refuse(status, kind, words, wait if fault in _ASKED_TO_WAIT else {})
        match fault:
            case "overflow":
                return self._refuse(
                    400, "invalid_request_error", _too_long(target.window + 1_234, target)
                )
            case "html":
                return HTMLResponse(BAD_GATEWAY_HTML)
            case "empty":
                return Response(b"")
            case "hang":
                await _gone(request)
                self.dropped += 1
                return Response(b"")
            case "reset":
                _hang_up(request)
                await _gone(request)
                return Response(b"")
            case _:
                return None

    def _refuse(
        self, status: int, kind: str, words: str, headers: Mapping[str, str] | None = None
    ) -> "Response":
        number = next(self._numbers)
        self.report.add(self.clock.now(), self._any_target(), Usage(), status=status, missed=words)
        body = {
            "type": "error",
            "error": {"type": kind, "message": words},
            "request_id": f"req_{number:024x}",
        }
        return self._json(body, status, dict(headers or {}))

    def _any_target(self) -> Target:
        model = self.requests[-1].get("model") if self.requests else None
        return self.book.find(f"anthropic:{model or 'claude'}")

    def _json(
        self, body: Mapping[str, Any], status: int = 200, headers: dict[str, str] | None = None
    ) -> "Response":
        from starlette.responses import Response

        return Response(
            msgspec.json.encode(body),
            status,
            headers=_headers(next(self._numbers)) | (headers or {}),
            media_type="application/json",
        )

    # -- the rest of the API ---------------------------------------------------------------------

    async def _count(self, request: "Request") -> "Response":
        try:
            body, target = await self._read(request, counting=True)
        except AnthropicRefusal as refused:
            return self._refuse(refused.status, refused.kind, str(refused))
        return self._json({"input_tokens": _input_tokens(body, target)})

    async def _models(self, request: "Request") -> "Response":  # noqa: ARG002
        names: list[str] = getattr(self.book, "names", list)()
        found = [
            _described(self._find(model.rstrip("*-")))
            for provider, _, model in (name.partition(":") for name in names)
            if provider == "anthropic" and model.startswith("claude-") and "[" not in model
        ]
        ends = {"first_id": found[0]["id"], "last_id": found[-1]["id"]} if found else {}
        return self._json({"data": found, "has_more": False} | ends)

    async def _model(self, request: "Request") -> "Response":
        try:
            return self._json(_described(self._find(request.path_params["model"])))
        except AnthropicRefusal as refused:
            return self._refuse(refused.status, refused.kind, str(refused))


def _described(target: Target) -> JSON:
    return {
        "type": "model",
        "id": target.model,
        "display_name": target.model,
        "created_at": "2026-01-01T00:00:00Z",
        "max_input_tokens": target.window,
        "max_tokens": target.max_output,
    }


def _headers(number: int) -> dict[str, str]:
    return {"request-id": f"req_{number:024x}"}


def _input_tokens(body: Mapping[str, Any], target: Target) -> int:
    until = 0
    for block in read_blocks(body, target):
        until = block.until
    return until


def _too_long(tokens: int, target: Target) -> str:
    return f"prompt is too long: {tokens} tokens > {target.window} maximum"


def _hang_up(request: "Request") -> None:
    """Closes the connection under a response. ASGI has no word for it: the server that calls us is
    asked."""
    transport = getattr(getattr(request.receive, "__self__", None), "transport", None)
    assert transport is not None, "a server that keeps its transport where uvicorn does"
    transport.close()


async def _gone(request: "Request") -> None:
    """Waits until the client has gone away."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _asked(body: Mapping[str, Any]) -> EmulatedRequest:
    messages: list[tuple[EmulatedRole, str]] = []
    if system := body.get("system"):
        messages.append(("system", "\n".join(_texts(system))))
    for message in body["messages"]:
        kinds = {block.get("type") for block in as_blocks(message["content"])}
        role: EmulatedRole = "tool" if "tool_result" in kinds else message["role"]
        messages.append((role, "\n".join(_texts(message["content"]))))
    return EmulatedRequest(
        messages=tuple(messages),
        tools=tuple(tool["name"] for tool in body.get("tools") or ()),
        max_tokens=body["max_tokens"],
    )


def _texts(content: Any) -> Iterator[str]:
    for block in as_blocks(content):
        match block.get("type"):
            case "text":
                yield block["text"]
            case "tool_result":
                yield from _texts(block.get("content") or ())
            case _:
                pass
