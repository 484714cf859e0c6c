"""The folders that a person uses in the web app: the list stored in the data folder, and the
records of workspaces and selectable folders.
"""

import os
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.files.shared_file import SharedFile
from lamina.apps.web.guard import Right
from lamina.apps.web.http_answers import Refusal, not_found
from lamina.apps.web.http_bodies import RequestBody, RequestQuery
from lamina.apps.wiring.folders import data_folder, workspace_folder


class Me(Struct, frozen=True, kw_only=True):
    """The caller, and this server. `workspace` is the folder it was started in, if any."""

    version: str
    rights: tuple[Right, ...]
    workspace: str
    default_target: str
    home: str
    data_folder: str
    store: str


class WorkspaceRow(Struct, frozen=True, kw_only=True):
    """One chosen folder. A folder that no longer exists has no number of sessions."""

    id: str
    name: str
    path: str
    is_there: bool
    sessions: int | None


class WorkspaceRows(Struct, frozen=True, kw_only=True):
    """All chosen folders, most recently opened first."""

    workspaces: tuple[WorkspaceRow, ...]


class NewWorkspace(RequestBody, frozen=True, kw_only=True):
    """The folder to work in; `create` creates it."""

    path: str
    create: bool = False


class FolderQuery(RequestQuery, frozen=True, kw_only=True):
    """The folder to list; by default the home folder."""

    path: str = ""


class FolderRow(Struct, frozen=True, kw_only=True):
    """A folder in a folder."""

    name: str
    path: str
    is_hidden: bool


class FolderListing(Struct, frozen=True, kw_only=True):
    """The folders in a folder, to choose one. `notes` counts Markdown files directly in it,
    `problem` says why it cannot be listed."""

    path: str
    parent: str | None
    home: str
    folders: tuple[FolderRow, ...]
    notes: int
    problem: str


class Done(Struct, frozen=True, kw_only=True):
    """Whether anything changed."""

    changed: bool


class KnownWorkspaces(Struct, kw_only=True):
    """The file: folders, most recently opened first."""

    version: int = 1
    folders: tuple[str, ...] = ()


class WorkspaceList:
    """The chosen folders by id."""

    def __init__(self) -> None:
        self._file = SharedFile(
            data_folder() / "web-workspaces.json", KnownWorkspaces,
            "folders of the web app", "choose them again",
        )  # fmt: skip

    def folders(self) -> dict[str, Path]:
        """Return every folder by its id."""
        return {workspace_id(Path(folder)): Path(folder) for folder in self._file.read().folders}

    def find(self, workspace: str) -> Path:
        """
        Raises:
            Refusal: there is no workspace with that id.
        """
        folder = self.folders().get(workspace)
        if folder is None:
            raise not_found("workspace", workspace, "choose its folder first")
        if not folder.is_dir():
            raise Refusal(404, "folder_gone", f"the folder {str(folder)!r} no longer exists")
        return folder

    def add(self, folder: Path) -> str:
        """Add a folder, and return its id."""
        place = os.path.realpath(folder)
        with self._file.locked():
            known = self._file.read()
            others = tuple(path for path in known.folders if path != place)
            self._file.write(replace(known, folders=(place, *others)))
        return workspace_id(folder)

    def forget(self, workspace: str) -> None:
        """
        Raises:
            Refusal: there is no workspace with that id.
        """
        with self._file.locked():
            known = self._file.read()
            rest = tuple(path for path in known.folders if workspace_id(Path(path)) != workspace)
            if rest == known.folders:
                raise not_found("workspace", workspace)
            self._file.write(replace(known, folders=rest))


def workspace_id(folder: Path) -> str:
    """Return a folder's id in addresses, the same as in the data folder."""
    return workspace_folder(folder).name
