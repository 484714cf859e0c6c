"""What went wrong with a provider, told apart by what is to be done about it.

Laws: an overflow is never taken for throttling, nor the other way round. A request is sent again
only if nothing of its answer was given on. No error says a key.
"""

import random
import re
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

import anyio
from msgspec import Struct

from lamina.errors import KeyMissing, ProviderBusy, ProviderError, RequestTooLong
from lamina.values.piece import Piece, ProgressPiece

# As providers say it.
_OVERFLOW = re.compile(
    r"prompt is too long|input is too long for requested model|exceeds the context window"
    r"|input token count.*exceeds the maximum|maximum prompt length is \d+"
    r"|reduce the length of the messages|maximum context length is \d+ tokens"
    r"|exceeds the limit of \d+|exceeds the available context size"
    r"|greater than the context length|context window exceeds limit|exceeded model token limit"
    r"|too large for model with \d+ maximum context length|model_context_window_exceeded"
    r"|context[_ ]length[_ ]exceeded|too many tokens|token limit exceeded",
    re.IGNORECASE | re.DOTALL,
)
_THROTTLED = re.compile(
    r"throttl|rate.?limit|too many requests|tokens per (minute|day|second)|quota"
    r"|overloaded|capacity",
    re.IGNORECASE,
)
_BUSY = (408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529)
_SECRETS = re.compile(
    r"(sk-[A-Za-z0-9_-]{4})[A-Za-z0-9_-]{6,}|(AIza[A-Za-z0-9_-]{4})[A-Za-z0-9_-]{10,}"
    r"|((?:Bearer|x-api-key:?|key=)\s*)\S{8,}",
    re.IGNORECASE,
)


def is_overflow(status: int | None, text: str) -> bool:
    """Whether a refusal says that the request is too long for the model."""
    if status in (400, 413) and not text.strip():
        return True
    if status == 429 or _THROTTLED.search(text):
        return False
    return status == 413 or bool(_OVERFLOW.search(text))


def refusal_error(
    provider: str, status: int | None, text: str, retry_after: float | None = None
) -> ProviderError:
    """The error for what a provider answered instead of an answer."""
    said = without_keys(" ".join(text.split()))[:500]
    code = f" ({status})" if status else ""
    if is_overflow(status, text):
        return RequestTooLong(f"{provider} says that the request is too long{code}: {said}")
    if status in (401, 403):
        return KeyMissing(f"{provider} refused the key{code}: {said}; check it, and its rights")
    if status in _BUSY or status is None or _THROTTLED.search(text):
        return ProviderBusy(f"{provider} cannot answer now{code}: {said}", retry_after)
    return ProviderError(f"{provider} refused the request{code}: {said}")


def without_keys(text: str) -> str:
    """`text` with everything that looks like a key made unreadable."""
    return _SECRETS.sub(lambda found: f"{found[1] or found[2] or found[3] or ''}…", text)


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """How often a request is sent, and how long is waited in between: twice as long each time,
    or as long as the provider says."""

    attempts: int = 4
    first_s: float = 0.5
    most_s: float = 30.0

    def wait(self, attempt: int, retry_after: float | None) -> float:
        """Seconds before the next attempt; never less than a provider asked for, and not at the
        same moment as everybody else."""
        grown: float = min(self.most_s, self.first_s * 2**attempt)
        spread = grown * random.uniform(0.75, 1.25)
        return spread if retry_after is None else max(retry_after, 0.0) + 0.1 * spread


async def with_retries(
    attempt: Callable[[], AsyncIterator[Piece]], patience: RetryPolicy
) -> AsyncIterator[Piece]:
    """The pieces of an answer, from as many attempts as patience has. Once a word was given on, the
    answer is what it is."""
    for number in range(patience.attempts):
        spoken = False
        try:
            async with aclosing(attempt()) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    spoken = spoken or not isinstance(piece, ProgressPiece)
                    yield piece
            return
        except ProviderBusy as error:
            last = number == patience.attempts - 1
            asked = error.retry_after
            if spoken or last or (asked is not None and asked > 2 * patience.most_s):
                raise
            pause = patience.wait(number, asked)
        await anyio.sleep(pause)
