"""Stores sessions as JSONL files.

Laws: an append is one write, and on disk before it is acknowledged; files are append-only and never
rewritten, not even for repair; only one opening writes at a time. Acknowledged entries survive
process crashes and power failures. Checkpoints are written between entries, and add a few per cent.
"""

import contextlib
import hashlib
import os
import weakref
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import anyio
import anyio.to_thread

from lamina.adapters.files.durable_writes import sync_file, sync_folder, write_all
from lamina.adapters.files.file_place import read_at
from lamina.adapters.files.locks import lock_file
from lamina.adapters.stores.blob_files import check_blob, put_blob_file
from lamina.adapters.stores.session_file import (
    SUFFIX,
    check_header,
    delete_files,
    file_stem,
    index_path,
    is_at,
    list_file,
    read_bytes,
    read_index,
    session_of,
    sum_file,
    write_index,
)
from lamina.core.audit.session_totals import add_entries
from lamina.core.codec import entry_number
from lamina.core.journal import GrownEntries, Journal, walk_back
from lamina.core.journal.journal_file import (
    JournalFile,
    LineIndex,
    LinePlaces,
    Trail,
    read_journal_file,
    read_trail,
    write_checkpoint,
)
from lamina.core.journal.lines import Line, is_proven, read_lines, write_lines
from lamina.core.ports.store import JournalStore
from lamina.core.values.entry import Entry, SessionEntry
from lamina.core.values.totals import DeletedSession, ListedSession, SessionTotals
from lamina.errors import (
    JournalError,
    JournalGone,
    LaminaError,
    SessionBusy,
    SessionMoved,
    UnknownSession,
    WriteFailed,
)

# A checkpoint is written after this many bytes, and after one part in SHARE of the file, if it is
# no longer than one part in COST of the bytes since the last one.
CHECKPOINT_BYTES = 1 << 18
CHECKPOINT_SHARE = 50
CHECKPOINT_COST = 16


