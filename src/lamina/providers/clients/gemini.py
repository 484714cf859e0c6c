"""Asks Gemini through its SDK, and gives the answer as it comes.

Laws: nothing is raised but `ProviderError`s and cancellation, and none of them says the key. A
stream that ends without its `finishReason` ends without a `Reply`. Whoever stops reading closes the
connection.
"""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit

import anyio
from msgspec.structs import replace

from lamina.errors import ProviderError, ReplyError
from lamina.providers.clients.gemini_caches import ExplicitCache, ExplicitCaches, Now
from lamina.providers.clients.gemini_errors import CACHE_GONE, error_message, retry_after, status_of
from lamina.providers.clients.gemini_stream import GeminiStreamReader
from lamina.providers.clients.refusals import RetryPolicy, refusal_error, with_retries
from lamina.providers.wires.gemini import decode
from lamina.providers.wires.gemini_cache_plan import PLAN_FIELD, TTL_S
from lamina.values.piece import Piece
from lamina.values.settings import Target
from lamina.values.wire import Reply

_PATIENCE = RetryPolicy()
_HOPS = "CONTINUATION"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# The SDK's generators do not close one another: these are the responses of the one being read.
_open: ContextVar[list[Any] | None] = ContextVar("lamina_gemini_open", default=None)


def connect(
    target: Target,
    key: str,
    *,
    patience: RetryPolicy = _PATIENCE,
    timeout: float = 600.0,
    now: Now = time.monotonic,
) -> "GeminiClient":
    """A client for a target; `timeout` is how long the network may be silent. Caches made by hand
    are timed by `now`. Close it when it is not needed any more, best by `async with`."""
    return GeminiClient(target, key, patience, timeout, now)


