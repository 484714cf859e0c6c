"""The explicit caches of one client's sessions.

Laws: one cache per session, known by the key of its plan; with another key the old one is deleted.
Whatever goes wrong with a cache costs nothing but money: the request is then sent in full.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import anyio
from msgspec import Struct
from msgspec.structs import replace

from lamina.errors import ProviderBusy, ProviderError
from lamina.providers.wires.gemini_cache_plan import TTL_S

Now = Callable[[], float]
# A cache is renewed when less than this share of its life is left.
_RENEW = 1 / 3
# A turn does not wait longer than this for something that only saves money.
_WAIT_S = 10.0


class CacheCalls(Protocol):
    """Caches over the network; failures are `ProviderError`s."""

    async def create(self, config: dict[str, Any]) -> tuple[str, int]:
        """Creates a cache; gives its name and its tokens."""
        ...

    async def renew(self, name: str) -> None: ...

    async def delete(self, name: str) -> None: ...


class ExplicitCache(Struct, frozen=True, kw_only=True):
    """A cache on the server, as far as is known."""

    name: str
    key: str
    tokens: int
    expires: float


class _SessionState:
    """A session: the key it asked for last, its cache, and whether creating one was refused."""

    def __init__(self) -> None:
        self.key = ""
        self.is_refused = False
        self.cache: ExplicitCache | None = None
        self.lock = anyio.Lock()


class ExplicitCaches:
    """Creates, renews and deletes caches."""

    def __init__(self, calls: CacheCalls, now: Now = time.monotonic) -> None:
        self._calls = calls
        self._now = now
        self._sessions: dict[str, _SessionState] = {}

    async def use(self, plan: Mapping[str, Any], config: Mapping[str, Any]) -> ExplicitCache | None:
        """The cache for a plan, created from `config` if there is none; None: send everything. The
        first request with a key gets none: only the second one shows that there will be more."""
        state = self._sessions.setdefault(plan["session"], _SessionState())
        async with state.lock:
            if state.key != plan["key"]:
                await self._drop(state)
                state.key, state.is_refused = plan["key"], False
                return None
            if state.cache is not None:
                await self._keep_alive(state)
            if state.cache is None and not state.is_refused:
                await self._make(state, config)
            return state.cache

    def has(self, cache: ExplicitCache) -> bool:
        """Whether it is still its session's cache."""
        return any(
            state.cache is not None and state.cache.name == cache.name
            for state in self._sessions.values()
        )

    def forget(self, cache: ExplicitCache) -> None:
        """The server no longer has it; the next request creates another."""
        for state in self._sessions.values():
            if state.cache is not None and state.cache.name == cache.name:
                state.cache = None

    async def release_session(self, session: str) -> None:
        """Deletes the cache of a session: storage is paid for by the hour."""
        state = self._sessions.pop(session, None)
        if state is not None:
            async with state.lock:
                await self._drop(state)

    async def close(self) -> None:
        """Deletes all caches."""
        for session in list(self._sessions):
            await self.release_session(session)

    async def _keep_alive(self, state: _SessionState) -> None:
        cache = state.cache
        assert cache is not None
        seconds_left = cache.expires - self._now()
        if seconds_left > _RENEW * TTL_S:
            return
        state.cache = None
        if seconds_left <= 0:
            return
        expires = self._now() + TTL_S
        try:
            with anyio.fail_after(_WAIT_S):
                await self._calls.renew(cache.name)
            state.cache = replace(cache, expires=expires)
        except (ProviderBusy, TimeoutError):
            state.cache = cache  # it still exists
        except ProviderError:
            pass  # it has disappeared early

    async def _make(self, state: _SessionState, config: Mapping[str, Any]) -> None:
        """Creates a cache of tools and system instruction. It cannot be cancelled in the middle:
        the cache would be paid for without being known."""
        front = {name: config[name] for name in ("system_instruction", "tools") if name in config}
        expires = self._now() + TTL_S
        try:
            with anyio.fail_after(_WAIT_S, shield=True):
                name, tokens = await self._calls.create(
                    front | {"ttl": f"{TTL_S}s", "display_name": f"lamina-{state.key[:32]}"}
                )
        except (ProviderBusy, TimeoutError):
            return
        except ProviderError:
            state.is_refused = True  # and would be refused again
            return
        state.cache = ExplicitCache(name=name, key=state.key, tokens=tokens, expires=expires)

    async def _drop(self, state: _SessionState) -> None:
        cache, state.cache = state.cache, None
        if cache is None or cache.expires <= self._now():
            return
        try:
            with anyio.fail_after(_WAIT_S, shield=True):
                await self._calls.delete(cache.name)
        except (ProviderError, TimeoutError):
            pass  # it expires within the hour
