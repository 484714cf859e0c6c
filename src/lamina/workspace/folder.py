"""A folder of notes and files as a workspace.

Law: nothing outside the root is ever opened. Paths are walked one component at a time from the
root's own handle and links are not followed, so that a check cannot be outrun by a swap.
"""

import os
import stat
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import anyio.to_thread
from msgspec.structs import replace

from lamina.errors import UsageError
from lamina.values.item import Item, Reading, Shape, item_id
from lamina.values.request import LeftOut
from lamina.workspace.pictures import (
    MEGABYTE,
    PICTURE_TYPES,
    Refused,
    picture_of,
    read_pictures,
    too_large,
)

NOTE_SUFFIXES = {".md", ".markdown", ".mdx"}
MAX_BYTES = 20 * MEGABYTE


class FolderWorkspace:
    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = Path(root).absolute()
        if not self._root.is_dir():
            raise UsageError(f"workspace {str(root)!r} is not a folder")

    @property
    def name(self) -> str:
        return self._root.name

    async def paths(self) -> tuple[str, ...]:
        """Every file in the workspace by its path; hidden ones and links are left out."""
        return await anyio.to_thread.run_sync(self._paths)

    def _paths(self) -> tuple[str, ...]:
        found: list[str] = []
        for folder, names, files in os.walk(self._root, followlinks=False):
            names[:] = sorted(name for name in names if not name.startswith("."))
            inside = Path(folder).relative_to(self._root)
            for name in files:
                place = Path(folder, name)
                if not name.startswith(".") and not place.is_symlink():
                    found.append((inside / name).as_posix())
        return tuple(sorted(found))

    async def read(self, reference: str, shape: Shape) -> Reading | LeftOut:
        return await anyio.to_thread.run_sync(self._read, reference, shape)

    def _read(self, reference: str, shape: Shape) -> Reading | LeftOut:
        try:
            path = _relative(reference)
            data, status = self._bytes(path)
            reading = _hydrate(path, data, status)
        except Refused as refusal:
            what = item_id("note", reference.encode("utf-8", "backslashreplace").decode())
            return LeftOut(what=what, reason=refusal.reason, detail=refusal.detail)
        if shape == "active" and reading.item.kind == "note":
            return self._with_pictures(path, reading)
        return reading

    def _with_pictures(self, path: PurePosixPath, reading: Reading) -> Reading:
        """A note with the pictures it refers to; these are part of its version."""

        def read(place: PurePosixPath, limit: int) -> bytes:
            return self._bytes(_relative(str(place)), limit)[0]

        found = read_pictures(path, reading.item.content, read)
        return Reading(
            item=replace(reading.item, pictures=found.pictures, version=""),
            blobs=found.blobs,
            warnings=reading.warnings + found.warnings,
        )

    def _bytes(self, path: PurePosixPath, limit: int = MAX_BYTES) -> tuple[bytes, os.stat_result]:
        shown = str(path)
        try:
            handle = self._open(path)
        except (FileNotFoundError, NotADirectoryError):
            raise Refused("missing", f"{shown} does not exist in the workspace") from None
        except PermissionError:
            raise Refused("unreadable", f"{shown}: permission denied") from None
        except OSError as error:
            raise Refused("refused", f"{shown} is not opened: {error.strerror}") from None
        try:
            status = os.fstat(handle)
            if stat.S_ISDIR(status.st_mode):
                raise Refused("unreadable", f"{shown} is a folder; attach the notes in it")
            if not stat.S_ISREG(status.st_mode):
                raise Refused("refused", f"{shown} is not a regular file")
            with os.fdopen(os.dup(handle), "rb") as file:
                data = file.read(limit + 1)
            if len(data) > limit:
                size = max(status.st_size, len(data))
                raise Refused("unreadable", f"{shown} has {too_large(size, limit)}")
            return data, status
        except OSError as error:
            raise Refused("unreadable", f"{shown}: {error.strerror}") from None
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
    is_text = not any("\ud800" <= character <= "\udfff" for character in reference)
    if not is_text or "\0" in reference or "\\" in reference:
        raise Refused("refused", f"{reference!r} is not a workspace path")
    path = PurePosixPath(reference)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise Refused("refused", f"{reference!r} is not a path inside the workspace")
    return path


def _hydrate(path: PurePosixPath, data: bytes, status: os.stat_result) -> Reading:
    shown, suffix = str(path), path.suffix.lower()
    ctime, mtime = _iso(status.st_ctime), _iso(status.st_mtime)
    if suffix in PICTURE_TYPES:
        picture = picture_of(data, PICTURE_TYPES[suffix])
        item = Item(
            id=item_id("image", shown), content="", pictures=(picture,), ctime=ctime, mtime=mtime
        )
        return Reading(item=item, blobs=(data,))
    if b"\0" in data[:8192]:
        raise Refused("unreadable", f"{shown} is not text")
    warnings: tuple[str, ...] = ()
    try:
        content = data.decode("utf-8")
    except UnicodeDecodeError as error:
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
