"""Bytes to text, as browsers do it: a mark at the start counts most, then the header, then what the
page says of itself. Without any of them it is UTF-8 if it can be."""

import codecs
import re

from msgspec import Struct

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# What the web means by a name is often a larger set than the name says.
_WEB_MEANINGS = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030",
    "shift_jis": "cp932", "euc_kr": "cp949", "iso8859-9": "cp1254", "tis-620": "cp874",
    "iso8859-11": "cp874", "big5": "big5hkscs",
}  # fmt: skip
# Names that Python does not know.
_ALIASES = {
    "x-sjis": "cp932", "windows-31j": "cp932", "x-gbk": "gb18030", "windows-874": "cp874",
    "windows-949": "cp949", "iso-8859-8-i": "iso8859-8", "x-mac-cyrillic": "mac-cyrillic",
    "x-cp1250": "cp1250", "x-cp1251": "cp1251", "x-cp1252": "cp1252",
}  # fmt: skip
# Everything else that Python could decode is not text of the web, or (UTF-7) a trick.
_ACCEPTED_CODECS = frozenset({
    "utf-8", "utf-16-le", "utf-16-be", "big5hkscs", "gb18030", "cp932", "cp949", "euc_jp",
    "iso2022_jp", "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic", "cp866",
    *(f"cp{page}" for page in (874, *range(1250, 1259))),
    *(f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
})  # fmt: skip
_META = re.compile(rb"<meta[^>]{0,512}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_META_WITHIN = 4_096


class DecodedText(Struct, frozen=True, kw_only=True):
    text: str
    warnings: tuple[str, ...] = ()


def decode(data: bytes, declared_charset: str, *, is_markup: bool) -> DecodedText:
    """The text of `data`. What cannot be decoded is replaced, with a warning."""
    for mark, charset in _MARKS:
        if data.startswith(mark):
            return _decode_as(data[len(mark) :], charset)
    charset = _codec(declared_charset)
    if not charset and is_markup and (meta := _META.search(data, 0, _META_WITHIN)):
        charset = _codec(meta[1].decode("ascii", "replace"))
        # A page that can be read as far as there cannot be of wider characters.
        charset = "utf-8" if charset.startswith("utf-16") else charset
    if charset:
        return _decode_as(data, charset)
    try:
        return DecodedText(text=data.decode("utf-8"))
    except UnicodeDecodeError:
        return _decode_as(data, "cp1252")


def _codec(name: str) -> str:
    """The codec that is meant by a name; empty if it is none of the web's."""
    plain = name.strip().lower()
    try:
        codec = _ALIASES.get(plain) or codecs.lookup(plain).name
    except (LookupError, ValueError):
        return ""
    codec = _WEB_MEANINGS.get(codec, codec)
    if codec == "utf-16":
        codec = "utf-16-le"
    return codec if codec in _ACCEPTED_CODECS else ""


def _decode_as(data: bytes, charset: str) -> DecodedText:
    text = data.decode(charset, "replace")
    losses = text.count("\ufffd") - data.decode(charset, "ignore").count("\ufffd")
    if losses <= 0:
        return DecodedText(text=text)
    warning = f"{losses:,} places could not be decoded as {charset}"
    return DecodedText(text=text, warnings=(warning,))
