"""Which session a person means: by id, by the beginning of one, or by its file."""

from pathlib import Path

from lamina.apps.wiring.stores import count_elsewhere, default_store, store_name, store_of_file
from lamina.core.journal import Journal
from lamina.core.ports import JournalStore
from lamina.errors import UnknownSession


class StoredSession:
    """A session's id, and the store it is in."""

    def __init__(self, session: str, store: JournalStore) -> None:
        self.session = session
        self.store = store

    @property
    def place(self) -> str:
        """Where it is, for a person to read."""
        return self.store.place(self.session)

    async def read(self) -> Journal:
        return await self.store.read(self.session)


async def find_session(
    name: str, workspace: Path, *, names_files: bool = True, can_begin: bool = False
) -> StoredSession:
    """The session that `name` means. `names_files` and `can_begin` say whether a person who names
    one that is not there is told that files can be named, and how one is begun.

    Raises:
        UnknownSession: there is none, or there are several.
    """
    if (found := store_of_file(name)) is not None:
        return StoredSession(*found)
    store = default_store(workspace)
    if await store.has(name):
        return StoredSession(name, store)
    sessions = await store.sessions()
    if name in sessions:
        return StoredSession(name, store)
    near = [session for session in sessions if session.startswith(name)]
    if len(near) == 1:
        return StoredSession(near[0], store)
    if near:
        raise UnknownSession(f"{name!r} may be any of {', '.join(sorted(near))}")
    hint = "`lamina sessions` lists them" if sessions else "there are none yet in this workspace"
    if elsewhere := await describe_elsewhere(workspace):
        hint += f"; {elsewhere}"
    ways = "-w DIR looks in another workspace"
    if names_files and store_name() == "jsonl":
        ways += ", and a path to a .jsonl file works as well"
    if can_begin:
        ways += "; --new begins a session under this name"
    raise UnknownSession(f"no session {name!r} of the workspace {str(workspace)!r}; {hint}. {ways}")


async def describe_elsewhere(workspace: Path) -> str:
    """What a person should know of sessions in stores that are not looked into; empty if there are
    none."""
    counts = await count_elsewhere(workspace)
    return "; ".join(
        f"{count:,} session{'s' * (count > 1)} in the other store (LAMINA_STORE={name})"
        for name, count in counts.items()
    )
