"""Gemini's API on the loopback: generateContent, streamed and not, countTokens, models, caches.

Law: a request is checked, counted and looked up in the cache before anything else happens to it;
it is kept in the cache only once its answer begins.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from itertools import count as numbers
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from msgspec import Struct

from lamina.errors import LaminaError
from lamina.providers.emulators.answers import EmulatedAnswer, EmulatedRequest
from lamina.providers.emulators.emulator import BAD_GATEWAY_HTML, Emulator
from lamina.providers.emulators.faults import FaultKind
from lamina.providers.emulators.gemini.bodies import (
    CacheBody,
    CountBody,
    GeminiRefusal,
    GenerateBody,
    check_contents,
    check_front,
    check_generate,
    invalid_argument,
    read_body,
    texts_of,
)
from lamina.providers.emulators.gemini.cache import CountTokens, GeminiCache, GeminiCacheUse
from lamina.providers.emulators.gemini.cached_content_routes import CachedContentRoutes
from lamina.providers.emulators.gemini.http_request import hang_up, key_of, owner_of, read_json_body
from lamina.providers.emulators.gemini.refusals import refusal_for_fault
from lamina.providers.emulators.gemini.response_parts import closing_parts, response_parts
from lamina.values.settings import Target
from lamina.values.usage import Usage

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    Handler = Callable[[Request], Awaitable[Response]]

_METHODS = ("generateContent", "streamGenerateContent", "countTokens")


class _Exchange(Struct, kw_only=True):
    """One request and what is said to it."""

    read: GeminiCacheUse
    said: EmulatedAnswer
    body: GenerateBody
    id: str
    fault: FaultKind | None


class GeminiEmulator(Emulator):
    """`abandoned` counts the answers that nobody waited for."""

    vendor = "gemini"

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.cache = GeminiCache()
        self.abandoned = 0
        self._numbers = numbers(1)
        self.holding = CachedContentRoutes(self.cache, self.report, self.clock.now, self._count)

    def routes(self) -> "Sequence[Route]":
        from starlette.routing import Route

        given = [
            ("/models", ["GET"], self._list_models),
            ("/models/{model}", ["GET"], self._get_model),
            ("/models/{model}:{method}", ["POST"], self._call_model),
            ("/cachedContents", ["GET"], self.holding.list),
            ("/cachedContents", ["POST"], self._create_cache),
            ("/cachedContents/{id}", ["GET"], self.holding.get),
            ("/cachedContents/{id}", ["PATCH"], self.holding.update),
            ("/cachedContents/{id}", ["DELETE"], self.holding.delete),
        ]
        return [
            Route(f"/{version}{path}", self._guarded(handler), methods=methods)
            for version in ("v1", "v1beta")
            for path, methods, handler in given
        ]

    def _guarded(self, handler: "Handler") -> "Handler":
        """The handler for callers with a key; what it refuses is told in the API's own form."""
        from starlette.responses import JSONResponse

        async def handle(request: "Request") -> "Response":
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
            except GeminiRefusal as refused:
                model = request.path_params.get("model", "")
                target = self.book.find(f"gemini:{model or 'gemini'}")
                self.report.add(self.clock.now(), target, Usage(), status=refused.code)
                return JSONResponse(refused.body(), refused.code)

        return handle

    # -- models ----------------------------------------------------------------------------------

    async def _list_models(self, request: "Request") -> "Response":  # noqa: ARG002
        from starlette.responses import JSONResponse

        known = ("gemini-2.0-flash", "gemini-2.5-flash", "gemini-3.1-pro", "gemini-4-flash")
        return JSONResponse({"models": [self._model(self._target(name)) for name in known]})

    async def _get_model(self, request: "Request") -> "Response":
        from starlette.responses import JSONResponse

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
            found = self.book.find(f"gemini:{name}")
        except LaminaError:
            found = None
        if found is None or not name.startswith("gemini-"):
            raise GeminiRefusal(
                404,
                "NOT_FOUND",
                f"models/{name} is not found for API version v1, or is not supported for "
                f"generateContent. Call ModelService.ListModels to see the list of available "
                f"models and their supported methods.",
            )
        return found

    def _count(self, target: Target) -> CountTokens:
        return self.book.counter(target).count

    async def _call_model(self, request: "Request") -> "Response":
        from starlette.responses import JSONResponse

        method = request.path_params["method"]
        if method not in _METHODS:
            raise GeminiRefusal(404, "NOT_FOUND", f"Unknown method {method!r}")
        target = self._target(request.path_params["model"])
        raw = await read_json_body(request)
        if method == "countTokens":
            return JSONResponse(self._counted(read_body(raw, CountBody), target, owner_of(request)))
        body = read_body(raw, GenerateBody)
        fault = self.faults.next()
        if (response := await self._fail(fault, request, target)) is not None:
            return response
        exchange = await self._exchange(request, body, target, fault)
        if method == "generateContent":
            return JSONResponse(await self._whole(exchange))
        return self._streamed(exchange, request)

    def _counted(self, body: CountBody, target: Target, owner: str) -> dict[str, Any]:
        whole = body.generate_content_request
        if (whole is None) == (not body.contents):
            raise invalid_argument(
                "Exactly one of contents and generate_content_request has to be set."
            )
        whole = whole or GenerateBody(contents=body.contents)
        check_front(whole)
        check_contents(whole.contents, target.model)
        if whole.cached_content:
            self.holding.find(whole.cached_content, owner)
        read = self.cache.read(whole, target, owner, self._count(target), self.clock.now())
        counted = {"totalTokens": read.input}
        return counted | ({"cachedContentTokenCount": read.explicit} if read.explicit else {})

    # -- generating ------------------------------------------------------------------------------

    async def _exchange(
        self, request: "Request", body: GenerateBody, target: Target, fault: FaultKind | None
    ) -> _Exchange:
        check_generate(body, target.model)
        now, owner = self.clock.now(), owner_of(request)
        if body.cached_content:
            held = self.holding.find(body.cached_content, owner)
            if held.target.model != target.model:
                raise invalid_argument(
                    f"Model used by GenerateContent request (models/{target.model}) and "
                    f"CachedContent (models/{held.target.model}) has to be the same."
                )
        read = self.cache.read(body, target, owner, self._count(target), now)
        if read.input > target.window:
            raise invalid_argument(
                f"The input token count ({read.input}) exceeds the maximum number of tokens "
                f"allowed ({target.window})."
            )
        said = await self.answers.answer(self._asked(body))
        self.cache.keep(read, now)
        return _Exchange(
            read=read, said=said, body=body, id=f"emulated-{next(self._numbers)}", fault=fault
        )

    def _asked(self, body: GenerateBody) -> EmulatedRequest:
        messages: list[Any] = list(texts_of(body.contents))
        if (system := body.system_instruction) is not None:
            messages.insert(0, ("system", "".join(part.text or "" for part in system.parts)))
        config = body.generation_config
        return EmulatedRequest(
            messages=tuple(messages),
            tools=tuple(d.name for tool in body.tools for d in tool.function_declarations),
            max_tokens=(config.max_output_tokens if config else None) or 256,
        )

    def _chunks(self, exchange: _Exchange) -> Iterator[dict[str, Any]]:
        """The answer as it is streamed: parts, and last the reason why it ends."""
        read, said = exchange.read, exchange.said
        count = self._count(read.target)
        config = exchange.body.generation_config
        parts = list(response_parts(said, exchange.body, read.target.model, exchange.id))
        limit = (config.max_output_tokens if config else None) or read.target.max_output
        spoken = 0
        for part in parts:
            if "text" in part and not part.get("thought"):
                if spoken + count(part["text"]) > limit:
                    yield self._chunk(exchange, [], spoken, finish="MAX_TOKENS")
                    return
                spoken += count(part["text"])
            elif call := part.get("functionCall"):
                spoken += count(call["name"]) + count(msgspec.json.encode(call["args"]).decode())
            yield self._chunk(exchange, [part], spoken)
        yield self._chunk(exchange, closing_parts(said, read.target.model), spoken, finish="STOP")

    def _chunk(
        self, exchange: _Exchange, parts: list[dict[str, Any]], spoken: int, *, finish: str = ""
    ) -> dict[str, Any]:
        read = exchange.read
        thought = self._count(read.target)(exchange.said.thinking)
        usage: dict[str, Any] = {
            "promptTokenCount": read.input,
            "candidatesTokenCount": spoken,
            "totalTokenCount": read.input + spoken + thought,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": read.input}],
        }
        if read.cached:
            usage["cachedContentTokenCount"] = read.cached
            usage["cacheTokensDetails"] = [{"modality": "TEXT", "tokenCount": read.cached}]
        if thought:
            usage["thoughtsTokenCount"] = thought
        content = {"role": "model"} | ({"parts": parts} if parts else {})
        candidate: dict[str, Any] = {"content": content, "index": 0}
        if finish:
            candidate["finishReason"] = finish
        return {
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": read.target.model,
            "responseId": exchange.id,
        }

    async def _whole(self, exchange: _Exchange) -> dict[str, Any]:
        chunks = list(self._chunks(exchange))
        parts = [p for chunk in chunks for p in chunk["candidates"][0]["content"].get("parts", ())]
        whole = chunks[-1]
        if parts:
            whole["candidates"][0]["content"]["parts"] = parts
        if exchange.fault == "silent":
            del whole["candidates"][0]["finishReason"]
        self._charge(exchange, whole)
        return whole

    def _streamed(self, exchange: _Exchange, request: "Request") -> "Response":
        from starlette.responses import StreamingResponse

        async def events() -> AsyncIterator[bytes]:
            chunks = list(self._chunks(exchange))
            sent = chunks[0]
            try:
                for number, chunk in enumerate(chunks):
                    last = number == len(chunks) - 1
                    if exchange.fault == "cut" and (last or number > len(chunks) // 2):
                        await hang_up(request)
                    if exchange.fault == "silent" and last:
                        return
                    if exchange.fault == "slow" and number:
                        await anyio.sleep(1.0)
                    sent = chunk
                    yield b"data: " + msgspec.json.encode(chunk) + b"\r\n\r\n"
                    await anyio.lowlevel.checkpoint()
            except BaseException:
                self.abandoned += 1
                raise
            finally:
                self._charge(exchange, sent)

        return StreamingResponse(events(), media_type="text/event-stream")

    def _charge(self, exchange: _Exchange, chunk: dict[str, Any]) -> None:
        read, usage = exchange.read, chunk["usageMetadata"]
        said = usage["candidatesTokenCount"] + usage.get("thoughtsTokenCount", 0)
        self.report.add(
            self.clock.now(),
            read.target,
            Usage(input=read.input, cached=read.cached, output=said, explicit=read.explicit),
            missed=read.missed,
        )

    async def _fail(
        self, fault: FaultKind | None, request: "Request", target: Target
    ) -> "Response | None":
        """What a fault makes of a request; None if it is only its stream that suffers."""
        from starlette.responses import HTMLResponse, Response

        if fault in (None, "cut", "silent", "slow"):
            return None
        if fault == "html":
            return HTMLResponse(BAD_GATEWAY_HTML)
        if fault == "empty":
            return Response(b"", media_type="application/json")
        if fault == "reset":
            await hang_up(request)
        if fault in ("hang", "reset"):
            while (await request.receive())["type"] != "http.disconnect":
                pass
            self.abandoned += 1
            return Response(status_code=499)
        raise refusal_for_fault(fault, self.faults.retry_after(fault), target)

    async def _create_cache(self, request: "Request") -> "Response":
        body = read_body(await read_json_body(request), CacheBody)
        target = self._target(body.model or "")
        failed = await self._fail(self.faults.next(), request, target)
        return failed or await self.holding.create(request, body, target)

    def settle(self) -> None:
        """Brings the storage fees in the report up to now."""
        self.holding.settle()

    async def _report(self, request: "Request") -> "Response":
        self.settle()
        return await super()._report(request)
