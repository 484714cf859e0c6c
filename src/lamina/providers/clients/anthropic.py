"""Anthropic through its own SDK.

Laws: nothing but a `ProviderError` and a cancellation gets out. An answer is whole only if
`message_stop` came; one that broke off with words said ends without a `Reply`, one that said
nothing is asked for again. The key goes to the SDK and into no message. The SDK's own retries are
off: there is one policy, and it is Lamina's.
"""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from email.utils import parsedate_to_datetime
from time import time
from typing import TYPE_CHECKING, Any

import anyio

from lamina.errors import ProviderError, ReplyError, RequestTooLong
from lamina.ports import Provider
from lamina.providers.clients.refusals import RetryPolicy, refusal_error, with_retries
from lamina.providers.wires.anthropic import decode
from lamina.providers.wires.messages import parse_arguments
from lamina.values.piece import CallPiece, Piece, TextPiece, ThinkingPiece
from lamina.values.settings import Target

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

NAME = "Anthropic"
DEFAULT_RETRY_POLICY = RetryPolicy()
# A server that does not even answer the telephone is not waited for as long as one that thinks.
_CONNECT_S = 15.0
# Errors inside a stream come under the status of the stream, which is 200.
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
# What `count_tokens` takes of a request.
_COUNTED = ("model", "messages", "system", "tools", "tool_choice", "thinking", "output_config")
_FULL = "model_context_window_exceeded"


def connect(
    target: Target,
    key: str,
    *,
    patience: RetryPolicy = DEFAULT_RETRY_POLICY,
    timeout: float = 600.0,
) -> Provider:
    """A provider that asks `target` with `key`; the SDK is imported when it is first asked."""
    return AnthropicClient(target, key, patience, timeout)


class AnthropicClient:
    """See `connect`."""

    def __init__(self, target: Target, key: str, patience: RetryPolicy, timeout: float) -> None:
        self._target = target
        self._key = key
        self._patience = patience
        self._timeout = timeout
        self._sdk: AsyncAnthropic | None = None

    def stream(self, body: Mapping[str, Any]) -> AsyncIterator[Piece]:
        """See `ports.Provider`."""
        return with_retries(lambda: self._attempt(body), self._patience)

    async def count_tokens(self, body: Mapping[str, Any]) -> int | None:
        """How many tokens of input a request has, as Anthropic counts.

        Raises:
            ProviderError: it does not say.
        """
        counted = {name: body[name] for name in _COUNTED if name in body}
        with _Rim(self._key):
            found = await self._client().messages.count_tokens(**counted)
        return found.input_tokens

    async def aclose(self) -> None:
        """Closes the connections that are kept open."""
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
        answer = _Answer()
        with _Rim(self._key):
            stream = await self._client().messages.create(**body, stream=True)
            try:
                await _require_events(stream.response)
                async for event in stream:
                    for piece in answer.feed(event):
                        yield piece
            finally:
                # Also when whoever asked went away: the model is to stop.
                with anyio.CancelScope(shield=True):
                    await stream.close()
        if not answer.ended:
            if answer.spoken:
                return
            raise refusal_error(NAME, None, "the answer ended before its first word")
        try:
            reply = decode(answer.message())
        except ReplyError as error:
            raise ProviderError(str(error)) from error
        if reply.stop == _FULL:
            # What was said ran into the end of the window: with less in front of it, it would not.
            raise RequestTooLong(f"{NAME} stopped at the end of the model's window ({_FULL})")
        yield reply


class _Rim:
    """Turns what the SDK and its HTTP library raise into `ProviderError`s."""

    def __init__(self, key: str) -> None:
        self._key = key

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and (translated := self._translate(error)) is not None:
            # Not `from error`: what the vendor said may hold the key, and is shown with a trace.
            raise translated from None

    def _translate(self, error: Exception) -> ProviderError | None:
        import anthropic
        import httpx2

        match error:
            case anthropic.APIStatusError():
                status, said = _refused(error)
                wait = _retry_after(error.response.headers)
                return refusal_error(NAME, status, self._hushed(said), wait)
            case anthropic.APITimeoutError() | httpx2.TimeoutException():
                return refusal_error(NAME, None, "it did not answer in time")
            case anthropic.APIConnectionError():
                said = f"no connection: {error.__cause__ or error}"
                return refusal_error(NAME, None, self._hushed(said))
            case httpx2.HTTPError() | httpx2.StreamError():
                return refusal_error(NAME, None, self._hushed(f"the connection broke: {error}"))
            case json.JSONDecodeError() | UnicodeDecodeError() | anthropic.APIError():
                return refusal_error(
                    NAME, None, self._hushed(f"the answer cannot be read: {error}")
                )
            case anthropic.AnthropicError():
                return ProviderError(self._hushed(f"{NAME}'s SDK says: {error}"))
            case _:
                return None

    def _hushed(self, text: str) -> str:
        # `refusal` knows what keys look like; this one may look like nothing.
        return text.replace(self._key, "…") if self._key else text


