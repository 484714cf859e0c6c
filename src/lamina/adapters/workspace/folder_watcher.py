"""Reports the changed files in a folder, using inotify.

Law: a file that `take` does not list has not changed since the last call, unless `take` says that
changes are unknown. The kernel queues an event before the system call that makes the change
returns, and the caller itself reads the queue: no event is in transit in another thread when `take`
returns, and nothing has to wait. Only inotify guarantees this, and only on local disks; elsewhere,
changes are always unknown.

Changes that the kernel does not report (for example through a hard link outside the folder) are
found by checking all files now and then.
"""

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock

from lamina.adapters.files.paths import is_hidden_name

# Bits of <sys/inotify.h>.
MODIFY, ATTRIB, CLOSE_WRITE = 0x2, 0x4, 0x8
MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x40, 0x80, 0x100, 0x200
DELETE_SELF, MOVE_SELF, UNMOUNT, Q_OVERFLOW = 0x400, 0x800, 0x2000, 0x4000
ONLYDIR, ISDIR = 0x1000000, 0x40000000
# Changes to a file's content, times or permissions. Closing also covers writes by mmap.
WATCHED = MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE
# Events after which folder paths are uncertain, or that report lost events.
UNCERTAIN = DELETE_SELF | MOVE_SELF | UNMOUNT | Q_OVERFLOW
# Folders appear, vanish and move; their attributes matter only because they decide whether we can
# read them.
FOLDERS = MOVED_FROM | MOVED_TO | CREATE | DELETE | ATTRIB

OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
EVENT = struct.Struct("iIII")
BUFFER = 256 * 1024
# File systems whose changes all go through this machine's kernel.
LOCAL = (
    *("bcachefs", "btrfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "jfs", "msdos", "ntfs3"),
    *("overlay", "ramfs", "reiserfs", "tmpfs", "vfat", "xfs", "zfs"),
)


class FolderWatcher:
    """A watcher of a folder and everything below it, except hidden names. `take` may be called from
    any thread. Nothing runs between calls."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = Lock()
        self._queue: int | None = None
        self._folders: dict[int, str] = {}
        self._is_started = False
        self._warnings: list[str] = []

    def start(self) -> None:
        """Start watching. Earlier changes are unknown, and the first `take` says so."""
        with self._lock:
            self._is_started = True

    def stop(self) -> None:
        """Release the watches; from then on, changes are unknown."""
        with self._lock:
            self._is_started = False
            self._forget()

    def take(self) -> set[str] | None:
        """Return the paths of files that may have changed since the last call; None if unknown, so
        that all files must be checked."""
        with self._lock:
            if not self._is_started:
                return None
            paths = self._drain() if self._queue is not None else None
            if paths is None:
                # Watch first, check afterwards: changes in between are in the queue.
                self._watch()
                return None
            return paths

    def take_warnings(self) -> tuple[str, ...]:
        """Return the reason for not watching, only once."""
        with self._lock:
            warnings, self._warnings = tuple(self._warnings), []
            return warnings

    def __del__(self) -> None:
        if (queue := getattr(self, "_queue", None)) is not None:
            with suppress(OSError):
                os.close(queue)

    # -- the queue ---------------------------------------------------------------------------------

    def _drain(self) -> set[str] | None:
        """Return the paths in the queue; None if events were lost or paths are uncertain."""
        assert self._queue is not None
        paths: set[str] = set()
        while True:
            try:
                data = os.read(self._queue, BUFFER)
            except BlockingIOError:
                return paths
            except OSError:
                return None
            for watch, mask, name in _read_events(data):
                if mask & UNCERTAIN:
                    return None
                if is_hidden_name(name):
                    continue
                if mask & ISDIR and mask & FOLDERS:
                    return None
                if name and (folder := self._folders.get(watch)) is not None:
                    paths.add(folder + name)

    def _watch(self) -> None:
        """Start watching all current folders from scratch."""
        self._forget()
        try:
            if kind := shared_disk_kind(self._root):
                raise OSError(0, f"it is on a disk of kind {kind}, whose changes may go unseen")
            self._queue = _new_queue()
            self._add(os.open(self._root, OPEN_FLAGS), "")
        except OSError as error:
            self._forget()
            # Tried only once: the same error would recur.
            self._is_started = False
            self._warnings.append(
                f"{self._root} is not watched ({_reason(error)}); all of its files are looked at "
                "each time instead"
            )

    def _add(self, handle: int, prefix: str) -> None:
        """Watch the folder open as `handle` and all folders below it; close the handle."""
        # The open folders on the way down, each with the subfolders still to visit.
        trail = [(handle, prefix, self._enter(handle, prefix))]
        try:
            while trail:
                handle, prefix, names = trail[-1]
                if not names:
                    os.close(trail.pop()[0])
                    continue
                name = names.pop()
                # The folder is gone, a link or unreadable; if that changes, there will be an event.
                with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                    inner = os.open(name, OPEN_FLAGS | NOFOLLOW, dir_fd=handle)
                    trail.append((inner, f"{prefix}{name}/", []))
                    trail[-1][2].extend(self._enter(inner, f"{prefix}{name}/"))
        finally:
            for handle, _, _ in trail:
                os.close(handle)

    def _enter(self, handle: int, prefix: str) -> list[str]:
        """Watch one folder and list its subfolders."""
        assert self._queue is not None
        # Before listing, so that a folder created in between is in the queue.
        self._folders[_add_watch(self._queue, handle)] = prefix
        with os.scandir(handle) as entries:
            return [
                entry.name
                for entry in entries
                if not is_hidden_name(entry.name) and entry.is_dir(follow_symlinks=False)
            ]

    def _forget(self) -> None:
        if self._queue is not None:
            os.close(self._queue)
        self._queue = None
        self._folders = {}


def _read_events(data: bytes) -> Iterator[tuple[int, int, str]]:
    at = 0
    while at < len(data):
        watch, mask, _, length = EVENT.unpack_from(data, at)
        at += EVENT.size + length
        yield watch, mask, os.fsdecode(data[at - length : at].rstrip(b"\0"))


# -- the system ------------------------------------------------------------------------------------


def _libc() -> ctypes.CDLL:
    if sys.platform != "linux":
        raise OSError(0, f"{sys.platform} tells of changes too late to rely on it")
    return ctypes.CDLL(None, use_errno=True)


def _new_queue() -> int:
    queue: int = _libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if queue < 0:
        raise _last_error()
    return queue


def _add_watch(queue: int, handle: int) -> int:
    # By handle, because a link could be swapped into the path.
    place = f"/proc/self/fd/{handle}".encode()
    watch: int = _libc().inotify_add_watch(queue, place, WATCHED | UNCERTAIN | ONLYDIR)
    if watch < 0:
        raise _last_error()
    return watch


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


def _reason(error: OSError) -> str:
    match error.errno:
        case errno.ENOSPC:
            return "it has more folders than fs.inotify.max_user_watches allows; raise that"
        case errno.EMFILE:
            return "there are more watchers than fs.inotify.max_user_instances allows; raise that"
    return error.strerror or str(error)


def shared_disk_kind(root: Path) -> str:
    """Return the type of a disk at or below the folder that other machines may change; empty if
    none."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape")
    except OSError:
        return ""  # not Linux, or no /proc: inotify itself fails then
    return shared_mount_kind(os.path.realpath(root), mounts)


def shared_mount_kind(place: str, mounts: str) -> str:
    """Return the same for a mount list in the format of `/proc/self/mountinfo`."""
    holding, below = ("", ""), []
    for line in mounts.splitlines():
        front, _, back = line.partition(" - ")
        point, kind = _unescape(front.split(" ")[4]), back.split(" ")[0]
        if _is_inside(place, point):
            # The innermost mount, or the last of several at the same point.
            if len(point) >= len(holding[0]):
                holding = (point, kind)
        elif _is_inside(point, place):
            below.append(kind)
    return next((kind for kind in (holding[1], *below) if kind not in LOCAL), "")


def _is_inside(place: str, folder: str) -> bool:
    return place == folder or place.startswith(folder.rstrip("/") + "/")


def _unescape(point: str) -> str:
    for code, character in (("040", " "), ("011", "\t"), ("012", "\n"), ("134", "\\")):
        point = point.replace(f"\\{code}", character)
    return point
