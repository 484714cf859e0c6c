"""Manages the explicit caches of one client's sessions.

Laws: one cache per session, identified by its plan's key; if the key changes, the old cache is
deleted. A problem with a cache costs only money: the request is then sent in full. Caches are
created and renewed only within the budget of the session's payer.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import anyio
from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.providers.wires.gemini import TTL_S
from lamina.core.ports import CacheCharge, CachePayer
from lamina.errors import ProviderBusy, ProviderError

Now = Callable[[], float]
# A cache is renewed when less than this share of its lifetime is left.
_RENEW = 1 / 3
# A turn waits no longer than this for an operation that only saves money.
_WAIT_S = 10.0


class CacheCalls(Protocol):
    """Operations on caches over the network; failures are `ProviderError`s."""

    async def create(self, config: dict[str, Any]) -> tuple[str, int]:
        """Create a cache; return its name and token count."""
        ...

    async def renew(self, name: str) -> None: ...

    async def delete(self, name: str) -> None: ...


class ExplicitCache(Struct, frozen=True, kw_only=True):
    """The known state of a cache on the server."""

    name: str
    key: str
    tokens: int
    expires: float


class _SessionState:
    """A session's state: the last key requested, its cache, whether creating one was refused, and
    the charge for the cache with its start."""

    def __init__(self) -> None:
        self.key = ""
        self.is_refused = False
        self.cache: ExplicitCache | None = None
        self.charge: CacheCharge | None = None
        self.since = 0.0
        self.lock = anyio.Lock()


class ExplicitCaches:
    """Creates, renews and deletes caches."""

    def __init__(self, calls: CacheCalls, now: Now = time.monotonic) -> None:
        self._calls = calls
        self._now = now
        self._sessions: dict[str, _SessionState] = {}
        self._payers: dict[str, CachePayer] = {}

    def charge(self, session: str, payer: CachePayer) -> None:
        """Set who pays for a session's caches; without a payer, nothing is reserved."""
        self._payers[session] = payer

    async def use(self, plan: Mapping[str, Any], config: Mapping[str, Any]) -> ExplicitCache | None:
        """Return the cache for a plan, created from `config` if there is none; None means that
        everything must be sent. The first request with a key gets None: only a second one shows
        that more will follow."""
        state = self._sessions.setdefault(plan["session"], _SessionState())
        async with state.lock:
            if state.key != plan["key"]:
                await self._drop(state)
                state.key, state.is_refused = plan["key"], False
                return None
            if state.cache is not None:
                await self._keep_alive(state, plan)
            if state.cache is None and not state.is_refused:
                await self._make(state, plan, config)
            return state.cache

    def has(self, cache: ExplicitCache) -> bool:
        """Return whether `cache` is still its session's cache."""
        return any(
            state.cache is not None and state.cache.name == cache.name
            for state in self._sessions.values()
        )

    async def forget(self, cache: ExplicitCache) -> None:
        """Forget a cache that the server no longer has; the next request creates another."""
        for state in self._sessions.values():
            if state.cache is not None and state.cache.name == cache.name:
                await self._end_charge(state, cache)

    async def release_session(self, session: str) -> None:
        """Delete a session's cache: storage is paid for by the hour."""
        state = self._sessions.pop(session, None)
        if state is not None:
            async with state.lock:
                await self._drop(state)
        self._payers.pop(session, None)

    async def close(self) -> None:
        """Delete all caches."""
        for session in list(self._sessions):
            await self.release_session(session)

    async def _keep_alive(self, state: _SessionState, plan: Mapping[str, Any]) -> None:
        cache = state.cache
        assert cache is not None
        now = self._now()
        if cache.expires - now > _RENEW * TTL_S:
            return
        if cache.expires <= now:
            await self._end_charge(state, cache)
            return
        is_provided, charge = await self._reserve(plan["session"], cache.tokens, creates=False)
        if not is_provided:
            return  # it is used until it expires
        try:
            with anyio.fail_after(_WAIT_S):
                await self._calls.renew(cache.name)
        except (ProviderError, TimeoutError) as error:
            if charge is not None:
                await charge.fail(error)
            if not isinstance(error, ProviderBusy | TimeoutError):
                await self._end_charge(state, cache)  # it has disappeared early
            return
        await self._end_charge(state, cache)
        state.cache = replace(cache, expires=now + TTL_S)
        await self._begin_charge(state, charge, cache.tokens, now)

    async def _make(
        self, state: _SessionState, plan: Mapping[str, Any], config: Mapping[str, Any]
    ) -> None:
        """Create a cache of tools and system instruction. Cancellation is deferred: otherwise the
        cache would be paid for without being recorded."""
        front = {name: config[name] for name in ("system_instruction", "tools") if name in config}
        with anyio.CancelScope(shield=True):
            is_provided, charge = await self._reserve(
                plan["session"], plan.get("tokens", 0), creates=True
            )
            if not is_provided:
                return
            began = self._now()
            try:
                with anyio.fail_after(_WAIT_S):
                    name, tokens = await self._calls.create(
                        front | {"ttl": f"{TTL_S}s", "display_name": f"lamina-{state.key[:32]}"}
                    )
            except (ProviderError, TimeoutError) as error:
                if charge is not None:
                    await charge.fail(error)
                # A refused cache would be refused again.
                state.is_refused = not isinstance(error, ProviderBusy | TimeoutError)
                return
            state.cache = ExplicitCache(
                name=name, key=state.key, tokens=tokens, expires=began + TTL_S
            )
            await self._begin_charge(state, charge, tokens, began)

    async def _drop(self, state: _SessionState) -> None:
        cache = state.cache
        if cache is None:
            return
        ended = cache.expires
        if cache.expires > self._now():
            try:
                with anyio.fail_after(_WAIT_S, shield=True):
                    await self._calls.delete(cache.name)
                ended = self._now()
            except (ProviderError, TimeoutError):
                pass  # it expires within the hour
        await self._end_charge(state, cache, ended)

    # -- costs -----------------------------------------------------------------------------------

    async def _reserve(
        self, session: str, tokens: int, *, creates: bool
    ) -> tuple[bool, CacheCharge | None]:
        """Return whether a cache may be kept for its lifetime, and the charge for it."""
        if (payer := self._payers.get(session)) is None:
            return True, None
        charge = await payer.reserve_cache(tokens, TTL_S, creates=creates)
        return charge is not None, charge

    async def _begin_charge(
        self, state: _SessionState, charge: CacheCharge | None, tokens: int, since: float
    ) -> None:
        state.charge, state.since = charge, since
        if charge is not None:
            await charge.confirm(tokens)

    async def _end_charge(
        self, state: _SessionState, cache: ExplicitCache, ended: float | None = None
    ) -> None:
        """Charge the storage until now, when a cache is deleted or begins a new lifetime."""
        charge, state.charge, state.cache = state.charge, None, None
        if charge is not None:
            ended = self._now() if ended is None else ended
            with anyio.CancelScope(shield=True):
                await charge.end(max(0.0, min(ended, cache.expires) - state.since))