def _refused(error: Any) -> tuple[int, str]:
    """The status of a refusal, and what it says; nothing if it says nothing."""
    body, status = error.body, int(error.status_code)
    if not isinstance(body, Mapping):
        return status, str(body or "")
    said = body.get("error")
    if not isinstance(said, Mapping):
        return status, json.dumps(body)
    kind = str(said.get("type", ""))
    if status < 400:
        status = _STATUS.get(kind, 500)
    return status, f"{kind}: {said.get('message', '')}"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, as a server asks for them: in milliseconds, in seconds, or as a date."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
    try:
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - time())
    except (KeyError, ValueError):
        return None


async def _require_events(response: Any) -> None:
    """Refuses what came with status 200 and is no stream: the SDK would find no event in it, and
    say nothing."""
    kind = response.headers.get("content-type", "")
    if "text/event-stream" in kind:
        return
    page = (await response.aread()).decode("utf-8", "replace")
    shown = f"it begins with {page[:80]!r}" if page.strip() else "it is empty"
    raise refusal_error(
        NAME, None, f"an answer of type {kind or 'unknown'!r} is no stream: {shown}"
    )


class _Answer:
    """An answer that is coming in."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._written: dict[int, list[str]] = {}
        self._stop: str | None = None
        self.spoken = False
        self.ended = False

    def feed(self, event: Any) -> Iterator[Piece]:
        match event.type:
            case "message_start":
                said = event.message.to_dict()
                self._usage = said.get("usage") or {}
                self._head = {name: said.get(name) for name in ("id", "model", "diagnostics")}
            case "content_block_start":
                block = event.content_block.to_dict()
                self._blocks[event.index] = block
                self._written[event.index] = []
                yield from self._opening(event.index, block)
            case "content_block_delta":
                yield from self._add(event.index, event.delta)
            case "message_delta":
                self._stop = event.delta.stop_reason or self._stop
                # Totals, of which those are left out that did not change.
                said = event.usage.to_dict() if event.usage else {}
                self._usage |= {name: value for name, value in said.items() if value is not None}
            case "message_stop":
                self.ended = True
            case _:
                pass

    def _opening(self, index: int, block: dict[str, Any]) -> Iterator[Piece]:
        """What a block says at once; all of it, in some servers that speak this wire."""
        match block["type"]:
            case "text" if block.get("text"):
                yield self._say(TextPiece(block["text"]))
            case "thinking" if block.get("thinking"):
                yield self._say(ThinkingPiece(block["thinking"]))
            case "tool_use":
                yield self._say(CallPiece(index=index, name=block.get("name") or ""))
            case _:
                pass

    def _add(self, index: int, delta: Any) -> Iterator[Piece]:
        block = self._blocks.get(index)
        if block is None:
            return
        match delta.type:
            case "text_delta":
                block["text"] = block.get("text", "") + delta.text
                yield self._say(TextPiece(delta.text))
            case "thinking_delta":
                block["thinking"] = block.get("thinking", "") + delta.thinking
                yield self._say(ThinkingPiece(delta.thinking))
            case "signature_delta":
                block["signature"] = delta.signature
            case "input_json_delta" if delta.partial_json:
                self._written[index].append(delta.partial_json)
                yield self._say(CallPiece(index=index, arguments=delta.partial_json))
            case _:
                pass

    def _say(self, piece: Piece) -> Piece:
        self.spoken = True
        return piece

    def message(self) -> dict[str, Any]:
        """All of it, as the API would have said it at once."""
        content = []
        for index, block in sorted(self._blocks.items()):
            if written := "".join(self._written[index]):
                block = block | {"input": parse_arguments(written)}
            content.append(block)
        return self._head | {"content": content, "stop_reason": self._stop, "usage": self._usage}
