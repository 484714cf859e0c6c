"""Names, indexes, lists and deletes session files.

Laws: an index is trusted only if its checksum is right; it is replaced atomically, and rebuilt if
missing, damaged or outdated. Its totals are valid only for the bytes it covers. An interrupted
deletion may leave unused blobs, but never a session whose blobs are gone.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from urllib.parse import quote, unquote
from zlib import crc32

import msgspec

from lamina.adapters.files.durable_writes import sync_folder
from lamina.adapters.files.file_place import read_at
from lamina.adapters.stores.blob_files import remove_blob_file
from lamina.core.audit.kept_results import blobs_of
from lamina.core.audit.session_totals import add_entries, sum_totals
from lamina.core.journal import GrownEntries, Journal, read_journal
from lamina.core.journal.journal_file import (
    IndexedEntries,
    JournalFile,
    LineIndex,
    LinePlaces,
    read_journal_file,
)
from lamina.core.values.entry import FORMAT, Entry, SessionEntry
from lamina.core.values.totals import DeletedSession, ListedSession, SessionTotals
from lamina.errors import JournalError, LaminaError

SUFFIX = ".jsonl"
# File systems allow 255 bytes in a name; the rest is for files beside the journal.
LONGEST_NAME = 160

# Names reserved for devices on Windows, with any suffix.
_DEVICES = {"con", "prn", "aux", "nul", *(f"{n}{i}" for n in ("com", "lpt") for i in range(10))}


def file_stem(session: str) -> str:
    """Return the file name for any session id."""
    stem = quote(session, safe=" !,@+()", errors="surrogatepass")
    if stem.startswith((".", " ")) or stem.endswith((".", " ")) or not stem:
        stem = f"%{stem}"
    if stem.partition(".")[0].casefold() in _DEVICES:
        stem = f"%{stem}"
    digest = hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()
    if len(stem) <= LONGEST_NAME and session != session.lower():
        # On case-insensitive file systems, "A" and "a" must not be the same file.
        stem = f"{stem}={digest[:8]}"
    if len(stem) > LONGEST_NAME:
        # Any other equals sign is escaped.
        stem = f"{stem[: LONGEST_NAME - 17]}={digest[:16]}"
    return stem


def session_of(path: Path) -> str:
    """Return a file's session id, from its name or, if the id was too long for that, from its
    header."""
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


# Lines covered by the first version may be unreadable: it did not check what was written.
_MAGIC = b"lamina-index-2\n"
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(LineIndex)


def index_path(journal: Path) -> Path:
    return journal.with_suffix(".index")


def write_index(path: Path, index: LineIndex) -> None:
    """Write an index. It is not flushed to disk: damage by a crash shows in its checksum.

    Raises:
        OSError: it cannot be written.
    """
    draft = _write_draft(path, index)
    try:
        os.replace(draft, path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def write_first_index(path: Path, index: LineIndex) -> None:
    """Write an index only if none exists: one just written by another process may cover more.

    Raises:
        OSError: one exists, or it cannot be written.
    """
    draft = _write_draft(path, index)
    try:
        os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _write_draft(path: Path, index: LineIndex) -> Path:
    body = _encoder.encode(index)
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        draft.write_bytes(_MAGIC + crc32(body).to_bytes(4, "big") + body)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    return draft


def read_index(path: Path) -> LineIndex | None:
    """Return the index; None if missing or its checksum is wrong."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    head = len(_MAGIC)
    body = memoryview(data)[head + 4 :]
    if data[:head] != _MAGIC or int.from_bytes(data[head : head + 4], "big") != crc32(body):
        return None
    try:
        return _decoder.decode(body)
    except msgspec.MsgspecError:
        return None


def read_bytes(handle: int) -> bytes:
    """Return all the bytes of an open file."""
    size = os.fstat(handle).st_size
    chunks, at = [], 0
    while at < size:
        chunk = read_at(handle, size - at, at)
        if not chunk:
            break
        chunks.append(chunk)
        at += len(chunk)
    return b"".join(chunks)


