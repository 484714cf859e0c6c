"""Defines rules for web access, and the fetched or found resources."""

from typing import Literal

from msgspec import Struct

# Nothing; listed hosts; any public host, and listed ones.
WebAccess = Literal["off", "listed", "public"]


class WebRules(Struct, frozen=True, kw_only=True):
    """The rules for fetching. A listed host is a name, `name:port`, an address, or `*.domain` for
    all names below one. Names match public addresses only, unless the entry is `private:NAME`;
    `localhost` and private addresses are matched literally. Addresses from which clouds serve their
    secrets are never fetched."""

    access: WebAccess = "off"
    allow_hosts: tuple[str, ...] = ()


class FetchedResource(Struct, frozen=True, kw_only=True):
    """A server's response. `url` is its final address, after redirects."""

    url: str
    media_type: str
    data: bytes
    charset: str = ""


class UnfetchedResource(Struct, frozen=True, kw_only=True):
    """A failed fetch, with its reason: not allowed (`refused`), nonexistent (`missing`), or
    impossible to read (`unreadable`)."""

    reason: Literal["missing", "unreadable", "refused"]
    detail: str


class FoundPage(Struct, frozen=True, kw_only=True):
    """A page found by a web search. `snippet` is a matching part of it, `content` more of its text,
    if the search returns that; `date` is when it was written, according to the search."""

    title: str
    url: str
    snippet: str = ""
    content: str = ""
    date: str = ""


class FoundPages(Struct, frozen=True, kw_only=True):
    """The pages found by a search, and notices for a person and a model."""

    pages: tuple[FoundPage, ...] = ()
    warnings: tuple[str, ...] = ()
