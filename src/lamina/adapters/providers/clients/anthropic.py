"""Sends requests to Anthropic through its own SDK, and reads the answer event by event.

Laws: only `ProviderError`s and cancellation escape. The result is the message that the API would
have sent in one piece. An answer is complete only after `message_stop`; one interrupted midway ends
without a `Reply`, one that never began is requested again. The key is passed only to the SDK and
appears in no message. The SDK's own retries are off: only Lamina's policy applies.
"""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import anyio

from lamina.adapters.providers.clients.provider_errors import refusal_error, without_key
from lamina.adapters.providers.clients.retries import RetryPolicy, read_retry_after, with_retries
from lamina.adapters.providers.wires.anthropic import decode
from lamina.adapters.providers.wires.wire_messages import parse_arguments
from lamina.core.ports import Provider
from lamina.core.values.settings import Target
from lamina.core.values.wire import CallPiece, Piece, TextPiece, ThinkingPiece
from lamina.errors import ProviderError, ReplyError, RequestTooLong

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic


_CHANGES = "input_transformations"
_HEAD_FIELDS = ("id", "model", "diagnostics", _CHANGES)


class AnthropicStreamReader:
    """Reads an answer while it arrives."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._argument_parts: dict[int, list[str]] = {}
        self._stop: str | None = None
        self.has_content = False
        self.has_ended = False

    def feed(self, event: Any) -> Iterator[Piece]:
        match event.type:
            case "message_start":
                fields = event.message.to_dict()
                self._usage = fields.get("usage") or {}
                self._head = {name: fields.get(name) for name in _HEAD_FIELDS}
            case "content_block_start":
                block = event.content_block.to_dict()
                self._blocks[event.index] = block
                self._argument_parts[event.index] = []
                yield from self._opening(event.index, block)
            case "content_block_delta":
                yield from self._add(event.index, event.delta)
            case "message_delta":
                self._stop = event.delta.stop_reason or self._stop
                # Totals; unchanged ones are left out.
                fields = event.usage.to_dict() if event.usage else {}
                self._usage |= {name: value for name, value in fields.items() if value is not None}
                # Repeated where another model took over midway.
                if (changes := event.to_dict().get(_CHANGES)) is not None:
                    self._head[_CHANGES] = changes
            case "message_stop":
                self.has_ended = True
            case _:
                pass

    def _opening(self, index: int, block: dict[str, Any]) -> Iterator[Piece]:
        """Yield a block's initial content; from some other servers, all of it."""
        match block["type"]:
            case "text" if block.get("text"):
                yield self._mark_content(TextPiece(block["text"]))
            case "thinking" if block.get("thinking"):
                yield self._mark_content(ThinkingPiece(block["thinking"]))
            case "tool_use":
                yield self._mark_content(CallPiece(index=index, name=block.get("name") or ""))
            case _:
                pass

    def _add(self, index: int, delta: Any) -> Iterator[Piece]:
        block = self._blocks.get(index)
        if block is None:
            return
        match delta.type:
            case "text_delta":
                block["text"] = block.get("text", "") + delta.text
                yield self._mark_content(TextPiece(delta.text))
            case "thinking_delta":
                block["thinking"] = block.get("thinking", "") + delta.thinking
                yield self._mark_content(ThinkingPiece(delta.thinking))
            case "signature_delta":
                block["signature"] = delta.signature
            case "input_json_delta" if delta.partial_json:
                self._argument_parts[index].append(delta.partial_json)
                yield self._mark_content(CallPiece(index=index, arguments=delta.partial_json))
            case _:
                pass

    def _mark_content(self, piece: Piece) -> Piece:
        self.has_content = True
        return piece

    def message(self) -> dict[str, Any]:
        """Return the message as the API would have sent it in one piece."""
        content = []
        for index, block in sorted(self._blocks.items()):
            if arguments := "".join(self._argument_parts[index]):
                block = block | {"input": parse_arguments(arguments)}
            content.append(block)
        return self._head | {"content": content, "stop_reason": self._stop, "usage": self._usage}


# As spelled in targets.
NAME = "anthropic"
DEFAULT_RETRY_POLICY = RetryPolicy()
# A server that does not accept the connection gets less time than one that thinks.
_CONNECT_S = 15.0
# Errors inside a stream come with the status of the stream, which is 200.
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
# The request arguments that `count_tokens` accepts.
_COUNTED = (
    "model", "messages", "system", "tools", "tool_choice", "thinking", "output_config",
    "extra_headers",
)  # fmt: skip
_FULL = "model_context_window_exceeded"


def connect(
    target: Target,
    key: str,
    *,
    retry_policy: RetryPolicy = DEFAULT_RETRY_POLICY,
    timeout: float = 600.0,
) -> Provider:
    """Return a provider that sends requests to `target` with `key`; the SDK is imported with the
    first request."""
    return AnthropicClient(target, key, retry_policy, timeout)


