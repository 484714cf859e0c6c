"""OpenAI's chat completions on the loopback, and the servers that speak as they do.

Laws: models with OpenAI's names are served as strictly as OpenAI does; any other name is one of a
server that only speaks the wire: no key, no unknown argument refused, thoughts told, every prefix
kept. Names that begin with `vllm/` are cached in vLLM's blocks.
"""

import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import anyio
import msgspec
from msgspec.structs import replace

from lamina.providers.emulators.answers import EmulatedRequest
from lamina.providers.emulators.emulator import BAD_GATEWAY_HTML, Emulator
from lamina.providers.emulators.faults import FaultKind
from lamina.providers.emulators.openai.cache import OpenAICache, OpenAICacheUse, count_tokens
from lamina.providers.emulators.openai.checks import OpenAIRefusal, allowed_tool_names, check_body
from lamina.providers.emulators.openai.completion import (
    DONE_EVENT,
    CompletionStyle,
    OpenAICompletion,
)
from lamina.values.settings import Target
from lamina.values.usage import Usage

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

JSON = Mapping[str, Any]
# What some servers do not do, or do in their own way.
Quirk = Literal[
    "no_usage", "no_stream_options", "no_ids", "object_arguments", "ignores_stream"
]  # fmt: skip

_OWN = re.compile(r"(ft:)?(gpt-|chatgpt-|o\d)")
_VLLM, _VLLM_BLOCK = "vllm/", 16
_LISTED = ("gpt-4o", "gpt-4.1", "gpt-5", "gpt-5.6", "gpt-6", "vllm/any")
_SENTENCES: dict[FaultKind, tuple[int, str, str, str | None]] = {
    "429": (
        429, "Rate limit reached for {model} in organization org-emulated on requests per min "
        "(RPM): Limit 500, Used 500, Requested 1. Please try again in {ms}ms.", "requests",
        "rate_limit_exceeded",
    ),
    "throttle": (
        429, "Request too large for {model} in organization org-emulated on tokens per min (TPM): "
        "Limit 30000, Requested 35000. The input or output tokens must be reduced in order to run "
        "successfully.", "tokens", "rate_limit_exceeded",
    ),
    "500": (
        500, "The server had an error while processing your request. Sorry about that!",
        "server_error", None,
    ),
    "503": (
        503, "The engine is currently overloaded, please try again later", "service_unavailable",
        None,
    ),
    "529": (529, "The server is overloaded, please try again later", "server_error", None),
    "401": (
        401, "Incorrect API key provided: {key}. You can find your API key at "
        "https://platform.openai.com/account/api-keys.", "invalid_request_error", "invalid_api_key",
    ),
}  # fmt: skip