def is_at(handle: int, path: Path) -> bool:
    """Check whether the open file is still the one at `path`."""
    try:
        there, here = os.stat(path), os.fstat(handle)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def check_header(header: SessionEntry, session: str | None, path: Path) -> None:
    """Raises: JournalError: the file has a later version, or belongs to another session."""
    check_format(header, str(path))
    if session is not None and header.session != session:
        raise JournalError(
            f"{str(path)!r} contains session {header.session!r}, not {session!r}: it was renamed "
            f"or copied. Restore its name, or import it"
        )


def check_format(header: SessionEntry, place: str) -> None:
    """
    Raises:
        JournalError: the session was written by a later version.
    """
    if header.format > FORMAT:
        raise JournalError(
            f"session {header.session!r} ({place}) has format {header.format}, but this Lamina "
            f"reads formats up to {FORMAT}; use a newer Lamina"
        )


def delete_files(
    session: str,
    handle: int,
    path: Path,
    others: Iterable[Path],
    blob_path: Callable[[str], Path],
) -> DeletedSession:
    """Delete a session whose lock is held, and the blobs that only it used. A blob is kept if
    another file names it, even one that cannot be read as a session, or if it was stored again
    after this session was written and may soon be named.

    Raises:
        JournalError: it cannot be deleted.
    """
    written = os.fstat(handle).st_mtime
    data = read_bytes(handle)
    digests = {digest for digest in _blobs_in(data, session) if digest.isalnum()}
    try:
        for other in others if digests else ():
            content = other.read_bytes()
            digests = {digest for digest in digests if digest.encode() not in content}
        index_path(path).unlink(missing_ok=True)
        path.unlink()
        sync_folder(path.parent)
    except OSError as error:
        raise JournalError(f"session {session!r} cannot be deleted: {error}") from error
    blobs = [digest for digest in digests if remove_blob_file(blob_path(digest), written)]
    return DeletedSession(session=session, bytes=len(data), blobs=tuple(sorted(blobs)))


def _blobs_in(data: bytes, session: str) -> frozenset[str]:
    return blobs_of(read_journal(data, session).entries.values())


def sum_file(file: JournalFile, written: Sequence[Entry] = ()) -> SessionTotals:
    """Return a file's totals, including the entries `written` since it was read."""
    journal = file.journal
    entries = GrownEntries(journal.entries, written)
    if file.totals is not None:
        totals = add_entries(file.totals, entries.since(file.totalled))
        if totals is not None:
            return totals
    if written:
        journal = Journal(entries=entries, leaf=written[-1].id, damage=journal.damage)
    return sum_totals(journal)


def list_file(path: Path, session: str) -> ListedSession:
    """Return a session file with its totals, and save the totals for next time."""
    try:
        status, data = path.stat(), path.read_bytes()
    except OSError as error:
        return ListedSession(session=session, problem=f"{str(path)!r} cannot be read: {error}")
    index = read_index(index_path(path))
    file = read_journal_file(data, session, index)
    totals, problem = None, ""
    try:
        check_header(file.journal.header, session, path)
        totals = sum_file(file)
    except LaminaError as error:
        problem = str(error)
    if totals is not None and file.places is not None and file.totals is None:
        # Optional: nothing is lost if it cannot be written.
        with contextlib.suppress(OSError, OverflowError):
            _keep_totals(path, data, index, file.places, totals)
    return ListedSession(
        session=session, totals=totals, bytes=len(data), written=status.st_mtime, problem=problem
    )


def _keep_totals(
    path: Path, data: bytes, index: LineIndex | None, places: LinePlaces, totals: SessionTotals
) -> None:
    place = index_path(path)
    if index is None and place.exists():
        place.unlink()
    if index is None or not index.fits(data):
        write_first_index(place, places.index(b"", totals))
        return
    # The index has a snapshot of the bytes it covers, and must keep covering exactly those.
    entries = IndexedEntries(data, LinePlaces.of(index))
    *_, leaf = entries
    write_index(place, index.with_totals(sum_totals(Journal(entries=entries, leaf=leaf))))
