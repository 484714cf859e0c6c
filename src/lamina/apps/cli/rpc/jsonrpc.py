"""JSON-RPC 2.0, one message a line: reading calls, writing answers. Knows no methods.

Laws: whatever comes in is answered with a proper error, never with silence or a crash, unless it is
a notification. A line is bounded. Batches are refused: calls on lines of their own do the same.
"""

import os
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import msgspec
from anyio.to_thread import run_sync
from msgspec import Struct

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
UNKNOWN_METHOD = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
# Errors of Lamina: which one is in `data.code`.
FAILED = -32000
MAX_LINE = 32 << 20

Id = str | int | float | None


class JsonRpcCall(Struct, frozen=True, kw_only=True):
    """What a client wants done. Without `wants_answer` it is a notification."""

    method: str
    # By name, so an object; which members it has is the method's.
    params: Any
    id: Id = None
    wants_answer: bool = True


class JsonRpcFault(Exception):
    """Why a call cannot be done, as it goes over the wire."""

    def __init__(self, code: int, message: str, *, data: object = None, id: Id = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.id = id


class OverlongLine(Struct, frozen=True):
    """In place of a line that was longer than any message may be."""


async def split_lines(
    chunks: AsyncIterator[bytes], most: int = MAX_LINE
) -> AsyncIterator[bytes | OverlongLine]:
    """Lines without their ends. What comes behind the last line end is no message: whoever wrote it
    was stopped in the middle."""
    parts: list[bytes] = []
    size = 0
    async for chunk in chunks:
        *line_ends, open_end = chunk.split(b"\n")
        for piece in line_ends:
            size += len(piece)
            yield OverlongLine() if size > most else b"".join([*parts, piece])
            parts, size = [], 0
        size += len(open_end)
        # What is too long is counted, not kept.
        if size > most:
            parts.clear()
        else:
            parts.append(open_end)


def read_call(line: bytes | OverlongLine) -> JsonRpcCall:
    """The call on a line.

    Raises:
        JsonRpcFault: there is none.
    """
    if isinstance(line, OverlongLine):
        raise JsonRpcFault(PARSE_ERROR, f"a message is longer than {MAX_LINE >> 20} MB")
    try:
        message = msgspec.json.decode(line)
    except RecursionError:
        raise JsonRpcFault(PARSE_ERROR, "not JSON that can be read: nested too deep") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise JsonRpcFault(PARSE_ERROR, f"not JSON: {error}") from error
    if isinstance(message, list):
        raise JsonRpcFault(INVALID_REQUEST, "batches are not served: send one message a line")
    if not isinstance(message, dict):
        raise JsonRpcFault(INVALID_REQUEST, "a message is a JSON object")
    return _check(message)


def _check(message: dict[str, Any]) -> JsonRpcCall:
    number = message.get("id")
    if isinstance(number, bool) or not isinstance(number, str | int | float | None):
        raise JsonRpcFault(INVALID_REQUEST, "'id' has to be a string, a number or null")
    if message.get("jsonrpc") != "2.0":
        raise JsonRpcFault(INVALID_REQUEST, "'jsonrpc' has to be \"2.0\"", id=number)
    method = message.get("method")
    if not isinstance(method, str):
        raise JsonRpcFault(INVALID_REQUEST, "'method' has to be a string", id=number)
    params = message.get("params", {})
    return JsonRpcCall(method=method, params=params, id=number, wants_answer="id" in message)


class JsonRpcPeer:
    """The side that reads what we write. Writing waits until it does: nothing is left out, nothing
    piles up. If it is gone, `on_gone` is called and the rest goes nowhere."""

    def __init__(self, descriptor: int, on_gone: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._on_gone = on_gone
        self._lock = anyio.Lock()
        self._is_gone = False

    async def notify(self, method: str, params: object) -> None:
        await self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def answer(self, call: JsonRpcCall, result: object) -> None:
        if call.wants_answer:
            await self._send({"jsonrpc": "2.0", "id": call.id, "result": result})

    async def refuse(self, fault: JsonRpcFault) -> None:
        error: dict[str, object] = {"code": fault.code, "message": fault.message}
        if fault.data is not None:
            error["data"] = fault.data
        await self._send({"jsonrpc": "2.0", "id": fault.id, "error": error})

    async def _send(self, message: dict[str, object]) -> None:
        line = msgspec.json.encode(message) + b"\n"
        # A line is written whole or not at all, even if the turn it is about is stopped.
        with anyio.CancelScope(shield=True):
            async with self._lock:
                if self._is_gone:
                    return
                try:
                    await run_sync(_write_all, self._descriptor, line)
                except OSError:
                    self._is_gone = True
                    self._on_gone()


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
