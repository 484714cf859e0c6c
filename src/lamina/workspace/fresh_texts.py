"""The texts of passages that were only just read, until they are searched.

Laws: a text is known by its digest, so whatever happens to its note, it is the right one or not
asked for. There is a limit to what is held: texts beyond it are read again. What was taken is no
longer held.
"""

from collections.abc import Mapping
from threading import Lock

# In characters: the passages of some 20,000 notes.
MOST_CHARACTERS = 32_000_000
# Texts that nobody took for so many nanoseconds are dropped.
LONGEST_HELD_NS = 60_000_000_000


class FreshTexts:
    """Safe to use from several threads."""

    def __init__(self, most: int = MOST_CHARACTERS) -> None:
        self._most = most
        self._size = 0
        self._texts: dict[bytes, str] = {}
        self._since = 0
        self._lock = Lock()

    def add(self, texts: Mapping[bytes, str], now: int) -> None:
        """Holds texts by their digests, if there is room for them."""
        size = sum(map(len, texts.values()))
        with self._lock:
            if self._size + size <= self._most:
                self._texts.update(texts)
                # What is held twice is counted twice: that only makes the room a little smaller.
                self._size += size
                self._since = now

    def take(self, digest: bytes) -> str | None:
        """A text that is held, for the last time."""
        with self._lock:
            text = self._texts.pop(digest, None)
            self._size = self._size - len(text) if text is not None and self._texts else 0
            return text

    def drop_old(self, now: int) -> None:
        """Drops what nobody took for a while."""
        with self._lock:
            if not 0 <= now - self._since < LONGEST_HELD_NS:
                self._texts.clear()
                self._size = 0

    def clear(self) -> None:
        with self._lock:
            self._texts.clear()
            self._size = 0
