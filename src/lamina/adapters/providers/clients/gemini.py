"""Sends requests to Gemini through its own SDK, and reads the answer chunk by chunk, or its error.

Laws: only `ProviderError`s and cancellation escape, and no error contains the key. The result is
the response that would have come in one piece. A stream that ends without a `finishReason` ends
without a `Reply`. A caller that stops reading closes the connection. A refused key is reported as
such, though the API calls it an invalid argument.
"""

import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit

import anyio
from msgspec.structs import replace

from lamina.adapters.files.extras import install_hint
from lamina.adapters.providers.clients.gemini_caches import ExplicitCache, ExplicitCaches, Now
from lamina.adapters.providers.clients.provider_errors import refusal_error, without_key
from lamina.adapters.providers.clients.retries import RetryPolicy, with_retries
from lamina.adapters.providers.wires.gemini import PLAN_FIELD, TTL_S, decode
from lamina.adapters.providers.wires.wire_messages import write_arguments
from lamina.core.ports import CachePayer
from lamina.core.values.settings import Target
from lamina.core.values.wire import CallPiece, Piece, Reply, TextPiece, ThinkingPiece
from lamina.errors import ProviderError, ReplyError

# The API's messages for a cache that does not exist, or belongs to another key.
CACHE_GONE = re.compile(
    r"cached ?content.*(not found|expired)|cache.*(not found|expired)", re.IGNORECASE
)
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)s\Z")


def error_message(error: Exception) -> str:
    """Return an error's message, for display."""
    message = getattr(error, "message", None)
    if isinstance(message, str):
        # Empty for a status without a body.
        return message
    if hasattr(error, "details"):
        return str(error.details)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def status_of(error: Exception) -> int | None:
    """Return a response's status; None for network errors."""
    code = getattr(error, "code", None)
    if not isinstance(code, int):
        return None
    reasons = {detail.get("reason") for detail in _details(error)}
    return 401 if "API_KEY_INVALID" in reasons else code


