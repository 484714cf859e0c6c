"""Prefixes that were sent lately: what another session, or another branch, may find in a cache."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

# Hexadecimal digits of a segment's digest that are kept: enough to tell two apart.
DIGEST_DIGITS = 16
# The span that rates are of, in seconds.
MINUTE = 60.0
# How many beginnings of one target are looked at: the latest.
MAX_PREFIXES = 64

# Who sent it: another session, or another branch of this one.
PrefixSource = Literal["session", "branch"]


class SentPrefix(Struct, frozen=True, kw_only=True):
    """The beginning of a request that was answered: the digests of its segments in wire order, and
    until when a provider keeps it."""

    target: str
    # What else a provider keeps its caches apart by: options and the wire, as one digest.
    form: str
    # What the request was routed by; empty where nothing is.
    key: str
    digests: tuple[str, ...]
    at: float
    expires: float
    source: PrefixSource = "session"
    # Where markers stood, as numbers of segments.
    marks: tuple[int, ...] = ()
    # Of another branch: the request that it went on from, and how many segments it left cached.
    base: str | None = None
    cached_run: int = 0

    @property
    def name(self) -> str:
        """What it is known by within its target: sent again, it takes its own place."""
        return "/".join((self.form, self.key, *self.digests[-1:], str(len(self.digests))))

    def agreeing(self, digests: tuple[str, ...]) -> int:
        """How many leading segments are the same as those with these digests."""
        count = 0
        for own, other in zip(self.digests, digests, strict=False):
            if own != other:
                break
            count += 1
        return count


class RecentPrefixes(Struct, frozen=True, kw_only=True):
    """What is known to have been sent to a target and may be in its cache; `rates` is how many
    requests each key had within the last minute."""

    prefixes: tuple[SentPrefix, ...] = ()
    rates: Mapping[str, int] = {}


NOTHING_RECENT = RecentPrefixes()
