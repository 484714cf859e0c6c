"""How long a tool may take, how long its output may be, and the output for no result.

Law: a cut text says so, and how long it was."""

from lamina.codec import mend_text
from lamina.values.tool import ToolOutput

MOST_CHARACTERS = 100_000
CALL_SECONDS = 60.0
NO_RESULT = "(no result)"


def cut_text(text: str, limit: int = MOST_CHARACTERS) -> str:
    """The text, or its beginning and end with a note between them; never longer than `limit`."""
    if len(text) <= limit:
        return text
    note = f"\n[… cut here: {len(text):,} characters in all, at most {limit:,} are shown …]\n"
    room = limit - len(note)
    if room < 2:
        return text[:limit]
    # The beginning says what a result is about, the end how it turned out.
    tail = room // 4
    return f"{text[: room - tail]}{note}{text[len(text) - tail :]}"


def say_seconds(seconds: float) -> str:
    return f"{seconds:g} s"


def fail(problem: str) -> ToolOutput:
    return ToolOutput(text=mend_text(problem), is_error=True)
