"""Detects the type and size of pictures, converts them for providers, and gathers the pictures in a
note.

Laws: a picture's type is determined by its bytes, not its name. A picture that providers accept is
left unchanged; any other is converted, always in the same way, or refused with a reason. A picture
that would take too much memory is not unpacked. A note's pictures are read through the workspace's
root, fetched with the given function, or left out; each one left out is named in a warning.
"""

import base64
import binascii
import hashlib
import re
import struct
import warnings
from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

import anyio
import anyio.to_thread
from msgspec import Struct

from lamina.adapters.files.extras import install_hint
from lamina.adapters.files.paths import MEBIBYTE, PathRefused, say_too_large
from lamina.core.ports import FetchPicture
from lamina.core.text import PictureRef, find_pictures
from lamina.core.values.item import PICTURE_TYPES, Picture
from lamina.core.values.web_access import FetchedResource, UnfetchedResource

if TYPE_CHECKING:
    from PIL.Image import Image


# The types that providers accept; others are converted.
ACCEPTED_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
MAX_PICTURE_BYTES = 5 * MEBIBYTE
# A file may be larger than the picture sent.
MAX_SOURCE_BYTES = 20 * MEBIBYTE
# Anthropic refuses larger ones; no model uses more than some 2,000 pixels.
MAX_SIDE = 8_000
SCALED_SIDE = 2_048
# Four bytes per pixel, partly in memory twice.
MAX_PIXELS = 64_000_000

_MAGIC = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF[\s\S]{4}WEBP"), "image/webp"),
    (re.compile(rb"BM[\s\S]{12}"), "image/bmp"),
    (re.compile(rb"II\*\x00|MM\x00\*"), "image/tiff"),
    (re.compile(rb"[\s\S]{4}ftypavi[fs]"), "image/avif"),
    (re.compile(rb"[\s\S]{4}ftyp(?:hei[cxms]|hev[cx]|mif1|msf1)"), "image/heic"),
    (re.compile(rb"\x00\x00\x01\x00"), "image/x-icon"),
    (
        re.compile(rb"\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--[^>]{0,500}-->\s*)?<svg[\s>]"),
        "image/svg+xml",
    ),
)
# Formats that Pillow may try: none of them starts a program or fetches anything.
_FORMATS = {
    f"image/{form.lower()}": form for form in ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "AVIF")
} | {"image/x-icon": "ICO"}
_PHOTOS = {"image/jpeg", "image/avif", "image/tiff", "image/webp"}
# Start-of-frame markers of JPEG; the excluded ones are tables.
_FRAMES = set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


class FittedPicture(Struct, frozen=True, kw_only=True):
    """A picture that providers accept: its bytes, and how it was reduced, if it was."""

    picture: Picture
    data: bytes
    note: str = ""


def fit_picture(data: bytes, expected_type: str = "") -> FittedPicture:
    """Return `data` as a picture that providers accept: as it is, converted, or scaled down.
    `expected_type` is the media type suggested by its name.

    Raises:
        PathRefused: it is not a picture, or cannot be converted.
    """
    kind = kind_of_picture(data)
    width, height = picture_size(data)
    is_small = len(data) <= MAX_PICTURE_BYTES and max(width, height) <= MAX_SIDE
    if kind in ACCEPTED_TYPES and is_small:
        return FittedPicture(picture=_describe(data, kind, width, height), data=data)
    if kind not in _FORMATS:
        raise PathRefused("unreadable", _explain_refusal(kind, expected_type))
    return _make(data, kind, is_small)


def kind_of_picture(data: bytes) -> str:
    """Return the media type detected from the bytes; empty if unknown."""
    return next((kind for magic, kind in _MAGIC if magic.match(data)), "")


def picture_size(data: bytes) -> tuple[int, int]:
    """Return the width and height from a PNG, GIF, JPEG or WebP header; (0, 0) if unknown."""
    try:
        match kind_of_picture(data):
            case "image/png":
                width, height = struct.unpack_from(">II", data, 16)
            case "image/gif":
                width, height = struct.unpack_from("<HH", data, 6)
            case "image/jpeg":
                width, height = _jpeg_size(data)
            case "image/webp":
                width, height = _webp_size(data)
            case _:
                width, height = 0, 0
    except struct.error:
        return 0, 0
    return width, height


def _jpeg_size(data: bytes) -> tuple[int, int]:
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        # A padding byte, or a marker without a length.
        at += 1 if marker == 0xFF else 2
        if marker not in (0xFF, 0x01, *range(0xD0, 0xD9)):
            (length,) = struct.unpack_from(">H", data, at)
            at += max(2, length)
    return 0, 0


def _webp_size(data: bytes) -> tuple[int, int]:
    match data[12:16]:
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", data, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            low, high = struct.unpack_from("<IH", data, 24)
            return (low & 0xFFFFFF) + 1, (low >> 24 | high << 8) + 1
        case _:
            return 0, 0


def _describe(data: bytes, kind: str, width: int, height: int) -> Picture:
    digest = hashlib.sha256(data).hexdigest()
    return Picture(digest=digest, media_type=kind, width=width, height=height)


def _explain_refusal(kind: str, expected_type: str) -> str:
    match kind:
        case "image/svg+xml":
            return "it is an SVG drawing, which cannot be converted; export it as PNG"
        case "image/heic":
            return "it is a HEIC photo, which cannot be converted; export it as JPEG or PNG"
        case _:
            return f"its bytes are not {expected_type or 'a picture of a kind that is known'}"


