"""A folder of notes and files as a workspace.

Law: nothing outside the root is ever opened. Paths are walked one component at a time from the
root's own handle and links are not followed, so that a check cannot be outrun by a swap.
"""

import hashlib
import os
import stat
import struct
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import anyio.to_thread

from lamina.errors import UsageError
from lamina.values.item import Item, Picture, Reading, Shape, item_id
from lamina.values.request import LeftOut

NOTE_SUFFIXES = {".md", ".markdown", ".mdx"}
PICTURE_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
MAX_BYTES = 20 * 1024 * 1024


class _Refused(Exception):
    """A path that may not be opened, or cannot be."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class FolderWorkspace:
    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = Path(root).absolute()
        if not self._root.is_dir():
            raise UsageError(f"workspace {str(root)!r} is not a folder")

    @property
    def name(self) -> str:
        return self._root.name

    async def read(self, reference: str, shape: Shape) -> Reading | LeftOut:
        return await anyio.to_thread.run_sync(self._read, reference, shape)

    def _read(self, reference: str, shape: Shape) -> Reading | LeftOut:
        try:
            path = _relative(reference)
            data, status = self._bytes(path)
            return _hydrate(path, data, status)
        except _Refused as refusal:
            what = item_id("note", reference)
            return LeftOut(what=what, reason=refusal.reason, detail=refusal.detail)  # type: ignore[arg-type]

    def _bytes(self, path: PurePosixPath) -> tuple[bytes, os.stat_result]:
        shown = str(path)
        try:
            handle = self._open(path)
        except (FileNotFoundError, NotADirectoryError):
            raise _Refused("missing", f"{shown} does not exist in the workspace") from None
        except PermissionError:
            raise _Refused("unreadable", f"{shown}: permission denied") from None
        except OSError as error:
            raise _Refused("refused", f"{shown} is not opened: {error.strerror}") from None
        try:
            status = os.fstat(handle)
            if stat.S_ISDIR(status.st_mode):
                raise _Refused("unreadable", f"{shown} is a folder; attach the notes in it")
            if not stat.S_ISREG(status.st_mode):
                raise _Refused("refused", f"{shown} is not a regular file")
            if status.st_size > MAX_BYTES:
                size = status.st_size / 1024 / 1024
                raise _Refused("unreadable", f"{shown} is {size:.0f} MB; the limit is 20 MB")
            with os.fdopen(os.dup(handle), "rb") as file:
                return file.read(MAX_BYTES + 1), status
        except OSError as error:
            raise _Refused("unreadable", f"{shown}: {error.strerror}") from None
        finally:
            os.close(handle)

    def _open(self, path: PurePosixPath) -> int:
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        if os.open not in os.supports_dir_fd:
            # Windows: no handles relative to a folder; links are resolved and compared instead.
            full = (self._root / path).resolve(strict=True)
            if not full.is_relative_to(self._root.resolve()):
                raise OSError(0, "it leads out of the workspace")
            return os.open(full, flags | getattr(os, "O_BINARY", 0))
        handle = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for part in path.parts[:-1]:
                inner = os.open(part, flags | os.O_DIRECTORY, dir_fd=handle)
                os.close(handle)
                handle = inner
            return os.open(path.name, flags, dir_fd=handle)
        finally:
            os.close(handle)


def _relative(reference: str) -> PurePosixPath:
    if "\0" in reference or "\\" in reference:
        raise _Refused("refused", f"{reference!r} is not a workspace path")
    path = PurePosixPath(reference)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise _Refused("refused", f"{reference!r} is not a path inside the workspace")
    return path


def _hydrate(path: PurePosixPath, data: bytes, status: os.stat_result) -> Reading:
    shown, suffix = str(path), path.suffix.lower()
    ctime, mtime = _iso(status.st_ctime), _iso(status.st_mtime)
    if suffix in PICTURE_TYPES:
        width, height = picture_size(data)
        picture = Picture(
            digest=hashlib.sha256(data).hexdigest(),
            media_type=PICTURE_TYPES[suffix],
            width=width,
            height=height,
        )
        item = Item(
            id=item_id("image", shown), content="", pictures=(picture,), ctime=ctime, mtime=mtime
        )
        return Reading(item=item, blobs=(data,))
    warnings: tuple[str, ...] = ()
    try:
        content = data.decode("utf-8")
    except UnicodeDecodeError as error:
        if b"\0" in data[:8192]:
            raise _Refused("unreadable", f"{shown} is not text") from None
        content = data.decode("utf-8", "replace")
        warnings = (f"{shown} is not UTF-8 at byte {error.start}; those bytes are shown as �",)
    kind = "note" if suffix in NOTE_SUFFIXES else "file"
    item = Item(
        id=item_id(kind, shown),  # type: ignore[arg-type]
        title=path.stem if kind == "note" else "",
        content=content,
        ctime=ctime,
        mtime=mtime,
    )
    return Reading(item=item, warnings=warnings)


def _iso(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def picture_size(data: bytes) -> tuple[int, int]:
    """Width and height of a PNG or GIF by its header; (0, 0) for what is not known."""
    if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) >= 24:
        width, height = struct.unpack(">II", data[16:24])
        return width, height
    if data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 10:
        width, height = struct.unpack("<HH", data[6:10])
        return width, height
    return 0, 0
