"""Settings by name, from what a person types or a program sends.

Laws: a value is taken as the setting's own type, or refused with what it may be. A setting that
has parts is named with a dot (`guide_search.top_n`); without one it is set as a whole, by the name
of a preset.
"""

from collections.abc import Container
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, fields, replace

from lamina.core.values.envelope import Options
from lamina.core.values.selection import Preset, SearchSettings, read_search
from lamina.core.values.settings import OPTION_SETTINGS, Settings
from lamina.engine.session.session_settings import nearest_setting
from lamina.errors import InvalidSetting, UsageError

_WORDS = {
    int: "a whole number", float: "a number", str: "a text", bool: "true or false",
    NoneType: "none",
}  # fmt: skip
# What people write for yes and no, besides what JSON has for it.
_BOOLEANS = {"yes": "true", "on": "true", "no": "false", "off": "false"}
OWN_VALUES = "(values of its own)"


def _types_of(holder: type[Struct]) -> dict[str, Any]:
    """The fields that can be typed in a word, and the parts of those that cannot."""
    types: dict[str, Any] = {}
    for field in fields(holder):
        kind = field.type
        if kind is SearchSettings:
            types[field.name] = Preset
            types |= {f"{field.name}.{part}": inner for part, inner in _types_of(kind).items()}
        elif get_origin(kind) is Literal or set(get_args(kind) or (kind,)) <= set(_WORDS):
            types[field.name] = kind
    return types


# What goes with a request and is not a setting of the session.
OPTION_TYPES = {
    name: kind for name, kind in _types_of(Options).items() if name not in OPTION_SETTINGS
}
SETTING_TYPES: dict[str, Any] = _types_of(Settings) | OPTION_TYPES
NONE = "none"


def parse_setting(name: str, text: str) -> Any:
    """The value that `text` is for a setting.

    Raises:
        UsageError: there is no such setting.
        InvalidSetting: it is no value of it.
    """
    require_setting(name)
    word = None if text.lower() == NONE else text
    if SETTING_TYPES[name] is bool:
        word = _BOOLEANS.get(text.lower(), text.lower())
    if SETTING_TYPES[name] is Preset and (flag := _BOOLEANS.get(text.lower(), text.lower())) in (
        "true",
        "false",
    ):
        # Whether to search at all.
        return flag == "true"
    try:
        return msgspec.convert(word, SETTING_TYPES[name], strict=False)
    except msgspec.ValidationError as error:
        raise InvalidSetting(name, text, f"must be {describe_allowed(name)}") from error


def require_setting(name: str, *others: str) -> None:
    """
    Raises:
        UsageError: there is no such setting, nor is it one of the `others`.
    """
    if name not in SETTING_TYPES and name not in others:
        raise UsageError(f"no setting {name!r}{nearest_setting(name)}; /settings lists them")


def settings_change(name: str, value: Any, settings: Settings) -> dict[str, Any]:
    """The arguments of `Session.change` that give a setting a value that was parsed.

    Raises:
        InvalidSetting: the value is out of range.
    """
    whole, dot, part = name.partition(".")
    if dot:
        return {whole: replace(getattr(settings, whole), **{part: value})}
    if SETTING_TYPES[name] is Preset:
        return {name: read_search(name, value, getattr(settings, name))}
    return {name: value}


def describe_allowed(name: str) -> str:
    """What a setting may be, in words."""
    kind = SETTING_TYPES[name]
    choices = choices_of(name)
    if kind is not bool and choices:
        return f"one of {', '.join(choices)}"
    return " or ".join(_WORDS[arg] for arg in get_args(kind) or (kind,))


def choices_of(name: str) -> tuple[str, ...]:
    """The words that a setting may be, if it is one of a few."""
    kind = SETTING_TYPES.get(name)
    if kind is bool:
        return ("true", "false")
    return get_args(kind) if get_origin(kind) is Literal else ()


def write_value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, SearchSettings):
        from lamina.core.values.selection import preset

        return next((name for name in get_args(Preset) if preset(name) == value), OWN_VALUES)
    return NONE if value is None else str(value)


def list_settings(settings: Settings, options: Options) -> list[tuple[str, str, str]]:
    """Names, values, and what they are by default. Both are as they are in force."""
    return [*_list_fields(settings), *_list_fields(options, only=OPTION_TYPES)]


def _list_fields(
    holder: Struct, prefix: str = "", only: Container[str] = SETTING_TYPES
) -> list[tuple[str, str, str]]:
    rows = []
    for field in fields(holder):
        name = f"{prefix}{field.name}"
        if name not in only:
            continue
        value = getattr(holder, field.name)
        rows.append((name, write_value(value), write_value(field.default)))
        if isinstance(value, SearchSettings):
            rows += _list_fields(value, f"{name}.")
    return rows


def describe_settings(settings: Settings) -> dict[str, Any]:
    """All settings, defaults too."""
    return {
        name: asdict(value) if isinstance(value, SearchSettings) else value
        for name, value in asdict(settings).items()
    }


def read_settings(params: dict[str, Any], standing: Settings) -> dict[str, Any]:
    """The settings that a program names, each as its own type. Parts of a setting that are not
    named stay as they are; the name of a preset sets all of them.

    Raises:
        UsageError: there is none of that name, or it takes no such value.
        InvalidSetting: the value is out of range.
    """
    for name in params:
        if name not in Settings.__struct_fields__:
            names = ", ".join(Settings.__struct_fields__)
            raise UsageError(f"no setting `{name}`{nearest_setting(name)}; there are {names}")
    now = describe_settings(standing)
    changes = {name: _whole(value, now[name]) for name, value in params.items()}
    for name, value in changes.items():
        _require_parts(name, value, now[name])
    try:
        new_settings = msgspec.convert(now | changes, Settings)
    except msgspec.ValidationError as error:
        raise UsageError(str(error)) from error
    return {name: getattr(new_settings, name) for name in params}


def _whole(value: Any, now: Any) -> Any:
    """The whole value of a setting with parts."""
    if not isinstance(now, dict):
        return value
    if isinstance(value, dict):
        return now | value
    if value in get_args(Preset):
        from lamina.core.values.selection import preset

        return asdict(preset(value))
    return value


def _require_parts(name: str, value: Any, now: Any) -> None:
    """Otherwise a part that is misspelled would be ignored."""
    if isinstance(now, dict) and isinstance(value, dict):
        for part in value:
            if part not in now:
                raise UsageError(f"no setting `{name}.{part}`; there are {', '.join(now)}")
