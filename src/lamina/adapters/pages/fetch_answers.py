"""Defines a server's response to a fetch, and interprets its status and redirects."""

from collections.abc import Mapping
from typing import Literal
from urllib.parse import urljoin

from msgspec import Struct

from lamina.adapters.pages.addresses import Address, read_address
from lamina.adapters.pages.allowed_hosts import judge_redirect
from lamina.core.values.web_access import UnfetchedResource

REDIRECTS = frozenset({301, 302, 303, 307, 308})
UNCHANGED = 304
_WHOLE = frozenset({200, 203})
_GONE = frozenset({404, 410})
_WORDS = {
    401: "it wants a login",
    403: "it does not allow this",
    407: "it wants a proxy login",
    408: "it waited too long",
    429: "it was asked too often; try again later",
    451: "it is withheld for legal reasons",
}


class FetchFailure(Exception):
    """A failed fetch, with the reason."""

    def __init__(self, why: UnfetchedResource) -> None:
        super().__init__(why.detail)
        self.why = why


def fetch_failure(reason: Literal["missing", "unreadable", "refused"], detail: str) -> FetchFailure:
    return FetchFailure(UnfetchedResource(reason=reason, detail=detail))


class FetchAnswer(Struct, frozen=True, kw_only=True):
    """A server's response. Header names are in lower case; `data` is unpacked, and empty if not
    requested."""

    address: Address
    status: int
    headers: Mapping[str, str]
    data: bytes = b""

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        for parameter in self.headers.get("content-type", "").split(";")[1:]:
            name, _, value = parameter.partition("=")
            if name.strip().lower() == "charset":
                return value.strip().strip("\"'").lower()
        return ""

    @property
    def is_whole(self) -> bool:
        return self.status in _WHOLE


class Validators(Struct, frozen=True, kw_only=True):
    """Values with which a server can tell whether a resource has changed. They are sent only to the
    address that issued them."""

    url: str
    etag: str = ""
    modified: str = ""

    def headers(self, address: Address) -> dict[bytes | str, bytes | str]:
        if address.url != self.url:
            return {}
        conditions: dict[bytes | str, bytes | str] = {
            "if-none-match": self.etag,
            "if-modified-since": self.modified,
        }
        return {name: value for name, value in conditions.items() if value}


def validators_of(answer: FetchAnswer) -> Validators:
    return Validators(
        url=answer.address.url,
        etag=answer.headers.get("etag", ""),
        modified=answer.headers.get("last-modified", ""),
    )


def next_address(answer: FetchAnswer) -> Address:
    """Return the address that a redirect leads to.

    Raises:
        FetchFailure: nothing may be fetched from there.
    """
    before = answer.address
    location = answer.headers.get("location", "").strip()
    if not location:
        raise fetch_failure("unreadable", f"{before.host} redirects and does not say where to")
    try:
        url = urljoin(before.url, location)
    except ValueError:
        raise fetch_failure(
            "refused", f"{before.host} redirects to what is not an address"
        ) from None
    after = read_address(url)
    if isinstance(after, UnfetchedResource):
        raise fetch_failure(after.reason, f"{before.host} redirects elsewhere: {after.detail}")
    if why := judge_redirect(before, after):
        raise FetchFailure(why)
    return after


def judge_status(answer: FetchAnswer) -> None:
    """Check that the response's status is a success.

    Raises:
        FetchFailure: it is not.
    """
    if answer.is_whole:
        return
    status_text = f"{answer.address.host} answered {answer.status}"
    if answer.status in _GONE:
        raise fetch_failure("missing", f"{status_text}: the page is not there")
    words = _WORDS.get(answer.status, "the server failed" if answer.status >= 500 else "")
    raise fetch_failure("unreadable", f"{status_text}: {words}" if words else status_text)
