"""Where sessions remember the beginnings of requests that were sent lately.

Law: losing it only loses predictions, and that sessions which begin alike are routed alike.
"""

from typing import Protocol

from lamina.core.values.sent_prefix import RecentPrefixes, SentPrefix


class SentPrefixes(Protocol):
    """Shared by the sessions of a machine. It never fails a request: what cannot be read or written
    is as if it had not been sent."""

    async def recent(self, target: str, now: float) -> RecentPrefixes:
        """What was sent to a target and may be in its cache, the latest first, and how many
        requests each key had within the last minute."""
        ...

    async def count(self, key: str, at: float) -> None:
        """Counts a request of a key."""
        ...

    async def keep(self, prefix: SentPrefix) -> None:
        """Remembers a beginning until it expires; once more if it is known already."""
        ...

    async def aclose(self) -> None:
        """Lets go of what is open."""
        ...
