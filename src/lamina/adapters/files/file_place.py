"""Creates, replaces and moves files within folders that are already open.

Law: no file is ever half written, and a protected file cannot be overwritten even in a race: the
system itself refuses a name that is taken. A place is a name in an open folder; on systems without
folder handles it is a full path.

Limits: a replaced file is a new file with the old one's mode and, where permitted, owner; other
hard links keep the old content. Without hard links (FAT, some network drives), a new file is
written directly under its name, so a crash may leave only its beginning.
"""

import contextlib
import errno
import os
import stat
from secrets import token_hex
from typing import NamedTuple

from lamina.adapters.files.durable_writes import sync_file, write_all

# Errors on file systems without hard links.
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}
# Flags that some systems lack.
SAFE_FLAGS = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_BINARY", "O_CLOEXEC"))
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE_FLAGS


class FilePlace(NamedTuple):
    name: str
    folder: int | None

    def status(self) -> os.stat_result:
        return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)

    def beside(self, name: str) -> "FilePlace":
        if self.folder is None:
            return FilePlace(os.path.join(os.path.dirname(self.name), name), None)
        return FilePlace(name, self.folder)


def read_up_to(handle: int, limit: int, size: int) -> bytes:
    """Return a file's content, up to `limit` bytes; `size` is its expected size."""
    parts = []
    # One byte more than expected, so that the first read detects the end.
    while limit > 0 and (part := os.read(handle, min(limit, max(size + 1, 4096)))):
        parts.append(part)
        limit -= len(part)
        size -= len(part)
    return b"".join(parts)


def read_at(handle: int, length: int, offset: int) -> bytes:
    """Return up to `length` bytes starting at `offset`."""
    if hasattr(os, "pread"):
        return os.pread(handle, length, offset)
    here = os.lseek(handle, 0, os.SEEK_CUR)
    try:
        os.lseek(handle, offset, os.SEEK_SET)
        return os.read(handle, length)
    finally:
        os.lseek(handle, here, os.SEEK_SET)


def put_new(place: FilePlace, data: bytes) -> None:
    """Create a file.

    Raises:
        FileExistsError: the name is taken.
    """
    draft = _draft(place, data, None)
    try:
        _claim(draft, place)
    except OSError as error:
        _discard(draft)
        if error.errno not in _NO_LINKS:
            raise
        _fill(os.open(place.name, _MAKE, 0o666, dir_fd=place.folder), data, None)
    _sync(place)


def put_over(place: FilePlace, data: bytes, old: os.stat_result | None) -> None:
    """Create a file, replacing `old` if there is one."""
    draft = _draft(place, data, old)
    try:
        os.replace(draft.name, place.name, src_dir_fd=draft.folder, dst_dir_fd=place.folder)
    except OSError:
        _discard(draft)
        raise
    _sync(place)


def append(place: FilePlace, data: bytes) -> None:
    """Append to a file, creating it if needed; start a new line if the last one is incomplete."""
    flags = (_MAKE & ~os.O_EXCL & ~os.O_WRONLY) | os.O_RDWR | os.O_APPEND
    handle = os.open(place.name, flags | getattr(os, "O_NONBLOCK", 0), 0o666, dir_fd=place.folder)
    try:
        size = os.fstat(handle).st_size
        if size:
            os.lseek(handle, size - 1, os.SEEK_SET)
            if os.read(handle, 1) != b"\n":
                data = b"\n" + data
        write_all(handle, data)
        sync_file(handle)
    finally:
        os.close(handle)


def move(source: FilePlace, target: FilePlace, status: os.stat_result) -> None:
    """Rename a file or a folder.

    Raises:
        FileExistsError: the name is taken.
    """
    if stat.S_ISDIR(status.st_mode):
        _move_folder(source, target)
    else:
        try:
            _claim(source, target)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            # An empty file reserves the name; the move then replaces it.
            os.close(os.open(target.name, _MAKE, 0o666, dir_fd=target.folder))
            _rename(source, target)
    _sync(target)
    _sync(source)


def rename_case(source: FilePlace, target: FilePlace) -> None:
    """Change only the case of a name on a case-insensitive file system."""
    _rename(source, target)
    _sync(target)


def _move_folder(source: FilePlace, target: FilePlace) -> None:
    if os.name == "nt":
        _rename(source, target)  # refuses a name that is taken
        return
    # An empty folder reserves the name. A move can replace only an empty folder, so anything added
    # to it in the meantime is kept.
    os.mkdir(target.name, dir_fd=target.folder)
    try:
        _rename(source, target)
    except OSError:
        with contextlib.suppress(OSError):
            os.rmdir(target.name, dir_fd=target.folder)
        raise


def _rename(source: FilePlace, target: FilePlace) -> None:
    os.rename(source.name, target.name, src_dir_fd=source.folder, dst_dir_fd=target.folder)


def _claim(source: FilePlace, target: FilePlace) -> None:
    """Move a file to a name that must be free: create a second link, which the system refuses if
    the name is taken, then remove the first."""
    if os.name == "nt":
        _rename(source, target)
        return
    os.link(
        source.name,
        target.name,
        src_dir_fd=source.folder,
        dst_dir_fd=target.folder,
        follow_symlinks=False,
    )
    os.unlink(source.name, dir_fd=source.folder)


def _draft(place: FilePlace, data: bytes, old: os.stat_result | None) -> FilePlace:
    draft = place.beside(f".lamina-{token_hex(8)}.tmp")
    handle = os.open(draft.name, _MAKE, 0o666, dir_fd=draft.folder)
    try:
        _fill(handle, data, old)
    except BaseException:
        _discard(draft)
        raise
    return draft


def _fill(handle: int, data: bytes, old: os.stat_result | None) -> None:
    """Write the data and close the handle."""
    try:
        write_all(handle, data)
        if old is not None and hasattr(os, "fchmod"):
            if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                with contextlib.suppress(OSError):
                    os.fchown(handle, old.st_uid, old.st_gid)
            os.fchmod(handle, stat.S_IMODE(old.st_mode) & 0o777)
        sync_file(handle)
    finally:
        os.close(handle)


def _discard(draft: FilePlace) -> None:
    with contextlib.suppress(OSError):
        os.unlink(draft.name, dir_fd=draft.folder)


def _sync(place: FilePlace) -> None:
    """Flush the entries of the place's folder to disk, as far as the system allows."""
    if place.folder is not None:
        with contextlib.suppress(OSError):
            os.fsync(place.folder)
