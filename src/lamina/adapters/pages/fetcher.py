"""Fetches web pages and images, and caches them for a while.

Laws: every step of a fetch and of every redirect is judged before anything is sent: the address,
the name, and everything the name resolves to. Connections go only to judged addresses. Errors
repeat only an address's host, since the rest may contain a secret. Per key there is one fetch at a
time, and none while the last one is fresh: a chat that names a page in every turn fetches it once,
and its version stays the same.
"""

import re
import socket
import ssl
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio
from anyio import Lock
from anyio.to_thread import run_sync
from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.files.extras import install_hint
from lamina.adapters.pages.addresses import MAX_URL, Address, read_address, refuse_odd_url
from lamina.adapters.pages.allowed_hosts import (
    Reach,
    judge_addresses,
    judge_name,
    judge_redirect_zones,
)
from lamina.adapters.pages.fetch_answers import (
    REDIRECTS,
    UNCHANGED,
    FetchAnswer,
    FetchFailure,
    Validators,
    fetch_failure,
    judge_status,
    next_address,
    validators_of,
)
from lamina.adapters.pages.networks import Zone
from lamina.adapters.pages.page_reader import (
    ACCEPTED_PAGES,
    ReadPdf,
    is_page,
    is_picture,
    read_page,
)
from lamina.core.values.item import Item, ItemId, LoadedItem, canonical_url, url_id
from lamina.core.values.request import LeftOut
from lamina.core.values.web_access import FetchedResource, UnfetchedResource, WebRules

if TYPE_CHECKING:
    from lamina.adapters.pages.exchange import Connect, FetchRequest


T = TypeVar("T")


class CachedFetch(Struct, Generic[T], frozen=True, kw_only=True):
    """A fetch that is valid `until` a time. A `problem` says why it is older than it should be."""

    value: T
    validators: Validators
    size: int
    until: float
    problem: str = ""


class PageCache(Generic[T]):
    """A cache of up to `max_count` fetches and `max_bytes`; the least recently used are removed
    first."""

    def __init__(self, max_count: int, max_bytes: int) -> None:
        self._max_count, self._max_bytes = max_count, max_bytes
        self._fetches: OrderedDict[Hashable, CachedFetch[T]] = OrderedDict()
        self._locks: dict[Hashable, Lock] = {}

    async def get(
        self,
        key: Hashable,
        now: float,
        renew: Callable[[CachedFetch[T] | None], Awaitable[CachedFetch[T]]],
    ) -> CachedFetch[T]:
        """Return the fetch under `key`, renewed if not fresh."""
        lock = self._locks.setdefault(key, Lock())
        try:
            async with lock:
                fetch = self._fetches.get(key)
                if fetch is None or fetch.until <= now:
                    fetch = await renew(fetch)
                self._put(key, fetch)
                return fetch
        finally:
            if not lock.locked() and not lock.statistics().tasks_waiting:
                self._locks.pop(key, None)

    def _put(self, key: Hashable, fetch: CachedFetch[T]) -> None:
        self._fetches[key] = fetch
        self._fetches.move_to_end(key)
        while len(self._fetches) > self._max_count or self._bytes() > self._max_bytes:
            self._fetches.popitem(last=False)

    def _bytes(self) -> int:
        return sum(fetch.size for fetch in self._fetches.values())


# Resolves a name to all its addresses, for a port.
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

MEGABYTE = 1_000_000
_USER = re.compile(r"//[^/?#]*@")
# Not every system distinguishes a name without addresses from one that does not exist.
_NO_NAME = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
_PAGES, _PICTURES = 128, 64
_MAX_CACHED_BYTES = 64 * MEGABYTE


class WebLimits(Struct, frozen=True, kw_only=True):
    """Limits on a fetch's duration and size. The result is valid for `keep_s`; if it cannot be
    renewed after that, the next attempt is after `retry_s`."""

    total_s: float = 20.0
    connect_s: float = 5.0
    read_s: float = 10.0
    redirects: int = 5
    page_bytes: int = 5 * MEGABYTE
    text_characters: int = 200_000
    keep_s: float = 600.0
    retry_s: float = 30.0


class _ResourceKind(Struct, frozen=True, kw_only=True):
    """A kind of resource: its name in messages, the Accept header, and the allowed media types."""

    name: str
    accept: str
    includes: Callable[[str], bool]


