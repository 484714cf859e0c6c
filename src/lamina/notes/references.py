"""What a person writes to attach something, as a value.

    notes/api.md, api, [[api]], [[api#Errors]]      a note or file, or a section of one
    notes/api.md#L3-L10                             lines of one
    projects/, folder:projects                      a folder
    #draft, tag:draft                               a tag
    https://example.org/page, url:example.org       a page of the web
    note:a.md, query:a.md#0123456789abcdef          an item by its id

Law: reading opens nothing. A file that is called like one of these goes first, so whoever can look
asks for the plain path before anything else.
"""

import re
from typing import Literal

from msgspec import Struct

from lamina.values.item import canonical_url

_URL = re.compile(r"https?://", re.IGNORECASE)
_LINES = re.compile(r"(?P<path>.+)#L(?P<start>[1-9][0-9]{0,8})(?:-L?(?P<end>[1-9][0-9]{0,8}))?")
_LINK = re.compile(r"!?\[\[(.+)\]\]", re.DOTALL)
_QUERY = re.compile(r"(?P<path>.+)#(?P<digest>[0-9a-f]{16})")
# Kinds whose key is a path; other kinds of items are not in a workspace.
_PATH_KINDS = ("note", "file", "pdf", "image")


class Reference(Struct, frozen=True, kw_only=True):
    """What is meant. `name` is a path, the name of a note, a tag without `#`, or an address;
    `anchor` a heading; `digest` the end of a query's id."""

    kind: Literal["path", "folder", "tag", "url", "lines", "query"]
    name: str
    anchor: str = ""
    start: int = 0
    end: int = 0
    digest: str = ""


def read_reference(text: str) -> Reference:
    """What `text` means; a path, if it is of no other form."""
    said = text.strip()
    if _URL.match(said):
        return Reference(kind="url", name=canonical_url(said))
    kind, colon, rest = said.partition(":")
    if colon and rest:
        if kind == "url":
            return Reference(kind="url", name=canonical_url(rest))
        if kind == "tag":
            return Reference(kind="tag", name=rest.removeprefix("#"))
        if kind == "folder":
            return Reference(kind="folder", name=rest.strip("/"))
        if kind == "query" and (found := _QUERY.fullmatch(rest)):
            return Reference(kind="query", name=found["path"], digest=found["digest"])
        if kind == "selection" and (lines := _read_lines(rest)):
            return lines
        if kind in _PATH_KINDS:
            return Reference(kind="path", name=rest)
    if said.startswith("#") and len(said) > 1 and not re.search(r"\s", said):
        return Reference(kind="tag", name=said[1:])
    if lines := _read_lines(said):
        return lines
    if len(said) > 1 and said.endswith("/"):
        return Reference(kind="folder", name=said.rstrip("/"))
    return _read_path(said)


def is_url(text: str) -> bool:
    """Whether a reference names a page of the web."""
    return read_reference(text).kind == "url"


def _read_lines(said: str) -> Reference | None:
    found = _LINES.fullmatch(said)
    if not found:
        return None
    start = int(found["start"])
    end = int(found["end"] or start)
    first, last = min(start, end), max(start, end)
    return Reference(kind="lines", name=_bare(found["path"]), start=first, end=last)


def _read_path(said: str) -> Reference:
    """A path or the name of a note. What follows a `#` is a heading, or part of the name: only who
    knows the names can tell, so a bare one keeps it."""
    link = _bare(said)
    if link == said:
        return Reference(kind="path", name=said)
    name, _, anchor = link.partition("#")
    return Reference(kind="path", name=name.strip(), anchor=anchor.strip())


def _bare(said: str) -> str:
    """A link without its brackets and label."""
    found = _LINK.fullmatch(said)
    return found[1].partition("|")[0].strip() if found else said
