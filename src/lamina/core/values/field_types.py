"""Fields that hold what their type says, in the form in which a journal gives them back.

Law: annotations alone prove nothing; what does not fit is refused by name when a value is made.
"""

from collections.abc import Mapping
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
    """Brings the fields of a new value into the form they would be read back in.

    Raises:
        InvalidSetting: one of them holds something else.
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
    """What a value of a type may be, in words."""
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
