"""Emulates Gemini's API on the loopback: generateContent, streamed and not, countTokens, models,
caches.

Laws: a request is checked, counted and looked up in the cache before anything else is done, and is
stored in the cache only once its answer begins. Every answer gets its own signatures, and the
emulator recognises all of them.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Iterator, Sequence
from hashlib import sha256
from itertools import count as numbers
from typing import Any

import anyio
import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from lamina.core.values.settings import Target
from lamina.core.values.usage import Usage
from lamina.emulators.answers import EmulatedAnswer, EmulatedRequest, ask
from lamina.emulators.emulator import Emulator, Handler, hang_up
from lamina.emulators.faults import FaultKind
from lamina.emulators.gemini.bodies import (
    CacheBody,
    CountBody,
    FunctionDeclaration,
    GeminiContent,
    GeminiRefusal,
    GenerateBody,
    GenerationConfig,
    invalid_argument,
    key_of,
    owner_of,
    read_body,
    read_json_body,
    refusal_for_fault,
    texts_of,
)
from lamina.emulators.gemini.cache import CountTokens, GeminiCache, GeminiCacheUse
from lamina.emulators.gemini.cached_content_routes import CachedContentRoutes
from lamina.emulators.gemini.checks import (
    SIGNATURE_PREFIX,
    check_contents,
    check_front,
    check_generate,
    signs_calls,
)
from lamina.errors import LaminaError


def read_request(body: GenerateBody) -> EmulatedRequest:
    """Read the required content and format of an answer to `body`."""
    messages: list[Any] = list(texts_of(body.contents))
    if (system := body.system_instruction) is not None:
        messages.insert(0, ("system", "".join(part.text or "" for part in system.parts)))
    config = body.generation_config or GenerationConfig()
    calling = body.tool_config.function_calling_config if body.tool_config else None
    mode = (calling.mode if calling else None) or "AUTO"
    names = calling.allowed_function_names if calling else None
    functions = [d for tool in body.tools for d in tool.function_declarations]
    return EmulatedRequest(
        messages=tuple(messages),
        tools={
            function.name: _parameters(function)
            for function in functions
            if mode != "NONE" and (names is None or function.name in names)
        },
        called=tuple(_called(body.contents)),
        must_call=mode == "ANY",
        schema=_answer_schema(config),
        max_tokens=config.max_output_tokens or 256,
    )


def _called(contents: Sequence[GeminiContent]) -> Iterator[str]:
    """Yield the tools that were called since the last question, latest first."""
    for content in reversed(contents):
        if content.role != "model" and not any(p.function_response for p in content.parts):
            return
        yield from (part.function_call.name for part in content.parts if part.function_call)


def _answer_schema(config: GenerationConfig) -> dict[str, Any] | None:
    if config.response_mime_type != "application/json":
        return None
    if config.response_json_schema is not None:
        return config.response_json_schema
    if config.response_schema is not None:
        return dict(_plain(config.response_schema))
    return {"type": "object", "properties": {"answer": {"type": "string"}}}


def _parameters(function: FunctionDeclaration) -> dict[str, Any]:
    return function.parameters_json_schema or dict(_plain(function.parameters or {}))


def _plain(schema: Any) -> Any:
    """Convert a schema in Google's own format to JSON Schema, with the types in lower case."""
    if isinstance(schema, list):
        return [_plain(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: inner.lower() if key == "type" and isinstance(inner, str) else _plain(inner)
        for key, inner in schema.items()
    }


def response_parts(
    answer: EmulatedAnswer, body: GenerateBody, model: str, response: str
) -> Iterator[dict[str, Any]]:
    """Yield an answer's parts as they are streamed: thoughts if requested, text, calls."""
    config = body.generation_config
    thinking = config.thinking_config if config else None
    if answer.thinking and thinking is not None and thinking.include_thoughts:
        for piece in EmulatedAnswer(text=answer.thinking).pieces():
            yield {"text": piece, "thought": True}
    if answer.text:
        for piece in answer.pieces():
            yield {"text": piece}
    for index, call in enumerate(answer.calls):
        function_call: dict[str, Any] = {"name": call.name, "args": call.arguments}
        part: dict[str, Any] = {"functionCall": function_call}
        if signs_calls(model):
            # Older models often send no ids. Of parallel calls only the first is signed.
            function_call["id"] = f"{response}-{index}"
            if index == 0:
                part["thoughtSignature"] = _sign(response)
        yield part


def closing_parts(answer: EmulatedAnswer, model: str) -> list[dict[str, Any]]:
    """Return the parts that close a stream: an answer's signature, on an empty text."""
    if answer.calls or not answer.thinking or not signs_calls(model):
        return []
    return [{"text": "", "thoughtSignature": _sign(answer.text)}]


def join_parts(parts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the parts of an answer in one piece: a text is one part, and carries its signature."""
    joined: list[dict[str, Any]] = []
    for part in parts:
        before = joined[-1] if joined else {}
        is_text = "text" in part and "text" in before and "thoughtSignature" not in before
        if is_text and part.get("thought") == before.get("thought"):
            joined[-1] = before | part | {"text": before["text"] + part["text"]}
        else:
            joined.append(part)
    return joined


def _sign(what: str) -> str:
    return b64encode(b64decode(SIGNATURE_PREFIX) + sha256(what.encode()).digest()[:18]).decode()


# Names used by Google; the book need not list each.
_FAMILIES = re.compile(r"gemini-(1\.5|2\.0|2\.5|3(\.\d)?|4(\.\d)?)-(pro|flash|ultra)")
_METHODS = ("generateContent", "streamGenerateContent", "countTokens")


class _Exchange(Struct, kw_only=True):
    """One request and the answer to it."""

    use: GeminiCacheUse
    answer: EmulatedAnswer
    body: GenerateBody
    id: str
    fault: FaultKind | None


class GeminiEmulator(Emulator):
    vendor = "gemini"
    empty_type = "application/json"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.cache = GeminiCache()
        self._numbers = numbers(1)
        self.caches = CachedContentRoutes(self.cache, self.report, self.clock.now, self._count)

    def routes(self) -> Sequence[Route]:
        routes = [
            ("/models", ["GET"], self._list_models),
            ("/models/{model}", ["GET"], self._get_model),
            ("/models/{model}:{method}", ["POST"], self._call_model),
            ("/cachedContents", ["GET"], self.caches.list),
            ("/cachedContents", ["POST"], self._create_cache),
            ("/cachedContents/{id}", ["GET"], self.caches.get),
            ("/cachedContents/{id}", ["PATCH"], self.caches.update),
            ("/cachedContents/{id}", ["DELETE"], self.caches.delete),
        ]
        return [
            Route(f"/{version}{path}", self._guard(handler), methods=methods)
            for version in ("v1", "v1beta")
            for path, methods, handler in routes
        ]

    def _guard(self, handler: Handler) -> Handler:
        """Return the handler for callers with a key, with its refusals in the API's own format."""

        async def handle(request: Request) -> Response:
            self.settle()
            try:
                if not key_of(request):
                    raise GeminiRefusal(
                        403,
                        "PERMISSION_DENIED",
                        "Method doesn't allow unregistered callers (callers without established "
                        "identity). Please use API Key or other form of API consumer identity to "
                        "call this API.",
                    )
                return await handler(request)
            except GeminiRefusal as refusal:
                model = request.path_params.get("model", "")
                target = self.book.find(f"gemini:{model or 'gemini'}")
                self.note_refusal(target, refusal.code)
                return JSONResponse(refusal.body(), refusal.code)

        return handle

    def refuse_path(self, request: Request, status: int) -> Response:
        words = f"Requested entity was not found: {request.method} {request.url.path}"
        if status == 405:
            words = f"The method {request.method} is not supported for {request.url.path}"
        kind = "NOT_FOUND" if status == 404 else "UNIMPLEMENTED"
        return JSONResponse(GeminiRefusal(status, kind, words).body(), status)

    # -- models ----------------------------------------------------------------------------------

    async def _list_models(self, request: Request) -> Response:  # noqa: ARG002
        names = ("gemini-2.0-flash", "gemini-2.5-flash", "gemini-3.1-pro", "gemini-4-flash")
        return JSONResponse({"models": [self._model(self._target(name)) for name in names]})

    async def _get_model(self, request: Request) -> Response:
        return JSONResponse(self._model(self._target(request.path_params["model"])))

    def _model(self, target: Target) -> dict[str, Any]:
        return {
            "name": f"models/{target.model}",
            "displayName": target.model,
            "inputTokenLimit": target.window,
            "outputTokenLimit": target.max_output,
            "supportedGenerationMethods": [*_METHODS, "createCachedContent"],
        }

    def _target(self, model: str) -> Target:
        name = model.removeprefix("models/")
        try:
            target = self.book.find(f"gemini:{name}")
        except LaminaError:
            target = None
        is_known = target is not None and (target.prices is not None or _FAMILIES.match(name))
        if target is None or not is_known or not name.startswith("gemini-"):
            raise GeminiRefusal(
                404,
                "NOT_FOUND",
                f"models/{name} is not found for API version v1, or is not supported for "
                f"generateContent. Call ModelService.ListModels to see the list of available "
                f"models and their supported methods.",
            )
        return target

    def _count(self, target: Target) -> CountTokens:
        return self.book.counter(target).count

    async def _call_model(self, request: Request) -> Response:
        method = request.path_params["method"]
        if method not in _METHODS:
            raise GeminiRefusal(404, "NOT_FOUND", f"Unknown method {method!r}")
        target = self._target(request.path_params["model"])
        raw = await read_json_body(request)
        if method == "countTokens":
            body = read_body(raw, CountBody)
            return JSONResponse(self._count_tokens(body, target, owner_of(request)))
        prompt = read_body(raw, GenerateBody)
        fault = self.faults.next()
        if (response := await self._fail(fault, request, target)) is not None:
            return response
        exchange = await self._exchange(request, prompt, target, fault)
        if method == "generateContent":
            return JSONResponse(await self._whole(exchange))
        return self._stream(exchange, request)

    def _count_tokens(self, body: CountBody, target: Target, owner: str) -> dict[str, Any]:
        whole = body.generate_content_request
        if (whole is None) == (not body.contents):
            raise invalid_argument(
                "Exactly one of contents and generate_content_request has to be set."
            )
        whole = whole or GenerateBody(contents=body.contents)
        check_front(whole)
        check_contents(whole.contents, target.model)
        if whole.cached_content:
            self.caches.find(whole.cached_content, owner)
        use = self.cache.use(whole, target, owner, self._count(target), self.clock.now())
        count = {"totalTokens": use.input}
        return count | ({"cachedContentTokenCount": use.explicit} if use.explicit else {})

    # -- generating ------------------------------------------------------------------------------

    async def _exchange(
        self, request: Request, body: GenerateBody, target: Target, fault: FaultKind | None
    ) -> _Exchange:
        check_generate(body, target.model)
        now, owner = self.clock.now(), owner_of(request)
        if body.cached_content:
            content = self.caches.find(body.cached_content, owner)
            if content.target.model != target.model:
                raise invalid_argument(
                    f"Model used by GenerateContent request (models/{target.model}) and "
                    f"CachedContent (models/{content.target.model}) has to be the same."
                )
        use = self.cache.use(body, target, owner, self._count(target), now)
        if use.input > target.window:
            raise invalid_argument(
                f"The input token count ({use.input}) exceeds the maximum number of tokens "
                f"allowed ({target.window})."
            )
        answer = await ask(self.answers, read_request(body))
        self.cache.remember(use, now)
        return _Exchange(
            use=use, answer=answer, body=body, id=f"emulated-{next(self._numbers)}", fault=fault
        )

    def _chunks(self, exchange: _Exchange) -> Iterator[dict[str, Any]]:
        """Yield the answer as it is streamed: its parts, and at the end the finish reason."""
        use, answer = exchange.use, exchange.answer
        count = self._count(use.target)
        config = exchange.body.generation_config
        parts = list(response_parts(answer, exchange.body, use.target.model, exchange.id))
        limit = (config.max_output_tokens if config else None) or use.target.max_output
        parts += closing_parts(answer, use.target.model)
        output = 0
        for number, part in enumerate(parts, 1):
            if "text" in part and not part.get("thought"):
                if output + count(part["text"]) > limit:
                    yield self._chunk(exchange, [], output, finish="MAX_TOKENS")
                    return
                output += count(part["text"])
            elif call := part.get("functionCall"):
                output += count(call["name"]) + count(msgspec.json.encode(call["args"]).decode())
            yield self._chunk(
                exchange, [part], output, finish="STOP" if number == len(parts) else ""
            )
        if not parts:
            yield self._chunk(exchange, [], output, finish="STOP")

    def _chunk(
        self, exchange: _Exchange, parts: list[dict[str, Any]], output: int, *, finish: str = ""
    ) -> dict[str, Any]:
        use = exchange.use
        thought = self._count(use.target)(exchange.answer.thinking)
        usage: dict[str, Any] = {
            "promptTokenCount": use.input,
            "candidatesTokenCount": output,
            "totalTokenCount": use.input + output + thought,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": use.input}],
        }
        if use.cached:
            usage["cachedContentTokenCount"] = use.cached
            usage["cacheTokensDetails"] = [{"modality": "TEXT", "tokenCount": use.cached}]
        if thought:
            usage["thoughtsTokenCount"] = thought
        content = {"role": "model"} | ({"parts": parts} if parts else {})
        candidate: dict[str, Any] = {"content": content, "index": 0}
        if finish:
            candidate["finishReason"] = finish
        return {
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": use.target.model,
            "responseId": exchange.id,
        }

    async def _whole(self, exchange: _Exchange) -> dict[str, Any]:
        chunks = list(self._chunks(exchange))
        parts = [p for chunk in chunks for p in chunk["candidates"][0]["content"].get("parts", ())]
        whole = chunks[-1]
        if parts:
            whole["candidates"][0]["content"]["parts"] = join_parts(parts)
        if exchange.fault == "silent":
            del whole["candidates"][0]["finishReason"]
        self._charge(exchange, whole)
        return whole

    def _stream(self, exchange: _Exchange, request: Request) -> Response:
        async def events() -> AsyncIterator[bytes]:
            chunks = list(self._chunks(exchange))
            last_chunk = chunks[0]
            try:
                for number, chunk in enumerate(chunks):
                    last = number == len(chunks) - 1
                    if exchange.fault == "cut" and (last or number > len(chunks) // 2):
                        await hang_up(request)
                    if exchange.fault == "silent" and last:
                        return
                    if exchange.fault == "slow" and number:
                        await anyio.sleep(1.0)
                    last_chunk = chunk
                    yield b"data: " + msgspec.json.encode(chunk) + b"\r\n\r\n"
                    await anyio.lowlevel.checkpoint()
            except BaseException:
                self.abandoned_count += 1
                raise
            finally:
                self._charge(exchange, last_chunk)

        return StreamingResponse(events(), media_type="text/event-stream")

    def _charge(self, exchange: _Exchange, chunk: dict[str, Any]) -> None:
        use, usage = exchange.use, chunk["usageMetadata"]
        output = usage["candidatesTokenCount"] + usage.get("thoughtsTokenCount", 0)
        self.report.add(
            self.clock.now(),
            use.target,
            Usage(input=use.input, cached=use.cached, output=output, explicit=use.explicit),
            missed=use.missed,
        )

    async def _fail(
        self, fault: FaultKind | None, request: Request, target: Target
    ) -> Response | None:
        """Return the response sent instead of an answer; None if only the answer's stream is
        affected."""
        if fault in (None, "cut", "silent", "slow"):
            return None
        if (response := await self.fail(fault, request)) is not None:
            return response
        raise refusal_for_fault(fault, self.faults.retry_after(fault), target)

    async def _create_cache(self, request: Request) -> Response:
        body = read_body(await read_json_body(request), CacheBody)
        target = self._target(body.model or "")
        failure = await self._fail(self.faults.next(), request, target)
        return failure or await self.caches.create(request, body, target)

    def settle(self) -> None:
        """Bring the storage fees in the report up to date."""
        self.caches.settle()

    async def _report(self, request: Request) -> Response:
        self.settle()
        return await super()._report(request)
