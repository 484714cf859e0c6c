"""Which session a person means: by id, by the beginning of one, or by its file."""

from pathlib import Path

from lamina.errors import UnknownSession
from lamina.journal import Journal
from lamina.stores.jsonl import SUFFIX, JsonlStore, read_session_file, session_of
from lamina.wiring import default_store


class StoredSession:
    """A session's id and file, and the store it is in."""

    def __init__(self, session: str, path: Path, store: JsonlStore) -> None:
        self.session = session
        self.path = path
        self.store = store

    async def read(self) -> Journal:
        """What the file holds, also under a name that is not its own."""
        return await read_session_file(self.path, self.session, by_name=False)


async def find_session(name: str, workspace: Path) -> StoredSession:
    """The session that `name` means.

    Raises:
        UnknownSession: there is none, or there are several.
    """
    if name.endswith(SUFFIX) and (path := Path(name)).is_file():
        return StoredSession(session_of(path), path, JsonlStore(path.parent.parent))
    store = default_store(workspace)
    if await store.has(name):
        return StoredSession(name, store.path_of(name), store)
    sessions = await store.sessions()
    if name in sessions:
        return StoredSession(name, store.path_of(name), store)
    near = [session for session in sessions if session.startswith(name)]
    if len(near) == 1:
        return StoredSession(near[0], store.path_of(near[0]), store)
    if near:
        raise UnknownSession(f"{name!r} may be any of {', '.join(sorted(near))}")
    hint = "`lamina sessions` lists them" if sessions else "there are none yet in this workspace"
    raise UnknownSession(
        f"no session {name!r} of the workspace {str(workspace)!r}; {hint}. "
        f"-w DIR looks in another workspace, and a path to a {SUFFIX} file works as well"
    )
