"""Which store sessions are kept in: the one place that knows the classes of stores.

Law: every command and every face takes what it gets here, and asks it nothing but the port.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from lamina.ports import BundleSource, JournalStore, WorkspaceSource
from lamina.stores.file_names import SUFFIX, file_stem
from lamina.stores.jsonl import JsonlStore, NamedFileStore
from lamina.wiring.folders import data_folder
from lamina.wiring.workspaces import folder_of, workspace_folder


class WorkspaceStore(Struct, frozen=True, kw_only=True):
    """The store of one workspace. `name` is what its folder is called under the data folder."""

    name: str
    store: JournalStore


def default_store(
    workspace: str | os.PathLike[str] | WorkspaceSource | None = None,
) -> JournalStore:
    """The sessions of a workspace, in a folder of their own: two workspaces of one name share
    nothing. Sessions of a workspace that was given as an object were once kept by its name alone,
    and are still found there."""
    if workspace is None or isinstance(workspace, str | os.PathLike):
        return JsonlStore(workspace_folder(workspace or "."))
    by_name = data_folder() / file_stem(workspace.name)
    if (folder := folder_of(workspace)) is not None:
        return JsonlStore(workspace_folder(folder), earlier=by_name)
    if isinstance(workspace, BundleSource):
        return JsonlStore(data_folder() / file_stem(workspace.id), earlier=by_name)
    return JsonlStore(by_name)


def list_stores() -> Sequence[WorkspaceStore]:
    """The stores of all workspaces."""
    folders = sorted(path.parent for path in data_folder().glob("*/sessions"))
    return tuple(WorkspaceStore(name=folder.name, store=JsonlStore(folder)) for folder in folders)


def store_of_file(name: str) -> tuple[str, JournalStore] | None:
    """The session in a file that a person named by its path, and the store that reads it; None if
    `name` is no such path."""
    path = Path(name)
    if not name.endswith(SUFFIX) or not path.is_file():
        return None
    store = NamedFileStore(path)
    return store.session, store
