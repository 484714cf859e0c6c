"""Sessions as JSONL files.

Laws: an append is one write, and on disk before it is acknowledged; a file is never rewritten, not
even to repair it; only one opening writes at a time. What was acknowledged survives a crash of the
process and a power failure.
"""

import contextlib
import hashlib
import os
import weakref
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, unquote

import anyio
import anyio.to_thread

from lamina.codec import entry_number
from lamina.errors import (
    JournalError,
    JournalGone,
    SessionBusy,
    SessionMoved,
    UnknownSession,
    WriteFailed,
)
from lamina.journal import Journal, LinePlaces, read_journal
from lamina.journal.lines import Line, is_proven, read_lines, write_lines
from lamina.stores.disk import lock_file, sync_file, sync_folder
from lamina.stores.journal_index import index_path, read_index, write_index
from lamina.values.entry import FORMAT, Entry, SessionEntry

SUFFIX = ".jsonl"
# File systems allow 255 bytes in a name; the rest is for files beside the journal.
LONGEST_NAME = 160
# How often an opening checks whether the lock is free.
POLL_S = 0.02


class JsonlStore:
    """Sessions in `folder/sessions`, images in `folder/blobs`. What is in the folder `earlier`, and
    has not got a namesake here, is found there and stays there. An opening waits up to `wait`
    seconds for another one to close."""

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
        return self._find("sessions", f"{file_stem(session)}{SUFFIX}")

    def _find(self, *parts: str) -> Path:
        """Where a file is, or will be."""
        paths = [folder.joinpath(*parts) for folder in self._folders]
        if len(paths) == 1:
            return paths[0]
        return next(filter(Path.exists, paths), paths[0])

    async def create(self, header: SessionEntry) -> "JsonlJournal":
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
            # A failed creation leaves rubbish; the header gets a line of its own.
            rubbish = read_journal(_read(handle), header.session) if size else None
            new = Journal(
                entries={header.id: header},
                leaf=header.id,
                places=None if rubbish else LinePlaces(),
                damage=rubbish.damage if rubbish else (),
                ends_line=rubbish.ends_line if rubbish else True,
            )
        except BaseException:
            os.close(handle)
            raise
        journal = JsonlJournal(handle, path, header.session, new, size)
        try:
            await journal.append([header])
            await anyio.to_thread.run_sync(sync_folder, path.parent)
        except BaseException:
            await journal.close()
            raise
        return journal

    async def open(self, session: str) -> "JsonlJournal":
        path = self.path_of(session)
        while True:
            try:
                handle = os.open(path, os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0))
            except FileNotFoundError:
                raise UnknownSession(f"no session {session!r} in {self.folder}") from None
            except OSError as error:
                raise JournalError(f"session {session!r} cannot be opened: {error}") from error
            try:
                await self._lock(handle, session)
                if not _is_at(handle, path):
                    # The file was replaced while we waited for the lock.
                    os.close(handle)
                    continue
                journal, size = await anyio.to_thread.run_sync(_load, handle, path, session)
                return JsonlJournal(handle, path, session, journal, size)
            except BaseException:
                os.close(handle)
                raise

    async def read(self, session: str) -> Journal:
        return await read_session_file(self.path_of(session), session)

    async def has(self, session: str) -> bool:
        return await anyio.to_thread.run_sync(_is_begun, self.path_of(session))

    async def sessions(self) -> Sequence[str]:
        """The ids of all sessions, the most recently written first."""
        times: dict[str, float] = {}
        for folder in self._folders:
            for path in (folder / "sessions").glob(f"*{SUFFIX}"):
                with contextlib.suppress(OSError):
                    times.setdefault(session_of(path), path.stat().st_mtime)
        dated_sessions = sorted(((time, session) for session, time in times.items()), reverse=True)
        return tuple(session for _, session in dated_sessions)

    async def put_blob(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        await anyio.to_thread.run_sync(_put_blob, self._blob_path(digest), data)
        return digest

    async def get_blob(self, digest: str) -> bytes:
        try:
            data = await anyio.Path(self._blob_path(digest)).read_bytes()
        except OSError as error:
            raise JournalError(f"blob {digest!r} cannot be read: {error}") from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise JournalError(f"blob {digest!r} is damaged: its content has another digest")
        return data

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


class JsonlJournal:
    """An open session file; it holds the lock until it is closed."""

    def __init__(self, handle: int, path: Path, session: str, journal: Journal, size: int) -> None:
        self.journal = journal
        self.last = journal.last + journal.lost
        self._last_stored = journal.last
        self._handle: int | None = handle
        # A session that nobody refers to any more must not keep its lock.
        self._release = weakref.finalize(self, os.close, handle)
        self._path = path
        self._session = session
        self.size = size
        self._ends_line = journal.ends_line
        self._places = journal.places
        self._indexed_bytes = journal.indexed

    async def append(self, entries: Sequence[Entry]) -> None:
        if self._handle is None:
            raise JournalError(f"session {self._session!r} is closed; open it again")
        data = write_lines(entries, self._last_stored)
        last = max(self.last, *(entry_number(entry.id) or 0 for entry in entries))
        # What is on disk and what is remembered must agree, so nothing is cancelled in between.
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._write, self._handle, data, last)
        self._last_stored = last
        if self._places is not None:
            self._places.add(entries, data)
            if not self._places.sound or self._places.covered != self.size:
                self._places = None

    @property
    def unindexed(self) -> int | None:
        return None if self._places is None else self.size - self._indexed_bytes

    async def keep_index(self, state: bytes) -> None:
        if self._places is None or self._handle is None:
            return
        index = self._places.index(state)
        self._indexed_bytes = index.covered
        # An index is a convenience: nothing is lost if it cannot be written.
        with contextlib.suppress(OSError):
            await anyio.to_thread.run_sync(write_index, index_path(self._path), index)

    async def close(self) -> None:
        self._handle = None
        self._release()

    def _write(self, handle: int, data: bytes, last: int) -> None:
        if not _is_at(handle, self._path):
            raise JournalGone(self._session, str(self._path))
        if os.fstat(handle).st_size != self.size:
            raise SessionMoved(self._session)
        if not self._ends_line:
            # Rubbish at the end gets a line of its own.
            data = b"\n" + data
        # From here on the ids are used up: whatever happens, their bytes may be in the file.
        self.last = last
        try:
            _write_all(handle, data)
            sync_file(handle)
        except OSError as error:
            self._places = None
            self.size = size = os.fstat(handle).st_size
            self._ends_line = size == 0 or os.pread(handle, 1, size - 1) == b"\n"
            raise WriteFailed(self._session, error.strerror or str(error)) from error
        self.size += len(data)
        self._ends_line = True


