"""What may be fetched from the web, and what was."""

from typing import Literal

from msgspec import Struct

# Nothing; hosts that are listed; any public host, and those that are listed.
WebAccess = Literal["off", "listed", "public"]


class WebRules(Struct, frozen=True, kw_only=True):
    """What may be fetched. A listed host is a name, `name:port`, an address, or `*.domain` for all
    names below one. Names mean public addresses only, unless the entry is `private:NAME`;
    `localhost` and a private address are meant as they stand. Addresses that clouds serve their
    secrets from are never fetched."""

    access: WebAccess = "off"
    allow_hosts: tuple[str, ...] = ()


class FetchedResource(Struct, frozen=True, kw_only=True):
    """What a server gave. `url` is where it came from in the end, after redirects."""

    url: str
    media_type: str
    data: bytes
    charset: str = ""


class UnfetchedResource(Struct, frozen=True, kw_only=True):
    """Why there is nothing: it was not allowed (`refused`), is not there (`missing`), or could not
    be had (`unreadable`)."""

    reason: Literal["missing", "unreadable", "refused"]
    detail: str


class FoundPage(Struct, frozen=True, kw_only=True):
    """A page that a search of the web found. `snippet` is a part of it that fits, `content` more of
    its text, where the search gives that; `date` is when it was written, as the search says it."""

    title: str
    url: str
    snippet: str = ""
    content: str = ""
    date: str = ""


class FoundPages(Struct, frozen=True, kw_only=True):
    """The pages that a search found, and what a person and a model should know of them."""

    pages: tuple[FoundPage, ...] = ()
    warnings: tuple[str, ...] = ()
