"""Anthropic's Messages API on the loopback, as strict as the real one.

Laws: what it says of its cache comes from the bodies it got and from nothing else; a request that
is refused or fails costs nothing and leaves nothing in the cache.
"""

import itertools
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anyio
import msgspec

from lamina.errors import UnknownTarget
from lamina.providers.emulators.answers import EmulatedRequest, EmulatedRole
from lamina.providers.emulators.anthropic.blocks import as_blocks, read_blocks
from lamina.providers.emulators.anthropic.cache import AnthropicCache, AnthropicCacheUse
from lamina.providers.emulators.anthropic.checks import check_body
from lamina.providers.emulators.anthropic.message import AnthropicMessage, compose_message
from lamina.providers.emulators.anthropic.refusals import FAULT_REFUSALS, AnthropicRefusal
from lamina.providers.emulators.connection import hang_up, wait_for_disconnect
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
_WAIT_FAULTS = ("429", "throttle", "529")
SLOW_S = 1.0


class AnthropicEmulator(Emulator):
    """`bodies` holds the requests in order, `abandoned` counts answers whose client went away."""

    vendor = "anthropic"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.cache = AnthropicCache()
        self.bodies: list[JSON] = []
        self.cache_uses: list[AnthropicCacheUse] = []
        self.abandoned = 0
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
            self.bodies.append(body)
            if fault is not None and (failure := await self._fail(request, fault, target)):
                return failure
            cache_use = self._admit(body, target, now)
        except AnthropicRefusal as refusal:
            return self._refuse(refusal.status, refusal.kind, str(refusal))
        answer = await self.answers.answer(_read_request(body))
        message = compose_message(
            answer,
            number=next(self._numbers),
            body=body,
            cache_use=cache_use,
            diagnostics=self.cache.diagnose(cache_use),
            count=counter_for(target).count,
        )
        self.cache_uses.append(cache_use)
        self.cache.keep_fingerprint(message.id, cache_use)
        if not body.get("stream"):
            self.cache.begin(cache_use)
            self._note(cache_use, target, message.output)
            return self._json(message.body())
        events = self._stream(request, message, cache_use, target, fault)
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
        """What the request amounts to, if it fits."""
        tokens = _input_tokens(body, target)
        if tokens > target.window:
            raise AnthropicRefusal(_too_long(tokens, target))
        return self.cache.look_up(body, target, now)

    async def _stream(
        self,
        request: "Request",
        message: AnthropicMessage,
        cache_use: AnthropicCacheUse,
        target: Target,
        fault: FaultKind | None,
    ) -> AsyncIterator[bytes]:
        """The events of an answer; from the first one on its request can be read from the cache."""
        events = list(message.events())
        if fault in ("cut", "silent"):
            # In the middle of the words: neither what ends them nor what ends the message comes.
            events = events[: max(3, len(events) // 2 - 1)]
        has_ended = False
        self.cache.begin(cache_use)
        try:
            for event in events:
                yield event
                if fault == "slow" and event.startswith(b"event: content_block_delta"):
                    await anyio.sleep(SLOW_S)
                await anyio.lowlevel.checkpoint()
            if fault == "cut":
                has_ended = True
                await hang_up(request)
                await anyio.sleep_forever()
            has_ended = True
        finally:
            self.abandoned += not has_ended
            self._note(cache_use, target, message.output if has_ended and fault is None else 1)

    def _note(self, cache_use: AnthropicCacheUse, target: Target, output: int) -> None:
        self.report.add(cache_use.at, target, cache_use.usage(output), missed=cache_use.missed)

    # -- faults ----------------------------------------------------------------------------------

    async def _fail(
        self, request: "Request", fault: FaultKind, target: Target
    ) -> "Response | None":
        """What is answered instead of an answer; None if the fault is of the stream."""
        from starlette.responses import HTMLResponse, Response

        if fault in FAULT_REFUSALS:
            status, kind, words = FAULT_REFUSALS[fault]
            wait = {"retry-after": f"{self.faults.retry_after(fault):g}"}
            return self._refuse(status, kind, words, wait if fault in _WAIT_FAULTS else {})
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
                await wait_for_disconnect(request)
                self.abandoned += 1
                return Response(b"")
            case "reset":
                await hang_up(request)
                await wait_for_disconnect(request)
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
        model = self.bodies[-1].get("model") if self.bodies else None
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
        except AnthropicRefusal as refusal:
            return self._refuse(refusal.status, refusal.kind, str(refusal))
        return self._json({"input_tokens": _input_tokens(body, target)})

    async def _models(self, request: "Request") -> "Response":  # noqa: ARG002
        names: list[str] = getattr(self.book, "names", list)()
        models = [
            _describe_model(self._find(model.rstrip("*-")))
            for provider, _, model in (name.partition(":") for name in names)
            if provider == "anthropic" and model.startswith("claude-") and "[" not in model
        ]
        ends = {"first_id": models[0]["id"], "last_id": models[-1]["id"]} if models else {}
        return self._json({"data": models, "has_more": False} | ends)

    async def _model(self, request: "Request") -> "Response":
        try:
            return self._json(_describe_model(self._find(request.path_params["model"])))
        except AnthropicRefusal as refusal:
            return self._refuse(refusal.status, refusal.kind, str(refusal))


def _describe_model(target: Target) -> JSON:
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


def _read_request(body: Mapping[str, Any]) -> EmulatedRequest:
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