def _make(data: bytes, kind: str, is_small: bool) -> FittedPicture:
    """Convert a picture to PNG, or to JPEG for a photo or if PNG would be too large."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        what = "is not of a kind that providers take" if is_small else "is too large to be sent"
        hint = f"Pillow is needed to convert it: {install_hint('pictures')}"
        raise PathRefused("unreadable", f"it {what}; {hint}") from None
    bombs = Image.DecompressionBombWarning
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", bombs)
            warnings.simplefilter("ignore", UserWarning)
            with Image.open(BytesIO(data), formats=[_FORMATS[kind]]) as image:
                before = image.size
                if before[0] * before[1] > MAX_PIXELS:
                    raise Image.DecompressionBombError
                return _encode(image, kind, before, scale=not is_small or max(before) > MAX_SIDE)
    except (Image.DecompressionBombError, bombs):
        detail = f"it unpacks to more than {MAX_PIXELS:,} pixels"
        raise PathRefused("refused", detail) from None
    except UnidentifiedImageError:
        raise PathRefused("unreadable", "it is damaged: its header cannot be read") from None
    except (OSError, ValueError, SyntaxError, EOFError, struct.error, MemoryError) as error:
        # The errors that Pillow's decoders raise for damaged files.
        raise PathRefused("unreadable", f"it is damaged: {error}") from None


def _encode(image: "Image", kind: str, before: tuple[int, int], *, scale: bool) -> FittedPicture:
    from PIL import Image, ImageOps

    copy = ImageOps.exif_transpose(image)
    has_alpha = copy.has_transparency_data
    copy = copy.convert("RGBA" if has_alpha else "L" if copy.mode in ("1", "L") else "RGB")
    if scale:
        copy.thumbnail((SCALED_SIDE, SCALED_SIDE), Image.Resampling.LANCZOS)
    is_photo = kind in _PHOTOS and not has_alpha and image.mode not in ("1", "P")
    data = _save(copy, "JPEG" if is_photo else "PNG")
    note = ""
    if len(data) > MAX_PICTURE_BYTES:
        copy.thumbnail((SCALED_SIDE, SCALED_SIDE), Image.Resampling.LANCZOS)
        data = _save(_on_white(copy), "JPEG")
        note = "sent as JPEG, as it is too large otherwise"
    if len(data) > MAX_PICTURE_BYTES:
        raise PathRefused("unreadable", f"it has {say_too_large(len(data), MAX_PICTURE_BYTES)}")
    if copy.width * copy.height < before[0] * before[1]:
        note = f"scaled down from {before[0]:,} x {before[1]:,} to {copy.width:,} x {copy.height:,}"
    picture = _describe(data, kind_of_picture(data), copy.width, copy.height)
    return FittedPicture(picture=picture, data=data, note=note)


def _on_white(image: "Image") -> "Image":
    """Put a picture on a white background, because JPEG has no transparency."""
    from PIL import Image

    if image.mode != "RGBA":
        return image
    page = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(page, image).convert("RGB")


def _save(image: "Image", form: str) -> bytes:
    """Return the encoded picture without metadata such as dates and places, so that the bytes are
    always the same."""
    target = BytesIO()
    # Pillow keeps metadata in `info`, and would write some of it.
    image.info = {}
    options = {"quality": 88} if form == "JPEG" else {"compress_level": 6}
    image.save(target, form, **options)
    return target.getvalue()


MAX_TOTAL_BYTES = 20 * MEBIBYTE
MAX_PICTURES = 20
# A note may refer to more pictures than are allowed; the rest are skipped.
MAX_TRIED = 100
_FETCHED_AT_ONCE = 4
_SHOWN = 60

# Reads a workspace path up to a size; raises `PathRefused`.
ReadPicture = Callable[[PurePosixPath, int], bytes]
# Finds the workspace path that a name refers to; None if there is none. Raises `PathRefused` if
# there are several.
FindPicture = Callable[[str], str | None]


class NotePictures(Struct, frozen=True, kw_only=True):
    """A note's pictures with their bytes, and how many were left out and why."""

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
    """Return the pictures that `content`, the text of `note`, refers to; identical pictures only
    once. Without `fetch`, web pictures are left out. `read` and `find` are called in a thread."""
    references = find_pictures(content)
    if not references:
        return NotePictures()
    resources = await _fetch_all(references[:MAX_TRIED], fetch) if fetch else {}
    loader = _Loader(note=note, read=read, find=find, resources=resources)
    return await anyio.to_thread.run_sync(_collect, references, loader)


async def _fetch_all(
    references: Iterable[PictureRef], fetch: FetchPicture
) -> dict[str, FetchedResource | UnfetchedResource]:
    """Fetch a note's first URLs, a few at a time."""
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
        # A URL's query string may contain a key.
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
    """A loader for the pictures in one note."""

    note: PurePosixPath
    read: ReadPicture
    find: FindPicture | None
    resources: Mapping[str, FetchedResource | UnfetchedResource]

    def load(self, reference: PictureRef, by_digest: Mapping[str, FittedPicture]) -> FittedPicture:
        """Return a picture ready to be sent, if there is room for it.

        Raises:
            PathRefused: the picture cannot be read, or the limit is reached.
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
        """Read a file beside the note, at the root, or the nearest with that name."""
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
        # A name with a folder gives the location; a file elsewhere would be another picture.
        if path is None or not f"/{path}".casefold().endswith(f"/{target}".casefold()):
            raise missing
        return self.read(PurePosixPath(path), MAX_SOURCE_BYTES)


def _inside(folder: PurePosixPath, target: str) -> PurePosixPath | None:
    """Resolve `target` relative to `folder`; None if it leads outside. Links are not followed on
    opening, so `..` can be resolved by name."""
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
