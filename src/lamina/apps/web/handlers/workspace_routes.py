"""The caller, the workspace folders, and folders to choose from."""

from pathlib import Path

import anyio
import anyio.to_thread

from lamina import __version__
from lamina.adapters.files.paths import expand_home
from lamina.apps.web.http_answers import Refusal
from lamina.apps.web.routes import Call, Route
from lamina.apps.web.workspace_list import (
    Done,
    FolderListing,
    FolderQuery,
    FolderRow,
    Me,
    NewWorkspace,
    WorkspaceRow,
    WorkspaceRows,
    workspace_id,
)
from lamina.apps.wiring import default_target
from lamina.apps.wiring.folders import data_folder
from lamina.apps.wiring.stores import default_store, store_name
from lamina.core.codec import mend_text
from lamina.errors import LaminaError

_NOTES = (".md", ".markdown")


async def show_me(call: Call) -> Me:
    return Me(
        version=__version__,
        rights=("read", "chat", "admin"),
        workspace=call.desk.start,
        default_target=default_target(),
        home=str(Path.home()),
        data_folder=str(data_folder()),
        store=store_name(),
    )


async def list_workspaces(call: Call) -> WorkspaceRows:
    folders = call.desk.workspaces.folders()
    return WorkspaceRows(workspaces=tuple([await _row(folder) for folder in folders.values()]))


async def add_workspace(call: Call) -> WorkspaceRow:
    body: NewWorkspace = call.body
    folder = await anyio.to_thread.run_sync(_choose, body)
    call.desk.workspaces.add(folder)
    return await _row(folder)


def _choose(body: NewWorkspace) -> Path:
    folder = whole_path(body.path)
    try:
        if body.create:
            folder.mkdir(parents=True, exist_ok=True)
        if not folder.is_dir():
            raise Refusal(404, "unknown_folder", f"no folder {body.path!r}", ("path",))
    except OSError as error:
        problem = error.strerror or str(error)
        raise Refusal(
            422, "invalid", f"{body.path!r} cannot be used: {problem}", ("path",)
        ) from error
    return folder


def whole_path(path: str) -> Path:
    """Return a folder that a person typed, with links resolved.

    Raises:
        Refusal: it is not a path on this machine.
    """
    try:
        folder = expand_home(path) if path else Path.home()
        if not folder.is_absolute():
            raise Refusal(422, "invalid", f"{path!r} is not an absolute path", ("path",))
        return folder.resolve()
    except (OSError, ValueError, RuntimeError) as error:
        # The name is too long or contains a NUL, the home does not exist, or links form a circle.
        raise Refusal(422, "invalid", f"{path!r} is not a folder: {error}", ("path",)) from error


async def forget_workspace(call: Call) -> Done:
    call.desk.workspaces.forget(call.workspace)
    return Done(changed=True)


async def list_folders(call: Call) -> FolderListing:
    query: FolderQuery = call.query
    return await anyio.to_thread.run_sync(lambda: _list(whole_path(query.path)))


def _list(path: Path) -> FolderListing:
    folders: list[FolderRow] = []
    notes, problem = 0, ""
    try:
        for entry in sorted(path.iterdir(), key=lambda entry: entry.name.casefold()):
            # Folders that cannot be accessed are not offered.
            try:
                is_folder = entry.is_dir()
            except OSError:
                continue
            if mend_text(entry.name) != entry.name:
                continue
            if is_folder:
                hidden = entry.name.startswith(".")
                folders.append(FolderRow(name=entry.name, path=str(entry), is_hidden=hidden))
            elif entry.suffix.lower() in _NOTES:
                notes += 1
    except OSError as error:
        problem = f"{str(path)!r} cannot be opened: {error.strerror or error}"
    parent = None if path.parent == path else str(path.parent)
    return FolderListing(
        path=str(path), parent=parent, home=str(Path.home()), folders=tuple(folders),
        notes=notes, problem=problem,
    )  # fmt: skip


async def _row(folder: Path) -> WorkspaceRow:
    sessions: int | None = None
    is_there = await anyio.Path(folder).is_dir()
    if is_there:
        try:
            sessions = len(await default_store(folder).sessions())
        except LaminaError:
            sessions = None
    return WorkspaceRow(
        id=workspace_id(folder), name=folder.name or str(folder), path=str(folder),
        is_there=is_there, sessions=sessions,
    )  # fmt: skip


ROUTES = (
    Route(
        method="GET", path="/api/me", handler=show_me, result=Me,
        summary="Describes the caller and this server.",
    ),
    Route(
        method="GET", path="/api/workspaces", handler=list_workspaces, result=WorkspaceRows,
        summary="Lists the workspace folders, most recently opened first.",
    ),
    Route(
        method="POST", path="/api/workspaces", handler=add_workspace, body=NewWorkspace,
        result=WorkspaceRow, right="admin", status=201,
        summary="Adds a folder to work in.",
    ),
    Route(
        method="DELETE", path="/api/workspaces/{workspace}", handler=forget_workspace,
        result=Done, right="admin",
        summary="Forgets a folder; its files and sessions stay.",
    ),
    Route(
        method="GET", path="/api/folders", handler=list_folders, query=FolderQuery,
        result=FolderListing, right="admin",
        summary="Lists the folders in a folder, to choose one.",
    ),
)  # fmt: skip
