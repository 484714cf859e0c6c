"""Which store contains the sessions: the one place that knows the stores' classes; and where the
prefixes of sent requests are remembered.

Law: every command and app gets its store here, and uses only the port.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.files.cache_folder import cache_folder
from lamina.adapters.stores.jsonl import JsonlStore, NamedFileStore
from lamina.adapters.stores.session_file import SUFFIX, file_stem
from lamina.apps.wiring.folders import data_folder, folder_of, workspace_folder
from lamina.core.ports import BundleSource, JournalStore, SentPrefixes, WorkspaceSource
from lamina.core.values.totals import ListedSession
from lamina.errors import LaminaError, UsageError

StoreName = Literal["jsonl", "sqlite"]
# The file of a workspace's sessions in a database.
DATABASE = "sessions.sqlite"


class StoreKind(Struct, frozen=True, kw_only=True):
    """One kind of store: how to create it from a workspace's folder (and the one where its sessions
    were before), and which file shows that it has any."""

    make: Callable[[Path, Path | None], JournalStore]
    mark: str


def _make_database(folder: Path, _: Path | None) -> JournalStore:
    # Imported here, as most sessions are files and every command imports this module.
    from lamina.adapters.stores.sqlite import SqliteStore

    return SqliteStore(folder / DATABASE)


_KINDS: dict[str, StoreKind] = {
    "jsonl": StoreKind(
        make=lambda folder, earlier: JsonlStore(folder, earlier=earlier), mark="sessions"
    ),
    "sqlite": StoreKind(make=_make_database, mark=DATABASE),
}


class WorkspaceStore(Struct, frozen=True, kw_only=True):
    """The store of one workspace. `name` is the name of its folder under the data folder."""

    name: str
    store: JournalStore


def store_name() -> StoreName:
    """The requested kind of store: LAMINA_STORE, or files.

    Raises:
        UsageError: it is not one of the names.
    """
    return _known_name(os.environ.get("LAMINA_STORE") or "jsonl", "LAMINA_STORE")


def _known_name(name: str, where: str) -> StoreName:
    for known in get_args(StoreName):
        if name == known:
            return known  # type: ignore[no-any-return]
    names = " or ".join(map(repr, get_args(StoreName)))
    raise UsageError(f"{where} is {name!r}, but must be {names}")


def default_store(
    workspace: str | os.PathLike[str] | WorkspaceSource | None = None,
    name: str | None = None,
) -> JournalStore:
    """The store of a workspace's sessions, in their own folder: two workspaces with the same name
    share nothing. Sessions of a workspace given as an object were once stored by its name alone,
    and are still found there. `name` is the kind of store, by default LAMINA_STORE.

    Raises:
        UsageError: there is no such kind of store.
    """
    kind = _KINDS[store_name() if name is None else _known_name(name, "store")]
    return kind.make(*_folders_of(workspace))


def store_place(workspace: str | os.PathLike[str]) -> Path:
    """The folder or file that contains the sessions of a workspace, if there are any."""
    return _folders_of(workspace)[0] / _KINDS[store_name()].mark


def _folders_of(
    workspace: str | os.PathLike[str] | WorkspaceSource | None,
) -> tuple[Path, Path | None]:
    if workspace is None or isinstance(workspace, str | os.PathLike):
        return workspace_folder(workspace or "."), None
    by_name = data_folder() / file_stem(workspace.name)
    if (folder := folder_of(workspace)) is not None:
        return workspace_folder(folder), by_name
    if isinstance(workspace, BundleSource):
        return data_folder() / file_stem(workspace.id), by_name
    return by_name, None


def choose_store(
    store: JournalStore | str | None,
    workspace: str | os.PathLike[str] | WorkspaceSource | None,
) -> JournalStore:
    """Return a store given as an object or by its name, or the default one.

    Raises:
        UsageError: it is neither a store nor the name of one.
    """
    if store is None or isinstance(store, str):
        return default_store(workspace, store)
    if isinstance(store, type) or not callable(getattr(store, "create", None)):
        raise UsageError(
            f"store is {store!r}, which is not a store: it can be 'jsonl', 'sqlite', "
            f"lamina.JsonlStore(folder), lamina.SqliteStore(file), or your own "
            f"lamina.types.JournalStore"
        )
    return store


def list_stores() -> Sequence[WorkspaceStore]:
    """The stores of all workspaces."""
    kind = _KINDS[store_name()]
    folders = sorted(path.parent for path in data_folder().glob(f"*/{kind.mark}"))
    return tuple(
        WorkspaceStore(name=folder.name, store=kind.make(folder, None)) for folder in folders
    )


class StoreListing(Struct, frozen=True, kw_only=True):
    """The contents of a workspace's store; or why it cannot be read, as `problem`."""

    name: str
    store: JournalStore
    sessions: Sequence[ListedSession] = ()
    problem: str = ""


async def list_everywhere() -> Sequence[StoreListing]:
    """List the stores of all workspaces. An unreadable one does not affect the others."""
    listings = []
    for found in list_stores():
        listing = StoreListing(name=found.name, store=found.store)
        try:
            listings.append(replace(listing, sessions=await found.store.list_sessions()))
        except LaminaError as error:
            listings.append(replace(listing, problem=str(error)))
    return listings


async def find_repair_store(store: JournalStore) -> JournalStore:
    """Find the store for a repaired copy: the session's own, or files next to it if that is a
    database that is damaged as a whole and must not be written to."""
    from lamina.adapters.stores.sqlite import SqliteStore

    if isinstance(store, SqliteStore) and not await store.is_sound():
        return JsonlStore(store.path.parent)
    return store


async def count_elsewhere(workspace: Path) -> dict[str, int]:
    """Count a workspace's sessions in stores of other kinds, where there are any."""
    counts: dict[str, int] = {}
    for name in get_args(StoreName):
        if name == store_name():
            continue
        try:
            counts[name] = len(await default_store(workspace, name).sessions())
        except LaminaError:
            # The store exists but cannot be read.
            counts[name] = 1
    return {name: count for name, count in counts.items() if count}


def store_of_file(name: str) -> tuple[str, JournalStore] | None:
    """Return the session in a file named by its path, and the store that reads it; None if `name`
    is not such a path."""
    path = Path(name)
    if not name.endswith(SUFFIX) or not path.is_file():
        return None
    store = NamedFileStore(path)
    return store.session, store


PREFIX_FILE = "prefixes.sqlite"


def open_prefixes(store: JournalStore) -> SentPrefixes:
    """Open the prefixes: in memory if the store keeps them there, else in the cache folder."""
    own: SentPrefixes | None = getattr(store, "sent_prefixes", None)
    if own is not None:
        return own
    from lamina.adapters.stores.sent_prefix_file import SentPrefixFile

    return SentPrefixFile(cache_folder() / PREFIX_FILE)
