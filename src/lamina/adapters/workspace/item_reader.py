"""Reads a file as an item: a note, a text, a table, a PDF or a picture.

Law: an item's text is identical to its file's, byte for byte, except that pictures embedded in a
note become a few words. Files that are not text are refused with a reason.
"""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import PurePosixPath
from threading import Lock

from msgspec.structs import replace

from lamina.adapters.files.paths import MEBIBYTE, PathRefused
from lamina.adapters.files.root import Root
from lamina.adapters.workspace.picture_files import fit_picture
from lamina.core.text.pictures import count_pictures, replace_data_pictures
from lamina.core.values.item import (
    PICTURE_TYPES,
    Item,
    ItemKind,
    LoadedItem,
    item_id,
    kind_of_file,
    note_id,
)

# Cache limits: the number of files, and the size of each.
MAX_READINGS = 16
MAX_BYTES = MEBIBYTE
# A change this long ago can be distinguished from any later one.
SETTLED_S = 0.1
_Stamp = tuple[int, int, int, int, int]


class ItemReader:
    """A reader of files below a root. Recently read files are not reread while their status is
    unchanged: a question may name a file more than once, and an interface may have read it
    before."""

    def __init__(self, root: Root, now: Callable[[], float] = time.time) -> None:
        self._root = root
        self._now = now
        self._latest: dict[tuple[str, str], tuple[_Stamp, LoadedItem]] = {}
        self._lock = Lock()

    def read(self, path: str, *, hidden: bool = False, wanted: str = "") -> LoadedItem:
        """Return the file at `path` as an item; `hidden` allows a hidden file, if a person named
        it. `wanted` is the requested kind, if the file can be read as more than one.

        Raises:
            PathRefused: the file does not exist, may not be opened, or cannot be read.
        """
        key = (path, wanted)
        known = self._latest.get(key)
        if known and known[0] == _stamp(self._root.stat(path, hidden=hidden)):
            return known[1]
        data, status = self._root.read(path, hidden=hidden)
        reading = READERS[kind_of_file(path, wanted)](path, data)
        item = replace(
            reading.item,
            ctime=format_time(status.st_ctime),
            mtime=format_time(status.st_mtime),
            workspace=self._root.id,
        )
        reading = replace(reading, item=item)
        # A file system's clock may not distinguish a very recent change from the next one.
        is_settled = self._now() - status.st_ctime > SETTLED_S
        with self._lock:
            self._latest.pop(key, None)
            if is_settled and len(data) <= MAX_BYTES:
                self._latest[key] = (_stamp(status), reading)
            if len(self._latest) > MAX_READINGS:
                del self._latest[next(iter(self._latest))]
        return reading


def _stamp(status: os.stat_result) -> _Stamp:
    return (
        status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns,
    )  # fmt: skip


def _read_picture(path: str, data: bytes) -> LoadedItem:
    fit = fit_picture(data, PICTURE_TYPES[PurePosixPath(path).suffix.lower()])
    item = Item(id=item_id("image", path), content="", pictures=(fit.picture,))
    return LoadedItem(item=item, blobs=(fit.data,))


def _read_pdf(path: str, data: bytes) -> LoadedItem:
    from lamina.adapters.workspace.pdf import read_pdf

    try:
        pdf = read_pdf(data)
    except PathRefused as refusal:
        raise PathRefused(refusal.reason, f"{path}: {refusal.detail}") from None
    item = Item(id=item_id("pdf", path), title=pdf.title, content=pdf.text)
    return LoadedItem(item=item, warnings=tuple(f"{path}: {warning}" for warning in pdf.warnings))


def _read_note(path: str, data: bytes) -> LoadedItem:
    reading = _read_text(path, data)
    text = reading.item.content
    item = replace(
        reading.item,
        id=note_id(path),
        title=PurePosixPath(path).stem,
        content=replace_data_pictures(text),
        unseen_pictures=count_pictures(text),
        version="",
    )
    return replace(reading, item=item)


def _read_table(path: str, data: bytes) -> LoadedItem:
    from lamina.adapters.workspace.table import read_table

    return read_table(path, _read_text(path, data))


def _read_text(path: str, data: bytes) -> LoadedItem:
    if b"\0" in data[:8192]:
        raise PathRefused("unreadable", f"{path} is not text")
    warnings: tuple[str, ...] = ()
    try:
        content = data.decode("utf-8")
    except UnicodeDecodeError as error:
        content = data.decode("utf-8", "replace")
        warnings = (f"{path} is not UTF-8 at byte {error.start}; those bytes are shown as �",)
    item = Item(id=item_id("file", path), content=content)
    return LoadedItem(item=item, warnings=warnings)


# The reader for each kind of file.
READERS: dict[ItemKind, Callable[[str, bytes], LoadedItem]] = {
    "note": _read_note,
    "file": _read_text,
    "pdf": _read_pdf,
    "image": _read_picture,
    "table": _read_table,
}


def format_time(seconds: float) -> str:
    """Format a time as shown in items."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
