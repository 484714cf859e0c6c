"""Sessions as JSONL files.

Laws: an append is one write, and on disk before it is acknowledged; a file is never rewritten, not
even to repair it; only one opening writes at a time. What was acknowledged survives a crash of the
process and a power failure.
"""

import contextlib
import hashlib
import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import anyio
import anyio.to_thread

from lamina.adapters.stores.blob_files import check_blob, put_blob_file
from lamina.adapters.stores.disk import lock_file, sync_folder
from lamina.adapters.stores.file_names import SUFFIX, file_stem, session_of
from lamina.adapters.stores.file_totals import list_file
from lamina.adapters.stores.journal_index import index_path, read_index
from lamina.adapters.stores.jsonl_journal import JsonlJournal
from lamina.adapters.stores.session_file import check_header, delete_files, is_at, read_bytes
from lamina.core.journal import Journal
from lamina.core.journal.journal_file import JournalFile, read_journal_file
from lamina.core.journal.line_index import LinePlaces
from lamina.core.journal.lines import Line, is_proven, read_lines, write_lines
from lamina.core.ports.store import JournalStore
from lamina.core.values.entry import SessionEntry
from lamina.core.values.totals import DeletedSession, ListedSession
from lamina.errors import JournalError, SessionBusy, SessionMoved, UnknownSession

# How often an opening checks whether the lock is free.
POLL_S = 0.02


