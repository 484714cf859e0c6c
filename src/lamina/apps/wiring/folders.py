"""Where data is stored on this machine: the data folder, the folders of workspaces, and the memory
file.
"""

import hashlib
import os
from pathlib import Path

from lamina.adapters.stores.session_file import file_stem
from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.adapters.workspace.memory_file import MemoryFile
from lamina.core.ports import MemorySource, WorkspaceSource


def data_folder() -> Path:
    """The folder of sessions and their data: LAMINA_DATA, or the platform's usual place."""
    if folder := os.environ.get("LAMINA_DATA"):
        return Path(folder)
    from platformdirs import user_data_path

    return user_data_path("lamina", appauthor=False)


# The cache of a workspace's notes.
NOTES_FILE = "notes.sqlite"
MEMORY_FILE = "memory.md"


def workspace_folder(root: str | os.PathLike[str]) -> Path:
    """The folder of a workspace's data, outside the workspace itself."""
    place = Path(os.path.realpath(root))
    digest = hashlib.sha256(str(place).encode("utf-8", "surrogatepass")).hexdigest()
    return data_folder() / f"{file_stem(place.name)[:60]}-{digest[:12]}"


def folder_of(workspace: str | os.PathLike[str] | WorkspaceSource | None) -> Path | None:
    """The folder of a workspace, given as an object or a path; by default the current folder. None
    if it has no folder."""
    if workspace is None or isinstance(workspace, str | os.PathLike):
        return Path(workspace or ".")
    folder = getattr(workspace, "folder", None)
    return Path(folder) if isinstance(folder, str | os.PathLike) else None


def open_folder(root: str | os.PathLike[str]) -> FolderWorkspace:
    """Open a folder as a workspace; the cache of its notes is kept under the data folder.

    Raises:
        UsageError: it is not a folder.
    """
    return FolderWorkspace(root, cache=workspace_folder(root) / NOTES_FILE)


def memory_file() -> MemoryFile:
    """The memories for every session: the file LAMINA_MEMORY, or one in the data folder."""
    return MemoryFile(Path(os.environ.get("LAMINA_MEMORY") or data_folder() / MEMORY_FILE))


def memory_source(memory: str | os.PathLike[str] | MemorySource | None) -> MemorySource | None:
    """A memory, given as an object or by its path."""
    return MemoryFile(Path(memory)) if isinstance(memory, str | os.PathLike) else memory
