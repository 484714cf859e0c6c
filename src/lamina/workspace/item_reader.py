"""A file as an item: a note, a text, a table, a PDF, a picture.

Law: its text is byte for byte what the file holds; what is not text is refused with a reason.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import PurePosixPath

from msgspec.structs import replace

from lamina.files.paths import PathRefused
from lamina.files.root import Root
from lamina.values.item import Item, LoadedItem, item_id, note_id
from lamina.values.item_kind import PICTURE_TYPES, ItemKind, kind_of_file
from lamina.workspace.fitted_picture import fit_picture


def read_item(root: Root, path: str, *, hidden: bool = False, wanted: str = "") -> LoadedItem:
    """The file at `path`; `hidden` allows a hidden one, which a person named. `wanted` is the kind
    that is asked for, if the file can be of more than one.

    Raises:
        PathRefused: it is not there, may not be opened, or cannot be read.
    """
    data, status = root.read(path, hidden=hidden)
    reading = READERS[kind_of_file(path, wanted)](path, data)
    item = replace(
        reading.item,
        ctime=format_time(status.st_ctime),
        mtime=format_time(status.st_mtime),
        workspace=root.id,
    )
    return replace(reading, item=item)


def _read_picture(path: str, data: bytes) -> LoadedItem:
    fit = fit_picture(data, PICTURE_TYPES[PurePosixPath(path).suffix.lower()])
    item = Item(id=item_id("image", path), content="", pictures=(fit.picture,))
    return LoadedItem(item=item, blobs=(fit.data,))


def _read_pdf(path: str, data: bytes) -> LoadedItem:
    from lamina.workspace.pdf import read_pdf

    try:
        pdf = read_pdf(data)
    except PathRefused as refusal:
        raise PathRefused(refusal.reason, f"{path}: {refusal.detail}") from None
    item = Item(id=item_id("pdf", path), title=pdf.title, content=pdf.text)
    return LoadedItem(item=item, warnings=tuple(f"{path}: {warning}" for warning in pdf.warnings))


def _read_note(path: str, data: bytes) -> LoadedItem:
    reading = _read_text(path, data)
    item = replace(reading.item, id=note_id(path), title=PurePosixPath(path).stem)
    return replace(reading, item=item)


def _read_table(path: str, data: bytes) -> LoadedItem:
    from lamina.workspace.table import read_table

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


# A reader for every kind that is a file.
READERS: dict[ItemKind, Callable[[str, bytes], LoadedItem]] = {
    "note": _read_note,
    "file": _read_text,
    "pdf": _read_pdf,
    "image": _read_picture,
    "table": _read_table,
}


def format_time(seconds: float) -> str:
    """A moment as items show it."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
