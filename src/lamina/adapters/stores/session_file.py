"""What is done to a session's file as a whole: reading it, saying whose it is, deleting it.

Law: a deletion that is cut off leaves blobs that nobody refers to, and never a session whose blobs
are gone.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from lamina.adapters.stores.blob_files import remove_blob_file
from lamina.adapters.stores.disk import read_at, sync_folder
from lamina.adapters.stores.journal_index import index_path
from lamina.core.audit.blobs import blobs_of
from lamina.core.journal import read_journal
from lamina.core.values.entry import FORMAT, SessionEntry
from lamina.core.values.totals import DeletedSession
from lamina.errors import JournalError


def read_bytes(handle: int) -> bytes:
    """All bytes of an open file."""
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
    """Whether the open file is still the one at `path`."""
    try:
        there, here = os.stat(path), os.fstat(handle)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def check_header(header: SessionEntry, session: str | None, path: Path) -> None:
    """
    Raises:
        JournalError: the file is of a later version, or not that `session`'s.
    """
    check_format(header, str(path))
    if session is not None and header.session != session:
        raise JournalError(
            f"{path} holds session {header.session!r}, not {session!r}; it was renamed or copied. "
            f"Give it back its name, or import it"
        )


def check_format(header: SessionEntry, place: str) -> None:
    """
    Raises:
        JournalError: the session was written by a later version.
    """
    if header.format > FORMAT:
        raise JournalError(
            f"session {header.session!r} ({place}) has format {header.format}, this version reads "
            f"up to {FORMAT}; use a newer Lamina"
        )


def delete_files(
    session: str,
    handle: int,
    path: Path,
    others: Iterable[Path],
    blob_path: Callable[[str], Path],
) -> DeletedSession:
    """Deletes a session whose lock is held, and the blobs that were its alone. Whatever another
    file names stays, also if that file cannot be read as a session; so does what was put again
    since this session was written, and may be named soon.

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
