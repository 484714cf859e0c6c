"""Reads the errors of Gemini's SDK: the status, the message, and how long to wait.

Law: a refused key is reported as such, though the API calls it an invalid argument.
"""

import re
from typing import Any

# How the API says that a cache does not exist, or belongs to somebody else.
CACHE_GONE = re.compile(
    r"cached ?content.*(not found|expired)|cache.*(not found|expired)", re.IGNORECASE
)
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)s\Z")


def error_message(error: Exception) -> str:
    """The message of an error, for people."""
    message = getattr(error, "message", None)
    if isinstance(message, str):
        # It is empty for a status without a body.
        return message
    if hasattr(error, "details"):
        return str(error.details)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def status_of(error: Exception) -> int | None:
    """The status of an answer; None for errors of the network."""
    code = getattr(error, "code", None)
    if not isinstance(code, int):
        return None
    reasons = {detail.get("reason") for detail in _details(error)}
    return 401 if "API_KEY_INVALID" in reasons else code


def retry_after(error: Exception) -> float | None:
    """How long the API asks to wait: in a header, or among the details."""
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
