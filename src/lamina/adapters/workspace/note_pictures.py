"""The pictures of a note as bytes.

Law: a picture is read through the workspace's own door, or fetched through the given one, or left
out; and what is left out is named in a warning.
"""

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath
from urllib.parse import unquote_to_bytes

import anyio
import anyio.to_thread
from msgspec import Struct

from lamina.adapters.files.paths import MEBIBYTE, PathRefused, say_too_large
from lamina.adapters.workspace.fitted_picture import MAX_SOURCE_BYTES, FittedPicture, fit_picture
from lamina.core.ports import FetchPicture
from lamina.core.text import PictureRef, find_pictures
from lamina.core.values.item import Picture
from lamina.core.values.item_kind import PICTURE_TYPES
from lamina.core.values.web import FetchedResource, UnfetchedResource

MAX_TOTAL_BYTES = 20 * MEBIBYTE
MAX_PICTURES = 20
# A note may refer to more pictures than it may bring; after this many we stop looking.
MAX_TRIED = 100
_FETCHED_AT_ONCE = 4
_SHOWN = 60

# Reads a path of the workspace up to a size; raises `PathRefused`.
ReadPicture = Callable[[PurePosixPath, int], bytes]
# The path in the workspace that a name means; None if there is none. Raises `PathRefused` if there
# are several.
FindPicture = Callable[[str], str | None]


class NotePictures(Struct, frozen=True, kw_only=True):
    """The pictures of a note, their bytes, and what was left out: how many, and why."""

    pictures: tuple[Picture, ...] = ()
    blobs: tuple[bytes, ...] = ()
    unseen: int = 0
    warnings: tuple[str, ...] = ()


async def gather_pictures(
    note: PurePosixPath,
    content: str,
    read: ReadPicture,
    fetch: FetchPicture | None = None,
    find: FindPicture | None = None,
) -> NotePictures:
    """The pictures that `content`, the text of `note`, refers to; the same bytes once. Without
    `fetch` those on the web are left out. `read` and `find` are called in a thread."""
    references = find_pictures(content)
    if not references:
        return NotePictures()
    resources = await _fetch_all(references[:MAX_TRIED], fetch) if fetch else {}
    loader = _Loader(note=note, read=read, find=find, resources=resources)
    return await anyio.to_thread.run_sync(_collect, references, loader)


async def _fetch_all(
    references: Iterable[PictureRef], fetch: FetchPicture
) -> dict[str, FetchedResource | UnfetchedResource]:
    """What the first URLs of a note give, a few at a time."""
    urls = [reference.target for reference in references if reference.kind == "url"][:MAX_PICTURES]
    resources: dict[str, FetchedResource | UnfetchedResource] = {}
    limiter = anyio.CapacityLimiter(_FETCHED_AT_ONCE)

    async def fetch_one(url: str) -> None:
        async with limiter:
            address = f"https:{url}" if url.startswith("//") else url
            resources[url] = await fetch(address, MAX_SOURCE_BYTES)

    async with anyio.create_task_group() as tasks:
        for url in urls:
            tasks.start_soon(fetch_one, url)
    return resources


def _collect(references: tuple[PictureRef, ...], loader: "_Loader") -> NotePictures:
    by_digest: dict[str, FittedPicture] = {}
    warnings, note = list[str](), loader.note
    unseen = max(0, len(references) - MAX_TRIED)
    for reference in references[:MAX_TRIED]:
        # A URL's query string may hold a key.
        target = reference.target.split("?")[0] if reference.kind == "url" else reference.target
        label = target if len(target) <= _SHOWN else f"{target[:_SHOWN]}…"
        try:
            picture = loader.load(reference, by_digest)
        except PathRefused as refusal:
            unseen += 1
            warnings.append(f"{note}: picture {label!r} is left out: {refusal.detail}")
        else:
            if picture.note and picture.picture.digest not in by_digest:
                warnings.append(f"{note}: picture {label!r} is {picture.note}")
            by_digest.setdefault(picture.picture.digest, picture)
    if len(references) > MAX_TRIED:
        more = len(references) - MAX_TRIED
        warnings.append(f"{note}: {more:,} more pictures are left out; {MAX_TRIED} were looked at")
    return NotePictures(
        pictures=tuple(fitted.picture for fitted in by_digest.values()),
        blobs=tuple(fitted.data for fitted in by_digest.values()),
        unseen=unseen,
        warnings=tuple(warnings),
    )


