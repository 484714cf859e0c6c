"""Decodes bytes as browsers do: a mark at the start counts most, then the header, then what the
page itself declares. Without any of these it is UTF-8 if possible."""

import codecs
import re

from msgspec import Struct

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# On the web a name often means a larger character set than it says.
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
# Whatever else Python can decode is not used on the web, or (UTF-7) is a trick.
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
        # If the page could be read up to there, its characters are not wider than a byte.
        charset = "utf-8" if charset.startswith("utf-16") else charset
    if charset:
        return _decode_as(data, charset)
    try:
        return DecodedText(text=data.decode("utf-8"))
    except UnicodeDecodeError:
        return _decode_as(data, "cp1252")


def _codec(name: str) -> str:
    """The codec that a name means; empty if it is not one of the web's."""
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
