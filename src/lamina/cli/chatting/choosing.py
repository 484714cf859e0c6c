"""Settings by name, from what a person types.

Law: a value is taken as the setting's own type, or refused with what it may be.
"""

from types import NoneType
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from lamina.errors import InvalidSetting, UsageError
from lamina.values.envelope import Options
from lamina.values.settings import Settings

_WORDS = {int: "a whole number", float: "a number", str: "a text", NoneType: "none"}


def _typed(holder: type[Struct]) -> dict[str, Any]:
    """The fields that can be typed in a word."""
    found = {field.name: field.type for field in fields(holder)}
    return {
        name: kind
        for name, kind in found.items()
        if get_origin(kind) is Literal or set(get_args(kind) or (kind,)) <= set(_WORDS)
    }


_OPTIONS = _typed(Options)
TYPES: dict[str, Any] = _typed(Settings) | _OPTIONS
NONE = "none"


def is_option(name: str) -> bool:
    """Whether it goes with a request, and is no setting of the session."""
    return name in _OPTIONS


def parse_setting(name: str, text: str) -> Any:
    """The value that `text` is for a setting.

    Raises:
        UsageError: there is no such setting.
        InvalidSetting: it is no value of it.
    """
    if name not in TYPES:
        raise UsageError(f"no setting {name!r}; /settings lists them")
    given = None if text.lower() == NONE else text
    try:
        return msgspec.convert(given, TYPES[name], strict=False)
    except msgspec.ValidationError as error:
        raise InvalidSetting(name, text, f"must be {allowed(name)}") from error


def allowed(name: str) -> str:
    """What a setting may be, in words."""
    kind = TYPES[name]
    choices = choices_of(name)
    if choices:
        return f"one of {', '.join(choices)}"
    return " or ".join(_WORDS[each] for each in get_args(kind) or (kind,))


def choices_of(name: str) -> tuple[str, ...]:
    """The words that a setting may be, if it is one of a few."""
    kind = TYPES.get(name)
    return get_args(kind) if get_origin(kind) is Literal else ()


def write_value(value: object) -> str:
    return NONE if value is None else str(value)


def list_settings(settings: Settings, options: Options) -> list[tuple[str, str, bool]]:
    """Names, values, and whether they are not what they are by default."""
    rows = []
    for holder in (settings, options):
        for field in fields(holder):
            if field.name not in TYPES:
                continue
            value = getattr(holder, field.name)
            rows.append((field.name, write_value(value), value != field.default))
    return rows