class JsonlStore(JournalStore):
    """Keeps sessions as files: in `folder/sessions`, with images in `folder/blobs`. What is in the
    folder `earlier`, and has not got a namesake here, is found there and stays there. An opening
    waits up to `wait` seconds for another one to close."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        earlier: str | os.PathLike[str] | None = None,
        wait: float = 5.0,
    ) -> None:
        self.folder = Path(folder)
        self._folders = (self.folder,) if earlier is None else (self.folder, Path(earlier))
        self._wait = wait

    def path_of(self, session: str) -> Path:
        """The file of a session; it need not be there."""
        return self._find("sessions", f"{file_stem(session)}{SUFFIX}")

    def place(self, session: str) -> str:
        return str(self.path_of(session))

    def _find(self, *parts: str) -> Path:
        """Where a file is, or will be."""
        paths = [folder.joinpath(*parts) for folder in self._folders]
        if len(paths) == 1:
            return paths[0]
        return next(filter(Path.exists, paths), paths[0])

    async def create(self, header: SessionEntry) -> JsonlJournal:
        if not header.session:
            raise JournalError("a session needs an id that is not empty")
        # Before the file is created: a header that cannot be written must not leave one behind.
        write_lines([header], -1)
        path = self.path_of(header.session)
        handle = await anyio.to_thread.run_sync(_create, path)
        try:
            await self._lock(handle, header.session)
            size = os.fstat(handle).st_size
            if size and _is_begun(path):
                raise SessionMoved(header.session)
            new = Journal(entries={header.id: header}, leaf=header.id)
            file = JournalFile(journal=new, places=LinePlaces())
            if size:
                # A failed creation leaves rubbish; the header gets a line of its own.
                rubbish = read_journal_file(read_bytes(handle), header.session)
                damaged = Journal(entries=new.entries, leaf=new.leaf, damage=rubbish.journal.damage)
                file = JournalFile(journal=damaged, ends_line=rubbish.ends_line)
        except BaseException:
            os.close(handle)
            raise
        journal = JsonlJournal(handle, path, header.session, file, size)
        try:
            await journal.write([header])
            await anyio.to_thread.run_sync(sync_folder, path.parent)
        except BaseException:
            await journal.close()
            raise
        return journal

    async def open(self, session: str) -> JsonlJournal:
        path = self.path_of(session)
        handle = await self._open_locked(session, path)
        try:
            file, size = await anyio.to_thread.run_sync(_load, handle, path, session)
            return JsonlJournal(handle, path, session, file, size)
        except BaseException:
            os.close(handle)
            raise

    async def _open_locked(self, session: str, path: Path) -> int:
        """The file at `path`, with its lock held."""
        while True:
            try:
                handle = os.open(path, os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0))
            except FileNotFoundError:
                raise UnknownSession(f"no session {session!r} in {self.folder}") from None
            except OSError as error:
                raise JournalError(f"session {session!r} cannot be opened: {error}") from error
            try:
                await self._lock(handle, session)
            except BaseException:
                os.close(handle)
                raise
            if is_at(handle, path):
                return handle
            # The file was replaced while we waited for the lock.
            os.close(handle)

    async def read(self, session: str) -> Journal:
        path = self.path_of(session)
        journal = read_journal_file(await self.export(session), session).journal
        check_header(journal.header, session, path)
        return journal

    async def view(self, session: str) -> Journal:
        """What the session holds, without opening it; what its index covers is believed."""
        data = await self.export(session)
        path = self.path_of(session)
        return await anyio.to_thread.run_sync(_view, data, path, session)

    async def stamp(self, session: str) -> str:
        """Something that is another whenever the session's file is."""
        try:
            status = await anyio.Path(self.path_of(session)).stat()
        except OSError:
            raise UnknownSession(f"no session {session!r} in {self.folder}") from None
        return f"{status.st_ino}-{status.st_size}-{status.st_mtime_ns}"

    async def is_open(self, session: str) -> bool:
        """Whether somebody has the session open for writing now."""
        try:
            handle = os.open(self.path_of(session), os.O_RDWR | getattr(os, "O_BINARY", 0))
        except OSError:
            return False
        try:
            # Let go of at once: whoever opens it meanwhile waits a moment and has it.
            return not lock_file(handle)
        finally:
            os.close(handle)

    async def export(self, session: str) -> bytes:
        path = self.path_of(session)
        try:
            return await anyio.Path(path).read_bytes()
        except FileNotFoundError:
            raise UnknownSession(f"no session {session!r}: there is no file {path}") from None
        except OSError as error:
            raise JournalError(f"session {session!r} cannot be read: {error}") from error

    async def has(self, session: str) -> bool:
        return await anyio.to_thread.run_sync(_is_begun, self.path_of(session))

    async def sessions(self) -> Sequence[str]:
        return tuple(session for session, _ in await anyio.to_thread.run_sync(self._files))

    async def list_sessions(self) -> Sequence[ListedSession]:
        files = await anyio.to_thread.run_sync(self._files)
        return [await anyio.to_thread.run_sync(list_file, path, name) for name, path in files]

    def _files(self) -> Sequence[tuple[str, Path]]:
        """All sessions with their files, the most recently written first."""
        found: dict[str, tuple[float, Path]] = {}
        for path in self._session_files():
            with contextlib.suppress(OSError):
                found.setdefault(session_of(path), (path.stat().st_mtime, path))
        dated = sorted(((at, name, path) for name, (at, path) in found.items()), reverse=True)
        return tuple((name, path) for _, name, path in dated)

    def _session_files(self) -> Iterable[Path]:
        for folder in self._folders:
            yield from (folder / "sessions").glob(f"*{SUFFIX}")

    async def delete(self, session: str) -> DeletedSession:
        path = self.path_of(session)
        handle = await self._open_locked(session, path)
        try:
            others = (other for other in self._session_files() if other != path)
            return await anyio.to_thread.run_sync(
                delete_files, session, handle, path, others, self._blob_path
            )
        finally:
            os.close(handle)

    async def put_blob(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        await anyio.to_thread.run_sync(put_blob_file, self._blob_path(digest), data)
        return digest

    async def get_blob(self, digest: str) -> bytes:
        try:
            data = await anyio.Path(self._blob_path(digest)).read_bytes()
        except OSError as error:
            raise JournalError(f"blob {digest!r} cannot be read: {error}") from error
        return check_blob(digest, data)

    async def known_blobs(self, digests: Collection[str]) -> frozenset[str]:
        paths = {digest: anyio.Path(self._blob_path(digest)) for digest in digests}
        return frozenset([digest for digest, path in paths.items() if await path.is_file()])

    def _blob_path(self, digest: str) -> Path:
        if not digest.isalnum():
            raise JournalError(f"{digest!r} is not a digest")
        return self._find("blobs", digest[:2], digest)

    async def _lock(self, handle: int, session: str) -> None:
        for _ in range(int(self._wait / POLL_S)):
            if lock_file(handle):
                return
            await anyio.sleep(POLL_S)
        if not lock_file(handle):
            raise SessionBusy(session, self._wait)


class NamedFileStore(JsonlStore):
    """A session file that a person named, wherever it is and whatever its name; the others of its
    folder are beside it, blobs in `blobs` beside the folder. `session` is the id of that file."""

    def __init__(self, file: Path) -> None:
        super().__init__(file.parent.parent)
        self.session = session_of(file)
        self._file = file

    def path_of(self, session: str) -> Path:
        if session == self.session:
            return self._file
        return self._file.with_name(f"{file_stem(session)}{SUFFIX}")

    def _session_files(self) -> Iterable[Path]:
        return self._file.parent.glob(f"*{SUFFIX}")

    async def read(self, session: str) -> Journal:
        journal = read_journal_file(await self.export(session), session).journal
        check_header(journal.header, None, self.path_of(session))
        return journal


def _load(handle: int, path: Path, session: str) -> tuple[JournalFile, int]:
    data = read_bytes(handle)
    file = read_journal_file(data, session, read_index(index_path(path)))
    check_header(file.journal.header, session, path)
    return file, len(data)


def _view(data: bytes, path: Path, session: str) -> Journal:
    journal = read_journal_file(data, session, read_index(index_path(path))).journal
    check_header(journal.header, session, path)
    return journal


def _is_begun(path: Path) -> bool:
    """Whether anything of a session can be read there. A crash before the header leaves a file that
    is empty or holds only rubbish."""
    try:
        with path.open("rb") as file:
            first = file.readline()
            if is_proven(first.rstrip(b"\r\n")):
                return True
            rest = file.read()
    except OSError:
        return False
    return any(isinstance(line, Line) for line in read_lines(first + rest))


def _create(path: Path) -> int:
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.open(path, flags, 0o600)
    except OSError as error:
        raise JournalError(f"no session can be kept at {path}: {error}") from error
