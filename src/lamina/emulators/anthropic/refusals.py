"""Defines refusals in the format of Anthropic's API: a status, a type and a sentence."""

from lamina.emulators.faults import FaultKind


class AnthropicRefusal(Exception):
    """A refusal by the API."""

    def __init__(
        self, message: str, *, status: int = 400, kind: str = "invalid_request_error",
        headers: dict[str, str] | None = None, details: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.headers = headers
        self.extra = {"details": details} if details else {}


def refuse_unless(condition: object, problem: str) -> None:
    if not condition:
        raise AnthropicRefusal(problem)


# Status, type and message of errors that occur before there is an answer.
FAULT_REFUSALS: dict[FaultKind, tuple[int, str, str]] = {
    "429": (429, "rate_limit_error", "This request would exceed the rate limit for your "
            "organization of 50 requests per minute."),
    "throttle": (429, "rate_limit_error", "This request would exceed the rate limit for your "
                 "organization of 40,000 input tokens per minute. Please reduce the prompt length "
                 "or the maximum tokens requested, or try again later."),
    "500": (500, "api_error", "Internal server error"),
    "503": (503, "api_error", "Service temporarily unavailable"),
    "529": (529, "overloaded_error", "Overloaded"),
    "401": (401, "authentication_error", "invalid x-api-key"),
}  # fmt: skip
