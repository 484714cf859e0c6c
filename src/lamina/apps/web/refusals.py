"""How what goes wrong is told over HTTP: a status, a stable code, and what to do about it.

Law: codes and messages are those that every other face gives; only the status is HTTP's own.
"""

import re
from typing import Any

import msgspec
from msgspec import Struct

from lamina.errors import (
    ExtraMissing,
    LaminaError,
    SessionBusy,
    SessionMoved,
    SpendLimit,
    TurnStateError,
    UnknownSession,
)

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
