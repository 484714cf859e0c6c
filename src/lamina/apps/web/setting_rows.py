"""Settings for a form: their types, allowed values and descriptions.

Law: types and help texts are derived from the settings themselves; a new setting needs no code
here.
"""

import ast
import inspect
from functools import cache
from itertools import pairwise
from textwrap import dedent
from types import NoneType
from typing import Any, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import fields, replace

from lamina.apps.views.settings_by_name import (
    OPTION_TYPES,
    OWN_VALUES,
    SETTING_TYPES,
    choices_of,
    describe_allowed,
    settings_change,
    write_value,
)
from lamina.apps.web.session_records import SettingKind, SettingRow
from lamina.core.values.envelope import Options
from lamina.core.values.selection import SearchSettings
from lamina.core.values.settings import Settings
from lamina.engine.session.session_settings import nearest_setting
from lamina.errors import InvalidSetting, UsageError

# A list of texts cannot be typed as one word.
_LISTS = ("allow_hosts",)
_KINDS: dict[Any, SettingKind] = {
    bool: "boolean", int: "integer", float: "number", str: "text",
}  # fmt: skip
# The first matching prefix decides the group that a setting is shown in.
_GROUPS = (
    ("Model", ("target", "temperature", "top_p", "max_tokens", "max_requests", "reasoning")),
    ("Spending", ("spend_", "ask_above_cost")),
    ("Cache", ("cache_", "explicit_cache", "promotion", "prefix_check")),
    ("Compaction", ("compaction", "summary_", "history", "strip_", "prune_")),
    ("Choosing", ("guide_search", "tool_", "expand", "relevance_")),
    ("Web and secrets", ("web", "allow_hosts", "secrets")),
    ("Tools", ("ask_before_tools",)),
)


def list_rows(settings: Settings, options: Options) -> tuple[SettingRow, ...]:
    """Return all settings; `options` are the current ones."""
    return (*_rows_of(settings), *_rows_of(options, only=OPTION_TYPES))


def _rows_of(holder: Struct, prefix: str = "", only: Any = None) -> list[SettingRow]:
    rows: list[SettingRow] = []
    helps = _helps(type(holder))
    for field in fields(holder):
        name = f"{prefix}{field.name}"
        if name not in (SETTING_TYPES if only is None else only) and name not in _LISTS:
            continue
        value, default = getattr(holder, field.name), field.default
        parts: list[SettingRow] = []
        if isinstance(value, SearchSettings):
            parts = _rows_of(value, f"{name}.")
            value, default = write_value(value), write_value(default)
        rows.append(
            SettingRow(
                name=name, group=_group(name), kind=_kind(name), value=value, default=default,
                choices=_choices(name), nullable=_is_nullable(name),
                help=helps.get(field.name, ""),
            )
        )  # fmt: skip
        rows += parts
    return rows


def read_changes(
    values: dict[str, Any], standing: Settings
) -> tuple[dict[str, Any], Options | None]:
    """Return the changes that values by name make: to settings, and to other options.

    Raises:
        UsageError: there is no such setting.
        InvalidSetting: the value is not allowed.
    """
    changes: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for name, value in values.items():
        taken = _read_value(name, value)
        if name in OPTION_TYPES:
            if taken is None:
                raise InvalidSetting(name, value, "cannot be unset; choose a value")
            options[name] = taken
        else:
            change = {name: taken} if name in _LISTS else settings_change(name, taken, standing)
            changes |= change
            # Parts of one setting are changed one after another.
            standing = replace(standing, **change)
    return changes, Options(**options) if options else None


def _read_value(name: str, value: Any) -> Any:
    kind = tuple[str, ...] if name in _LISTS else SETTING_TYPES.get(name)
    if kind is None:
        raise UsageError(f"no setting {name!r}{nearest_setting(name)}")
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        allowed = "a list of texts" if name in _LISTS else describe_allowed(name)
        raise InvalidSetting(name, value, f"must be {allowed}") from error


def _kind(name: str) -> SettingKind:
    if name in _LISTS:
        return "texts"
    kind = SETTING_TYPES[name]
    if kind is not bool and choices_of(name):
        return "choice"
    inner = [part for part in get_args(kind) or (kind,) if part is not NoneType]
    return _KINDS[inner[-1]]


def _choices(name: str) -> tuple[str, ...]:
    if name in _LISTS or SETTING_TYPES[name] is bool:
        return ()
    choices = choices_of(name)
    # A search with changed parts matches none of the presets.
    return (*choices, OWN_VALUES) if name in ("guide_search", "tool_search") else choices


def _is_nullable(name: str) -> bool:
    return name not in _LISTS and NoneType in get_args(SETTING_TYPES[name])


def _group(name: str) -> str:
    for group, beginnings in _GROUPS:
        if name.startswith(beginnings):
            return group
    return "Context"


@cache
def _helps(holder: type) -> dict[str, str]:
    """Return the help texts of a record's fields, from the docstrings below them."""
    try:
        tree = ast.parse(dedent(inspect.getsource(holder)))
    except (OSError, TypeError, SyntaxError):
        # Without source code, as in a packed program, there are none.
        return {}
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    helps: dict[str, str] = {}
    for field, text in pairwise(body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                value=ast.Constant(value=str(words))
            ):
                helps[name] = " ".join(words.split())
            case _:
                pass
    return helps
