"""Emulates OpenAI's chat completions on the loopback, and servers that use the same wire.

Laws: models with OpenAI's names are served as strictly as OpenAI does. Any other name belongs to a
server that is only wire-compatible: it needs no key, ignores unknown arguments, shows its thoughts
and stores every prefix. Names that begin with `vllm/` are cached in vLLM's blocks.
"""

import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import anyio
import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from lamina.core.values.settings import Target
from lamina.emulators.answers import EmulatedRequest, ask
from lamina.emulators.emulator import Emulator, hang_up, wait_for_disconnect
from lamina.emulators.faults import FaultKind
from lamina.emulators.openai.cache import OpenAICache, OpenAICacheUse, count_tokens
from lamina.emulators.openai.checks import (
    FAULT_REFUSALS,
    OpenAIRefusal,
    allowed_tool_names,
    check_body,
    must_call,
)
from lamina.emulators.openai.completion import DONE_EVENT, CompletionStyle, OpenAICompletion

JSON = Mapping[str, Any]
# Features that some servers omit or implement differently.
Quirk = Literal[
    "no_usage", "no_stream_options", "no_ids", "object_arguments", "ignores_stream"
]  # fmt: skip

_OWN = re.compile(r"(ft:)?(gpt-|chatgpt-|o\d)")
# Names used by OpenAI; the book need not list each.
_FAMILIES = re.compile(
    r"(ft:)?(gpt-(3\.5|4|4o|4\.1|4\.5|5(\.\d+)?|6(\.\d+)?)(-|$)|chatgpt-4o|o[134](-|$))"
)
_VLLM, _VLLM_BLOCK = "vllm/", 16
_MODELS = ("gpt-4o", "gpt-4.1", "gpt-5", "gpt-5.6", "gpt-6", "vllm/any")


_STATUSES = {"invalid_api_key": 401, "model_not_found": 404}


