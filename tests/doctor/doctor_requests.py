"""Requests for the doctor's tests, with figures as vendors report them."""

from typing import Any

from lamina.adapters.providers.model_book import load_book
from lamina.core.values.settings import Target
from lamina.core.values.usage import Usage
from lamina.doctor.findings import Finding, SessionDiagnosis, diagnose
from lamina.doctor.observed_request import ObservedRequest, PromptPart, RecordedPrompt

CLAUDE, GPT = "claude-sonnet-4-5", "gpt-5"


def target_of(request: ObservedRequest) -> Target | None:
    return load_book().find(f"{request.provider}:{request.model}")


def marked(number: int, read: int, written: int, fresh: int = 3, **fields: Any) -> ObservedRequest:
    """A request to Anthropic, ten seconds after the one before."""
    usage = Usage(input=read + written + fresh, cached=read, written=written)
    return _request(number, usage, **({"provider": "anthropic", "model": CLAUDE} | fields))


def automatic(number: int, total: int, read: int, **fields: Any) -> ObservedRequest:
    """A request to OpenAI."""
    usage = Usage(input=total, cached=read)
    return _request(number, usage, **({"provider": "openai", "model": GPT} | fields))


def _request(number: int, usage: Usage, **fields: Any) -> ObservedRequest:
    common: dict[str, Any] = {
        "source": "claude_code", "session": "s", "id": f"r{number}", "depth": "transcript",
        "at": 1_000.0 + 10 * number, "ended": 1_003.0 + 10 * number, "step": "loop",
    }  # fmt: skip
    return ObservedRequest(usage=usage, **(common | fields))


def examine(*requests: ObservedRequest) -> SessionDiagnosis:
    return diagnose(requests, target_of)


def only(*requests: ObservedRequest) -> Finding:
    (finding,) = examine(*requests).findings
    return finding


def prompt(
    *messages: str, system: str = "S", tools: tuple[str, ...] = ("a", "b")
) -> RecordedPrompt:
    """A prompt of texts; a message that begins with `!` and a kind is of that kind."""
    parts = [
        PromptPart(
            layer="tools", place=f"tools[{i}]", kind="tool", data=f'{{"name":"{t}"}}'.encode()
        )
        for i, t in enumerate(tools)
    ]
    parts.append(PromptPart(layer="system", place="system", kind="text", data=system.encode()))
    for index, message in enumerate(messages):
        kind, text = "text", message
        if message.startswith("!"):
            kind, _, text = message[1:].partition(" ")
        parts.append(
            PromptPart(
                layer="messages", place=f"messages[{index}]", kind=kind,
                role="user" if index % 2 == 0 else "assistant", message=index, data=text.encode(),
            )
        )  # fmt: skip
    return RecordedPrompt(parts=tuple(parts))
