"""What holds for a session from now on: other settings, and what is given anew on opening it."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from lamina.errors import UsageError
from lamina.record.layouts import Layouts
from lamina.record.record import Record
from lamina.values.entry import OpeningEntry, SettingsEntry
from lamina.values.envelope import Options
from lamina.values.item import Item
from lamina.values.patch import Display, Patch, PatchOp
from lamina.values.selection import SearchSettings, read_search
from lamina.values.settings import Settings


async def update_settings(record: Record, layouts: Layouts, values: Mapping[str, Any]) -> Settings:
    """Changes settings from the next turn on.

    Raises:
        InvalidSetting: a value is of another type, or out of range.
        UsageError: there is no such setting.
    """
    standing = record.state.settings
    changes = dict(values)
    for name, value in values.items():
        search = getattr(standing, name, None)
        if isinstance(search, SearchSettings):
            # Parts that are not named stay as they are.
            changes[name] = read_search(name, value, search)
    try:
        settings = replace(standing, **changes)
    except TypeError as error:
        raise UsageError(f"no such setting: {error}") from error
    layouts.choose(None, settings)
    await record.write(SettingsEntry, settings=settings)
    return settings


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
    """Takes what is given otherwise than the last time, in one write."""
    async with record.writing() as page:
        if settings is not None and settings != record.state.settings:
            layouts.choose(None, settings)
            page.write(SettingsEntry, settings=settings)
        if ops:
            title = "Given anew when the session was opened"
            page.transform("lamina.opening", Patch(ops=tuple(ops), display=Display(title=title)))
        page.write(OpeningEntry, given=dict(given), options=options, included=always)
