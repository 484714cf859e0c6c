"""Turns bytes from the web into text, by media type and character set. Blocking: run it in a
thread.

Law: bytes are decoded as browsers do: a byte order mark takes precedence, then the header, then the
page's own declaration. Without any of these the text is UTF-8 if possible.
"""

import codecs
import re
from collections.abc import Callable

from msgspec import Struct

from lamina.adapters.pages.fetch_answers import fetch_failure
from lamina.adapters.pages.markup import PageText, read_markup
from lamina.errors import LaminaError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Names that do not denote text encodings on the web: one would hide text, the other is for scripts.
_NO_CODECS = ("replacement", "x-user-defined")
_META = re.compile(rb"<meta[^>]{0,512}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_META_WITHIN = 4_096


class DecodedText(Struct, frozen=True, kw_only=True):
    text: str
    warnings: tuple[str, ...] = ()


def decode(data: bytes, declared_charset: str, *, is_markup: bool) -> DecodedText:
    """Decode `data`. Invalid bytes are replaced, with a warning."""
    for mark, charset in _MARKS:
        if data.startswith(mark):
            return _decode_as(data[len(mark) :], charset)
    charset = _codec(declared_charset)
    if not charset and is_markup and (meta := _META.search(data, 0, _META_WITHIN)):
        charset = _codec(meta[1].decode("ascii", "replace"))
        # If the page could be read up to there, its characters are one byte wide.
        charset = "utf-8" if charset.startswith("utf-16") else charset
    if charset:
        return _decode_as(data, charset)
    try:
        return DecodedText(text=data.decode("utf-8"))
    except UnicodeDecodeError:
        return _decode_as(data, "cp1252")


def _codec(name: str) -> str:
    """Return the codec that a name denotes on the web; empty if there is none."""
    from webencodings import lookup

    encoding = lookup(name)
    if encoding is None or encoding.name in _NO_CODECS:
        return ""
    # Browsers read the one as the other, which is a superset.
    return "gb18030" if encoding.name == "gbk" else str(encoding.codec_info.name)


def _decode_as(data: bytes, charset: str) -> DecodedText:
    text = data.decode(charset, "replace")
    losses = text.count("\ufffd") - data.decode(charset, "ignore").count("\ufffd")
    if losses <= 0:
        return DecodedText(text=text)
    warning = f"{losses:,} places could not be decoded as {charset}"
    return DecodedText(text=text, warnings=(warning,))


ReadPdf = Callable[[bytes], str]

ACCEPTED_PAGES = (
    "text/html,application/xhtml+xml,text/markdown,text/plain,application/pdf,*/*;q=0.5"
)
_MARKUP = frozenset({"text/html", "application/xhtml+xml"})
_PDF = "application/pdf"
_TEXTS = frozenset({
    "application/json", "application/ld+json", "application/x-ndjson", "application/xml",
    "application/yaml", "application/x-yaml", "application/toml", "application/javascript",
    "application/x-sh", "application/sql", "application/rtf",
})  # fmt: skip
_GUESS_BYTES = 1_024


def is_page(media_type: str) -> bool:
    """Return whether a media type can be read as text. Without a type, the content decides."""
    return media_type in ("", _PDF) or media_type in _MARKUP or _is_text(media_type)


def is_picture(media_type: str) -> bool:
    return media_type.startswith("image/")


def read_page(
    data: bytes, media_type: str, charset: str, *, read_pdf: ReadPdf | None, limit: int
) -> PageText:
    """Read a page's text, up to `limit` characters.

    Raises:
        FetchFailure: the page has no text.
    """
    kind = media_type or _guess(data)
    if kind == _PDF:
        page = _read_pdf(data, read_pdf)
    else:
        if b"\0" in data and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise fetch_failure("unreadable", f"it says that it is {kind} and is not text")
        content = decode(data, charset, is_markup=kind in _MARKUP)
        page = read_markup(content.text) if kind in _MARKUP else PageText(text=content.text)
        page = PageText(text=page.text, title=page.title, warnings=content.warnings + page.warnings)
    if not page.text.strip():
        raise fetch_failure("unreadable", "no text was found on the page")
    return _cut(page, limit)


def _is_text(media_type: str) -> bool:
    return (
        media_type.startswith("text/")
        or media_type in _TEXTS
        or media_type.endswith(("+json", "+xml", "+yaml"))
    ) and not is_picture(media_type)


def _guess(data: bytes) -> str:
    start = data[:_GUESS_BYTES].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith(b"%pdf-"):
        return _PDF
    return "text/html" if start.startswith((b"<!doctype html", b"<html")) else "text/plain"


def _read_pdf(data: bytes, read_pdf: ReadPdf | None) -> PageText:
    if read_pdf is None:
        raise fetch_failure("unreadable", "it is a PDF, and PDFs of the web are not read here")
    try:
        return PageText(text=read_pdf(data))
    except (LaminaError, ValueError) as error:
        raise fetch_failure("unreadable", f"its PDF cannot be read: {error}") from error


def _cut(page: PageText, limit: int) -> PageText:
    if len(page.text) <= limit:
        return page
    text = page.text[:limit]
    # At the end of a line, unless that would cut off much more.
    text = text[: end if (end := text.rfind("\n")) > limit // 2 else limit]
    notice = f"it was cut after {len(text):,} of {len(page.text):,} characters"
    return PageText(
        text=f"{text}\n\n[The page goes on; {notice}.]",
        title=page.title,
        warnings=(*page.warnings, notice),
    )
