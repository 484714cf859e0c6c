"""How long a tool may take, how long its output may be, and the output for no result.

Law: a cut text says so, and how long it was; the whole of it goes with the output."""

from lamina.codec import mend_text
from lamina.text.excerpt import cut_text
from lamina.values.tool import ToolOutput

MOST_CHARACTERS = 100_000
CALL_SECONDS = 60.0
NO_RESULT = "(no result)"


def cut_output(text: str, limit: int = MOST_CHARACTERS, *, is_error: bool = False) -> ToolOutput:
    """The output of a call, cut to `limit` characters, with all of it beside."""
    text = mend_text(text)
    shown = cut_text(text, limit)
    return ToolOutput(text=shown, is_error=is_error, whole=text if shown != text else "")


def say_seconds(seconds: float) -> str:
    return f"{seconds:g} s"


def fail(problem: str, limit: int = MOST_CHARACTERS) -> ToolOutput:
    return cut_output(problem, limit, is_error=True)
