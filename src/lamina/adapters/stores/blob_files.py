"""Blobs as files, by their digests.

Law: a blob is there complete or not at all, and is read only as what its digest is of.
"""

import contextlib
import hashlib
import os
from pathlib import Path

from lamina.adapters.files.durable_writes import sync_file, sync_folder, write_all
from lamina.errors import JournalError, WriteFailed

# How often a folder is made that others remove as empty.
_ATTEMPTS = 10


def put_blob_file(path: Path, data: bytes) -> None:
    """Writes a blob. One that is there is marked as put again, so that nobody removes it as
    unused before it is referred to.

    Raises:
        WriteFailed: it cannot be written.
    """
    with contextlib.suppress(OSError):
        if path.read_bytes() == data:
            os.utime(path)
            return
    # Under another name first, so that a blob is complete or does not exist.
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        handle = _open_draft(draft)
        try:
            write_all(handle, data)
            sync_file(handle)
        finally:
            os.close(handle)
        os.replace(draft, path)
        sync_folder(path.parent)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise WriteFailed(path.name, error.strerror or str(error)) from error


def _open_draft(draft: Path) -> int:
    """The new file, open. Its folder is made again if somebody removes it as empty meanwhile."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for _ in range(_ATTEMPTS):
        # `mkdir` finds it there, looks whether it is a folder, and by then it may be gone.
        with contextlib.suppress(FileNotFoundError, FileExistsError):
            draft.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            return os.open(draft, flags, 0o600)
    return os.open(draft, flags, 0o600)


def check_blob(digest: str, data: bytes) -> bytes:
    """The bytes of a blob, if they are those.

    Raises:
        JournalError: they are not.
    """
    if hashlib.sha256(data).hexdigest() != digest:
        raise JournalError(f"blob {digest!r} is damaged: its content has another digest")
    return data


def remove_blob_file(path: Path, before: float) -> bool:
    """Removes a blob that was not put again after `before`, and its folder if it was the last."""
    try:
        if path.stat().st_mtime > before:
            return False
        path.unlink()
    except OSError:
        return False
    with contextlib.suppress(OSError):  # others are in it
        path.parent.rmdir()
    return True
