"""The pictures of a note as bytes.

Law: a picture is read through the workspace's own door or not at all, and what is not read is
named in a warning.
"""

import base64
import binascii
import hashlib
import re
import struct
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Literal
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from lamina.text import PictureRef, find_pictures
from lamina.values.item import Picture

PICTURE_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
MEGABYTE = 1024 * 1024
MAX_PICTURE_BYTES = 5 * MEGABYTE
MAX_TOTAL_BYTES = 20 * MEGABYTE
MAX_PICTURES = 20

_MAGIC = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF[\s\S]{4}WEBP"), "image/webp"),
)
_SHOWN = 60

# Reads a path of the workspace up to a size; raises Refused.
Read = Callable[[PurePosixPath, int], bytes]


class Refused(Exception):
    """A path that may not be opened, or cannot be."""

    def __init__(self, reason: Literal["missing", "unreadable", "refused"], detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class NotePictures(Struct, frozen=True, kw_only=True):
    """The pictures of a note, their bytes, and what was left out."""

    pictures: tuple[Picture, ...] = ()
    blobs: tuple[bytes, ...] = ()
    warnings: tuple[str, ...] = ()


def read_pictures(note: PurePosixPath, content: str, read: Read) -> NotePictures:
    """The pictures that `content`, the text of `note`, refers to; the same bytes once."""
    found: dict[str, tuple[Picture, bytes]] = {}
    warnings = []
    total = 0
    for reference in find_pictures(content):
        try:
            if len(found) == MAX_PICTURES:
                raise Refused("refused", f"a note may bring {MAX_PICTURES} pictures")
            data, media_type = _load(note, reference, read)
            picture = picture_of(data, media_type)
            if picture.digest in found:
                continue
            if total + len(data) > MAX_TOTAL_BYTES:
                limit = MAX_TOTAL_BYTES // MEGABYTE
                raise Refused("refused", f"the pictures of a note may have {limit} MB in all")
        except Refused as refusal:
            target = reference.target
            shown = target if len(target) <= _SHOWN else f"{target[:_SHOWN]}…"
            warnings.append(f"{note}: picture {shown!r} is left out: {refusal.detail}")
        else:
            found[picture.digest] = picture, data
            total += len(data)
    pictures, blobs = zip(*found.values(), strict=True) if found else ((), ())
    return NotePictures(pictures=pictures, blobs=blobs, warnings=tuple(warnings))


def picture_of(data: bytes, media_type: str) -> Picture:
    """A picture by its bytes. What they say of their kind counts more than a file's name."""
    kind = next((kind for magic, kind in _MAGIC if magic.match(data)), media_type)
    width, height = picture_size(data)
    digest = hashlib.sha256(data).hexdigest()
    return Picture(digest=digest, media_type=kind, width=width, height=height)


def picture_size(data: bytes) -> tuple[int, int]:
    """Width and height of a PNG or GIF by its header; (0, 0) for what is not known."""
    if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) >= 24:
        width, height = struct.unpack(">II", data[16:24])
        return width, height
    if data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 10:
        width, height = struct.unpack("<HH", data[6:10])
        return width, height
    return 0, 0


def _load(note: PurePosixPath, reference: PictureRef, read: Read) -> tuple[bytes, str]:
    match reference.kind:
        case "path":
            data, media_type = _load_path(note, reference.target, read)
        case "data":
            data, media_type = _load_data(reference.target)
        case "url":
            raise Refused("refused", "pictures are not fetched from the web")
    if not data:
        raise Refused("unreadable", "it is empty")
    return data, media_type


def _load_path(note: PurePosixPath, target: str, read: Read) -> tuple[bytes, str]:
    media_type = PICTURE_TYPES.get(PurePosixPath(target).suffix.lower())
    if media_type is None:
        raise Refused("unreadable", f"not one of {', '.join(PICTURE_TYPES)}")
    beside, from_root = _inside(note.parent, target), _inside(PurePosixPath(), target)
    places = [place for place in dict.fromkeys((beside, from_root)) if place is not None]
    if not places:
        raise Refused("refused", "it is not a path inside the workspace")
    for place in places[:-1]:
        try:
            return read(place, MAX_PICTURE_BYTES), media_type
        except Refused as refusal:
            if refusal.reason != "missing":
                raise
    return read(places[-1], MAX_PICTURE_BYTES), media_type


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


def _load_data(uri: str) -> tuple[bytes, str]:
    header, comma, body = uri[len("data:") :].partition(",")
    media_type, *parameters = (part.strip().lower() for part in header.split(";"))
    media_type = media_type.replace("image/jpg", "image/jpeg")
    if not comma or media_type not in PICTURE_TYPES.values():
        kinds = ", ".join(dict.fromkeys(PICTURE_TYPES.values()))
        raise Refused("unreadable", f"not one of {kinds}")
    data = unquote_to_bytes(body)
    if "base64" in parameters:
        packed = b"".join(data.split()).rstrip(b"=")
        try:
            data = base64.b64decode(packed + b"=" * (-len(packed) % 4), validate=True)
        except binascii.Error as error:
            raise Refused("unreadable", f"its base64 is broken: {error}") from None
    if len(data) > MAX_PICTURE_BYTES:
        raise Refused("unreadable", f"it has {too_large(len(data), MAX_PICTURE_BYTES)}")
    return data, media_type


def too_large(size: int, limit: int) -> str:
    return f"{size:,} bytes; the limit is {limit:,}"
