"""The terms of passages that were only just read, until they are searched.

Laws: terms are known by the digest of their text, so whatever happens to the note, they are the
right ones or not asked for. There is a limit to what is held: beyond it, notes are read again. What
was taken is no longer held.
"""

from collections.abc import Iterable, Sequence
from threading import Lock

# In bytes: the passages of some 30,000 notes.
MOST_BYTES = 32_000_000
# Terms that nobody took for so many nanoseconds are dropped.
LONGEST_HELD_NS = 60_000_000_000


class FreshTerms:
    """Safe to use from several threads."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._size = 0
        self._terms: dict[bytes, bytes] = {}
        self._since = 0
        self._lock = Lock()

    def add(self, digests: Iterable[bytes], terms: Sequence[bytes], now: int) -> None:
        """Holds terms by the digests of their texts, if there is room for them."""
        size = sum(map(len, terms))
        with self._lock:
            if self._size + size <= self._most:
                self._terms.update(zip(digests, terms, strict=True))
                # What is held twice is counted twice: that only makes the room a little smaller.
                self._size += size
                self._since = now

    def take(self, digests: Iterable[bytes]) -> dict[bytes, bytes]:
        """Those that are held, for the last time."""
        with self._lock:
            held = self._terms
            taken = {digest: held.pop(digest) for digest in digests if digest in held}
            self._size = self._size - sum(map(len, taken.values())) if held else 0
            return taken

    def drop_old(self, now: int) -> None:
        """Drops what nobody took for a while."""
        with self._lock:
            if not 0 <= now - self._since < LONGEST_HELD_NS:
                self._terms.clear()
                self._size = 0

    def clear(self) -> None:
        with self._lock:
            self._terms.clear()
            self._size = 0
