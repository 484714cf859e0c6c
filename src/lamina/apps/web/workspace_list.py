"""The folders that a person works in with the web app: the list kept in the data folder, and the
records of workspaces and of folders to choose from.
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
    """Who asks, and what this server is. `workspace` is the folder it was started in, if any."""

    version: str
    rights: tuple[Right, ...]
    workspace: str
    default_target: str
    home: str
    data_folder: str
    store: str


class WorkspaceRow(Struct, frozen=True, kw_only=True):
    """One folder that was chosen. One that is not there any more has no number of sessions."""

    id: str
    name: str
    path: str
    is_there: bool
    sessions: int | None


class WorkspaceRows(Struct, frozen=True, kw_only=True):
    """All folders that were chosen, the one opened last first."""

    workspaces: tuple[WorkspaceRow, ...]


class NewWorkspace(RequestBody, frozen=True, kw_only=True):
    """The folder to work in; with `create`, one that is made."""

    path: str
    create: bool = False


class FolderQuery(RequestQuery, frozen=True, kw_only=True):
    """The folder to look into; without one, the home folder."""

    path: str = ""


class FolderRow(Struct, frozen=True, kw_only=True):
    """A folder in a folder."""

    name: str
    path: str
    is_hidden: bool


class FolderListing(Struct, frozen=True, kw_only=True):
    """The folders in a folder, for a person to choose one. `notes` is how many Markdown files are
    directly in it, `problem` why it cannot be looked into."""

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
    """The file: folders in the order in which they were last opened, the latest first."""

    version: int = 1
    folders: tuple[str, ...] = ()


class WorkspaceList:
    """Which folders there are, by id."""

    def __init__(self) -> None:
        self._file = SharedFile(
            data_folder() / "web-workspaces.json", KnownWorkspaces,
            "folders of the web app", "choose them again",
        )  # fmt: skip

    def folders(self) -> dict[str, Path]:
        """Every folder by its id."""
        return {workspace_id(Path(folder)): Path(folder) for folder in self._file.read().folders}

    def find(self, workspace: str) -> Path:
        """
        Raises:
            Refusal: there is none of that id.
        """
        folder = self.folders().get(workspace)
        if folder is None:
            raise not_found("workspace", workspace, "choose its folder first")
        if not folder.is_dir():
            raise Refusal(404, "folder_gone", f"the folder {str(folder)!r} is not there any more")
        return folder

    def add(self, folder: Path) -> str:
        """Remembers a folder, and gives its id."""
        place = os.path.realpath(folder)
        with self._file.locked():
            known = self._file.read()
            others = tuple(path for path in known.folders if path != place)
            self._file.write(replace(known, folders=(place, *others)))
        return workspace_id(folder)

    def forget(self, workspace: str) -> None:
        """
        Raises:
            Refusal: there is none of that id.
        """
        with self._file.locked():
            known = self._file.read()
            rest = tuple(path for path in known.folders if workspace_id(Path(path)) != workspace)
            if rest == known.folders:
                raise not_found("workspace", workspace)
            self._file.write(replace(known, folders=rest))


def workspace_id(folder: Path) -> str:
    """What a folder is called in addresses: as its part of the data folder."""
    return workspace_folder(folder).name
