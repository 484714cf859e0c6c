"""Fields of JSON objects that may hold anything.

Law: whatever an object holds, reading a field of it raises nothing: a value of an unexpected form
counts as missing, and stays in what `without` leaves.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

Object = dict[str, Any]

_MAX_COUNT = 2**53


def text_in(value: Mapping[str, Any], *keys: str) -> str:
    """The first of these fields that is a text and not empty; else an empty one."""
    for key in keys:
        field = value.get(key)
        if isinstance(field, str) and field:
            return field
    return ""


def count_in(value: Mapping[str, Any], *keys: str) -> int:
    """The first of these fields that is a number a counter can have; else 0."""
    for key in keys:
        number = value.get(key)
        if isinstance(number, int | float) and not isinstance(number, bool):
            return int(number) if 0 <= number <= _MAX_COUNT else 0
    return 0


def object_in(value: Mapping[str, Any], key: str) -> Object:
    field = value.get(key)
    return field if isinstance(field, dict) else {}


def list_in(value: Mapping[str, Any], key: str) -> list[Any]:
    field = value.get(key)
    return field if isinstance(field, list) else []


# Fields that are read in another form than text. One of yet another form was not understood,
# whatever its name.
_ANY = frozenset(("content", "arguments", "input", "output", "data", "display", "image_url", "body",
                  "body_raw", "system", "instructions", "error", "result"))  # fmt: skip
_OBJECTS = frozenset(("message", "usage", "payload", "source", "info", "request", "response",
                      "action", "base_instructions", "state", "function"))  # fmt: skip
_LISTS = frozenset(("messages", "parts", "tools", "patch", "replacement_history", "tool_calls",
                    "toolRequests", "choices"))  # fmt: skip
_FLAGS = frozenset(("is_error", "isError", "success"))


def without(value: Mapping[str, Any], *keys: str) -> Object:
    """What is left of an object once the fields that were understood are taken away."""
    return {key: field for key, field in value.items() if key not in keys or not _fits(key, field)}


def _fits(key: str, value: Any) -> bool:
    if value is None or key in _ANY:
        return True
    if key == "timestamp":
        return parse_moment(value) is not None
    if key in _OBJECTS or key in _LISTS:
        return isinstance(value, dict if key in _OBJECTS else list)
    return isinstance(value, bool if key in _FLAGS else str)


def parse_moment(value: Any) -> float | None:
    """Seconds since 1970 of an ISO time, or of a number of milliseconds or seconds."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e15:
        return float(value) / 1000 if value > 1e11 else float(value)
    return None
