"""How Gemini refuses: its statuses, its words, and where it says how long to wait."""

from collections.abc import Sequence
from typing import Any

from lamina.core.values.settings import Target
from lamina.emulators.faults import FaultKind


class GeminiRefusal(Exception):
    """An error in the API's own form."""

    def __init__(
        self, code: int, status: str, message: str, details: Sequence[dict[str, Any]] = ()
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.details = list(details)

    def body(self) -> dict[str, Any]:
        error = {"code": self.code, "message": str(self), "status": self.status}
        return {"error": error | ({"details": self.details} if self.details else {})}


def invalid_argument(message: str) -> GeminiRefusal:
    return GeminiRefusal(400, "INVALID_ARGUMENT", message)


_QUOTA = (
    "You exceeded your current quota, please check your plan and billing details. "
    "* Quota exceeded for metric: generativelanguage.googleapis.com/"
)
# Gemini has no 529; a refused key is an invalid argument there.
_FAULT_REFUSALS: dict[str, tuple[int, str, str]] = {
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
    """A fault as the API reports it."""
    if fault == "overflow":
        return GeminiRefusal(
            400,
            "INVALID_ARGUMENT",
            f"The input token count ({target.window + 1}) exceeds the maximum number of tokens "
            f"allowed ({target.window}).",
        )
    code, status, message = _FAULT_REFUSALS[fault]
    details: list[dict[str, Any]] = []
    if code == 429:
        # Google's APIs give it here, not in a header.
        kind = "type.googleapis.com/google.rpc.RetryInfo"
        details.append({"@type": kind, "retryDelay": f"{retry_after:g}s"})
    if fault == "401":
        kind = "type.googleapis.com/google.rpc.ErrorInfo"
        details.append({"@type": kind, "reason": "API_KEY_INVALID", "domain": "googleapis.com"})
    return GeminiRefusal(code, status, message, details)