_PAGE = _ResourceKind(name="text", accept=ACCEPTED_PAGES, includes=is_page)
_PICTURE = _ResourceKind(name="a picture", accept="image/*", includes=is_picture)


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return a name's addresses, as resolved by the system."""
    entries = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in entries))


async def find_addresses(address: Address, resolve: Resolve) -> Sequence[str]:
    """Return all addresses of a host, to be judged before connecting to one.

    Raises:
        FetchFailure: the host has none, or could not be looked up.
    """
    if address.ip is not None:
        return (str(address.ip),)
    try:
        ips = await resolve(address.host, address.port)
    except (OSError, UnicodeError) as error:
        is_unknown = getattr(error, "errno", None) in _NO_NAME
        detail = "there is no such host" if is_unknown else "it could not be looked up"
        raise fetch_failure("unreadable", f"{address.host}: {detail}") from error
    # A broken IPv6 route often takes seconds to detect.
    return sorted(ips, key=lambda ip: ":" in ip)


class WebFetcher:
    """Fetches pages and images from the web."""

    def __init__(
        self,
        *,
        read_pdf: ReadPdf | None = None,
        limits: WebLimits | None = None,
        resolve: Resolve = resolve,
        connect: "Connect | None" = None,
        context: ssl.SSLContext | None = None,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read_pdf = read_pdf
        self._limits = limits or WebLimits()
        self._resolve = resolve
        self._connect = connect
        self._context = context
        self._seconds = seconds
        self._pages: PageCache[LoadedItem] = PageCache(_PAGES, _MAX_CACHED_BYTES)
        self._pictures: PageCache[FetchedResource] = PageCache(_PICTURES, _MAX_CACHED_BYTES)

    async def page(self, url: str, rules: WebRules) -> LoadedItem | LeftOut:
        """Return the page as an item. Its identity is the address that the person gave, regardless
        of redirects and of the page's own claims."""

        async def read(answer: FetchAnswer) -> tuple[LoadedItem, int]:
            reading = await self._read(url, answer)
            return reading, len(reading.item.content)

        async def renew(old: CachedFetch[LoadedItem] | None) -> CachedFetch[LoadedItem]:
            limit = self._limits.page_bytes
            return await self._renew(url, rules, _PAGE, limit, read, old)

        try:
            self._address(url, rules)
            fetch = await self._pages.get((canonical_url(url), rules), self._seconds(), renew)
        except FetchFailure as failure:
            return LeftOut(what=_safe_id(url), reason=failure.why.reason, detail=failure.why.detail)
        if not fetch.problem:
            return fetch.value
        return replace(fetch.value, warnings=(*fetch.value.warnings, fetch.problem))

    async def picture(
        self, url: str, rules: WebRules, limit: int
    ) -> FetchedResource | UnfetchedResource:
        """Return an image's bytes unchanged, up to `limit`."""

        async def read(answer: FetchAnswer) -> tuple[FetchedResource, int]:
            picture = FetchedResource(
                url=answer.address.url,
                media_type=answer.media_type,
                data=answer.data,
                charset=answer.charset,
            )
            return picture, len(answer.data)

        async def renew(old: CachedFetch[FetchedResource] | None) -> CachedFetch[FetchedResource]:
            return await self._renew(url, rules, _PICTURE, limit, read, old)

        try:
            self._address(url, rules)
            key = (canonical_url(url), rules, limit)
            return (await self._pictures.get(key, self._seconds(), renew)).value
        except FetchFailure as failure:
            return failure.why

    def _address(self, url: str, rules: WebRules) -> Address:
        """Parse `url` and judge it as far as possible without looking it up."""
        if refusal := refuse_odd_url(url.strip()):
            raise FetchFailure(refusal)
        address = _require(read_address(canonical_url(url)))
        _require(judge_name(address, rules))
        return address

    async def _renew(
        self,
        url: str,
        rules: WebRules,
        kind: _ResourceKind,
        limit: int,
        read: Callable[[FetchAnswer], Awaitable[tuple[T, int]]],
        old: CachedFetch[T] | None,
    ) -> CachedFetch[T]:
        """Fetch the current version with `read`, which also returns its size; if the server does
        not deliver, keep the earlier version."""
        try:
            answer = await self._fetch(url, rules, kind, limit, old)
            if old is not None and answer.status == UNCHANGED:
                return replace(old, until=self._seconds() + self._limits.keep_s, problem="")
            judge_status(answer)
            if not kind.includes(answer.media_type):
                raise _wrong_type(answer, kind.name)
            value, size = await read(answer)
        except FetchFailure as failure:
            if old is None or failure.why.reason != "unreadable":
                raise
            until = self._seconds() + self._limits.retry_s
            problem = f"it is as it was fetched earlier: {failure.why.detail}"
            return replace(old, until=until, problem=problem)
        until = self._seconds() + self._limits.keep_s
        return CachedFetch(value=value, validators=validators_of(answer), size=size, until=until)

    async def _read(self, url: str, answer: FetchAnswer) -> LoadedItem:
        """Read the item in a response."""

        def read() -> LoadedItem:
            page = read_page(
                answer.data,
                answer.media_type,
                answer.charset,
                read_pdf=self._read_pdf,
                limit=self._limits.text_characters,
            )
            item = Item(id=url_id(url), content=page.text, title=page.title)
            return LoadedItem(item=item, warnings=page.warnings)

        try:
            with anyio.fail_after(self._limits.total_s):
                return await run_sync(read, abandon_on_cancel=True)
        except TimeoutError:
            seconds = self._limits.total_s
            raise fetch_failure(
                "unreadable", f"its text was not found within {seconds:g} s"
            ) from None
        except ModuleNotFoundError as error:
            raise _not_installed(error) from error

    async def _fetch(
        self,
        url: str,
        rules: WebRules,
        kind: _ResourceKind,
        limit: int,
        old: CachedFetch[T] | None,
    ) -> FetchAnswer:
        try:
            from lamina.adapters.pages.exchange import FetchRequest
        except ModuleNotFoundError as error:
            raise _not_installed(error) from error

        limits = self._limits
        request = FetchRequest(
            accept=kind.accept,
            accepts_type=kind.includes,
            limit=limit,
            connect_s=limits.connect_s,
            read_s=limits.read_s,
        )
        address = self._address(url, rules)
        try:
            with anyio.fail_after(limits.total_s):
                return await self._follow(request, address, rules, old.validators if old else None)
        except TimeoutError:
            detail = f"{address.host} took longer than {limits.total_s:g} s"
            raise fetch_failure("unreadable", detail) from None

    async def _follow(
        self, request: "FetchRequest", address: Address, rules: WebRules, old: Validators | None
    ) -> FetchAnswer:
        """Return the response after all redirects, which are judged like the first address."""
        before: tuple[Address, Zone] | None = None
        for _ in range(self._limits.redirects + 1):
            reach: Reach = _require(judge_name(address, rules))
            ips = await find_addresses(address, self._resolve)
            zone: Zone = _require(judge_addresses(address, reach, ips))
            if before and (why := judge_redirect_zones(*before, address, zone)):
                raise FetchFailure(why)
            headers = old.headers(address) if old else {}
            answer = await self._exchange(address, ips, replace(request, headers=headers))
            if answer.status not in REDIRECTS:
                return answer
            before, address = (address, zone), next_address(answer)
        limit = self._limits.redirects
        raise fetch_failure(
            "unreadable", f"{address.host}: more than {limit} redirects were not followed"
        )

    async def _exchange(
        self, address: Address, ips: Sequence[str], request: "FetchRequest"
    ) -> FetchAnswer:
        from httpcore2 import default_ssl_context

        from lamina.adapters.pages.exchange import connect_tcp, exchange

        if address.scheme == "https" and self._context is None:
            self._context = await run_sync(default_ssl_context)
        return await exchange(
            address, ips, request, connect=self._connect or connect_tcp, context=self._context
        )


def _require(verdict: T | UnfetchedResource) -> T:
    if isinstance(verdict, UnfetchedResource):
        raise FetchFailure(verdict)
    return verdict


def _safe_id(url: str) -> ItemId:
    """Return the item's id, without parts that must not or cannot be kept."""
    plain = url.encode("utf-8", "backslashreplace").decode()[:MAX_URL]
    return ItemId(_USER.sub("//", url_id(plain), count=1))


def _wrong_type(answer: FetchAnswer, goal: str) -> FetchFailure:
    kind = answer.media_type or "something without a type"
    return fetch_failure("unreadable", f"{answer.address.host} sends {kind}, which is not {goal}")


def _not_installed(error: ModuleNotFoundError) -> FetchFailure:
    return fetch_failure(
        "unreadable",
        f"reading the web needs the package {error.name!r}: {install_hint('pages')}",
    )
