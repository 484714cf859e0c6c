"""Everything that applies to every question of a session: members, pins and settings."""

from collections.abc import Awaitable, Callable

from msgspec.structs import asdict

from lamina.apps.views.session_items import change_row
from lamina.apps.views.session_opener import ensure_target
from lamina.apps.web.kept_opening import KeptNotices
from lamina.apps.web.open_session import OpenSession
from lamina.apps.web.routes import Call, Route
from lamina.apps.web.session_records import (
    AdoptedRows,
    AvailableRow,
    ItemName,
    ItemRows,
    MemberRow,
    NewSettings,
    PinnedRow,
    SettingRows,
)
from lamina.apps.web.setting_rows import list_rows, read_changes
from lamina.apps.web.workspace_list import Done
from lamina.core.text import label_of
from lamina.core.values.patch import OptionsSet

SESSION = "/api/workspaces/{workspace}/sessions/{session}"


async def list_items(call: Call) -> ItemRows:
    async with call.desk.session(call.workspace, call.session) as opened:
        await _look_up(opened)
        items = opened.items
        about = {item.item: item.about for item in items.known}
        return ItemRows(
            items=tuple(
                MemberRow(
                    item=item.item, label=label_of(item.item), include=item.include,
                    missing=item.missing, about=about.get(item.item, ""),
                )
                for item in items.inside
            ),
            available=tuple(
                AvailableRow(label=label_of(item.item), **asdict(item))
                for item in items.outside
            ),
            pins=tuple(
                PinnedRow(item=item, label=label_of(item))
                for item in opened.session.state.library.pinned
            ),
            changes=items.changes,
            problems=items.problems,
        )  # fmt: skip


async def adopt_agent(call: Call) -> AdoptedRows:
    async with call.desk.session(call.workspace, call.session) as opened:
        opened.turns.require_idle()
        changes = await opened.session.adopt_agent()
        return AdoptedRows(changes=tuple(map(change_row, changes)))


async def _look_up(opened: OpenSession) -> None:
    # While a turn runs, its tools are known, and a slow server must not delay anything.
    await opened.items.look_up(tools=opened.turns.running is None)


def _change(
    act: Callable[[OpenSession, str], Awaitable[bool]], *, looks_up: bool
) -> Callable[[Call], Awaitable[Done]]:
    async def change(call: Call) -> Done:
        body: ItemName = call.body
        async with call.desk.session(call.workspace, call.session) as opened:
            opened.turns.require_idle()
            if looks_up:
                await _look_up(opened)
            return Done(changed=await act(opened, body.what))

    return change


async def show_settings(call: Call) -> SettingRows:
    async with call.desk.session(call.workspace, call.session) as opened:
        return _rows(opened)


async def change_settings(call: Call) -> SettingRows:
    body: NewSettings = call.body
    async with call.desk.session(call.workspace, call.session) as opened:
        opened.turns.require_idle()
        session = opened.session
        changes, options = read_changes(body.settings, session.settings)
        if "target" in changes:
            await ensure_target(session.target(changes["target"] or None), KeptNotices())
        if changes:
            await session.update_settings(**changes)
        if options is not None:
            given = {name: value for name, value in asdict(options).items() if value is not None}
            await session.apply("lamina.web", OptionsSet(**given))
        return _rows(opened)


def _rows(opened: OpenSession) -> SettingRows:
    session = opened.session
    return SettingRows(settings=list_rows(session.settings, session.state.options))


ROUTES = (
    Route(
        method="GET", path=f"{SESSION}/items", handler=list_items, result=ItemRows,
        summary="Lists rules, references and tools: the session's and addable ones; its pins.",
    ),
    *(
        Route(
            method="POST", path=f"{SESSION}/items/{name}", body=ItemName, result=Done,
            handler=_change(act, looks_up=looks_up), right="chat", summary=summary,
        )
        for name, act, looks_up, summary in (
            ("add", lambda opened, what: opened.session.add(what), True,
             "Adds a rule, a reference or a tool to the session."),
            ("remove", lambda opened, what: opened.session.remove(what), True,
             "Removes a rule, a reference or a tool from the session."),
            ("pin", lambda opened, what: opened.session.pin(what), False,
             "Pins an item: essential, and named with every question."),
            ("unpin", lambda opened, what: opened.session.unpin(what), False,
             "Removes a pin."),
        )
    ),
    Route(
        method="POST", path=f"{SESSION}/items/adopt", handler=adopt_agent, result=AdoptedRows,
        right="chat", summary="Adopts the changes in the files of the session's agent.",
    ),
    Route(
        method="GET", path=f"{SESSION}/settings", handler=show_settings, result=SettingRows,
        summary="Lists all settings, with allowed values and descriptions.",
    ),
    Route(
        method="PATCH", path=f"{SESSION}/settings", handler=change_settings, body=NewSettings,
        result=SettingRows, right="chat",
        summary="Changes settings from the next question on.",
    ),
)  # fmt: skip
