"""Decides when, and after how long, a request is sent again.

Law: a request is sent again only if none of its answer was passed on.
"""

import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from email.utils import parsedate_to_datetime
from time import time

import anyio
from msgspec import Struct

from lamina.core.values.wire import Piece, ProgressPiece, ResentPiece
from lamina.engine.logger import log_retry
from lamina.errors import ProviderBusy


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """Limits the attempts, and sets the wait in between: twice as long each time, or as long as the
    provider says."""

    attempts: int = 4
    first_wait_s: float = 0.5
    max_wait_s: float = 30.0

    def wait(self, attempt: int, retry_after: float | None) -> float:
        """Return the seconds until the next attempt: never fewer than the provider asked for, and
        randomised so that clients do not all retry at once."""
        base_wait: float = min(self.max_wait_s, self.first_wait_s * 2**attempt)
        spread = base_wait * random.uniform(0.75, 1.25)
        return spread if retry_after is None else max(retry_after, 0.0) + 0.1 * spread


async def with_retries(
    target: str, attempt: Callable[[], AsyncIterator[Piece]], policy: RetryPolicy
) -> AsyncIterator[Piece]:
    """Yield the pieces of a target's answer, with as many attempts as the policy allows. Once any
    text was passed on, there is no further attempt. A piece reports an attempt that may be charged
    twice."""
    for number in range(policy.attempts):
        has_content, problem = False, ""
        try:
            async with aclosing(attempt()) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    has_content = has_content or not isinstance(piece, ProgressPiece)
                    yield piece
            return
        except ProviderBusy as error:
            last = number == policy.attempts - 1
            wait = error.retry_after
            if has_content or last or (wait is not None and wait > 2 * policy.max_wait_s):
                raise
            pause = policy.wait(number, wait)
            log_retry(target, number + 2, policy.attempts, pause)
            problem = "" if error.is_refusal else str(error)
        if problem:
            yield ResentPiece(problem)
        await anyio.sleep(pause)


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait, which a server specifies in milliseconds, in seconds or as a
    date."""
    for name, unit in (("retry-after-ms", 1_000), ("retry-after", 1)):
        value = headers.get(name, "")
        with suppress(ValueError):
            return float(value) / unit
        with suppress(ValueError):
            return max(0.0, parsedate_to_datetime(value).timestamp() - time())
    return None
