"""Asks OpenAI, or a server that speaks as it does, through OpenAI's own SDK.

Laws: what is sent is what the encoder made, and that it is to be streamed. An answer is whole only
if the server said why it ended; one that broke off with something said ends without a `Reply`, one
that said nothing is asked for again. Nothing gets out but provider errors and cancellation, and no
error says the key.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from email.utils import parsedate_to_datetime
from time import time
from typing import TYPE_CHECKING, Any

import msgspec
from anyio.lowlevel import EventLoopToken, current_token

from lamina.errors import KeyMissing, ProviderError, ReplyError
from lamina.providers.clients.openai_stream import OpenAIStreamReader
from lamina.providers.clients.refusals import RetryPolicy, refusal_error, with_retries
from lamina.providers.wires.openai import decode
from lamina.values.piece import Piece
from lamina.values.settings import Target

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream
    from openai.types.chat import ChatCompletionChunk

_OWN = "openai"
# The SDK wants a key, also for servers that want none.
_NO_KEY = "no-key"
_CONNECT_S = 10.0
_EVENTS = "text/event-stream"
_STREAM_OPTIONS = "stream_options"
_DEFAULT_PATIENCE = RetryPolicy()


def connect(
    target: Target,
    key: str,
    *,
    patience: RetryPolicy = _DEFAULT_PATIENCE,
    timeout: float = 600.0,
) -> "OpenAIClient":
    """A client for a target: OpenAI, or the server at its address. `timeout` is how many seconds it
    may be silent. The SDK is imported when it is first asked.

    Raises:
        KeyMissing: OpenAI wants a key.
        ProviderError: nobody said where the server is.
    """
    url = target.base_url
    if not url and target.provider != _OWN:
        raise ProviderError(f"where is the server of {target.name!r}? It has no `base_url`")
    if not url and not key:
        raise KeyMissing(f"there is no key for {target.name!r}: set {target.key_env}")
    return OpenAIClient(target, key, patience, timeout)


class OpenAIClient:
    """A provider that is reached through OpenAI's SDK. Connections are kept per event loop."""

    def __init__(self, target: Target, key: str, patience: RetryPolicy, timeout: float) -> None:
        self._target = target
        self._key = key
        self._patience = patience
        self._timeout = timeout
        self._opened: tuple[EventLoopToken, AsyncOpenAI] | None = None
        # Not every server knows what it is to tell of usage in a stream.
        self._asks_usage = True

    def stream(self, body: Mapping[str, Any]) -> AsyncIterator[Piece]:
        return with_retries(lambda: self._attempt(body), self._patience)

    async def count_tokens(self, body: Mapping[str, Any]) -> int | None:  # noqa: ARG002
        """OpenAI does not count chats; its vocabularies are known."""
        return None

    async def aclose(self) -> None:
        """Closes the connections of this event loop."""
        opened, self._opened = self._opened, None
        if opened is not None and opened[0] == current_token():
            await opened[1].close()

    async def _attempt(self, body: Mapping[str, Any]) -> AsyncIterator[Piece]:
        asked = self._asks_usage
        try:
            async with aclosing(self._ask(body)) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    yield piece
            return
        except ProviderError as error:
            if not asked or self._target.provider == _OWN or _STREAM_OPTIONS not in str(error):
                raise
        self._asks_usage = False
        async with aclosing(self._ask(body)) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                yield piece

    async def _ask(self, body: Mapping[str, Any]) -> AsyncIterator[Piece]:
        incoming = OpenAIStreamReader()
        async with self._translated(incoming), await self._open(body) as stream:
            if not _is_events(stream):
                for piece in await self._whole(stream, incoming):
                    yield piece
                return
            async with aclosing(aiter(stream)) as chunks:  # type: ignore[type-var]
                async for chunk in chunks:
                    for piece in incoming.take(chunk):
                        yield piece
            if incoming.finish:
                yield decode(incoming.completion())
            elif not incoming.began:
                raise refusal_error(self._target.provider, None, "it answered nothing")

    async def _open(self, body: Mapping[str, Any]) -> "AsyncStream[ChatCompletionChunk]":
        extra = {_STREAM_OPTIONS: {"include_usage": True}} if self._asks_usage else {}
        # As an extra body: arguments of `create` are each looked through for values to rewrite,
        # which takes longer than everything else in a long conversation, and there are none.
        return await self._client().chat.completions.create(
            model=body["model"], messages=(), stream=True, extra_body={**body, **extra}
        )

    async def _whole(
        self, stream: "AsyncStream[ChatCompletionChunk]", incoming: OpenAIStreamReader
    ) -> list[Piece]:
        """The answer of a server that does not stream; or what a proxy says in its place."""
        content = await stream.response.aread()
        try:
            body = msgspec.json.decode(content)
            reply = decode(body)
        except (msgspec.DecodeError, ReplyError) as error:
            said = content[:200].decode("utf-8", "replace")
            problem = f"no answer, but {said!r}" if said else "it answered nothing"
            raise refusal_error(self._target.provider, None, problem) from error
        return [*incoming.take_whole(reply), reply]

    def _client(self) -> "AsyncOpenAI":
        token = current_token()
        if self._opened is None or self._opened[0] != token:
            self._opened = (token, self._make_client())
        return self._opened[1]

    def _make_client(self) -> "AsyncOpenAI":
        import httpx2
        from openai import AsyncOpenAI, Omit

        # Who one is at OpenAI is nothing to other servers; the SDK takes it from the environment.
        unsaid: Any = {"OpenAI-Organization": Omit(), "OpenAI-Project": Omit()}
        return AsyncOpenAI(
            api_key=self._key or _NO_KEY,
            base_url=self._target.base_url or None,
            max_retries=0,
            timeout=httpx2.Timeout(self._timeout, connect=min(self._timeout, _CONNECT_S)),
            default_headers=None if self._target.provider == _OWN else unsaid,
        )

    # -- what went wrong ---------------------------------------------------------------------------

    @asynccontextmanager
    async def _translated(self, incoming: OpenAIStreamReader) -> AsyncIterator[None]:
        try:
            import httpx2
            import openai
        except ImportError as error:
            raise ProviderError(
                "the SDK 'openai' is not installed: pip install 'lamina[openai]'"
            ) from error
        try:
            yield
        except openai.APIStatusError as error:
            raise self._problem(
                error.status_code, _said(error), _retry_after(error.response.headers)
            ) from self._cause(error)
        except (
            openai.APIConnectionError,
            httpx2.HTTPError,
            httpx2.StreamError,
            ValueError,
        ) as error:
            # ValueError: a chunk that was cut is neither JSON nor UTF-8.
            if incoming.began:
                return
            said = repr(error.__cause__ or error)
            raise self._problem(None, f"{error} {said}") from self._cause(error)
        except openai.OpenAIError as error:
            # In the middle of a stream; a status, if it has one, is in its code.
            code = str(getattr(error, "code", None) or "")
            status = int(code) if code.isdigit() else None
            raise self._problem(status, _said(error)) from self._cause(error)
        except ReplyError as error:
            raise self._problem(None, str(error)) from error

    def _problem(
        self, status: int | None, said: str, retry_after: float | None = None
    ) -> ProviderError:
        return refusal_error(self._target.provider, status, self._without_key(said), retry_after)

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "…") if self._key else text

    def _cause(self, error: Exception) -> Exception | None:
        """The error to go on from, unless it says the key: tracebacks are logged."""
        return None if self._key and self._key in f"{error!r}{error}" else error


def _is_events(stream: "AsyncStream[ChatCompletionChunk]") -> bool:
    return str(stream.response.headers.get("content-type", _EVENTS)).startswith(_EVENTS)


def _said(error: Any) -> str:
    """What a provider says went wrong: a message with its code, a text, or nothing."""
    body = getattr(error, "body", str(error))
    if isinstance(body, Mapping):
        words = (body.get(name) for name in ("message", "code", "type"))
        return " ".join(str(word) for word in words if word) or msgspec.json.encode(body).decode()
    return str(body) if body else ""


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, as a server says them: in milliseconds, in seconds or as a date."""
    for name, unit in (("retry-after-ms", 1_000), ("retry-after", 1)):
        given = headers.get(name, "")
        with suppress(ValueError):
            return float(given) / unit
        with suppress(ValueError):
            return max(0.0, parsedate_to_datetime(given).timestamp() - time())
    return None
