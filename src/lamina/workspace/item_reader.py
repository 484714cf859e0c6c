"""A file as an item: a note, a text, a PDF, a picture.

Law: its text is byte for byte what the file holds; what is not text is refused with a reason.
"""

from datetime import UTC, datetime
from pathlib import PurePosixPath

from msgspec.structs import replace

from lamina.files.paths import PathRefused
from lamina.files.root import Root
from lamina.values.item import Item, ItemKind, LoadedItem, item_id
from lamina.workspace.fitted_picture import PICTURE_TYPES, fit_picture

NOTE_SUFFIXES = {".md", ".markdown", ".mdx"}
PDF_SUFFIX = ".pdf"


def kind_of_file(path: str) -> ItemKind:
    """What kind of item a file is, by its name."""
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in NOTE_SUFFIXES:
        return "note"
    if suffix in PICTURE_TYPES:
        return "image"
    return "pdf" if suffix == PDF_SUFFIX else "file"


def read_item(root: Root, path: str, *, hidden: bool = False) -> LoadedItem:
    """The file at `path`; `hidden` allows a hidden one, which a person named.

    Raises:
        PathRefused: it is not there, may not be opened, or cannot be read.
    """
    kind = kind_of_file(path)
    data, status = root.read(path, hidden=hidden)
    match kind:
        case "image":
            reading = _read_picture(path, data)
        case "pdf":
            reading = _read_pdf(path, data)
        case _:
            reading = _read_text(path, kind, data)
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


def _read_text(path: str, kind: ItemKind, data: bytes) -> LoadedItem:
    if b"\0" in data[:8192]:
        raise PathRefused("unreadable", f"{path} is not text")
    warnings: tuple[str, ...] = ()
    try:
        content = data.decode("utf-8")
    except UnicodeDecodeError as error:
        content = data.decode("utf-8", "replace")
        warnings = (f"{path} is not UTF-8 at byte {error.start}; those bytes are shown as �",)
    title = PurePosixPath(path).stem if kind == "note" else ""
    item = Item(id=item_id(kind, path), title=title, content=content)
    return LoadedItem(item=item, warnings=warnings)


def format_time(seconds: float) -> str:
    """A moment as items show it."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
