"""Records money spent in an account file shared by many processes.

Laws: each act is one line, appended in one write and never rewritten; a writer holds the file's
lock and has read everything before its line, so that checking a limit and reserving are atomic.
Reservations are on disk before anything is sent. A truncated line is kept, is reported, and affects
no other. Totals are cached beside the file and may be lost.
"""

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from secrets import token_hex
from typing import Literal, TypeVar
from zlib import crc32

import anyio
import anyio.to_thread
import msgspec
from msgspec import Struct

from lamina.adapters.files.durable_writes import sync_file, sync_folder, write_all
from lamina.adapters.files.file_place import read_at
from lamina.adapters.files.locks import lock_file
from lamina.adapters.stores.session_file import is_at, read_bytes
from lamina.core.ledger.spend_book import (
    BookSnapshot,
    SpendBook,
    SpendLine,
    decode_line,
    encode_line,
    list_entries,
)
from lamina.core.ports import SpendAccount, SpendLedger
from lamina.core.values.damage import Damage
from lamina.core.values.spend_limits import (
    ReachedLimit,
    Reservation,
    Settlement,
    SpendLimits,
    SpendRequest,
    SpendStanding,
)
from lamina.errors import SpendLedgerError

T = TypeVar("T")
POLL_S = 0.003
# Totals are rewritten after this many new bytes.
TOTALS_BYTES = 1 << 16
# The last bytes covered by the totals, this many, must be unchanged.
_PROOF_BYTES = 256
# Up to this many new bytes from other processes are read without a thread.
AT_ONCE_BYTES = 1 << 14
_WRITING = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder


class _Totals(Struct, frozen=True, kw_only=True):
    """The totals of the lines up to `size`; `proof` is the checksum of the last bytes of these
    lines."""

    size: int
    proof: int
    book: BookSnapshot


