"""What may be fetched from the web, and what was fetched."""

from typing import Literal

from msgspec import Struct

# Nothing; listed hosts; any public host, and listed ones.
WebAccess = Literal["off", "listed", "public"]


class WebRules(Struct, frozen=True, kw_only=True):
    """What may be fetched. A listed host is a name, `name:port`, an address, or `*.domain` for all
    names below one. Names mean public addresses only, unless the entry is `private:NAME`;
    `localhost` and private addresses are meant literally. Addresses from which clouds serve their
    secrets are never fetched."""

    access: WebAccess = "off"
    allow_hosts: tuple[str, ...] = ()


class FetchedResource(Struct, frozen=True, kw_only=True):
    """A server's response. `url` is where it finally came from, after redirects."""

    url: str
    media_type: str
    data: bytes
    charset: str = ""


class UnfetchedResource(Struct, frozen=True, kw_only=True):
    """Why nothing was fetched: it was not allowed (`refused`), does not exist (`missing`), or could
    not be read (`unreadable`)."""

    reason: Literal["missing", "unreadable", "refused"]
    detail: str


class FoundPage(Struct, frozen=True, kw_only=True):
    """A page that a web search found. `snippet` is a matching part of it, `content` more of its
    text, if the search returns that; `date` is when it was written, according to the search."""

    title: str
    url: str
    snippet: str = ""
    content: str = ""
    date: str = ""


class FoundPages(Struct, frozen=True, kw_only=True):
    """The pages that a search found, and what a person and a model should know about them."""

    pages: tuple[FoundPage, ...] = ()
    warnings: tuple[str, ...] = ()
