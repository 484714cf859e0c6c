"""Pictures as bytes: their kind, their size, and a form that providers accept.

Laws: the bytes decide what kind a picture is, not its name. A picture that providers accept stays
byte for byte as it was; any other is converted, always in the same way, or refused with a reason.
What would unpack to more than a machine should hold is not unpacked.
"""

import hashlib
import re
import struct
import warnings
from io import BytesIO
from typing import TYPE_CHECKING

from msgspec import Struct

from lamina.adapters.extras import install_hint
from lamina.adapters.files.paths import MEBIBYTE, PathRefused, say_too_large
from lamina.core.values.item import Picture

if TYPE_CHECKING:
    from PIL.Image import Image

# What providers accept; the others are converted.
ACCEPTED_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
MAX_PICTURE_BYTES = 5 * MEBIBYTE
# A file may be larger than what is sent.
MAX_SOURCE_BYTES = 20 * MEBIBYTE
# Anthropic refuses larger ones; no model sees more than some 2,000 pixels.
MAX_SIDE = 8_000
SCALED_SIDE = 2_048
# Four bytes each, and partly in memory twice.
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
# Formats that Pillow may try: none that starts another program or fetches anything.
_FORMATS = {
    f"image/{form.lower()}": form for form in ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "AVIF")
} | {"image/x-icon": "ICO"}
_PHOTOS = {"image/jpeg", "image/avif", "image/tiff", "image/webp"}
# Start-of-frame markers of JPEG; the excluded ones are tables.
_FRAMES = set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


class FittedPicture(Struct, frozen=True, kw_only=True):
    """A picture that providers accept, its bytes, and how it was made smaller, if it was."""

    picture: Picture
    data: bytes
    note: str = ""


def fit_picture(data: bytes, expected_type: str = "") -> FittedPicture:
    """`data` as a picture that providers accept: as it is, converted, or scaled down.
    `expected_type` is the media type that its name promises.

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
    """The media type according to the bytes; empty if unknown."""
    return next((kind for magic, kind in _MAGIC if magic.match(data)), "")


def picture_size(data: bytes) -> tuple[int, int]:
    """Width and height of a PNG, GIF, JPEG or WebP by its header; (0, 0) if unknown."""
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
    """The picture converted: to PNG, or to JPEG for photos and what is too large as PNG."""
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
        # What Pillow's decoders raise for damaged files.
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
    """JPEG has no transparency; the background becomes white, as on a page."""
    from PIL import Image

    if image.mode != "RGBA":
        return image
    page = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(page, image).convert("RGB")


def _save(image: "Image", form: str) -> bytes:
    """Only the picture itself, without dates and places, so the same bytes every time."""
    target = BytesIO()
    # Pillow keeps metadata in `info`, and would write some of it.
    image.info = {}
    options = {"quality": 88} if form == "JPEG" else {"compress_level": 6}
    image.save(target, form, **options)
    return target.getvalue()
