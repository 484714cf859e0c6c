"""Faults as Gemini has them: its statuses, its words, and where it says how long to wait."""

from typing import Any

from lamina.providers.emulators.faults import FaultKind
from lamina.providers.emulators.gemini.bodies import GeminiRefusal
from lamina.values.settings import Target

_QUOTA = (
    "You exceeded your current quota, please check your plan and billing details. "
    "* Quota exceeded for metric: generativelanguage.googleapis.com/"
)
# Gemini knows no 529; a key that is refused is an invalid argument there.
_SAID: dict[str, tuple[int, str, str]] = {
    "429": (429, "RESOURCE_EXHAUSTED", f"{_QUOTA}generate_requests_per_model, limit: 150"),
    "throttle": (
        429,
        "RESOURCE_EXHAUSTED",
        f"{_QUOTA}generate_content_paid_tier_input_token_count, limit: 1000000: too many tokens",
    ),
    "500": (500, "INTERNAL", "An internal error has occurred. Please retry."),
    "503": (503, "UNAVAILABLE", "The service is currently unavailable."),
    "529": (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
    "401": (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
}


def refusal_for_fault(fault: FaultKind, retry_after: float, target: Target) -> GeminiRefusal:
    """How the API tells a fault."""
    if fault == "overflow":
        return GeminiRefusal(
            400,
            "INVALID_ARGUMENT",
            f"The input token count ({target.window + 1}) exceeds the maximum number of tokens "
            f"allowed ({target.window}).",
        )
    code, status, said = _SAID[fault]
    details: list[dict[str, Any]] = []
    if code == 429:
        # Not in a header: Google's APIs say it here.
        kind = "type.googleapis.com/google.rpc.RetryInfo"
        details.append({"@type": kind, "retryDelay": f"{retry_after:g}s"})
    if fault == "401":
        kind = "type.googleapis.com/google.rpc.ErrorInfo"
        details.append({"@type": kind, "reason": "API_KEY_INVALID", "domain": "googleapis.com"})
    return GeminiRefusal(code, status, said, details)