class _Loader(Struct, frozen=True, kw_only=True):
    """Where the pictures of one note come from."""

    note: PurePosixPath
    read: ReadPicture
    find: FindPicture | None
    resources: Mapping[str, FetchedResource | UnfetchedResource]

    def load(self, reference: PictureRef, by_digest: Mapping[str, FittedPicture]) -> FittedPicture:
        """A picture in the form in which it is sent, if there is room for it.

        Raises:
            PathRefused: it cannot be read, or there are enough.
        """
        if len(by_digest) == MAX_PICTURES:
            raise PathRefused("refused", f"a note may bring {MAX_PICTURES} pictures")
        data = self._bytes(reference)
        if not data:
            raise PathRefused("unreadable", "it is empty")
        new = fit_picture(data)
        total = len(new.data) + sum(len(picture.data) for picture in by_digest.values())
        if new.picture.digest not in by_digest and total > MAX_TOTAL_BYTES:
            limit = MAX_TOTAL_BYTES // MEBIBYTE
            raise PathRefused("refused", f"the pictures of a note may have {limit} MB in all")
        return new

    def _bytes(self, reference: PictureRef) -> bytes:
        match reference.kind:
            case "path":
                return self._read(reference.target)
            case "data":
                return _decode_data(reference.target)
            case "url":
                return self._find_resource(reference.target)

    def _find_resource(self, url: str) -> bytes:
        match self.resources.get(url):
            case FetchedResource(data=data):
                return data
            case UnfetchedResource(reason=reason, detail=detail):
                raise PathRefused(reason, detail)
            case _ if self.resources:
                raise PathRefused("refused", f"{MAX_PICTURES} pictures are fetched for a note")
            case _:
                hint = "unless the setting `web` allows it"
                raise PathRefused("refused", f"pictures are not fetched from the web {hint}")

    def _read(self, target: str) -> bytes:
        """A file beside the note, or from the root, or the nearest of its name."""
        suffix = PurePosixPath(target).suffix.lower()
        if suffix not in (*PICTURE_TYPES, ".svg"):
            raise PathRefused("unreadable", f"not one of {', '.join(PICTURE_TYPES)}")
        beside, from_root = _inside(self.note.parent, target), _inside(PurePosixPath(), target)
        places = [place for place in dict.fromkeys((beside, from_root)) if place is not None]
        if not places:
            raise PathRefused("refused", "it is not a path inside the workspace")
        for place in places:
            try:
                return self.read(place, MAX_SOURCE_BYTES)
            except PathRefused as refusal:
                if refusal.reason != "missing":
                    raise
                missing = refusal
        path = self.find(target) if self.find else None
        # A name with a folder says where it is; a file elsewhere would be another picture.
        if path is None or not f"/{path}".casefold().endswith(f"/{target}".casefold()):
            raise missing
        return self.read(PurePosixPath(path), MAX_SOURCE_BYTES)


def _inside(folder: PurePosixPath, target: str) -> PurePosixPath | None:
    """`target` seen from `folder`; None if it leads out. Links are not followed when it is
    opened, so `..` may be worked out by name."""
    if target.startswith("/"):
        return None
    parts: list[str] = []
    for part in (folder / target).parts:
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
        else:
            return None
    return PurePosixPath(*parts) if parts else None


def _decode_data(uri: str) -> bytes:
    header, comma, body = uri[len("data:") :].partition(",")
    media_type, *parameters = (part.strip().lower() for part in header.split(";"))
    if not comma or not media_type.startswith("image/"):
        kinds = ", ".join(dict.fromkeys(PICTURE_TYPES.values()))
        raise PathRefused("unreadable", f"not one of {kinds}")
    data = unquote_to_bytes(body)
    if "base64" in parameters:
        digits = b"".join(data.split()).rstrip(b"=")
        try:
            data = base64.b64decode(digits + b"=" * (-len(digits) % 4), validate=True)
        except binascii.Error as error:
            raise PathRefused("unreadable", f"its base64 is broken: {error}") from None
    if len(data) > MAX_SOURCE_BYTES:
        raise PathRefused("unreadable", f"it has {say_too_large(len(data), MAX_SOURCE_BYTES)}")
    return data
