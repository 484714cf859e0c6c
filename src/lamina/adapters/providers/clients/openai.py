"""Sends requests to OpenAI or a compatible server through OpenAI's own SDK, and reads the answer
chunk by chunk.

Laws: the encoder's body is sent unchanged, plus the option to stream the answer. Nothing in the
chunks is lost, even if a server does not number calls, provides no ids or sends arguments as
objects. An answer is complete only with a finish reason; one interrupted midway ends without a
`Reply`, one that never began is requested again. Only provider errors and cancellation escape, and
no error contains the key.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from anyio.lowlevel import EventLoopToken, current_token
from msgspec import Struct

from lamina.adapters.files.extras import install_hint
from lamina.adapters.providers.clients.provider_errors import refusal_error, without_key
from lamina.adapters.providers.clients.retries import RetryPolicy, read_retry_after, with_retries
from lamina.adapters.providers.wires.openai import decode
from lamina.adapters.providers.wires.wire_messages import write_arguments
from lamina.core.values.message import Text, Thinking, ToolCall
from lamina.core.values.settings import Target
from lamina.core.values.wire import CallPiece, Piece, Reply, TextPiece, ThinkingPiece
from lamina.errors import KeyMissing, ProviderError, ReplyError

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream
    from openai.types.chat import ChatCompletionChunk


class _Call(Struct):
    id: str = ""
    name: str = ""
    arguments: list[str] = []


class OpenAIStreamReader:
    """Reads an answer while it arrives. `finish` is the finish reason, once known; `has_content` is
    true once content has arrived."""

    def __init__(self) -> None:
        self._id = ""
        self._model = ""
        self._usage: Any = None
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._thought: list[str] = []
        self._calls: dict[int, _Call] = {}
        self.finish = ""

    @property
    def has_content(self) -> bool:
        return bool(self._text or self._refusal or self._thought or self._calls)

    def feed(self, chunk: Any) -> Iterator[Piece]:
        """Yield the pieces that a chunk adds. Any field may be missing, as the SDK does not
        check."""
        self._id = self._id or getattr(chunk, "id", None) or ""
        self._model = self._model or getattr(chunk, "model", None) or ""
        # Some servers send usage with every chunk; the last one counts.
        self._usage = getattr(chunk, "usage", None) or self._usage
        for choice in getattr(chunk, "choices", None) or ():
            if delta := getattr(choice, "delta", None):
                yield from self._take_delta(delta)
            self.finish = getattr(choice, "finish_reason", None) or self.finish

    def _take_delta(self, delta: Any) -> Iterator[Piece]:
        # DeepSeek, vLLM and llama.cpp use the former, OpenRouter and Ollama the latter.
        thought = getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None)
        if isinstance(thought, str) and thought:
            self._thought.append(thought)
            yield ThinkingPiece(thought)
        for name, texts in (("content", self._text), ("refusal", self._refusal)):
            text = getattr(delta, name, None)
            if isinstance(text, str) and text:
                texts.append(text)
                yield TextPiece(text)
        for call in getattr(delta, "tool_calls", None) or ():
            if piece := self._take_call(call):
                yield piece

    def _take_call(self, delta: Any) -> CallPiece | None:
        function = getattr(delta, "function", None)
        name = getattr(function, "name", None) or ""
        call_id = getattr(delta, "id", None) or ""
        index = getattr(delta, "index", None)
        if not isinstance(index, int):
            # Servers that do not number calls send them one after the other.
            index = len(self._calls) - (bool(self._calls) and not (name or call_id))
        call = self._calls.setdefault(index, _Call())
        is_new = not call.name
        call.id = call.id or call_id
        call.name = call.name or name
        arguments = getattr(function, "arguments", None)
        if arguments is not None and not isinstance(arguments, str):
            arguments = write_arguments(arguments)
        if arguments:
            call.arguments.append(arguments)
        if not (arguments or (is_new and name)):
            return None
        return CallPiece(index=index, name=name if is_new else "", arguments=arguments or "")

    def completion(self) -> dict[str, Any]:
        """Return the completion as it would have come in one piece."""
        message: dict[str, Any] = {
            "content": "".join(self._text) or None,
            "refusal": "".join(self._refusal) or None,
            "reasoning_content": "".join(self._thought) or None,
            "tool_calls": [
                {
                    "id": call.id or None,
                    "function": {"name": call.name, "arguments": "".join(call.arguments)},
                }
                for _, call in sorted(self._calls.items())
            ],
        }
        return {
            "id": self._id,
            "model": self._model,
            "choices": [{"message": message, "finish_reason": self.finish}],
            "usage": self._usage,
        }

    def feed_reply(self, reply: Reply) -> Iterator[Piece]:
        """Yield the pieces of an answer received in one piece."""
        calls = 0
        for block in reply.blocks:
            match block:
                case Text(text=text) if text:
                    yield TextPiece(text)
                case Thinking(text=text) if text:
                    yield ThinkingPiece(text)
                case ToolCall(name=name, arguments=arguments):
                    yield CallPiece(index=calls, name=name, arguments=arguments)
                    calls += 1
                case _:
                    pass


_OWN = "openai"
# The SDK requires a key, even for servers that need none.
_NO_KEY = "no-key"
_CONNECT_S = 10.0
_EVENTS = "text/event-stream"
_STREAM_OPTIONS = "stream_options"
_DEFAULT_RETRY_POLICY = RetryPolicy()


def connect(
    target: Target,
    key: str,
    *,
    retry_policy: RetryPolicy = _DEFAULT_RETRY_POLICY,
    timeout: float = 600.0,
) -> "OpenAIClient":
    """Return a client for a target: OpenAI, or the server at the target's address. The server may
    be silent for `timeout` seconds. The SDK is imported with the first request.

    Raises:
        KeyMissing: there is no key for OpenAI.
        ProviderError: the target has no address.
    """
    url = target.base_url
    if not url and target.provider != _OWN:
        raise ProviderError(f"where is the server of {target.name!r}? It has no `base_url`")
    if not url and not key:
        raise KeyMissing(f"there is no key for {target.name!r}: set {target.key_env}")
    return OpenAIClient(target, key, retry_policy, timeout)


class OpenAIClient:
    """A provider reached through OpenAI's SDK. Connections are kept per event loop."""

    def __init__(self, target: Target, key: str, retry_policy: RetryPolicy, timeout: float) -> None:
        self._target = target
        self._key = key
        self._retry_policy = retry_policy
        self._timeout = timeout
        self._connection: tuple[EventLoopToken, AsyncOpenAI] | None = None
        # Not every server can report usage in a stream.
        self._asks_usage = True

    def stream(self, body: Mapping[str, Any]) -> AsyncIterator[Piece]:
        return with_retries(self._target.name, lambda: self._attempt(body), self._retry_policy)

    async def count_tokens(self, body: Mapping[str, Any]) -> int | None:  # noqa: ARG002
        """Return None: OpenAI does not count chats, but its vocabularies are known."""
        return None

    async def list_models(self) -> tuple[str, ...]:
        """Return the models available to the key; listing them costs nothing.

        Raises:
            ProviderError: the list is not available.
        """
        async with self._translate_errors(OpenAIStreamReader()):
            page = await self._client().models.list()
        return tuple(model.id for model in page.data)

    async def aclose(self) -> None:
        """Close this event loop's connections."""
        connection, self._connection = self._connection, None
        if connection is not None and connection[0] == current_token():
            await connection[1].close()

    async def _attempt(self, body: Mapping[str, Any]) -> AsyncIterator[Piece]:
        is_own = self._target.provider == _OWN
        while True:
            asks_usage = self._asks_usage
            try:
                async with aclosing(self._ask(body)) as pieces:  # type: ignore[type-var]
                    async for piece in pieces:
                        yield piece
                return
            except ProviderError as error:
                if not asks_usage or is_own or _STREAM_OPTIONS not in str(error):
                    raise
            self._asks_usage = False

    async def _ask(self, body: Mapping[str, Any]) -> AsyncIterator[Piece]:
        reader = OpenAIStreamReader()
        async with self._translate_errors(reader), await self._open(body) as stream:
            if not _is_events(stream):
                for piece in await self._read_whole(stream, reader):
                    yield piece
                return
            async with aclosing(aiter(stream)) as chunks:  # type: ignore[type-var]
                async for chunk in chunks:
                    for piece in reader.feed(chunk):
                        yield piece
            if reader.finish:
                yield decode(reader.completion())
            elif not reader.has_content:
                raise refusal_error(self._target.provider, None, "it answered nothing")

    async def _open(self, body: Mapping[str, Any]) -> "AsyncStream[ChatCompletionChunk]":
        extra = {_STREAM_OPTIONS: {"include_usage": True}} if self._asks_usage else {}
        # Sent as an extra body: `create` searches each of its arguments for values to rewrite.
        # There are none, and in a long conversation that takes longer than everything else.
        return await self._client().chat.completions.create(
            model=body["model"], messages=(), stream=True, extra_body={**body, **extra}
        )

    async def _read_whole(
        self, stream: "AsyncStream[ChatCompletionChunk]", reader: OpenAIStreamReader
    ) -> list[Piece]:
        """Read the answer from a server that does not stream, or a proxy's response in its
        place."""
        content = await stream.response.aread()
        try:
            body = msgspec.json.decode(content)
            reply = decode(body)
        except (msgspec.DecodeError, ReplyError) as error:
            beginning = content[:200].decode("utf-8", "replace")
            problem = f"no answer, but {beginning!r}" if beginning else "it answered nothing"
            raise refusal_error(self._target.provider, None, problem) from error
        return [*reader.feed_reply(reply), reply]

    def _client(self) -> "AsyncOpenAI":
        token = current_token()
        if self._connection is None or self._connection[0] != token:
            self._connection = (token, self._make_client())
        return self._connection[1]

    def _make_client(self) -> "AsyncOpenAI":
        import httpx2
        from openai import AsyncOpenAI, Omit

        # The OpenAI account, which the SDK reads from the environment, must not be sent to other
        # servers.
        omitted_headers: Any = {"OpenAI-Organization": Omit(), "OpenAI-Project": Omit()}
        return AsyncOpenAI(
            api_key=self._key or _NO_KEY,
            base_url=self._target.base_url or None,
            max_retries=0,
            timeout=httpx2.Timeout(self._timeout, connect=min(self._timeout, _CONNECT_S)),
            default_headers=None if self._target.provider == _OWN else omitted_headers,
        )

    # -- errors ------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _translate_errors(self, reader: OpenAIStreamReader) -> AsyncIterator[None]:
        try:
            import httpx2
            import openai
        except ImportError as error:
            raise ProviderError(
                f"the SDK 'openai' is not installed: {install_hint('openai')}"
            ) from error
        failures = (openai.APIConnectionError, httpx2.HTTPError, httpx2.StreamError, ValueError)
        try:
            yield
        except openai.APIStatusError as error:
            raise self._problem(
                error.status_code, _error_message(error), read_retry_after(error.response.headers)
            ) from self._cause(error)
        except failures as error:
            # ValueError: a truncated chunk is neither JSON nor UTF-8.
            if reader.has_content:
                return
            cause = repr(error.__cause__ or error)
            raise self._problem(None, f"{error} {cause}") from self._cause(error)
        except openai.OpenAIError as error:
            # In the middle of a stream; the error's code may be a status.
            code = str(getattr(error, "code", None) or "")
            status = int(code) if code.isdigit() else None
            raise self._problem(status, _error_message(error)) from self._cause(error)
        except ReplyError as error:
            raise self._problem(None, str(error)) from error

    def _problem(
        self, status: int | None, message: str, retry_after: float | None = None
    ) -> ProviderError:
        return refusal_error(
            self._target.provider, status, without_key(message, self._key), retry_after
        )

    def _cause(self, error: Exception) -> Exception | None:
        """Return the exception to chain, unless it contains the key: tracebacks are logged."""
        return None if self._key and self._key in f"{error!r}{error}" else error


def _is_events(stream: "AsyncStream[ChatCompletionChunk]") -> bool:
    return str(stream.response.headers.get("content-type", _EVENTS)).startswith(_EVENTS)


def _error_message(error: Any) -> str:
    """Return the provider's error message: a message with its code, a string, or nothing."""
    body = getattr(error, "body", str(error))
    if isinstance(body, Mapping):
        words = (body.get(name) for name in ("message", "code", "type"))
        return " ".join(str(word) for word in words if word) or msgspec.json.encode(body).decode()
    return str(body) if body else ""