def retry_after(error: Exception) -> float | None:
    """Return how long the API asks to wait, in a header or among the details."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    header = headers.get("retry-after", "")
    if header.replace(".", "", 1).isdigit():
        return float(header)
    for detail in _details(error):
        if match := _SECONDS.match(str(detail.get("retryDelay", ""))):
            return float(match[1])
    return None


def _details(error: Exception) -> list[dict[str, Any]]:
    body = getattr(error, "details", None)
    inner = body.get("error", body) if isinstance(body, dict) else {}
    details = inner.get("details", ()) if isinstance(inner, dict) else ()
    return [d for d in details if isinstance(d, dict)] if isinstance(details, list) else []


class GeminiStreamReader:
    """Reads an answer while it arrives. `has_content` is true once content has arrived; `finish` is
    set once the answer has ended."""

    def __init__(self) -> None:
        self._parts: list[dict[str, Any]] = []
        self._calls = 0
        self._usage: dict[str, int] = {}
        # Output tokens in earlier responses of the same answer.
        self._output = 0
        self._first_prompt: dict[str, int] | None = None
        self._feedback: Any = None
        self._id = ""
        self._model = ""
        self.chunks = 0
        self.finish = ""
        self.token: bytes | None = None

    @property
    def has_content(self) -> bool:
        return bool(self._parts)

    @property
    def is_blocked(self) -> bool:
        return self._feedback is not None and not self._parts

    def feed(self, chunk: Any) -> list[Piece]:
        self.chunks += 1
        self._id = self._id or chunk.response_id or ""
        self._model = self._model or chunk.model_version or ""
        self._feedback = chunk.prompt_feedback or self._feedback
        if (usage := chunk.usage_metadata) is not None:
            names = ("prompt", "cached_content", "candidates", "thoughts")
            counts = {f"{n}_token_count": getattr(usage, f"{n}_token_count") for n in names}
            self._usage |= {name: count for name, count in counts.items() if count is not None}
        pieces: list[Piece] = []
        for candidate in (chunk.candidates or ())[:1]:
            for part in (candidate.content.parts if candidate.content else None) or ():
                pieces += self._take(part)
            self.token = candidate.continuation_token or self.token
            if candidate.finish_reason is not None:
                self.finish = str(getattr(candidate.finish_reason, "value", ""))
        return pieces

    def _take(self, part: Any) -> list[Piece]:
        signature = part.thought_signature
        if (call := part.function_call) is not None:
            function_call = {"name": call.name or "", "id": call.id, "args": call.args}
            self._parts.append({"function_call": function_call, "thought_signature": signature})
            index, self._calls = self._calls, self._calls + 1
            arguments = write_arguments(call.args)
            return [CallPiece(index=index, name=function_call["name"], arguments=arguments)]
        if part.text is None:
            return []
        thought = bool(part.thought)
        last = self._parts[-1] if self._parts else {}
        if "text" in last and last["thought"] == thought and not (
            signature or last["thought_signature"]
        ):  # fmt: skip
            # Only unsigned texts are joined.
            last["text"] += part.text
        elif part.text or signature:
            self._parts.append(
                {"text": part.text, "thought": thought, "thought_signature": signature}
            )
        if not part.text:
            return []
        return [ThinkingPiece(part.text) if thought else TextPiece(part.text)]

    def take_continuation_token(self) -> bytes:
        """Return the token to continue with, which is used only once."""
        token, self.token, self.finish = self.token, None, ""
        assert token is not None
        self._output += self._count_output()
        if self._first_prompt is None:
            names = ("prompt_token_count", "cached_content_token_count")
            self._first_prompt = {name: self._usage.get(name, 0) for name in names}
        self._usage = {}
        return token

    def _count_output(self) -> int:
        names = ("candidates_token_count", "thoughts_token_count")
        return sum(self._usage.get(name, 0) for name in names)

    def response(self) -> dict[str, Any]:
        """Return the response as it would have come in one piece."""
        whole: dict[str, Any] = {
            "candidates": [{"content": {"parts": self._parts}, "finish_reason": self.finish}],
            "response_id": self._id,
            "model_version": self._model,
        }
        if self._first_prompt is not None:
            output = {"candidates_token_count": self._output + self._count_output()}
            whole["usage_metadata"] = self._first_prompt | output
        elif self._usage:
            whole["usage_metadata"] = self._usage
        if self.is_blocked and not self.finish:
            reason = getattr(self._feedback.block_reason, "value", None)
            message = self._feedback.block_reason_message
            whole["candidates"] = []
            whole["prompt_feedback"] = {"block_reason": reason, "block_reason_message": message}
        return whole


_DEFAULT_RETRY_POLICY = RetryPolicy()
_HOPS = "CONTINUATION"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# The SDK's generators do not close one another; these belong to the current response.
_open: ContextVar[list[Any] | None] = ContextVar("lamina_gemini_open", default=None)


def connect(
    target: Target,
    key: str,
    *,
    retry_policy: RetryPolicy = _DEFAULT_RETRY_POLICY,
    timeout: float = 600.0,
    now: Now = time.monotonic,
) -> "GeminiClient":
    """Return a client for a target; `timeout` is how many seconds the network may be silent.
    Explicit caches are timed by `now`. Close the client when it is no longer needed, preferably
    with `async with`."""
    return GeminiClient(target, key, retry_policy, timeout, now)


class GeminiClient:
    """A provider reached through Gemini's SDK."""

    def __init__(
        self, target: Target, key: str, retry_policy: RetryPolicy, silence_s: float, now: Now
    ) -> None:
        self.target = target
        self._key = key
        self._retry_policy = retry_policy
        self._silence_s = silence_s
        self._http: Any = None
        self._sdk: Any = None
        self._caches = ExplicitCaches(_NetworkCacheCalls(self), now)
        self._request_count = 0

    async def __aenter__(self) -> "GeminiClient":
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Delete the caches that this client created and close its connections."""
        with anyio.CancelScope(shield=True):
            await self._caches.close()
            await self._hang_up()

    async def release_session(self, session: str) -> None:
        """Delete the cache of a closed session, and close idle connections; the next request opens
        new ones."""
        with anyio.CancelScope(shield=True):
            await self._caches.release_session(session)
            if not self._request_count:
                await self._hang_up()

    def charge_caches(self, session: str, payer: CachePayer) -> None:
        """Set who pays for a session's caches."""
        self._caches.charge(session, payer)

    async def _hang_up(self) -> None:
        http, self._http, self._sdk = self._http, None, None
        if http is not None:
            await http.aclose()

    async def stream(self, body: Mapping[str, Any]) -> AsyncIterator[Piece]:
        request = {name: value for name, value in body.items() if name != PLAN_FIELD}
        plan = body.get(PLAN_FIELD)
        self._request_count += 1
        try:
            cache = await self._caches.use(plan, request.get("config", {})) if plan else None

            def attempt() -> AsyncIterator[Piece]:
                return self._attempt(request, cache)

            async with aclosing(
                with_retries(self.target.name, attempt, self._retry_policy)
            ) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    yield piece
        finally:
            self._request_count -= 1

    async def count_tokens(self, body: Mapping[str, Any]) -> int | None:
        """Return the request's tokens, as counted by Gemini.

        Raises:
            ProviderError: the count is not available.
        """
        config = body.get("config", {})
        # The SDK's own arguments leave out system and tools; the API accepts a whole request.
        whole: dict[str, Any] = {"model": f"models/{body['model']}", "contents": body["contents"]}
        if system := config.get("system_instruction"):
            whole["system_instruction"] = {"parts": [{"text": system}]}
        if tools := config.get("tools"):
            whole["tools"] = tools
        options = {"extra_body": {"generateContentRequest": whole}}
        sdk = self.sdk()
        with self.translate_errors():
            count = await sdk.aio.models.count_tokens(
                model=body["model"], contents=None, config={"http_options": options}
            )
        tokens: int | None = count.total_tokens
        return tokens

    async def list_models(self) -> tuple[str, ...]:
        """Return the models available to the key; listing them costs nothing.

        Raises:
            ProviderError: the list is not available.
        """
        sdk = self.sdk()
        with self.translate_errors():
            pager = await sdk.aio.models.list(config={"page_size": 1_000})
        return tuple(str(model.name) for model in pager.page)

    # -- one attempt -----------------------------------------------------------------------------

    async def _attempt(
        self, request: Mapping[str, Any], cache: ExplicitCache | None
    ) -> AsyncGenerator[Piece, None]:
        if cache is not None and self._caches.has(cache):
            try:
                async with aclosing(self._ask(_refer_to_cache(request, cache), cache)) as pieces:
                    async for piece in pieces:
                        yield piece
                return
            except _CacheGone:
                await self._caches.forget(cache)
        async with aclosing(self._ask(request, None)) as pieces:
            async for piece in pieces:
                yield piece

    async def _ask(
        self, request: Mapping[str, Any], cache: ExplicitCache | None
    ) -> AsyncGenerator[Piece, None]:
        """Yield the pieces of one answer. It may need several requests: if the answer does not fit
        into one response, the model returns a token to continue with."""
        reader = GeminiStreamReader()
        config = dict(request.get("config", {})) | {
            "automatic_function_calling": {"disable": True},
            # The SDK would send the request again by itself, and repeat content that had arrived.
            "automatic_continuation": False,
        }
        while True:
            try:
                async with aclosing(self._chunks(dict(request) | {"config": config})) as chunks:
                    async for chunk in chunks:
                        for piece in reader.feed(chunk):
                            yield piece
            except _network_errors() as error:
                if reader.has_content:
                    return  # interrupted: content that has arrived is kept
                raise self._refusal(error) from error
            if reader.finish != _HOPS or reader.token is None:
                break
            config["continuation_token"] = reader.take_continuation_token()
        if not reader.chunks:
            raise refusal_error("gemini", None, "an answer without anything in it")
        if reader.finish or reader.is_blocked:
            yield self._reply(reader, cache)

    async def _chunks(self, request: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """Yield the chunks of one response; its connection is always closed."""
        responses: list[Any] = []
        sdk, stream = self.sdk(), None
        try:
            with self._translate_sdk_errors(may_lack_cache="cached_content" in request["config"]):
                stream = await sdk.aio.models.generate_content_stream(**request)
                while True:
                    _open.set(responses)
                    try:
                        chunk = await anext(stream)
                    except StopAsyncIteration:
                        return
                    yield chunk
        finally:
            _open.set(None)
            with anyio.CancelScope(shield=True):
                if stream is not None:
                    await stream.aclose()
                for response in responses:
                    await response.aclose()

    def _reply(self, reader: GeminiStreamReader, cache: ExplicitCache | None) -> Reply:
        try:
            reply = decode(reader.response())
        except ReplyError as error:
            raise ProviderError(f"gemini did not answer: {error}") from error
        if cache is None:
            return reply
        return replace(reply, usage=replace(reply.usage, explicit=cache.tokens))

    # -- the SDK ---------------------------------------------------------------------------------

    def sdk(self) -> Any:
        """Return the SDK's client, over our own connections: if aiohttp is installed, the SDK would
        use that, which raises different errors."""
        if self._sdk is None:
            try:
                import httpx2
                from google import genai
            except ImportError as error:
                raise ProviderError(
                    f"Gemini's SDK is not installed: {install_hint('gemini')}"
                ) from error

            async def note(response: Any) -> None:
                if (responses := _open.get()) is not None:
                    responses.append(response)

            base = self.target.base_url
            # The SDK requires a key, even for servers that need none.
            key = self._key or ("none" if base else "")
            # Proxies are not used for this machine.
            trusts = urlsplit(base).hostname not in _LOOPBACK
            self._http = httpx2.AsyncClient(
                event_hooks={"response": [note]}, follow_redirects=True, trust_env=trusts
            )
            options = genai.types.HttpOptions(
                base_url=base or None,
                timeout=round(self._silence_s * 1000),
                httpx_async_client=self._http,
            )
            with self.translate_errors():
                self._sdk = genai.Client(api_key=key, vertexai=False, http_options=options)
        return self._sdk

    @contextmanager
    def _translate_sdk_errors(self, *, may_lack_cache: bool = False) -> Iterator[None]:
        """Convert SDK errors to ours; with `may_lack_cache`, a missing cache is a separate error.
        Network errors are left to the caller, who can tell whether anything has arrived."""
        from google.genai import errors

        try:
            yield
        except errors.APIError as error:
            if may_lack_cache and CACHE_GONE.search(error_message(error)):
                raise _CacheGone from error
            raise self._refusal(error) from error
        except errors.UnknownApiResponseError as error:
            raise refusal_error("gemini", 502, "what came is no answer of the API's") from error
        except ValueError as error:
            # A value that the SDK refuses to send, or cannot read.
            raise ProviderError(f"gemini's SDK: {without_key(str(error), self._key)}") from error

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Convert errors of the SDK and of the network to ours."""
        try:
            with self._translate_sdk_errors():
                yield
        except _network_errors() as error:
            raise self._refusal(error) from error

    def _refusal(self, error: Exception) -> ProviderError:
        status, message = status_of(error), without_key(error_message(error), self._key)
        return refusal_error("gemini", status, message, retry_after(error))


def _network_errors() -> tuple[type[Exception], ...]:
    import httpx2

    return (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError)


class _CacheGone(Exception):
    """The cache that a request refers to does not exist."""


def _refer_to_cache(request: Mapping[str, Any], cache: ExplicitCache) -> dict[str, Any]:
    """Return the request with the cache's name in place of the cached content, which must not be
    sent again."""
    config = {
        name: value
        for name, value in request.get("config", {}).items()
        if name not in ("system_instruction", "tools", "tool_config")
    }
    return dict(request) | {"config": config | {"cached_content": cache.name}}


class _NetworkCacheCalls:
    """Manages caches over the network."""

    def __init__(self, client: GeminiClient) -> None:
        self._client = client

    async def create(self, config: dict[str, Any]) -> tuple[str, int]:
        sdk = self._client.sdk()
        with self._client.translate_errors():
            cache = await sdk.aio.caches.create(model=self._client.target.model, config=config)
            if not cache.name or cache.usage_metadata is None:
                raise ProviderError("gemini made a cache without a name")
            return cache.name, cache.usage_metadata.total_token_count or 0

    async def renew(self, name: str) -> None:
        sdk = self._client.sdk()
        with self._client.translate_errors():
            await sdk.aio.caches.update(name=name, config={"ttl": f"{TTL_S}s"})

    async def delete(self, name: str) -> None:
        sdk = self._client.sdk()
        with self._client.translate_errors():
            await sdk.aio.caches.delete(name=name)