class AnthropicClient:
    """A provider reached through Anthropic's SDK."""

    def __init__(self, target: Target, key: str, retry_policy: RetryPolicy, timeout: float) -> None:
        self._target = target
        self._key = key
        self._retry_policy = retry_policy
        self._timeout = timeout
        self._sdk: AsyncAnthropic | None = None

    def stream(self, body: Mapping[str, Any]) -> AsyncIterator[Piece]:
        """See `ports.Provider`."""
        return with_retries(self._target.name, lambda: self._attempt(body), self._retry_policy)

    async def count_tokens(self, body: Mapping[str, Any]) -> int | None:
        """Return a request's input tokens, as counted by Anthropic.

        Raises:
            ProviderError: the count is not available.
        """
        fields = {name: body[name] for name in _COUNTED if name in body}
        with _ErrorTranslator(self._key):
            count = await self._client().messages.count_tokens(**fields)
        return count.input_tokens

    async def list_models(self) -> tuple[str, ...]:
        """Return the models available to the key; listing them costs nothing.

        Raises:
            ProviderError: the list is not available.
        """
        with _ErrorTranslator(self._key):
            page = await self._client().models.list(limit=1_000)
        return tuple(model.id for model in page.data)

    async def aclose(self) -> None:
        """Close the connections that are kept open."""
        sdk, self._sdk = self._sdk, None
        if sdk is not None:
            await sdk.close()

    def _client(self) -> "AsyncAnthropic":
        if self._sdk is None:
            import httpx2
            from anthropic import AsyncAnthropic

            self._sdk = AsyncAnthropic(
                api_key=self._key,
                base_url=self._target.base_url or None,
                max_retries=0,
                timeout=httpx2.Timeout(self._timeout, connect=min(_CONNECT_S, self._timeout)),
            )
        return self._sdk

    async def _attempt(self, body: Mapping[str, Any]) -> AsyncIterator[Piece]:
        reader = AnthropicStreamReader()
        with _ErrorTranslator(self._key):
            stream = await self._client().messages.create(**body, stream=True)
            try:
                await _require_events(stream.response)
                async for event in stream:
                    for piece in reader.feed(event):
                        yield piece
            finally:
                # Even if the caller is gone, so that the model stops.
                with anyio.CancelScope(shield=True):
                    await stream.close()
        if not reader.has_ended:
            if reader.has_content:
                return
            raise refusal_error(NAME, None, "the answer ended before its first word")
        try:
            reply = decode(reader.message())
        except ReplyError as error:
            raise ProviderError(str(error)) from error
        if reply.stop == _FULL:
            # The answer reached the end of the window; after a shorter prompt, it would fit.
            raise RequestTooLong(f"{NAME} stopped at the end of the model's window ({_FULL})")
        yield reply


class _ErrorTranslator:
    """Converts errors from the SDK and its HTTP library to `ProviderError`s."""

    def __init__(self, key: str) -> None:
        self._key = key

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and (provider_error := self._translate(error)) is not None:
            # Not `from error`: the vendor's message may contain the key and would be in the
            # traceback.
            raise provider_error from None

    def _translate(self, error: Exception) -> ProviderError | None:
        import anthropic
        import httpx2

        status: int | None = None
        wait: float | None = None
        match error:
            case anthropic.APIStatusError():
                status, message = _read_refusal(error)
                wait = read_retry_after(error.response.headers)
            case anthropic.APITimeoutError() | httpx2.TimeoutException():
                message = "it did not answer in time"
            case anthropic.APIConnectionError():
                message = f"no connection: {error.__cause__ or error}"
            case httpx2.HTTPError() | httpx2.StreamError():
                message = f"the connection broke: {error}"
            case json.JSONDecodeError() | UnicodeDecodeError() | anthropic.APIError():
                message = f"the answer cannot be read: {error}"
            case anthropic.AnthropicError():
                return ProviderError(without_key(f"{NAME}'s SDK says: {error}", self._key))
            case _:
                return None
        return refusal_error(NAME, status, without_key(message, self._key), wait)


def _read_refusal(error: Any) -> tuple[int, str]:
    """Read a refusal's status and its message, which may be empty."""
    body, status = error.body, int(error.status_code)
    if not isinstance(body, Mapping):
        return status, str(body or "")
    detail = body.get("error")
    if not isinstance(detail, Mapping):
        return status, json.dumps(body)
    kind = str(detail.get("type", ""))
    if status < 400:
        status = _STATUS.get(kind, 500)
    return status, f"{kind}: {detail.get('message', '')}"


async def _require_events(response: Any) -> None:
    """Refuse an answer with status 200 that is not a stream: the SDK would find no events in it and
    raise nothing."""
    kind = response.headers.get("content-type", "")
    if "text/event-stream" in kind:
        return
    page = (await response.aread()).decode("utf-8", "replace")
    beginning = f"it begins with {page[:80]!r}" if page.strip() else "it is empty"
    raise refusal_error(
        NAME, None, f"an answer of type {kind or 'unknown'!r} is no stream: {beginning}"
    )
