"""Defines recently sent prefixes, which other sessions or branches may find in a cache."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

# The number of stored hexadecimal digits per segment digest: enough to tell two apart.
DIGEST_DIGITS = 16
# The time span of rates, in seconds.
MINUTE = 60.0
# The maximum number of prefixes considered per target: the latest ones.
MAX_PREFIXES = 64

# The sender: another session, or another branch of this one.
PrefixSource = Literal["session", "branch"]


class SentPrefix(Struct, frozen=True, kw_only=True):
    """The beginning of an answered request: the digests of its segments in wire order, and until
    when a provider keeps it."""

    target: str
    # One digest of everything else that separates a provider's caches: options and the wire.
    form: str
    # The key it was routed by; empty if there is none.
    key: str
    digests: tuple[str, ...]
    at: float
    expires: float
    source: PrefixSource = "session"
    # The positions of cache markers, as numbers of segments.
    marks: tuple[int, ...] = ()
    # For another branch: the request that it continued, and the number of segments it left cached.
    base: str | None = None
    cached_run: int = 0

    @property
    def name(self) -> str:
        """Its name within its target; sending it again replaces the earlier record."""
        return "/".join((self.form, self.key, *self.digests[-1:], str(len(self.digests))))

    def agreeing(self, digests: tuple[str, ...]) -> int:
        """Return how many leading segments agree with `digests`."""
        count = 0
        for own, other in zip(self.digests, digests, strict=False):
            if own != other:
                break
            count += 1
        return count


class RecentPrefixes(Struct, frozen=True, kw_only=True):
    """Prefixes known to have been sent to a target, which may be in its cache; `rates` counts the
    requests per key within the last minute."""

    prefixes: tuple[SentPrefix, ...] = ()
    rates: Mapping[str, int] = {}


NOTHING_RECENT = RecentPrefixes()
