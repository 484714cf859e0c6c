"""The folders that a person works in with the web app, kept in the data folder.

Law: it holds paths and nothing of what is in them; forgetting one deletes nothing else.
"""

import os
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.files.shared_file import SharedFile
from lamina.apps.web.refusals import Refusal, not_found
from lamina.apps.wiring.folders import data_folder
from lamina.apps.wiring.workspaces import workspace_folder


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