class JsonlJournal:
    """An open session file, locked until it is closed."""

    def __init__(self, handle: int, path: Path, session: str, file: JournalFile, size: int) -> None:
        self.journal = file.journal
        self.entries = GrownEntries(file.journal.entries)
        self.last = file.journal.last + file.journal.lost
        self._last_stored = file.journal.last
        self._handle: int | None = handle
        # An unreferenced session must not keep its lock.
        self._release = weakref.finalize(self, os.close, handle)
        self._path = path
        self._session = session
        self.size = size
        self._file = file
        self._ends_line = file.ends_line
        self._places = file.places
        self._covered = file.covered
        self._written: list[Entry] = []
        # The last checkpoint's position, the bytes required before the next one, and the trail that
        # the next one continues, once it has been read.
        self._checkpointed = file.checkpointed
        self._least = CHECKPOINT_BYTES
        self._trail: Trail | None = None if file.checkpointed else Trail()
        # Totals for listings, and the number of entries they cover.
        self._totals, self._totalled = file.totals, file.totalled

    async def append(self, entries: Sequence[Entry]) -> None:
        await self.write(entries)
        self.entries.add(entries)
        self._written += entries

    async def write(self, entries: Sequence[Entry]) -> None:
        """Write `entries` to the file as lines."""
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

    async def read_path(
        self, entry: str, *, until: str = "", limit: int | None = None
    ) -> Sequence[Entry]:
        return walk_back(self.entries, entry, until, limit)

    async def read_ahead(self, entries: Iterable[str]) -> None:
        """Do nothing: all bytes are in memory."""

    @property
    def since_snapshot(self) -> int | None:
        return None if self._places is None else self.size - self._covered

    async def keep_snapshot(self, state: bytes) -> None:
        if self._places is None or self._handle is None:
            return
        index = self._places.index(state)
        self._covered = index.covered
        # The index is optional: nothing is lost if it cannot be written.
        with contextlib.suppress(OSError, LaminaError, OverflowError):
            await anyio.to_thread.run_sync(self._write_index, index)

    @property
    def is_checkpoint_due(self) -> bool:
        if self._places is None:
            return False
        return self.size - self._checkpointed >= max(self._least, self.size // CHECKPOINT_SHARE)

    async def keep_checkpoint(self, state: bytes) -> None:
        if self._places is None or self._handle is None:
            return
        # What is on disk and what is remembered must agree, so nothing is cancelled in between.
        with anyio.CancelScope(shield=True), contextlib.suppress(LaminaError):
            # Optional: nothing is lost if it cannot be written, or only in part.
            await anyio.to_thread.run_sync(self._write_checkpoint, self._handle, state)

    def _write_checkpoint(self, handle: int, state: bytes) -> None:
        assert self._places is not None
        if self._trail is None:
            self._trail = read_trail(read_bytes(handle))
        line, trail = write_checkpoint(self._places, state, self._trail, self._add_totals())
        if len(line) * CHECKPOINT_COST > self.size - self._checkpointed:
            self._least = len(line) * CHECKPOINT_COST
            return
        self._write(handle, line, self.last)
        self._places.add((), line)
        self._trail, self._checkpointed, self._least = trail, trail.place, CHECKPOINT_BYTES

    def _add_totals(self) -> SessionTotals | None:
        """Return the totals so far, unless that would require another pass over everything."""
        if self._totals is None and not self._checkpointed:
            self._totals = sum_file(self._file, self._written)
        elif self._totals is not None:
            self._totals = add_entries(self._totals, self.entries.since(self._totalled))
        self._totalled = len(self.entries)
        return self._totals

    def _write_index(self, index: LineIndex) -> None:
        totals = self._totals = self._add_totals() or sum_file(self._file, self._written)
        write_index(index_path(self._path), index.with_totals(totals))

    async def close(self) -> None:
        self._handle = None
        self._release()

    def _write(self, handle: int, data: bytes, last: int) -> None:
        if not is_at(handle, self._path):
            raise JournalGone(self._session, str(self._path))
        if os.fstat(handle).st_size != self.size:
            raise SessionMoved(self._session)
        if not self._ends_line:
            # Garbage at the end is kept on a separate line.
            data = b"\n" + data
        # From here on, the ids are used up, because their bytes may be in the file.
        self.last = last
        try:
            write_all(handle, data)
            sync_file(handle)
        except OSError as error:
            self._places = None
            self.size = size = os.fstat(handle).st_size
            self._ends_line = size == 0 or read_at(handle, 1, size - 1) == b"\n"
            raise WriteFailed(self._session, error.strerror or str(error)) from error
        self.size += len(data)
        self._ends_line = True


# Seconds between checks whether the lock is free.
POLL_S = 0.02


class JsonlStore(JournalStore):
    """A store of session files in `folder/sessions`, with images in `folder/blobs`. Files that
    exist only in the folder `earlier` are used there and not moved. An opening waits up to `wait`
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
        """Return the path of a session's file, which may not exist."""
        return self._find("sessions", f"{file_stem(session)}{SUFFIX}")

    def place(self, session: str) -> str:
        return str(self.path_of(session))

    def _find(self, *parts: str) -> Path:
        """Return a file's current or future path."""
        paths = [folder.joinpath(*parts) for folder in self._folders]
        if len(paths) == 1:
            return paths[0]
        return next(filter(Path.exists, paths), paths[0])

    async def create(self, header: SessionEntry) -> JsonlJournal:
        if not header.session:
            raise JournalError("the session id is empty; give it one")
        # Before the file is created: a header that cannot be written must not leave a file behind.
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
                # A failed creation leaves garbage; the header goes on a separate line.
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
        """Open and lock the file at `path`."""
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
        """Return the journal without opening the session; trust entries covered by its index."""
        data = await self.export(session)
        path = self.path_of(session)
        return await anyio.to_thread.run_sync(_view, data, path, session)

    async def stamp(self, session: str) -> str:
        """Return a value that changes whenever the session's file does."""
        try:
            status = await anyio.Path(self.path_of(session)).stat()
        except OSError:
            raise UnknownSession(f"no session {session!r} in {self.folder}") from None
        return f"{status.st_ino}-{status.st_size}-{status.st_mtime_ns}"

    async def is_open(self, session: str) -> bool:
        """Check whether the session is currently open for writing."""
        try:
            handle = os.open(self.path_of(session), os.O_RDWR | getattr(os, "O_BINARY", 0))
        except OSError:
            return False
        try:
            # The lock is released at once, so a concurrent opening waits only briefly.
            return not lock_file(handle)
        finally:
            os.close(handle)

    async def export(self, session: str) -> bytes:
        path = self.path_of(session)
        try:
            return await anyio.Path(path).read_bytes()
        except FileNotFoundError:
            raise UnknownSession(f"no session {session!r}: {str(path)!r} does not exist") from None
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
        """Return all sessions with their files, most recently written first."""
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
    """A store for a session file named by a person, with any location and name. Other sessions in
    its folder are also accessible; blobs are in `blobs` beside the folder. `session` is the file's
    session id."""

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
    """Check whether the file has any readable entry. A crash before the header leaves a file that
    is empty or contains only garbage."""
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
        raise JournalError(f"the session cannot be stored in {str(path)!r}: {error}") from error
