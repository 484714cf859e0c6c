"""Caches made by hand: made, shown, renewed and deleted over the API, and paid for by the hour.

Laws: a cache belongs to the key that made it; to every other it is as if it were not there. Its
storage is one row of the report, whatever becomes of it.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from lamina.providers.emulators.cost_report import CostReport, CostRow
from lamina.providers.emulators.gemini.bodies import (
    CacheBody,
    CacheUpdateBody,
    GeminiRefusal,
    check_contents,
    check_front,
    invalid_argument,
    read_body,
)
from lamina.providers.emulators.gemini.cache import (
    CachedContent,
    CacheTooSmall,
    CountTokens,
    GeminiCache,
)
from lamina.providers.emulators.gemini.http_request import owner_of, read_json_body
from lamina.values.settings import Target
from lamina.values.usage import Usage

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

CACHE_NOT_FOUND = "CachedContent not found (or permission denied)"
_TTL_S = 3600.0
_PAGE = 50
_DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)s\Z")


class CachedContentRoutes:
    """The routes under `/cachedContents`."""

    def __init__(
        self, cache: GeminiCache, report: CostReport, now: Callable[[], float],
        count: Callable[[Target], CountTokens],
    ) -> None:  # fmt: skip
        self._cache = cache
        self._report = report
        self._now = now
        self._count = count
        # Where the storage of a cache stands in the report.
        self._stored: dict[str, tuple[int, CachedContent]] = {}

    def find(self, name: str, owner: str) -> CachedContent:
        """The cache of that name.

        Raises:
            Refused: it is not there for this caller.
        """
        held = self._cache.find(name, owner, self._now())
        if held is None:
            raise GeminiRefusal(403, "PERMISSION_DENIED", CACHE_NOT_FOUND)
        return held

    async def create(self, request: "Request", body: CacheBody, target: Target) -> "Response":
        from starlette.responses import JSONResponse

        check_front(body)
        if body.contents:
            check_contents(body.contents, target.model)
        now = self._now()
        expires = _expiry(body.ttl, body.expire_time, now) or now + _TTL_S
        try:
            owner, count = owner_of(request), self._count(target)
            held = self._cache.hold(body, target, owner, count, now, expires)
        except CacheTooSmall as small:
            raise invalid_argument(str(small)) from small
        rows = self._report.rows
        self._report.add(now, target, Usage(input=held.tokens), missed=f"made {held.name}")
        self._stored[held.name] = (len(rows), held)
        rows.append(
            CostRow(
                number=len(rows) + 1,
                at=now,
                model=target.model,
                usage=Usage(),
                cost=0.0,
                uncached_cost=0.0,
                missed=f"storage of {held.name}: {held.tokens:,} tokens",
            )
        )
        return JSONResponse(_described(held))

    async def list(self, request: "Request") -> "Response":
        from starlette.responses import JSONResponse

        listed = self._cache.listed(owner_of(request), self._now())
        size = request.query_params.get("pageSize") or str(_PAGE)
        start = request.query_params.get("pageToken") or "0"
        if not start.isdigit() or not size.isdigit():
            raise invalid_argument("page_size must be a number, and page_token as it was given.")
        end = int(start) + int(size)
        page: dict[str, Any] = {}
        if shown := listed[int(start) : end]:
            page["cachedContents"] = [_described(held) for held in shown]
        if end < len(listed):
            page["nextPageToken"] = str(end)
        return JSONResponse(page)

    async def get(self, request: "Request") -> "Response":
        from starlette.responses import JSONResponse

        return JSONResponse(_described(self._named(request)))

    async def update(self, request: "Request") -> "Response":
        from starlette.responses import JSONResponse

        held = self._named(request)
        body = read_body(await read_json_body(request), CacheUpdateBody)
        now = self._now()
        expires = _expiry(body.ttl, body.expire_time, now)
        if expires is None:
            raise invalid_argument(
                "Only ttl and expire_time can be updated; one of them has to be set."
            )
        renewed = self._cache.renew(held, now, expires)
        self._stored[held.name] = (self._stored[held.name][0], renewed)
        return JSONResponse(_described(renewed))

    async def delete(self, request: "Request") -> "Response":
        from starlette.responses import JSONResponse

        dropped = self._cache.drop(self._named(request), self._now())
        self._stored[dropped.name] = (self._stored[dropped.name][0], dropped)
        self.settle()
        return JSONResponse({})

    def settle(self) -> None:
        """Brings the storage fees in the report up to now."""
        rows = self._report.rows
        for index, held in self._stored.values():
            rows[index] = replace(rows[index], cost=self._cache.storage_fee(held, self._now()))

    def _named(self, request: "Request") -> CachedContent:
        return self.find(f"cachedContents/{request.path_params['id']}", owner_of(request))


def _expiry(ttl: str | None, expire_time: str | None, now: float) -> float | None:
    """When a cache ends, by what a request says of it."""
    if ttl is not None and expire_time is not None:
        raise invalid_argument("Only one of ttl and expire_time can be set.")
    if ttl is not None:
        if not (found := _DURATION.match(ttl)) or not float(found[1]):
            raise invalid_argument(
                f"Invalid value at 'ttl' (type.googleapis.com/google.protobuf.Duration), {ttl!r}"
            )
        return now + float(found[1])
    if expire_time is None:
        return None
    try:
        expires = datetime.fromisoformat(expire_time).timestamp()
    except ValueError as error:
        raise invalid_argument(f"Invalid value at 'expire_time', {expire_time!r}") from error
    if expires <= now:
        raise invalid_argument("expire_time must be in the future.")
    return expires


def _described(held: CachedContent) -> dict[str, Any]:
    def stamp(at: float) -> str:
        return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")

    described = {
        "name": held.name,
        "model": f"models/{held.target.model}",
        "createTime": stamp(held.created),
        "updateTime": stamp(held.updated),
        "expireTime": stamp(held.expires),
        "usageMetadata": {"totalTokenCount": held.tokens},
    }
    return described | ({"displayName": held.display_name} if held.display_name else {})
