"""Answers over HTTP: values as JSON, and errors as a status, a stable code and a sentence that
says what to do.

Laws: codes and messages are the same as in every other app; only the status is HTTP's own. A
missing file and a forbidden one get the same answer where nothing else may be revealed; a file
that changed since it was read is a conflict. Our own defects are printed to standard error.
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
    raise NotImplementedError(f"{type(value).__name__} cannot be encoded as JSON")


_encoder = msgspec.json.Encoder(enc_hook=_plain)


def encode_answer(value: Any) -> bytes:
    """Encode the value as JSON. File names may not be valid text; invalid parts are replaced."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_encodable(msgspec.to_builtins(value, enc_hook=_plain)))


def _encodable(value: Any) -> Any:
    match value:
        case str():
            return mend_text(value)
        case dict():
            return {_encodable(name): _encodable(part) for name, part in value.items()}
        case list() | tuple():
            return [_encodable(part) for part in value]
        case _:
            return value


# The first match counts, so special types come first.
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
    """What was wrong: a stable code, a sentence, and the fields concerned."""

    code: str
    message: str
    fields: tuple[str, ...] = ()


class ErrorAnswer(Struct, frozen=True, kw_only=True):
    """The answer of every route that cannot do what was asked."""

    error: ErrorBody


class Refusal(Exception):
    """A refusal by the server itself."""

    def __init__(self, status: int, code: str, message: str, fields: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.body = ErrorBody(code=code, message=message, fields=fields)


def not_found(what: str, name: str, hint: str = "") -> Refusal:
    """Return a refusal because nothing has that name."""
    message = f"there is no {what} {name!r}"
    return Refusal(
        404, f"unknown_{what.replace(' ', '_')}", f"{message}; {hint}" if hint else message
    )


def invalid(error: msgspec.ValidationError, part: str) -> Refusal:
    """Return a refusal for a body or a query that does not match its type."""
    message = str(error)
    fields: tuple[str, ...] = ()
    if found := _PLACE.search(message):
        fields = (found[1],) if found[1] else ()
        message = message[: found.start()] + (f" ({found[1]})" if found[1] else "")
    elif named := re.search(r"field `([^`]+)`", message):
        fields = (named[1],)
    return Refusal(422, "invalid", f"{part}: {message}", fields)


def describe_error(error: Exception) -> tuple[int, ErrorAnswer] | None:
    """Return the status and the answer; None for a defect of our own."""
    if isinstance(error, Refusal):
        return error.status, ErrorAnswer(error=error.body)
    if not isinstance(error, LaminaError):
        return None
    status = next(status for kind, status in _STATUSES if isinstance(error, kind))
    return status, ErrorAnswer(error=ErrorBody(code=error.code, message=str(error)))


def failure_of(error: Exception) -> dict[str, Any]:
    """Return the same for a turn or a job that failed in the background."""
    if isinstance(error, LaminaError):
        return {"code": error.code, "message": str(error)}
    return {"code": "defect", "message": f"{type(error).__name__}: {error}"}


@contextmanager
def refuse_paths(what: str) -> Iterator[None]:
    """Turn refusals of the one door into answers: `what` is what was asked for.

    Raises:
        Refusal: the path is not opened.
    """
    try:
        yield
    except FileChanged as refusal:
        raise Refusal(
            409, "file_changed", f"{refusal.detail}; reload it before you write it"
        ) from None
    except PathTaken as refusal:
        raise Refusal(409, "path_taken", refusal.detail) from None
    except PathRefused as refusal:
        if refusal.reason == "missing":
            code = f"unknown_{what.replace(' ', '_')}"
            raise Refusal(404, code, refusal.detail) from None
        raise Refusal(400, "path_refused", refusal.detail) from None


def print_defect(error: Exception) -> None:
    traceback.print_exception(error, file=sys.stderr)
