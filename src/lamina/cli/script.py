"""Scripted conversations: what is asked, attached and answered, turn by turn."""

from pathlib import Path

import msgspec
from msgspec import Struct

from lamina.errors import UsageError


class ScriptTurn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`pause` is the time since the turn before, in seconds; `edit` maps paths to new contents,
    as if a person had changed those notes meanwhile."""

    ask: str
    answer: str = ""
    attach: tuple[str, ...] = ()
    pause: float = 30.0
    edit: dict[str, str] = {}


class Script(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    turns: tuple[ScriptTurn, ...]
    system: str = ""
    title: str = ""


def read_script(path: Path) -> Script:
    """The conversation in a JSON file.

    Raises:
        UsageError: it cannot be read, or is not of that form.
    """
    try:
        script = msgspec.json.decode(path.read_bytes(), type=Script)
    except OSError as error:
        raise UsageError(f"cannot read the script {str(path)!r}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise UsageError(f"{str(path)!r} is not a conversation script: {error}") from error
    if not script.turns:
        raise UsageError(f"{str(path)!r} has no turns")
    return script


class ScriptClock:
    """A clock that the script moves."""

    def __init__(self) -> None:
        self.time = 1_750_000_000.0

    def now(self) -> float:
        return self.time


def scripted_reply(answer: str) -> dict[str, object]:
    """An answer in a form that every session understands: OpenAI's, without usage."""
    message = {"role": "assistant", "content": answer}
    return {"choices": [{"message": message, "finish_reason": "stop"}]}
