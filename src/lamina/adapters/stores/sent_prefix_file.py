"""Records recently sent prefixes in a file shared by all processes on a machine.

Laws: the file is a cache (`files/cache_file.py`), and losing it loses only predictions. It contains
digests and times, but no text. It never delays a request for long or makes it fail.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import TypeVar

import msgspec
from anyio.to_thread import run_sync

from lamina.adapters.files.cache_file import (
    CACHE_ERRORS,
    CacheFile,
    CacheFileKind,
    is_busy,
    transaction,
)
from lamina.core.values.sent_prefix import MAX_PREFIXES, MINUTE, RecentPrefixes, SentPrefix

T = TypeVar("T")

# Seconds that a request waits for another process to release the file.
PATIENCE = 0.25

SENT_PREFIXES = CacheFileKind(
    name="record of sent prefixes",
    with_article="a record of sent prefixes",
    application=0x4C414D50,  # "LAMP"
    version=1,
    schema="""
CREATE TABLE IF NOT EXISTS prefixes (
  target TEXT NOT NULL, name TEXT NOT NULL, at REAL NOT NULL, expires REAL NOT NULL,
  prefix BLOB NOT NULL, PRIMARY KEY (target, name)
);
CREATE TABLE IF NOT EXISTS requests (key TEXT NOT NULL, at REAL NOT NULL);
CREATE INDEX IF NOT EXISTS request_times ON requests (at)
""",
    answers=("SELECT target, name, at, expires, prefix FROM prefixes LIMIT 1",
             "SELECT key, at FROM requests LIMIT 1"),
)  # fmt: skip

_DECODER = msgspec.msgpack.Decoder(SentPrefix)


class SentPrefixFile:
    """A record of sent prefixes, safe to use from several threads and processes on the same
    path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._cache = CacheFile(path, SENT_PREFIXES, patience=PATIENCE)
        # Once the disk has failed, it is not retried.
        self._usable = True

    async def recent(self, target: str, now: float) -> RecentPrefixes:
        if not self.path.exists():
            return RecentPrefixes()

        def read(file: sqlite3.Connection) -> RecentPrefixes:
            rows = file.execute(
                "SELECT prefix FROM prefixes WHERE target = ? AND expires >= ? "
                "ORDER BY at DESC LIMIT ?",
                (target, now, MAX_PREFIXES),
            ).fetchall()
            counts = file.execute(
                "SELECT key, count(*) FROM requests WHERE at > ? AND at <= ? GROUP BY key",
                (now - MINUTE, now),
            ).fetchall()
            return RecentPrefixes(
                prefixes=tuple(_DECODER.decode(row[0]) for row in rows),
                rates={key.decode(): number for key, number in counts},
            )

        return await run_sync(self._attempt, read, RecentPrefixes())

    async def count(self, key: str, at: float) -> None:
        def write(file: sqlite3.Connection) -> None:
            with transaction(file):
                file.execute("DELETE FROM requests WHERE at <= ?", (at - MINUTE,))
                file.execute("INSERT INTO requests (key, at) VALUES (?, ?)", (key, at))

        await run_sync(self._attempt, write, None)

    async def keep(self, prefix: SentPrefix) -> None:
        row = (
            prefix.target, prefix.name, prefix.at, prefix.expires,
            msgspec.msgpack.encode(prefix),
        )  # fmt: skip

        def write(file: sqlite3.Connection) -> None:
            with transaction(file):
                file.execute("DELETE FROM prefixes WHERE expires < ?", (prefix.at,))
                file.execute(
                    "INSERT INTO prefixes (target, name, at, expires, prefix) "
                    "VALUES (?, ?, ?, ?, ?) ON CONFLICT (target, name) DO UPDATE SET "
                    "at = excluded.at, expires = excluded.expires, prefix = excluded.prefix "
                    "WHERE excluded.at >= at",
                    row,
                )

        await run_sync(self._attempt, write, None)

    async def aclose(self) -> None:
        with self._lock:
            self._cache.close()

    def _attempt(self, act: Callable[[sqlite3.Connection], T], default: T) -> T:
        with self._lock:
            if not self._usable:
                return default
            try:
                self._cache.close_if_deleted()
                return self._cache.attempt(act, lambda _: None)
            except (*CACHE_ERRORS, msgspec.MsgspecError) as error:
                self._cache.close()
                # If another process holds the file now, it may be free next time.
                self._usable = is_busy(error)
                return default
