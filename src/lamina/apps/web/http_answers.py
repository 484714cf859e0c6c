"""Answers over HTTP: values as JSON, and errors as a status, a stable code and a sentence on what
to do.

Laws: codes and messages are those that every other app gives; only the status is HTTP's own. A
file that is missing and one that may not be looked at get the same answer where nothing else
may be known; one that changed meanwhile is a conflict. Defects of our own are printed to
standard error.
"""

import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from lamina.adapters.files.paths import FileChanged, PathRefused, PathTaken
from lamina.core.codec import mend_text
from lamina.errors import (
    ExtraMissing,
    LaminaError,
    SessionBusy,
    SessionMoved,
    SpendLimit,
    TurnStateError,
    UnknownSession,
)

JSON_TYPE = "application/json"


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} is no value that can be told")


_encoder = msgspec.json.Encoder(enc_hook=_plain)


def encode_answer(value: Any) -> bytes:
    """The value as JSON. Names of files may be no text; what of them is none is replaced."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_mend(msgspec.to_builtins(value, enc_hook=_plain)))


def _mend(value: Any) -> Any:
    match value:
        case str():
            return mend_text(value)
        case dict():
            return {_mend(name): _mend(part) for name, part in value.items()}
        case list() | tuple():
            return [_mend(part) for part in value]
        case _:
            return value


# The first that fits counts, so the special ones stand first.
_STATUSES: tuple[tuple[type[LaminaError], int], ...] = (
    (UnknownSession, 404),
    (TurnStateError, 409),
    (SessionBusy, 409),
    (SessionMoved, 409),
    (SpendLimit, 402),
    (ExtraMissing, 424),
    (LaminaError, 400),
)
_PLACE = re.compile(r" - at `(?:key in )?\$\.?(.*?)`$")


class ErrorBody(Struct, frozen=True, kw_only=True):
    """What was wrong: a stable code, a sentence, and the fields that it is about."""

    code: str
    message: str
    fields: tuple[str, ...] = ()


class ErrorAnswer(Struct, frozen=True, kw_only=True):
    """What every route answers if it cannot do what was asked."""

    error: ErrorBody


class Refusal(Exception):
    """Something that the server itself refuses."""

    def __init__(self, status: int, code: str, message: str, fields: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.body = ErrorBody(code=code, message=message, fields=fields)


def not_found(what: str, name: str, hint: str = "") -> Refusal:
    """Something of that name is not there."""
    message = f"there is no {what} {name!r}"
    return Refusal(
        404, f"unknown_{what.replace(' ', '_')}", f"{message}; {hint}" if hint else message
    )


def invalid(error: msgspec.ValidationError, part: str) -> Refusal:
    """A body or a query that is not as its type says."""
    message = str(error)
    fields: tuple[str, ...] = ()
    if found := _PLACE.search(message):
        fields = (found[1],) if found[1] else ()
        message = message[: found.start()] + (f" ({found[1]})" if found[1] else "")
    elif named := re.search(r"field `([^`]+)`", message):
        fields = (named[1],)
    return Refusal(422, "invalid", f"{part}: {message}", fields)


def describe_error(error: Exception) -> tuple[int, ErrorAnswer] | None:
    """The status and the answer; None for a defect, which is nobody's fault but ours."""
    if isinstance(error, Refusal):
        return error.status, ErrorAnswer(error=error.body)
    if not isinstance(error, LaminaError):
        return None
    status = next(status for kind, status in _STATUSES if isinstance(error, kind))
    return status, ErrorAnswer(error=ErrorBody(code=error.code, message=str(error)))


def failure_of(error: Exception) -> dict[str, Any]:
    """The same of a turn or a job that failed while nobody waited for it."""
    if isinstance(error, LaminaError):
        return {"code": error.code, "message": str(error)}
    return {"code": "defect", "message": f"{type(error).__name__}: {error}"}


@contextmanager
def refuse_paths(what: str) -> Iterator[None]:
    """Turns refusals of the one door into answers: `what` is what was asked for.

    Raises:
        Refusal: the path is not opened.
    """
    try:
        yield
    except FileChanged as refusal:
        raise Refusal(
            409, "file_changed", f"{refusal.detail}; read it again before you write it"
        ) from None
    except PathTaken as refusal:
        raise Refusal(409, "path_taken", refusal.detail) from None
    except PathRefused as refusal:
        if refusal.reason == "missing":
            code = f"unknown_{what.replace(' ', '_')}"
            raise Refusal(404, code, refusal.detail) from None
        raise Refusal(400, "path_refused", refusal.detail) from None


def tell_defect(error: Exception) -> None:
    traceback.print_exception(error, file=sys.stderr)
