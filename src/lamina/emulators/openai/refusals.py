"""How OpenAI's API refuses: with a status, a sentence and codes."""

from lamina.emulators.faults import FaultKind


class OpenAIRefusal(Exception):
    """A 400 in the vendor's words."""

    def __init__(self, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code


def refuse_unless(ok: object, message: str, param: str | None, code: str | None = None) -> None:
    if not ok:
        raise OpenAIRefusal(message, param, code)


FAULT_REFUSALS: dict[FaultKind, tuple[int, str, str, str | None]] = {
    "429": (
        429, "Rate limit reached for {model} in organization org-emulated on requests per min "
        "(RPM): Limit 500, Used 500, Requested 1. Please try again in {ms}ms.", "requests",
        "rate_limit_exceeded",
    ),
    "throttle": (
        429, "Request too large for {model} in organization org-emulated on tokens per min (TPM): "
        "Limit 30000, Requested 35000. The input or output tokens must be reduced in order to run "
        "successfully.", "tokens", "rate_limit_exceeded",
    ),
    "500": (
        500, "The server had an error while processing your request. Sorry about that!",
        "server_error", None,
    ),
    "503": (
        503, "The engine is currently overloaded, please try again later", "service_unavailable",
        None,
    ),
    "529": (529, "The server is overloaded, please try again later", "server_error", None),
    "401": (
        401, "Incorrect API key provided: {key}. You can find your API key at "
        "https://platform.openai.com/account/api-keys.", "invalid_request_error", "invalid_api_key",
    ),
}  # fmt: skip