class SpendFile(SpendLedger):
    """The account in the file `path`. A day begins at midnight in UTC or in `zone`; the zone
    belongs to the account and is the same for everyone who shares it. If the file is in use, a call
    waits up to `wait` seconds."""

    def __init__(
        self, path: str | os.PathLike[str], *, zone: tzinfo | None = None, wait: float = 10.0
    ) -> None:
        self.path = Path(path)
        self._zone = zone or UTC
        self._wait = wait
        # For threads in this process; processes use the file's lock.
        self._turnstile = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._book = SpendBook()
        self._covered = self._kept_totals = 0
        self._identity: tuple[int, int] | None = None
        self._ends_line = True

    # -- the port --------------------------------------------------------------------------------

    def day_of(self, at: float) -> str:
        return datetime.fromtimestamp(at, self._zone).date().isoformat()

    async def reserve(
        self, request: SpendRequest, limits: SpendLimits
    ) -> Reservation | ReachedLimit:
        return await self._run(lambda: self._reserve(request, limits))

    async def settle(self, settlement: Settlement) -> None:
        # The write is not synced, so starting a thread would take longer than the write itself.
        if not self._settle_at_once(settlement):
            await self._run(lambda: self._settle(settlement))

    async def free(
        self, reservations: Collection[str], at: float, by: Literal["sender", "person"]
    ) -> Sequence[str]:
        return await self._run(lambda: self._free(reservations, at, by))

    async def standing(self, session: str, day: str) -> SpendStanding:
        return await self._run(lambda: self._standing(session, day))

    async def read(self) -> SpendAccount:
        return await self._run(self._read)

    async def _run(self, act: Callable[[], T]) -> T:
        # The file and its cached state must agree, so nothing is cancelled in between.
        with anyio.CancelScope(shield=True):
            result = await anyio.to_thread.run_sync(act)
        return result  # noqa: RET504 - for type checkers the block might end early

    # -- acts, in a worker thread ----------------------------------------------------------------

    def _reserve(self, request: SpendRequest, limits: SpendLimits) -> Reservation | ReachedLimit:
        with self._locked() as handle:
            if reached := self._book.find_reached(request, limits):
                return reached
            turn = self._turn_of(request.session, request.turn)
            line = SpendLine(
                at=request.at, act="reserve", id=token_hex(6), day=request.day,
                session=request.session, target=request.target, turn=turn,
                purpose=request.purpose, low=request.low, high=request.high,
                zone=str(self._zone),
            )  # fmt: skip
            self._append(handle, [line], durable=True)
            return Reservation(id=line.id, request=request)

    def _settle(self, settlement: Settlement) -> None:
        with self._locked() as handle:
            self._write_settlement(handle, settlement)

    def _settle_at_once(self, settlement: Settlement) -> bool:
        """Settle without waiting for others; return False if this is impossible."""
        if self._identity is None or not self._turnstile.acquire(blocking=False):
            return False
        try:
            handle = os.open(self.path, _WRITING)
            try:
                status = os.fstat(handle)
                is_known = (status.st_dev, status.st_ino) == self._identity
                if not is_known or not 0 <= status.st_size - self._covered <= AT_ONCE_BYTES:
                    return False
                if not lock_file(handle) or not is_at(handle, self.path):
                    return False
                self._catch_up(handle)
                self._require_zone()
                self._write_settlement(handle, settlement)
                return True
            finally:
                os.close(handle)
        except OSError:
            # The attempt that waits reports the error.
            self._forget()
            return False
        finally:
            self._turnstile.release()

    def _write_settlement(self, handle: int | None, settlement: Settlement) -> None:
        reserved = self._book.open.get(settlement.reservation)
        whose = settlement.session, settlement.turn
        line = SpendLine(
            at=settlement.at,
            act="settle",
            id=settlement.reservation or token_hex(6),
            # On the day it was reserved for, so that no day exceeds its limit.
            day=reserved.day if reserved else settlement.day,
            session=settlement.session,
            target=settlement.target,
            turn=reserved.turn if reserved else self._turn_of(*whose),
            purpose=settlement.purpose,
            high=settlement.high,
            cost=settlement.cost,
            usage=settlement.usage,
            zone=str(self._zone),
        )
        # Not synced: if a power failure loses it, the reservation still counts.
        self._append(handle, [line], durable=False)

    def _free(
        self, reservations: Collection[str], at: float, by: Literal["sender", "person"]
    ) -> Sequence[str]:
        with self._locked() as handle:
            ids = tuple(name for name in reservations if name in self._book.open)
            act: Literal["release", "clear"] = "release" if by == "sender" else "clear"
            lines = [SpendLine(at=at, act=act, id=name) for name in ids]
            if lines:
                self._append(handle, lines, durable=by == "person")
            return ids

    def _standing(self, session: str, day: str) -> SpendStanding:
        with self._locked(writes=False):
            return self._book.standing(session, day)

    def _read(self) -> SpendAccount:
        with self._locked(writes=False) as handle:
            data = read_bytes(handle) if handle is not None else b""
        lines: list[SpendLine] = []
        damage: list[Damage] = []
        offset = 0
        rows = data.split(b"\n")
        if not rows[-1]:
            rows.pop()
        for number, row in enumerate(rows, 1):
            line = decode_line(row, number, offset)
            offset += len(row) + 1
            if isinstance(line, Damage):
                damage.append(line)
            else:
                lines.append(line)
        return SpendAccount(entries=list_entries(lines), damage=damage)

    def _turn_of(self, session: str, turn: str | None) -> str:
        return self._book.turn_of(session) if turn is None else turn

    # -- the file --------------------------------------------------------------------------------

    @contextmanager
    def _locked(self, *, writes: bool = True) -> Iterator[int | None]:
        """Open and lock the file, read it to its end, and yield its handle; None if it is only to
        be read and does not exist."""
        with self._turnstile:
            try:
                handle = self._open(writes=writes)
                if handle is None:
                    self._forget()
                    yield None
                    return
                try:
                    self._catch_up(handle)
                    self._require_zone()
                    yield handle
                finally:
                    os.close(handle)
            except OSError as error:
                self._forget()
                verb, cure = ("written", "make room, or make it writable") if writes else (
                    "read", "make it readable"
                )  # fmt: skip
                raise SpendLedgerError(
                    f"the spending account {str(self.path)!r} cannot be {verb}: "
                    f"{error.strerror or error}; {cure}"
                ) from error

    def _open(self, *, writes: bool) -> int | None:
        flags = _WRITING | os.O_CREAT if writes else os.O_RDONLY
        deadline = time.monotonic() + self._wait
        if writes and not self.path.parent.is_dir():
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        while True:
            try:
                handle = os.open(self.path, flags, 0o600)
            except FileNotFoundError:
                if writes:
                    raise
                return None
            try:
                while not lock_file(handle):
                    if time.monotonic() > deadline:
                        raise SpendLedgerError(
                            f"the spending account {str(self.path)!r} has been in use by another "
                            f"process for more than {self._wait:g} s; end that process and try "
                            f"again"
                        )
                    time.sleep(POLL_S)
                if is_at(handle, self.path):
                    return handle
            except BaseException:
                os.close(handle)
                raise
            # The file was replaced while we waited for the lock.
            os.close(handle)

    def _catch_up(self, handle: int | None) -> None:
        """Read what other processes have written since last time."""
        assert handle is not None
        status = os.fstat(handle)
        identity, size = (status.st_dev, status.st_ino), status.st_size
        if identity != self._identity or size < self._covered:
            self._forget()
            self._identity = identity
            self._load_totals(handle, size)
        if size == self._covered:
            return
        data = _read_from(handle, self._covered, size)
        if not self._ends_line:
            data = data.removeprefix(b"\n")
        # No process is writing now, so an unterminated last line was cut off.
        self._ends_line = data.endswith(b"\n")
        rows = data.split(b"\n")
        if self._ends_line:
            rows.pop()
        for row in rows:
            self._book.take(decode_line(row))
        self._covered = size

    def _require_zone(self) -> None:
        if self._book.zone not in ("", str(self._zone)):
            raise SpendLedgerError(
                f"the spending account {str(self.path)!r} counts days in zone {self._book.zone}, "
                f"not {self._zone}: open it with zone {self._book.zone}, or use a separate account"
            )

    def _append(self, handle: int | None, lines: Sequence[SpendLine], *, durable: bool) -> None:
        assert handle is not None
        is_new = self._covered == 0
        data = b"".join(map(encode_line, lines))
        try:
            # A truncated line is kept on a line of its own.
            write_all(handle, data if self._ends_line else b"\n" + data)
            if durable:
                sync_file(handle)
                if is_new:
                    sync_folder(self.path.parent)
        except OSError:
            # Any part that was written is read next time.
            self._forget()
            raise
        for line in lines:
            self._book.take(line)
        self._covered = os.fstat(handle).st_size
        self._ends_line = True
        if self._covered - self._kept_totals > TOTALS_BYTES:
            self._keep_totals(handle)

    # -- totals beside it ------------------------------------------------------------------------

    @property
    def totals_path(self) -> Path:
        """Return the path of the cached totals, which save reading the whole file on opening."""
        return self.path.with_suffix(".totals")

    def _load_totals(self, handle: int, size: int) -> None:
        try:
            data = self.totals_path.read_bytes()
        except OSError:
            return
        try:
            if crc32(data[4:]).to_bytes(4, "big") != data[:4]:
                return
            totals = _decoder(_Totals).decode(data[4:])
        except msgspec.MsgspecError:
            return
        if totals.size > size or totals.proof != _proof(handle, totals.size):
            return
        self._book = SpendBook(totals.book)
        self._covered = self._kept_totals = totals.size

    def _keep_totals(self, handle: int) -> None:
        size = self._covered
        totals = _Totals(size=size, proof=_proof(handle, size), book=self._book.snapshot())
        body = _encoder.encode(totals)
        draft = self.totals_path.with_name(f"{self.totals_path.name}.{os.getpid()}.part")
        # Losing them loses nothing.
        with suppress(OSError):
            draft.write_bytes(crc32(body).to_bytes(4, "big") + body)
            os.replace(draft, self.totals_path)
            self._kept_totals = size


def _read_from(handle: int, start: int, end: int) -> bytes:
    chunks = []
    while start < end:
        chunk = read_at(handle, end - start, start)
        if not chunk:
            break
        chunks.append(chunk)
        start += len(chunk)
    return b"".join(chunks)


def _proof(handle: int, size: int) -> int:
    start = max(0, size - _PROOF_BYTES)
    return crc32(_read_from(handle, start, size))
