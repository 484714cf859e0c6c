"""Routes for explicit caches: creating, showing, renewing and deleting them, and paying by the
hour.

Laws: a cache belongs to the key that created it; for every other key it does not exist. Its storage
is a single row in the report, whatever happens to it.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lamina.core.values.settings import Target
from lamina.core.values.usage import Usage
from lamina.emulators.cost_report import CostReport
from lamina.emulators.gemini.bodies import (
    CacheBody,
    CacheUpdateBody,
    GeminiRefusal,
    invalid_argument,
    owner_of,
    read_body,
    read_json_body,
)
from lamina.emulators.gemini.cache import CachedContent, CountTokens, GeminiCache
from lamina.emulators.gemini.checks import check_contents, check_front

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
        # The report row for a cache's storage.
        self._storage_rows: dict[str, tuple[int, CachedContent]] = {}

    def find(self, name: str, owner: str) -> CachedContent:
        """Return the cache with that name.

        Raises:
            GeminiRefusal: this caller has no cache with that name.
        """
        content = self._cache.find(name, owner, self._now())
        if content is None:
            raise GeminiRefusal(403, "PERMISSION_DENIED", CACHE_NOT_FOUND)
        return content

    async def create(self, request: Request, body: CacheBody, target: Target) -> Response:
        check_front(body)
        if body.contents:
            check_contents(body.contents, target.model)
        now = self._now()
        expires = _expiry(body.ttl, body.expire_time, now) or now + _TTL_S
        owner, count = owner_of(request), self._count(target)
        content = self._cache.create(body, target, owner, count, now, expires)
        self._report.add(now, target, Usage(input=content.tokens), missed=f"made {content.name}")
        self._storage_rows[content.name] = (len(self._report.rows), content)
        storage = f"storage of {content.name}: {content.tokens:,} tokens"
        self._report.add(now, target, Usage(), missed=storage)
        return JSONResponse(_describe(content))

    async def list(self, request: Request) -> Response:
        contents = self._cache.list_contents(owner_of(request), self._now())
        size = request.query_params.get("pageSize") or str(_PAGE)
        start = request.query_params.get("pageToken") or "0"
        if not start.isdigit() or not size.isdigit():
            raise invalid_argument("page_size must be a number, and page_token as it was given.")
        end = int(start) + int(size)
        page: dict[str, Any] = {}
        if page_contents := contents[int(start) : end]:
            page["cachedContents"] = [_describe(content) for content in page_contents]
        if end < len(contents):
            page["nextPageToken"] = str(end)
        return JSONResponse(page)

    async def get(self, request: Request) -> Response:
        return JSONResponse(_describe(self._find_named(request)))

    async def update(self, request: Request) -> Response:
        content = self._find_named(request)
        body = read_body(await read_json_body(request), CacheUpdateBody)
        now = self._now()
        expires = _expiry(body.ttl, body.expire_time, now)
        if expires is None:
            raise invalid_argument(
                "Only ttl and expire_time can be updated; one of them has to be set."
            )
        content = self._cache.renew(content, now, expires)
        self._storage_rows[content.name] = (self._storage_rows[content.name][0], content)
        return JSONResponse(_describe(content))

    async def delete(self, request: Request) -> Response:
        content = self._cache.delete(self._find_named(request), self._now())
        self._storage_rows[content.name] = (self._storage_rows[content.name][0], content)
        self.settle()
        return JSONResponse({})

    def settle(self) -> None:
        """Bring the storage fees in the report up to date."""
        rows = self._report.rows
        for index, content in self._storage_rows.values():
            rows[index] = replace(rows[index], cost=self._cache.storage_fee(content, self._now()))

    def _find_named(self, request: Request) -> CachedContent:
        return self.find(f"cachedContents/{request.path_params['id']}", owner_of(request))


def _expiry(ttl: str | None, expire_time: str | None, now: float) -> float | None:
    """Return when a cache expires, as requested."""
    if ttl is not None and expire_time is not None:
        raise invalid_argument("Only one of ttl and expire_time can be set.")
    if ttl is not None:
        if not (match := _DURATION.match(ttl)) or not float(match[1]):
            raise invalid_argument(
                f"Invalid value at 'ttl' (type.googleapis.com/google.protobuf.Duration), {ttl!r}"
            )
        return now + float(match[1])
    if expire_time is None:
        return None
    try:
        expires = datetime.fromisoformat(expire_time).timestamp()
    except ValueError as error:
        raise invalid_argument(f"Invalid value at 'expire_time', {expire_time!r}") from error
    if expires <= now:
        raise invalid_argument("expire_time must be in the future.")
    return expires


def _describe(content: CachedContent) -> dict[str, Any]:
    def stamp(at: float) -> str:
        return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")

    description = {
        "name": content.name,
        "model": f"models/{content.target.model}",
        "createTime": stamp(content.created),
        "updateTime": stamp(content.updated),
        "expireTime": stamp(content.expires),
        "usageMetadata": {"totalTokenCount": content.tokens},
    }
    return description | ({"displayName": content.display_name} if content.display_name else {})