class OpenAIEmulator(Emulator):
    """Emulates OpenAI and compatible servers. `bodies` are the latest requests, `headers` those of
    the last one. `per_minute` is how many requests with one prefix and key a machine accepts:
    OpenAI says 15, but programs do not pause to think."""

    vendor = "openai"
    empty_type = "text/event-stream"

    def __init__(
        self, *, quirks: Iterable[Quirk] = (), per_minute: int | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self.quirks = frozenset(quirks)
        self.cache = OpenAICache(per_minute=per_minute)
        self.request_count = 0
        self.bodies: list[dict[str, Any]] = []
        self.headers: Mapping[str, str] = {}

    def routes(self) -> Sequence[Route]:
        return [
            Route("/v1/chat/completions", self._complete, methods=["POST"]),
            Route("/v1/models", self._models),
            Route("/v1/models/{model:path}", self._model),
        ]

    def target_of(self, model: str) -> Target:
        """Return a model's target: OpenAI's by its name, any other as one of a compatible
        server."""
        if _OWN.match(model):
            return self.book.find(f"openai:{model.removeprefix('ft:')}")
        target = self.book.find(f"compatible:{model or 'default'}")
        if model.startswith(_VLLM):
            return replace(target, cache=replace(target.cache, step=_VLLM_BLOCK))
        return target

    # -- requests ----------------------------------------------------------------------------------

    async def _complete(self, request: Request) -> Response:
        self.request_count += 1
        self.headers = request.headers
        kind = self.faults.next()
        try:
            body = msgspec.json.decode(await request.body())
        except msgspec.DecodeError:
            return _error(400, "We could not parse the JSON body of your request.")
        model = str(body.get("model") or "") if isinstance(body, dict) else ""
        target = self.target_of(model)
        key = request.headers.get("authorization", "").removeprefix("Bearer").strip()
        if kind is not None and (response := await self._fault_of(kind, request, model, key)):
            if response.status_code != 200:
                self.note_refusal(target, response.status_code, kind)
            return response
        try:
            self._check(body, target, key)
            cache_use = self._charge(body, target, overflow=kind == "overflow")
        except OpenAIRefusal as refusal:
            status = _STATUSES.get(refusal.code or "", 400)
            self.note_refusal(target, status, refusal.message)
            return _error(status, refusal.message, param=refusal.param, code=refusal.code)
        answer = await self._answer(body, target, cache_use)
        self.report.add(self.clock.now(), target, answer.usage, missed=cache_use.missed)
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
        if own:
            _require_known(str(body.get("model")) if isinstance(body, dict) else "", target)
        if "no_stream_options" in self.quirks and "stream_options" in body:
            raise OpenAIRefusal("Extra inputs are not permitted: stream_options", "stream_options")
        check_body(body, target, lax=not own)
        self.bodies = [*self.bodies[-63:], body]

    def _charge(self, body: JSON, target: Target, *, overflow: bool) -> OpenAICacheUse:
        # For an overflow on demand, no request fits the model.
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
        return self.cache.use(body, target, self.clock.now())

    async def _answer(
        self, body: JSON, target: Target, cache_use: OpenAICacheUse
    ) -> OpenAICompletion:
        answer = await ask(self.answers, _read_request(body, target))
        counter = self.book.counter(target)
        limit = body.get("max_completion_tokens") or body.get("max_tokens") or target.max_output
        pieces: list[str] = []
        thoughts = output = counter.count(answer.thinking)
        finish = "tool_calls" if answer.calls else "stop"
        for piece in answer.pieces():
            output += counter.count(piece)
            if output > limit:
                output, finish, answer = limit, "length", replace(answer, calls=())
                break
            pieces.append(piece)
        for call in answer.calls:
            output += counter.count(call.name) + counter.count(str(call.arguments))
        return OpenAICompletion(
            number=self.request_count,
            created=int(self.clock.now()),
            model=str(body["model"]),
            answer=answer,
            pieces=tuple(pieces),
            finish=finish,
            cache_use=cache_use,
            output=output,
            thoughts=thoughts,
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
        self, request: Request, body: JSON, answer: OpenAICompletion, kind: FaultKind | None
    ) -> Response:
        if body.get("stream") and "ignores_stream" not in self.quirks:
            options = body.get("stream_options") or {}
            chunks = list(answer.chunks(with_usage=bool(options.get("include_usage"))))
            return StreamingResponse(
                self._stream(request, chunks, kind), media_type="text/event-stream"
            )
        if kind == "slow":
            await anyio.sleep(1)
        if kind == "cut":
            await hang_up(request)
            await wait_for_disconnect(request)
        return JSONResponse(answer.body(has_ended=kind != "silent"))

    async def _stream(
        self, request: Request, chunks: list[bytes], kind: FaultKind | None
    ) -> AsyncIterator[bytes]:
        has_ended = False
        # Half of the answer, and more than the opening role chunk.
        until = max(2, len(chunks) // 2) if kind in ("cut", "silent") else len(chunks)
        try:
            for chunk in chunks[:until]:
                if kind == "slow":
                    await anyio.sleep(1)
                yield chunk
            has_ended = kind in ("cut", "silent")
            if kind == "cut":
                await hang_up(request)
            elif not has_ended:
                yield DONE_EVENT
                has_ended = True
        finally:
            self.abandoned_count += not has_ended

    async def _fault_of(
        self, kind: FaultKind, request: Request, model: str, key: str
    ) -> Response | None:
        """Return the response sent instead of an answer; None if the answer itself is affected."""
        after = self.faults.retry_after(kind)
        if kind in FAULT_REFUSALS:
            status, sentence, sort, code = FAULT_REFUSALS[kind]
            message = sentence.format(model=model, ms=round(after * 1_000), key=key)
            wait_headers = {"retry-after": f"{after:g}", "retry-after-ms": f"{after * 1_000:g}"}
            headers = wait_headers if kind in ("429", "503") else {}
            return _error(status, message, sort=sort, code=code, headers=headers)
        return await self.fail(kind, request)

    async def _models(self, request: Request) -> Response:  # noqa: ARG002
        return JSONResponse({"object": "list", "data": [_describe_model(name) for name in _MODELS]})

    async def _model(self, request: Request) -> Response:
        model = request.path_params["model"]
        try:
            if _OWN.match(model):
                _require_known(model, self.target_of(model))
        except OpenAIRefusal as refusal:
            return _error(404, refusal.message, param=refusal.param, code=refusal.code)
        return JSONResponse(_describe_model(model))

    def refuse_path(self, request: Request, status: int) -> Response:
        where = f"({request.method} {request.url.path})"
        words = "Invalid URL" if status == 404 else "Invalid method for URL"
        return _error(status, f"{words} {where}")


def _require_known(model: str, target: Target) -> None:
    if target.prices is None and not _FAMILIES.match(model):
        raise OpenAIRefusal(
            f"The model `{model}` does not exist or you do not have access to it.", None,
            "model_not_found",
        )  # fmt: skip


def _describe_model(model: str) -> dict[str, Any]:
    return {"id": model, "object": "model", "created": 1_794_000_000, "owned_by": "emulated"}


def _read_request(body: JSON, target: Target) -> EmulatedRequest:
    roles = {"developer": "system", "function": "tool"}
    functions = {
        tool["function"]["name"]: tool["function"].get("parameters") or {}
        for tool in body.get("tools") or ()
    }
    choice = body.get("tool_choice")
    names = allowed_tool_names(choice, list(functions))
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or target.max_output
    return EmulatedRequest(
        messages=tuple(
            (roles.get(message["role"], message["role"]), _words(message.get("content")))
            for message in body["messages"]
        ),
        tools={name: functions[name] for name in names},
        called=tuple(_called(body["messages"])),
        must_call=must_call(choice),
        schema=_answer_schema(body.get("response_format") or {}),
        max_tokens=limit,
    )


def _called(messages: Sequence[JSON]) -> Iterator[str]:
    """Yield the tools that were called since the last question, latest first."""
    for message in reversed(messages):
        if message["role"] == "user":
            return
        yield from (call["function"]["name"] for call in message.get("tool_calls") or ())


def _answer_schema(form: JSON) -> dict[str, Any] | None:
    match form.get("type"):
        case "json_schema":
            return dict((form.get("json_schema") or {}).get("schema") or {})
        case "json_object":
            return {"type": "object", "properties": {"answer": {"type": "string"}}}
        case _:
            return None


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
) -> Response:
    error = {"message": message, "type": sort, "param": param, "code": code}
    return JSONResponse({"error": error}, status, headers=dict(headers or {}))