async def read_session_file(path: Path, session: str, *, by_name: bool = True) -> Journal:
    """The journal in a file, read without a lock; with `by_name` it has to be that session's.

    Raises:
        UnknownSession: there is no such file.
        JournalError: it cannot be read, or is of a later version.
    """
    try:
        data = await anyio.Path(path).read_bytes()
    except FileNotFoundError:
        raise UnknownSession(f"no session {session!r}: there is no file {path}") from None
    except OSError as error:
        raise JournalError(f"session {session!r} cannot be read: {error}") from error
    return _check(read_journal(data, session), session if by_name else None, path)


def _load(handle: int, path: Path, session: str) -> tuple[Journal, int]:
    data = _read(handle)
    index = read_index(index_path(path))
    return _check(read_journal(data, session, index), session, path), len(data)


def _check(journal: Journal, session: str | None, path: Path) -> Journal:
    header = next(iter(journal.entries.values()))
    assert isinstance(header, SessionEntry)
    if header.format > FORMAT:
        raise JournalError(
            f"session {header.session!r} ({path}) has format {header.format}, this version reads "
            f"up to {FORMAT}; use a newer Lamina"
        )
    if session is not None and header.session != session:
        raise JournalError(
            f"{path} holds session {header.session!r}, not {session!r}; it was renamed or copied. "
            f"Give it back its name, or import it"
        )
    return journal


# Names that Windows reserves for devices, with any suffix.
_DEVICES = {"con", "prn", "aux", "nul", *(f"{n}{i}" for n in ("com", "lpt") for i in range(10))}


def file_stem(session: str) -> str:
    """A file name for any session id."""
    stem = quote(session, safe=" !,@+()", errors="surrogatepass")
    if stem.startswith((".", " ")) or stem.endswith((".", " ")) or not stem:
        stem = f"%{stem}"
    if stem.partition(".")[0].casefold() in _DEVICES:
        stem = f"%{stem}"
    digest = hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()
    if len(stem) <= LONGEST_NAME and session != session.lower():
        # Where case does not count, "A" and "a" must not be the same file.
        stem = f"{stem}={digest[:8]}"
    if len(stem) > LONGEST_NAME:
        # Any other equals sign is escaped.
        stem = f"{stem[: LONGEST_NAME - 17]}={digest[:16]}"
    return stem


def session_of(path: Path) -> str:
    """The session id of a file, from its name or, if the id was too long for that, its header."""
    stem = path.name.removesuffix(SUFFIX)
    name = unquote(stem.partition("=")[0])
    plain = unquote(stem.partition("=")[0].removeprefix("%"))
    for guess in (name, name.removeprefix("%"), plain):
        if file_stem(guess) == stem:
            return guess
    with path.open("rb") as file:
        first = file.readline()
    header = next(iter(read_journal(first, name).entries.values()))
    return header.session if isinstance(header, SessionEntry) else name


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


def _is_at(handle: int, path: Path) -> bool:
    """Whether the open file is still the one at `path`."""
    try:
        there, here = os.stat(path), os.fstat(handle)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def _read(handle: int) -> bytes:
    size = os.fstat(handle).st_size
    chunks, at = [], 0
    while at < size:
        chunk = os.pread(handle, size - at, at)
        if not chunk:
            break
        chunks.append(chunk)
        at += len(chunk)
    return b"".join(chunks)


def _write_all(handle: int, data: bytes) -> None:
    """Writes everything: in one go, unless the system takes only part of it."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _put_blob(path: Path, data: bytes) -> None:
    with contextlib.suppress(OSError):
        if path.read_bytes() == data:
            return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Under another name first, so that a blob is complete or does not exist.
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            _write_all(handle, data)
            sync_file(handle)
        finally:
            os.close(handle)
        os.replace(draft, path)
        sync_folder(path.parent)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise WriteFailed(path.name, error.strerror or str(error)) from error
