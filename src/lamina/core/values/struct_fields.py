"""Checks the fields of values, and translates their names in other documents.

Laws: annotations alone prove nothing; making a struct refuses a wrong value by field name, and
converts an accepted one to the format in which a journal returns it. Each field has one name of
ours; other documents may write it in camelCase or use their own word. These names are listed only
here, and two names for one field must have the same value.
"""

import re
from collections.abc import Collection, Mapping
from functools import cache
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec import Struct
from msgspec.structs import fields, force_setattr

from lamina.errors import InvalidSetting

_WORDS: Mapping[Any, str] = {
    bool: "True or False", int: "a whole number", float: "a number", str: "a text",
    NoneType: "None",
}  # fmt: skip


def settle_fields(holder: Struct) -> None:
    """Convert the fields of a new value to the format in which they would be read back.

    Raises:
        InvalidSetting: a field has a wrong value.
    """
    for name, kind, default in _fields_of(type(holder)):
        value = getattr(holder, name)
        if value is default:
            continue
        try:
            settled = msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            raise InvalidSetting(name, value, f"must be {describe_type(kind)}") from error
        if settled is not value:
            force_setattr(holder, name, settled)


def describe_type(kind: Any) -> str:
    """Return a description of the values that a type accepts."""
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, get_args(kind)))}"
    if get_origin(kind) is tuple:
        return "a list of texts"
    if get_origin(kind) is dict:
        return "an object"
    return " or ".join(_WORDS.get(arg) or describe_type(arg) for arg in get_args(kind) or (kind,))


@cache
def _fields_of(kind: type[Struct]) -> tuple[tuple[str, Any, Any], ...]:
    return tuple((field.name, field.type, field.default) for field in fields(kind))


_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")
# Other documents' words for ours. They apply only if ours is a field.
_OTHER_WORDS = {
    "invalidate_cache_reason": "reason",
    "part_name": "name",
    "tool_names": "names",
    "content": "text",
    "first_kept_index": "first_kept",
    "first_kept_message_index": "first_kept",
    "transformer_name": "transformer",
    "patch": "ops",
    "input_schema": "parameters",
    "tool_call_id": "call_id",
    "tool_name": "name",
    "display": "shown",
}


def snake_case(name: str) -> str:
    """Return a camelCase name in snake_case."""
    return _HUMP.sub(lambda match: f"_{match[1].lower()}", name)


def our_name(name: str, known: Collection[str]) -> str:
    """Return the `known` field that a name refers to; the name itself if none."""
    if name in known:
        return name
    snake = snake_case(name)
    word = _OTHER_WORDS.get(snake, snake)
    return next((ours for ours in (snake, word) if ours in known), name)


def with_our_names(fields: Mapping[Any, Any], known: Collection[str]) -> dict[Any, Any]:
    """Return the fields under our names, if they have any.

    Raises:
        ValueError: two names of one field have different values.
    """
    named: dict[Any, Any] = {}
    origins: dict[Any, Any] = {}
    for name, value in fields.items():
        ours = our_name(name, known) if isinstance(name, str) else name
        if ours in named and named[ours] != value:
            both = f"{origins[ours]!r} and {name!r}"
            raise ValueError(f"{both} are two names of one field, and differ")
        named[ours], origins[ours] = value, name
    return named
