"""Gemini's API on the loopback: generateContent, streamed and not, countTokens, models, caches.

Law: a request is checked, counted and looked up in the cache before anything else happens to it,
and is kept in the cache only once its answer begins.
"""

import re
from collections.abc import AsyncIterator, Iterator, Sequence
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
from lamina.emulators.answers import EmulatedAnswer, ask
from lamina.emulators.connection import hang_up
from lamina.emulators.emulator import Emulator, Handler
from lamina.emulators.faults import FaultKind
from lamina.emulators.gemini.bodies import CacheBody, CountBody, GenerateBody, read_body
from lamina.emulators.gemini.cache import CountTokens, GeminiCache, GeminiCacheUse
from lamina.emulators.gemini.cached_content_routes import CachedContentRoutes
from lamina.emulators.gemini.checks import check_contents, check_front, check_generate
from lamina.emulators.gemini.emulated_request import read_request
from lamina.emulators.gemini.http_request import key_of, owner_of, read_json_body
from lamina.emulators.gemini.refusals import GeminiRefusal, invalid_argument, refusal_for_fault
from lamina.emulators.gemini.response_parts import closing_parts, join_parts, response_parts
from lamina.errors import LaminaError

# Names that Google gives; the book need not list each.
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
        """The handler for callers with a key, with its refusals in the API's own form."""

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
        """The answer as it is streamed: its parts, and finally the reason why it ends."""
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
        """What is sent in place of an answer; None if only its stream suffers."""
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
        """Brings the storage fees in the report up to now."""
        self.caches.settle()

    async def _report(self, request: Request) -> Response:
        self.settle()
        return await super()._report(request)
