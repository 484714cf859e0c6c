"""Prefixes that were sent lately, in memory."""

from lamina.core.values.sent_prefix import MINUTE, MOST_PREFIXES, RecentPrefixes, SentPrefix


class MemorySentPrefixes:
    """For the sessions of one process."""

    def __init__(self) -> None:
        self._prefixes: dict[tuple[str, str], SentPrefix] = {}
        self._requests: list[tuple[str, float]] = []

    async def recent(self, target: str, now: float) -> RecentPrefixes:
        alive = [
            prefix
            for prefix in self._prefixes.values()
            if prefix.target == target and prefix.expires >= now
        ]
        alive.sort(key=lambda prefix: -prefix.at)
        rates: dict[str, int] = {}
        for key, at in self._requests:
            if now - MINUTE < at <= now:
                rates[key] = rates.get(key, 0) + 1
        return RecentPrefixes(prefixes=tuple(alive[:MOST_PREFIXES]), rates=rates)

    async def count(self, key: str, at: float) -> None:
        self._requests = [row for row in self._requests if row[1] > at - MINUTE]
        self._requests.append((key, at))

    async def keep(self, prefix: SentPrefix) -> None:
        name = (prefix.target, prefix.name)
        known = self._prefixes.get(name)
        if known is None or known.at <= prefix.at:
            self._prefixes[name] = prefix
        stale = [name for name, old in self._prefixes.items() if old.expires < prefix.at]
        for name in stale:
            del self._prefixes[name]

    async def aclose(self) -> None:
        """There is nothing to let go of."""
