"""Settings by name, as a person types them or a program sends them.

Laws: a value is converted to the setting's type, or refused with the allowed values. A setting
with parts uses dots (`guide_search.top_n`); without a dot it is set as a whole, by the name of
a preset.
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
    int: "a whole number", float: "a number", str: "text", bool: "true or false",
    NoneType: "none",
}  # fmt: skip
# What people write for yes and no, in addition to JSON's true and false.
_BOOLEANS = {"yes": "true", "on": "true", "no": "false", "off": "false"}
OWN_VALUES = "(custom values)"


def _types_of(holder: type[Struct]) -> dict[str, Any]:
    """Return the fields that can be typed as one word, and the parts of the others."""
    types: dict[str, Any] = {}
    for field in fields(holder):
        kind = field.type
        if kind is SearchSettings:
            types[field.name] = Preset
            types |= {f"{field.name}.{part}": inner for part, inner in _types_of(kind).items()}
        elif get_origin(kind) is Literal or set(get_args(kind) or (kind,)) <= set(_WORDS):
            types[field.name] = kind
    return types


# Options of a request that are not settings of the session.
OPTION_TYPES = {
    name: kind for name, kind in _types_of(Options).items() if name not in OPTION_SETTINGS
}
SETTING_TYPES: dict[str, Any] = _types_of(Settings) | OPTION_TYPES
NONE = "none"


def parse_setting(name: str, text: str) -> Any:
    """Convert `text` to a value of the setting.

    Raises:
        UsageError: there is no such setting.
        InvalidSetting: the value is not allowed.
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
        UsageError: the name is neither a setting nor one of the `others`.
    """
    if name not in SETTING_TYPES and name not in others:
        raise UsageError(f"no setting {name!r}{nearest_setting(name)}; /settings lists them")


def settings_change(name: str, value: Any, settings: Settings) -> dict[str, Any]:
    """Return the arguments of `Session.change` that set a parsed value.

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
    """Return the allowed values of a setting, in words."""
    kind = SETTING_TYPES[name]
    choices = choices_of(name)
    if kind is not bool and choices:
        return f"one of {', '.join(choices)}"
    return " or ".join(_WORDS[arg] for arg in get_args(kind) or (kind,))


def choices_of(name: str) -> tuple[str, ...]:
    """Return the allowed words of a setting, if it is an enumeration."""
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
    """Return names, current values and defaults, as they apply."""
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
    """Return all settings, including defaults."""
    return {
        name: asdict(value) if isinstance(value, SearchSettings) else value
        for name, value in asdict(settings).items()
    }


def read_settings(params: dict[str, Any], standing: Settings) -> dict[str, Any]:
    """Return the settings that a program names, converted to their types. Unnamed parts of a
    setting keep their values; the name of a preset sets all of them.

    Raises:
        UsageError: no setting has that name, or it does not accept such a value.
        InvalidSetting: the value is out of range.
    """
    for name in params:
        if name not in Settings.__struct_fields__:
            names = ", ".join(Settings.__struct_fields__)
            raise UsageError(f"no setting `{name}`{nearest_setting(name)}; settings are {names}")
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
    """Return the complete value of a setting with parts."""
    if not isinstance(now, dict):
        return value
    if isinstance(value, dict):
        return now | value
    if value in get_args(Preset):
        from lamina.core.values.selection import preset

        return asdict(preset(value))
    return value


def _require_parts(name: str, value: Any, now: Any) -> None:
    """Refuse unknown parts, so that a misspelled part is not ignored."""
    if isinstance(now, dict) and isinstance(value, dict):
        for part in value:
            if part not in now:
                raise UsageError(f"no setting `{name}.{part}`; its parts are {', '.join(now)}")
