"""What a session holds, as plain data for `lamina rpc`: its items and its settings."""

from typing import Any, get_args

import msgspec
from msgspec.structs import asdict

from lamina.cli.rpc.jsonrpc import INVALID_PARAMS, JsonRpcFault
from lamina.cli.terminal_text import one_line
from lamina.faces.items import ItemOverview
from lamina.values.selection import Preset, SearchSettings
from lamina.values.settings import Settings

# The longest description that is told, in columns.
ABOUT = 60


def describe_session_items(members: ItemOverview) -> dict[str, Any]:
    """What applies to every prompt, and what could be added."""
    return {
        "items": [asdict(item) for item in members.inside],
        "available": [
            asdict(item) | {"about": one_line(item.about, ABOUT)} for item in members.outside
        ],
        "problems": list(members.problems),
    }


def describe_settings(settings: Settings) -> dict[str, Any]:
    """All settings, also where they are what they are by default."""
    return {
        name: asdict(value) if isinstance(value, SearchSettings) else value
        for name, value in asdict(settings).items()
    }


def read_settings(params: dict[str, Any], standing: Settings) -> dict[str, Any]:
    """The settings that are given, each of its type. Of a setting with parts, those that are not
    given stay as they are; the name of a preset sets all of them.

    Raises:
        Fault: there is none of that name, or it takes no such value.
        InvalidSetting: the value is out of range.
    """
    for name in params:
        if name not in Settings.__struct_fields__:
            known = ", ".join(Settings.__struct_fields__)
            raise JsonRpcFault(INVALID_PARAMS, f"settings: no setting `{name}`; there are {known}")
    now = describe_settings(standing)
    given = {name: _whole(value, now[name]) for name, value in params.items()}
    for name, value in given.items():
        _require_parts(name, value, now[name])
    try:
        read = msgspec.convert(now | given, Settings)
    except msgspec.ValidationError as error:
        raise JsonRpcFault(INVALID_PARAMS, f"settings: {error}") from error
    return {name: getattr(read, name) for name in params}


def _whole(value: Any, now: Any) -> Any:
    """What a setting with parts is to be as a whole."""
    if not isinstance(now, dict):
        return value
    if isinstance(value, dict):
        return now | value
    if value in get_args(Preset):
        from lamina.selection.presets import preset

        return asdict(preset(value))
    return value


def _require_parts(name: str, value: Any, now: Any) -> None:
    """A part that is misspelled would be taken for none at all."""
    if isinstance(now, dict) and isinstance(value, dict):
        for part in value:
            if part not in now:
                problem = f"no setting `{name}.{part}`; there are {', '.join(now)}"
                raise JsonRpcFault(INVALID_PARAMS, f"settings: {problem}")
