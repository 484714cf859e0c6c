"""Parses references, as people write them to attach something, into values.

    notes/api.md, api, [[api]], [[api#Errors]]      a note or file, or a section of one
    notes/api.md#L3-L10                             lines of one
    projects/, folder:projects                      a folder
    #draft, tag:draft                               a tag
    https://example.org/page, url:example.org       a web page
    note:a.md, query:a.md#0123456789abcdef          an item by its id

Law: parsing opens nothing. A file with exactly that name takes precedence, so callers with file
access try the plain path before anything else.
"""

import re
from typing import Literal

from msgspec import Struct

from lamina.core.values.item import FILE_KINDS, canonical_url

_URL = re.compile(r"https?://", re.IGNORECASE)
_LINES = re.compile(r"(?P<path>.+)#L(?P<start>[1-9][0-9]{0,8})(?:-L?(?P<end>[1-9][0-9]{0,8}))?")
_LINK = re.compile(r"!?\[\[(.+)\]\]", re.DOTALL)
_QUERY = re.compile(r"(?P<path>.+)#(?P<digest>[0-9a-f]{16})")


class Reference(Struct, frozen=True, kw_only=True):
    """A parsed reference. `name` is a path, a note name, a tag without `#`, or a URL; `anchor` is a
    heading; `digest` the end of a query's id; `wanted` the kind specified by an id."""

    kind: Literal["path", "folder", "tag", "url", "lines", "query"]
    name: str
    anchor: str = ""
    start: int = 0
    end: int = 0
    digest: str = ""
    wanted: str = ""

    @property
    def text(self) -> str:
        """Its written format, which `read_reference` parses to an equal reference."""
        match self.kind:
            case "lines":
                return f"{self.name}#L{self.start}-L{self.end}"
            case "query":
                return f"query:{self.name}#{self.digest}"
            case "path" if self.anchor:
                return f"[[{self.name}#{self.anchor}]]"
            case "path":
                return f"{self.wanted}:{self.name}" if self.wanted else self.name
            case _:
                return f"{self.kind}:{self.name}"


def read_reference(text: str) -> Reference:
    """Parse a reference; it is a path, unless it has another format."""
    reference = text.strip()
    if _URL.match(reference):
        return Reference(kind="url", name=canonical_url(reference))
    kind, colon, rest = reference.partition(":")
    if colon and rest:
        if kind == "url":
            return Reference(kind="url", name=canonical_url(rest))
        if kind == "tag":
            return Reference(kind="tag", name=rest.removeprefix("#"))
        if kind == "folder":
            return Reference(kind="folder", name=rest.strip("/"))
        if kind == "query" and (match := _QUERY.fullmatch(rest)):
            return Reference(kind="query", name=match["path"], digest=match["digest"])
        if kind == "selection" and (lines := _read_lines(rest)):
            return lines
        if kind in FILE_KINDS:
            return Reference(kind="path", name=rest, wanted=kind)
    if reference.startswith("#") and len(reference) > 1 and not re.search(r"\s", reference):
        return Reference(kind="tag", name=reference[1:])
    if lines := _read_lines(reference):
        return lines
    if len(reference) > 1 and reference.endswith("/"):
        return Reference(kind="folder", name=reference.rstrip("/"))
    return _read_path(reference)


def is_url(text: str) -> bool:
    """Return whether a reference is a web page URL."""
    return read_reference(text).kind == "url"


def _read_lines(reference: str) -> Reference | None:
    match = _LINES.fullmatch(reference)
    if not match:
        return None
    start = int(match["start"])
    end = int(match["end"] or start)
    first, last = min(start, end), max(start, end)
    return Reference(kind="lines", name=_bare(match["path"]), start=first, end=last)


def _read_path(reference: str) -> Reference:
    """Return a path or note name. Text after a `#` is a heading or part of the name: only the known
    names can tell, so a bare reference keeps it."""
    link = _bare(reference)
    if link == reference:
        return Reference(kind="path", name=reference)
    name, _, anchor = link.partition("#")
    return Reference(kind="path", name=name.strip(), anchor=anchor.strip())


def _bare(reference: str) -> str:
    """Return a link without its brackets and label."""
    match = _LINK.fullmatch(reference)
    return match[1].partition("|")[0].strip() if match else reference
