"""Classifies provider errors by how to respond to them.

Laws: an overflow is never mistaken for throttling, nor the reverse. No error contains a key.
"""

import re

from lamina.errors import KeyMissing, ProviderBusy, ProviderError, RequestTooLong

# The wording used by providers.
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
# Statuses from a gateway, or a vendor that stopped waiting: a model may have answered.
_UNDECIDED = (408, 502, 504, 520, 522, 524)
_SECRETS = re.compile(
    r"(sk-[A-Za-z0-9_-]{4})[A-Za-z0-9_-]{6,}|(AIza[A-Za-z0-9_-]{4})[A-Za-z0-9_-]{10,}"
    r"|((?:Bearer|x-api-key:?|key=)\s*)\S{8,}",
    re.IGNORECASE,
)


def is_overflow(status: int | None, text: str) -> bool:
    """Return whether a refusal means that the request is too long for the model."""
    if status in (400, 413) and not text.strip():
        return True
    if status == 429 or _THROTTLED.search(text):
        return False
    return status == 413 or bool(_OVERFLOW.search(text))


def refusal_error(
    provider: str, status: int | None, text: str, retry_after: float | None = None
) -> ProviderError:
    """Return the error for a provider's refusal. Most statuses mean that there is no answer and
    nothing is charged; without a status, the request's outcome is unknown."""
    error = _sort(provider, status, text, retry_after)
    error.is_refusal = status is not None and status not in _UNDECIDED
    return error


def _sort(provider: str, status: int | None, text: str, retry_after: float | None) -> ProviderError:
    detail = without_keys(" ".join(text.split()))[:500]
    code = f" ({status})" if status else ""
    if is_overflow(status, text):
        return RequestTooLong(f"{provider} says that the request is too long{code}: {detail}")
    if status in (401, 403):
        return KeyMissing(f"{provider} refused the key{code}: {detail}; check it, and its rights")
    if status in _BUSY or status is None or _THROTTLED.search(text):
        return ProviderBusy(f"{provider} cannot answer now{code}: {detail}", retry_after)
    return ProviderError(f"{provider} refused the request{code}: {detail}")


def without_keys(text: str) -> str:
    """Return `text` with everything that looks like a key shortened."""
    return _SECRETS.sub(lambda match: f"{match[1] or match[2] or match[3] or ''}…", text)


def without_key(text: str, key: str) -> str:
    """Return `text` without this particular key, which need not look like one."""
    return text.replace(key, "…") if key else text
