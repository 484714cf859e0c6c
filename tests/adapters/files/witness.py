"""Two witnesses of what a process opens.

The interpreter's own audit events tell every path that is handed to the system. They do not tell
the folder that a name is looked up in, so they prove a form: the root by its full path, or single
names that do not follow links. That such names are looked up in open folders and not where the
process happens to stand is seen by the kernel: it tells of every access to the folders that it
watches, by whatever way they were reached.
"""

import ctypes
import os
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Where in the arguments of an event its paths stand.
_PATHS = {
    "open": (0,),
    "os.scandir": (0,),
    "os.listdir": (0,),
    "os.mkdir": (0,),
    "os.rmdir": (0,),
    "os.remove": (0,),
    "os.utime": (0,),
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.truncate": (0,),
    "os.rename": (0, 1),
    "os.link": (0, 1),
    "os.symlink": (0, 1),
}
_heard: list[tuple[str, tuple[Any, ...]]] | None = None
_interrupt: tuple[int, Callable[[], None]] | None = None
_listener = 0
_installed = False

# Access, change, attributes, opening, moves, making, removing: everything but closing.
_ALL_EVENTS = 0x1 | 0x2 | 0x4 | 0x20 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
_EVENT = struct.Struct("iIII")


def _hook(event: str, args: tuple[Any, ...]) -> None:
    global _heard
    if _heard is not None and event in _PATHS and threading.get_ident() == _listener:
        heard = _heard
        heard.append((event, args))
        if _interrupt is not None and len(heard) == _interrupt[0]:
            _heard = None  # what the interruption does is not what is watched
            _interrupt[1]()
            _heard = heard


@contextmanager
def audited(
    at: int = 0, act: Callable[[], None] | None = None
) -> Iterator[list[tuple[str, tuple[Any, ...]]]]:
    """What this thread asks of the system meanwhile. With `act`, that happens in the very moment
    before the system does what was asked for the `at`th time."""
    global _heard, _interrupt, _listener, _installed
    _interrupt = None if act is None else (at, act)
    if not _installed:
        sys.addaudithook(_hook)  # for good: there is no way to take one out
        _installed = True
    heard: list[tuple[str, tuple[Any, ...]]] = []
    _listener = threading.get_ident()
    _heard = heard
    try:
        yield heard
    finally:
        _heard = None


def strays(heard: list[tuple[str, tuple[Any, ...]]], root: Path) -> list[str]:
    """What was asked that could lead out of `root`."""
    found = []
    for event, args in heard:
        for at in _PATHS[event]:
            path = args[at]
            if isinstance(path, int) or os.fspath(path) == str(root):
                continue  # an open folder, or the root itself
            is_name = "/" not in path and path not in ("", ".", "..")
            follows = event == "open" and not args[2] & os.O_NOFOLLOW
            if not is_name or follows:
                found.append(f"{event} {path!r}{' follows links' if follows else ''}")
    return found


class Watch:
    """Tells of every access to what is in some folders, by anybody, as the kernel sees it."""

    def __init__(self, *folders: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._handle: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self._handle >= 0
        self._names: dict[int, str] = {}
        for folder in folders:
            watch = libc.inotify_add_watch(self._handle, os.fsencode(folder), _ALL_EVENTS)
            assert watch >= 0
            self._names[watch] = folder.name

    def seen(self) -> list[str]:
        """What was accessed since the last look."""
        try:
            data = os.read(self._handle, 1 << 20)
        except BlockingIOError:
            return []
        found, at = [], 0
        while at < len(data):
            watch, mask, _, length = _EVENT.unpack_from(data, at)
            at += _EVENT.size
            name = data[at : at + length].rstrip(b"\0").decode()
            at += length
            found.append(f"{self._names.get(watch, '?')}/{name} ({mask:#x})")
        return found

    def close(self) -> None:
        os.close(self._handle)


@contextmanager
def watched(*folders: Path) -> Iterator[Watch]:
    watch = Watch(*folders)
    try:
        yield watch
    finally:
        watch.close()