class OpenAIEmulator(Emulator):
    """`left` counts clients that went away in the middle of an answer; `bodies` are the latest
    requests, `headers` those of the last. `per_minute` is how many of one prefix and key a machine
    takes: OpenAI speaks of 15, but programs have no pauses for thought."""

    vendor = "openai"

    def __init__(
        self, *, quirks: Iterable[Quirk] = (), per_minute: int | None = None, **given: Any
    ) -> None:
        super().__init__(**given)
        self.quirks = frozenset(quirks)
        self.cache = OpenAICache(per_minute=per_minute)
        self.asked = 0
        self.left = 0
        self.bodies: list[dict[str, Any]] = []
        self.headers: Mapping[str, str] = {}

    def routes(self) -> "Sequence[Route]":
        from starlette.routing import Route

        return [
            Route("/v1/chat/completions", self._complete, methods=["POST"]),
            Route("/v1/models", self._models),
            Route("/v1/models/{model:path}", self._model),
        ]

    def target_of(self, model: str) -> Target:
        """What is known of a model: OpenAI's by name, any other as one of a server of its own."""
        if _OWN.match(model):
            return self.book.find(f"openai:{model.removeprefix('ft:')}")
        target = self.book.find(f"compatible:{model or 'default'}")
        if model.startswith(_VLLM):
            return replace(target, cache=replace(target.cache, step=_VLLM_BLOCK))
        return target

    # -- requests ----------------------------------------------------------------------------------

    async def _complete(self, request: "Request") -> "Response":
        self.asked += 1
        self.headers = request.headers
        kind = self.faults.next()
        try:
            body = msgspec.json.decode(await request.body())
        except msgspec.DecodeError:
            return _error(400, "We could not parse the JSON body of your request.")
        model = str(body.get("model") or "") if isinstance(body, dict) else ""
        target = self.target_of(model)
        key = request.headers.get("authorization", "").removeprefix("Bearer").strip()
        if kind is not None and (faulty := await self._fault_of(kind, request, model, key)):
            if faulty.status_code != 200:
                self.report.add(
                    self.clock.now(), target, Usage(), status=faulty.status_code, missed=kind
                )
            return faulty
        try:
            self._check(body, target, key)
            overflow = kind == "overflow"
            account = self._account(body, target, overflow=overflow)
        except OpenAIRefusal as refused:
            status = 401 if refused.code == "invalid_api_key" else 400
            self.report.add(
                self.clock.now(), target, Usage(), status=status, missed=refused.message
            )
            return _error(status, refused.message, param=refused.param, code=refused.code)
        answer = await self._answer(body, target, account)
        self.report.add(self.clock.now(), target, answer.usage, missed=account.missed)
        return await self._respond(request, body, answer, kind)

    def _check(self, body: Any, target: Target, key: str) -> None:
        own = target.provider == "openai"
        if own and not key:
            raise OpenAIRefusal(
                "You didn't provide an API key. You need to provide your API key in an "
                "Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
                code="invalid_api_key",
            )
        if isinstance(body, dict) and not body.get("model"):
            raise OpenAIRefusal("you must provide a model parameter")
        if "no_stream_options" in self.quirks and "stream_options" in body:
            raise OpenAIRefusal("Extra inputs are not permitted: stream_options", "stream_options")
        check_body(body, target, lax=not own)
        self.bodies = [*self.bodies[-63:], body]

    def _account(self, body: JSON, target: Target, *, overflow: bool) -> OpenAICacheUse:
        # An overflow on demand is one of a model that is too small for anything.
        window = 1 if overflow else target.window
        tokens = count_tokens(body, target)
        if tokens > window:
            raise OpenAIRefusal(
                f"This model's maximum context length is {target.window} tokens. However, your "
                f"messages resulted in {max(tokens, target.window + 1)} tokens. Please reduce the "
                f"length of the messages.",
                "messages",
                "context_length_exceeded",
            )
        return self.cache.take(body, target, self.clock.now())

    async def _answer(
        self, body: JSON, target: Target, account: OpenAICacheUse
    ) -> OpenAICompletion:
        said = await self.answers.answer(_asked(body, target))
        counter = self.book.counter(target)
        limit = body.get("max_completion_tokens") or body.get("max_tokens") or target.max_output
        pieces: list[str] = []
        thought = output = counter.count(said.thinking)
        finish = "tool_calls" if said.calls else "stop"
        for piece in said.pieces():
            output += counter.count(piece)
            if output > limit:
                output, finish, said = limit, "length", replace(said, calls=())
                break
            pieces.append(piece)
        for call in said.calls:
            output += counter.count(call.name) + counter.count(str(call.arguments))
        return OpenAICompletion(
            number=self.asked,
            created=int(self.clock.now()),
            model=str(body["model"]),
            said=said,
            pieces=tuple(pieces),
            finish=finish,
            account=account,
            output=output,
            thought=thought,
            style=self._style(target),
        )

    def _style(self, target: Target) -> CompletionStyle:
        return CompletionStyle(
            thinks_aloud=target.provider != "openai",
            tells_usage="no_usage" not in self.quirks,
            tells_writes=target.cache.explicit,
            gives_ids="no_ids" not in self.quirks,
            object_arguments="object_arguments" in self.quirks,
        )

    # -- answers -----------------------------------------------------------------------------------

    async def _respond(
        self, request: "Request", body: JSON, answer: OpenAICompletion, kind: FaultKind | None
    ) -> "Response":
        from starlette.responses import JSONResponse, StreamingResponse

        if body.get("stream") and "ignores_stream" not in self.quirks:
            options = body.get("stream_options") or {}
            chunks = list(answer.chunks(with_usage=bool(options.get("include_usage"))))
            return StreamingResponse(
                self._spoken(request, chunks, kind), media_type="text/event-stream"
            )
        if kind == "slow":
            await anyio.sleep(1)
        if kind == "cut":
            hang_up(request)
            await wait_for_disconnect(request)
        return JSONResponse(answer.completion(ended=kind != "silent"))

    async def _spoken(
        self, request: "Request", chunks: list[bytes], kind: FaultKind | None
    ) -> AsyncIterator[bytes]:
        ended = False
        # Half of it, and more than the role with which it opens.
        until = max(2, len(chunks) // 2) if kind in ("cut", "silent") else len(chunks)
        try:
            for chunk in chunks[:until]:
                if kind == "slow":
                    await anyio.sleep(1)
                yield chunk
            ended = kind in ("cut", "silent")
            if kind == "cut":
                hang_up(request)
            elif not ended:
                yield DONE_EVENT
                ended = True
        finally:
            self.left += not ended

    async def _fault_of(
        self, kind: FaultKind, request: "Request", model: str, key: str
    ) -> "Response | None":
        """What is answered in place of an answer, if anything."""
        from starlette.responses import HTMLResponse, Response

        after = self.faults.retry_after(kind)
        if kind in _SENTENCES:
            status, sentence, sort, code = _SENTENCES[kind]
            said = sentence.format(model=model, ms=round(after * 1_000), key=key)
            waiting = {"retry-after": f"{after:g}", "retry-after-ms": f"{after * 1_000:g}"}
            headers = waiting if kind in ("429", "503") else {}
            return _error(status, said, sort=sort, code=code, headers=headers)
        match kind:
            case "html":
                return HTMLResponse(BAD_GATEWAY_HTML)
            case "empty":
                return Response(b"", media_type="text/event-stream")
            case "reset" | "hang":
                if kind == "reset":
                    hang_up(request)
                await wait_for_disconnect(request)
                return Response(b"")
            case _:
                return None

    async def _models(self, request: "Request") -> "Response":  # noqa: ARG002
        from starlette.responses import JSONResponse

        return JSONResponse({"object": "list", "data": [_listed(name) for name in _LISTED]})

    async def _model(self, request: "Request") -> "Response":
        from starlette.responses import JSONResponse

        return JSONResponse(_listed(request.path_params["model"]))


def _listed(model: str) -> dict[str, Any]:
    return {"id": model, "object": "model", "created": 1_794_000_000, "owned_by": "emulated"}


def _asked(body: JSON, target: Target) -> EmulatedRequest:
    roles = {"developer": "system", "function": "tool"}
    names = [tool["function"]["name"] for tool in body.get("tools") or ()]
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or target.max_output
    return EmulatedRequest(
        messages=tuple(
            (roles.get(message["role"], message["role"]), _words(message.get("content")))
            for message in body["messages"]
        ),
        tools=tuple(allowed_tool_names(body.get("tool_choice"), names)),
        max_tokens=limit,
    )


def _words(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def _error(
    status: int,
    message: str,
    *,
    sort: str = "invalid_request_error",
    param: str | None = None,
    code: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> "Response":
    from starlette.responses import JSONResponse

    error = {"message": message, "type": sort, "param": param, "code": code}
    return JSONResponse({"error": error}, status, headers=dict(headers or {}))


def hang_up(request: "Request") -> None:
    """Closes the connection in the middle of whatever it was doing."""
    cycle: Any = getattr(request.receive, "__self__", None)
    cycle.transport.abort()


async def wait_for_disconnect(request: "Request") -> None:
    """Waits until the client has left."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
