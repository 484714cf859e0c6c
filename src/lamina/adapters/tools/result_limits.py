"""Limits tool calls: their duration, the length of their output, and the arguments they accept.

Law: shortened text says so and gives its original length; the full text accompanies the output."""

from collections.abc import Mapping

from lamina.core.codec import mend_text
from lamina.core.text.excerpt import cut_text
from lamina.core.text.secrets import count_marks
from lamina.core.values.tool import ToolOutput

MAX_CHARACTERS = 100_000
CALL_SECONDS = 60.0
NO_RESULT = "(no result)"


def cut_output(text: str, limit: int = MAX_CHARACTERS, *, is_error: bool = False) -> ToolOutput:
    """Return a call's output, shortened to `limit` characters, together with the full text."""
    text = mend_text(text)
    shown = cut_text(text, limit)
    return ToolOutput(text=shown, is_error=is_error, whole=text if shown != text else "")


def holds_mark(value: object) -> bool:
    """Check whether an argument contains a mark that stands for a secret."""
    match value:
        case str():
            return count_marks(value) > 0
        case Mapping():
            return any(holds_mark(inner) for inner in value.values())
        case list() | tuple():
            return any(map(holds_mark, value))
        case _:
            return False


def refuse_marks(arguments: Mapping[str, object]) -> ToolOutput | None:
    """Return the refusal of a call whose arguments contain such a mark: a tool that writes would
    permanently replace the secret with it."""
    if not holds_mark(arguments):
        return None
    return fail(
        "The call was not run: its arguments hold a mark ([redacted: ...]) where a secret was left "
        "out. Leave it out, so that the secret stays where it is."
    )


def say_seconds(seconds: float) -> str:
    return f"{seconds:g} s"


def fail(problem: str, limit: int = MAX_CHARACTERS) -> ToolOutput:
    return cut_output(problem, limit, is_error=True)
