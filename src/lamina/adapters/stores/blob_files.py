"""Stores blobs as files named by their digests.

Law: a blob is complete or absent, and is read only if its content matches its digest.
"""

import contextlib
import hashlib
import os
from pathlib import Path

from lamina.adapters.files.durable_writes import sync_file, sync_folder, write_all
from lamina.errors import JournalError, WriteFailed

# How many times to recreate a folder that other processes remove as empty.
_ATTEMPTS = 10


def put_blob_file(path: Path, data: bytes) -> None:
    """Write a blob. Mark an existing blob as fresh, so that it is not removed as unused before an
    entry refers to it.

    Raises:
        WriteFailed: it cannot be written.
    """
    with contextlib.suppress(OSError):
        if path.read_bytes() == data:
            os.utime(path)
            return
    # Under a temporary name first, so that a blob is complete or does not exist.
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
    """Open the new file; recreate its folder if another process removes it as empty."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for _ in range(_ATTEMPTS):
        # `mkdir` may find the folder, which may be gone before `mkdir` checks that it is one.
        with contextlib.suppress(FileNotFoundError, FileExistsError):
            draft.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            return os.open(draft, flags, 0o600)
    return os.open(draft, flags, 0o600)


def check_blob(digest: str, data: bytes) -> bytes:
    """Return the bytes of a blob if they match its digest.

    Raises:
        JournalError: they do not match.
    """
    if hashlib.sha256(data).hexdigest() != digest:
        raise JournalError(f"blob {digest!r} is damaged: its content has a different digest")
    return data


def remove_blob_file(path: Path, before: float) -> bool:
    """Remove a blob that was not stored again after `before`, and its folder if now empty."""
    try:
        if path.stat().st_mtime > before:
            return False
        path.unlink()
    except OSError:
        return False
    with contextlib.suppress(OSError):  # the folder is not empty
        path.parent.rmdir()
    return True
