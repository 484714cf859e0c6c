"""Applies changed settings, and values passed again when a session is opened."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from msgspec import UNSET, Struct
from msgspec.structs import fields, replace

from lamina.core.values.entry import OpeningEntry, SettingsEntry
from lamina.core.values.envelope import Options
from lamina.core.values.item import Item
from lamina.core.values.patch import Display, Patch, PatchOp
from lamina.core.values.selection import SearchSettings, read_search
from lamina.core.values.settings import OPTION_SETTINGS, Settings, require_usable
from lamina.engine.record.layouts import Layouts
from lamina.engine.record.record import Record
from lamina.errors import UsageError

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


def takes_fields_of(
    record: Callable[P, Struct],
) -> Callable[[Callable[Concatenate[S, ...], R]], Callable[Concatenate[S, P], R]]:
    """Let type checkers and `help()` show the fields of a record as the keywords of a method's `**`
    parameter; the method changes those that are passed.
    """

    def show(method: Callable[Concatenate[S, ...], R]) -> Callable[Concatenate[S, P], R]:
        signature = inspect.signature(method)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        changes = [
            inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=UNSET, annotation=field.type
            )
            for field in fields(cast(type[Struct], record))
        ]
        method.__signature__ = signature.replace(parameters=own + changes)  # type: ignore[attr-defined]
        return cast(Callable[Concatenate[S, P], R], method)

    return show


async def update_settings(record: Record, layouts: Layouts, values: Mapping[str, Any]) -> None:
    """Change settings from the next turn on.

    Raises:
        InvalidSetting: a value has the wrong type or is out of range.
        UsageError: the setting does not exist.
    """
    standing = record.state.settings
    changes = dict(values)
    for name, value in values.items():
        search = getattr(standing, name, None)
        if isinstance(search, SearchSettings):
            # Parts that are not named stay as they are.
            changes[name] = read_search(name, value, search)
    for name in values:
        if name not in Settings.__struct_fields__:
            raise UsageError(f"unknown setting {name!r}{nearest_setting(name)}")
    settings = replace(standing, **changes)
    require_usable(settings, values)
    layouts.choose(None, settings)
    options = record.state.envelope.options
    replaces = [
        name for name in OPTION_SETTINGS if name in values and getattr(options, name) is not None
    ]
    await record.write(SettingsEntry, settings=settings, replaces=tuple(replaces))


def nearest_setting(name: str) -> str:
    """Return the setting that was probably meant, as a question; empty if none is close."""
    # Common names elsewhere; here, a turn is from a question to its answer.
    others = {"max_turns": "max_requests", "max_chat_turns": "max_requests"}
    names = [] if "." in name else [*Settings.__struct_fields__]
    near = others.get(name) or next(iter(get_close_matches(name, names, n=1)), "")
    return f"; did you mean {near!r}?" if near else ""


async def open_again(
    record: Record,
    layouts: Layouts,
    given: Mapping[str, str],
    ops: Sequence[PatchOp],
    *,
    settings: Settings | None,
    options: Options | None,
    always: tuple[Item, ...] | None,
) -> None:
    """Adopt the values that differ from the last time, in one write."""
    async with record.writing() as page:
        if settings is not None and settings != record.state.settings:
            layouts.choose(None, settings)
            page.write(SettingsEntry, settings=settings)
        if ops:
            title = "Given anew when the session was opened"
            page.transform("lamina.opening", Patch(ops=tuple(ops), display=Display(title=title)))
        page.write(OpeningEntry, given=dict(given), options=options, included=always)
