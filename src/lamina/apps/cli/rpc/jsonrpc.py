"""JSON-RPC 2.0, one message per line: reads calls and writes answers. Independent of the methods.

Laws: all invalid input is answered with a proper error, never with silence or a crash, unless it is
a notification. A line's length is limited. Batches are refused: separate lines do the same.
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
# Errors of Lamina; `data.code` says which one.
FAILED = -32000
MAX_LINE = 32 << 20

Id = str | int | float | None


class JsonRpcCall(Struct, frozen=True, kw_only=True):
    """A client's call. Without `wants_answer` it is a notification."""

    method: str
    # An object of named parameters, which the method defines.
    params: Any
    id: Id = None
    wants_answer: bool = True


class JsonRpcFault(Exception):
    """Why a call failed, in the form sent over the wire."""

    def __init__(self, code: int, message: str, *, data: object = None, id: Id = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.id = id


class OverlongLine(Struct, frozen=True):
    """Stands in for a line longer than any message may be."""


async def split_lines(
    chunks: AsyncIterator[bytes], most: int = MAX_LINE
) -> AsyncIterator[bytes | OverlongLine]:
    """Yield lines without their ends. Text after the last line end is not a message: its writer was
    stopped in the middle."""
    parts: list[bytes] = []
    size = 0
    async for chunk in chunks:
        *line_ends, open_end = chunk.split(b"\n")
        for piece in line_ends:
            size += len(piece)
            yield OverlongLine() if size > most else b"".join([*parts, piece])
            parts, size = [], 0
        size += len(open_end)
        # Overlong lines are counted, not kept.
        if size > most:
            parts.clear()
        else:
            parts.append(open_end)


def read_call(line: bytes | OverlongLine) -> JsonRpcCall:
    """Return the call on a line.

    Raises:
        JsonRpcFault: the line is not a call.
    """
    if isinstance(line, OverlongLine):
        raise JsonRpcFault(PARSE_ERROR, f"a message is longer than {MAX_LINE >> 20} MB")
    try:
        message = msgspec.json.decode(line)
    except RecursionError:
        raise JsonRpcFault(PARSE_ERROR, "the JSON is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise JsonRpcFault(PARSE_ERROR, f"not JSON: {error}") from error
    if isinstance(message, list):
        raise JsonRpcFault(INVALID_REQUEST, "batches are not supported: send one message per line")
    if not isinstance(message, dict):
        raise JsonRpcFault(INVALID_REQUEST, "a message must be a JSON object")
    return _check(message)


def _check(message: dict[str, Any]) -> JsonRpcCall:
    number = message.get("id")
    if isinstance(number, bool) or not isinstance(number, str | int | float | None):
        raise JsonRpcFault(INVALID_REQUEST, "'id' must be a string, a number or null")
    if message.get("jsonrpc") != "2.0":
        raise JsonRpcFault(INVALID_REQUEST, "'jsonrpc' must be \"2.0\"", id=number)
    method = message.get("method")
    if not isinstance(method, str):
        raise JsonRpcFault(INVALID_REQUEST, "'method' must be a string", id=number)
    params = message.get("params", {})
    return JsonRpcCall(method=method, params=params, id=number, wants_answer="id" in message)


class JsonRpcPeer:
    """The peer that reads our output. Writing waits for it: nothing is left out, nothing piles up.
    If it is gone, `on_gone` is called and further output is dropped."""

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
        # A line is written completely or not at all, even if its turn is stopped.
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