class GeminiClient:
    """A provider that is Gemini."""

    def __init__(
        self, target: Target, key: str, patience: RetryPolicy, silence_s: float, now: Now
    ) -> None:
        self.target = target
        self._key = key
        self._patience = patience
        self._silence_s = silence_s
        self._http: Any = None
        self._sdk: Any = None
        self._caches = ExplicitCaches(_Calls(self), now)
        self._asking = 0

    async def __aenter__(self) -> "GeminiClient":
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Deletes the caches that it made and closes its connections."""
        with anyio.CancelScope(shield=True):
            await self._caches.close()
            await self._hang_up()

    async def let_go(self, session: str) -> None:
        """The session is closed: the cache that was made for it is deleted, and connections that
        nobody uses now are closed; the next request opens others."""
        with anyio.CancelScope(shield=True):
            await self._caches.let_go(session)
            if not self._asking:
                await self._hang_up()

    async def _hang_up(self) -> None:
        http, self._http, self._sdk = self._http, None, None
        if http is not None:
            await http.aclose()

    async def stream(self, body: Mapping[str, Any]) -> AsyncIterator[Piece]:
        sent = {name: value for name, value in body.items() if name != PLAN_FIELD}
        plan = body.get(PLAN_FIELD)
        self._asking += 1
        try:
            cached = await self._caches.use(plan, sent.get("config", {})) if plan else None

            def attempt() -> AsyncIterator[Piece]:
                return self._attempt(sent, cached)

            async with aclosing(with_retries(attempt, self._patience)) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    yield piece
        finally:
            self._asking -= 1

    async def count_tokens(self, body: Mapping[str, Any]) -> int | None:
        """How many tokens the request has, as Gemini counts them.

        Raises:
            ProviderError: it does not say.
        """
        config = body.get("config", {})
        # The SDK's own arguments leave out system and tools; the API takes a whole request.
        whole: dict[str, Any] = {"model": f"models/{body['model']}", "contents": body["contents"]}
        if system := config.get("system_instruction"):
            whole["system_instruction"] = {"parts": [{"text": system}]}
        if tools := config.get("tools"):
            whole["tools"] = tools
        options = {"extra_body": {"generateContentRequest": whole}}
        sdk = self.sdk()
        with self.reached():
            counted = await sdk.aio.models.count_tokens(
                model=body["model"], contents=None, config={"http_options": options}
            )
        tokens: int | None = counted.total_tokens
        return tokens

    # -- one attempt -----------------------------------------------------------------------------

    async def _attempt(
        self, sent: Mapping[str, Any], cached: ExplicitCache | None
    ) -> AsyncGenerator[Piece, None]:
        if cached is not None and self._caches.has(cached):
            try:
                async with aclosing(self._ask(_naming(sent, cached), cached)) as pieces:
                    async for piece in pieces:
                        yield piece
                return
            except _CacheGone:
                self._caches.forget(cached)
        async with aclosing(self._ask(sent, None)) as pieces:
            async for piece in pieces:
                yield piece

    async def _ask(
        self, sent: Mapping[str, Any], cached: ExplicitCache | None
    ) -> AsyncGenerator[Piece, None]:
        """The pieces of one answer. It may take several requests: a model that has more to say than
        one response can hold gives a token to go on with."""
        answer = GeminiStreamReader()
        config = dict(sent.get("config", {})) | {
            "automatic_function_calling": {"disable": True},
            # It would send again by itself, and what was said twice would stand there twice.
            "automatic_continuation": False,
        }
        while True:
            try:
                async with aclosing(self._chunks(dict(sent) | {"config": config})) as chunks:
                    async for chunk in chunks:
                        for piece in answer.feed(chunk):
                            yield piece
            except _network_errors() as error:
                if answer.spoken:
                    return  # it broke off: what came of it is kept
                raise self._refusal(error) from error
            if answer.finish != _HOPS or answer.token is None:
                break
            config["continuation_token"] = answer.go_on()
        if not answer.chunks:
            raise refusal_error("gemini", None, "an answer without anything in it")
        if answer.finish or answer.blocked:
            yield self._reply(answer, cached)

    async def _chunks(self, sent: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """The chunks of one response, whose connection is closed in the end, come what may."""
        opened: list[Any] = []
        sdk, stream = self.sdk(), None
        try:
            with self._translated(gone="cached_content" in sent["config"]):
                stream = await sdk.aio.models.generate_content_stream(**sent)
                while True:
                    _open.set(opened)
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
                for response in opened:
                    await response.aclose()

    def _reply(self, answer: GeminiStreamReader, cached: ExplicitCache | None) -> Reply:
        try:
            reply = decode(answer.response())
        except ReplyError as error:
            raise ProviderError(f"gemini did not answer: {error}") from error
        if cached is None:
            return reply
        return replace(reply, usage=replace(reply.usage, explicit=cached.tokens))

    # -- the SDK ---------------------------------------------------------------------------------

    def sdk(self) -> Any:
        """The SDK's client, over connections of our own: with aiohttp installed it would take that
        instead, whose errors are others."""
        if self._sdk is None:
            try:
                import httpx2
                from google import genai
            except ImportError as error:
                raise ProviderError(
                    "Gemini's SDK is not installed; install it with: pip install 'lamina[gemini]'"
                ) from error

            async def note(response: Any) -> None:
                if (opened := _open.get()) is not None:
                    opened.append(response)

            base = self.target.base_url
            # A server of one's own may want none; the SDK does.
            key = self._key or ("none" if base else "")
            # A proxy is for the world, not for this machine.
            trusts = urlsplit(base).hostname not in _LOOPBACK
            self._http = httpx2.AsyncClient(
                event_hooks={"response": [note]}, follow_redirects=True, trust_env=trusts
            )
            options = genai.types.HttpOptions(
                base_url=base or None,
                timeout=round(self._silence_s * 1000),
                httpx_async_client=self._http,
            )
            with self.reached():
                self._sdk = genai.Client(api_key=key, vertexai=False, http_options=options)
        return self._sdk

    @contextmanager
    def _translated(self, *, gone: bool = False) -> Iterator[None]:
        """Errors of the SDK as ours; with `gone`, a cache that is not there is told apart. Errors
        of the network in the middle of an answer are for whoever knows what came of it."""
        from google.genai import errors

        try:
            yield
        except errors.APIError as error:
            if gone and CACHE_GONE.search(error_message(error)):
                raise _CacheGone from error
            raise self._refusal(error) from error
        except errors.UnknownApiResponseError as error:
            raise refusal_error("gemini", 502, "what came is no answer of the API's") from error
        except ValueError as error:
            # What it refuses to send, or cannot read.
            raise ProviderError(f"gemini's SDK: {self._clean(str(error))}") from error

    @contextmanager
    def reached(self) -> Iterator[None]:
        """Errors of the SDK and of the network as ours."""
        try:
            with self._translated():
                yield
        except _network_errors() as error:
            raise self._refusal(error) from error

    def _refusal(self, error: Exception) -> ProviderError:
        status, said = status_of(error), self._clean(error_message(error))
        return refusal_error("gemini", status, said, retry_after(error))

    def _clean(self, text: str) -> str:
        return text.replace(self._key, "…") if self._key else text


def _network_errors() -> tuple[type[Exception], ...]:
    import httpx2

    return (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError)


class _CacheGone(Exception):
    """The cache that a request named is not there."""


def _naming(sent: Mapping[str, Any], cached: ExplicitCache) -> dict[str, Any]:
    """The request by the cache's name: what stands in it must not be said again."""
    config = {
        name: value
        for name, value in sent.get("config", {}).items()
        if name not in ("system_instruction", "tools", "tool_config")
    }
    return dict(sent) | {"config": config | {"cached_content": cached.name}}


class _Calls:
    """Caches over the network."""

    def __init__(self, client: GeminiClient) -> None:
        self._client = client

    async def create(self, config: dict[str, Any]) -> tuple[str, int]:
        sdk = self._client.sdk()
        with self._client.reached():
            made = await sdk.aio.caches.create(model=self._client.target.model, config=config)
            if not made.name or made.usage_metadata is None:
                raise ProviderError("gemini made a cache without a name")
            return made.name, made.usage_metadata.total_token_count or 0

    async def renew(self, name: str) -> None:
        sdk = self._client.sdk()
        with self._client.reached():
            await sdk.aio.caches.update(name=name, config={"ttl": f"{TTL_S}s"})

    async def delete(self, name: str) -> None:
        sdk = self._client.sdk()
        with self._client.reached():
            await sdk.aio.caches.delete(name=name)
