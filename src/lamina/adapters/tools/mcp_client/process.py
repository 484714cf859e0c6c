"""Runs an MCP server as a process: exchanges JSON lines, and keeps its stderr off the terminal.

Law: at the end, the process and everything it started are gone, whatever it does: its input is
closed, then it gets SIGTERM, then it is killed. Output that is not a message is ignored; an
oversized message ends the connection before it fills the memory.
"""

import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc
import anyio.lowlevel
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from lamina.adapters.tools.mcp_client.config import ServerConfig

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
_KEPT_WORDS = 4096
_LONGEST_WORD = 300
_FLUSH_SECONDS = 0.5
_POLL_SECONDS = 0.01

_GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError)


class ServerProcess:
    """A server's process. `connect` is a transport for the MCP client."""

    # A process has no session to lose.
    forgot_us = False

    def __init__(self, config: ServerConfig, grace: float) -> None:
        self._config = config
        # Seconds between closing stdin, SIGTERM and killing.
        self._grace = grace
        self._words = b""
        self._process: anyio.abc.Process | None = None
        # The rule that the process broke.
        self.fault = ""

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def last_words(self) -> str:
        """Return the exit status, if the process ended, and its last line on stderr."""
        lines = self._words.decode("utf-8", "replace").strip().split("\n")
        words = [self.fault] if self.fault else []
        code = self._process.returncode if self._process else None
        if code is not None and not self.fault:
            words.append(f"signal {-code}" if code < 0 else f"exit code {code}")
        if lines[-1]:
            words.append(f"its last words: {lines[-1].strip()[-_LONGEST_WORD:]!r}")
        return ", ".join(words)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator["TransportStreams"]:
        """Start the process, and shut it down when the block exits.

        Raises:
            OSError: the command does not exist or cannot be run.
        """
        from mcp.client.stdio import get_default_environment

        # Cancelling between the start and the task group would lose the process.
        with anyio.CancelScope(shield=True):
            process = await anyio.open_process(
                [_executable(self._config.command), *self._config.args],
                env=get_default_environment() | self._config.env,
                cwd=self._config.cwd,
                start_new_session=True,
            )
        self._process = process
        incoming, inbox = anyio.create_memory_object_stream[Any](0)
        outbox, outgoing = anyio.create_memory_object_stream[Any](0)
        is_flushed = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen, process, incoming)
            tasks.start_soon(self._speak, process, outgoing, incoming, is_flushed)
            tasks.start_soon(self._keep_words, process)
            try:
                yield inbox, outbox
            finally:
                # Every step is bounded, so this may delay a cancellation.
                with anyio.CancelScope(shield=True):
                    inbox.close()
                    outbox.close()
                    with anyio.move_on_after(_FLUSH_SECONDS):
                        await is_flushed.wait()
                    await _take_down(process, self._grace)
                    for stream in (incoming, outgoing):
                        stream.close()
                tasks.cancel_scope.cancel()

    async def _listen(
        self, process: anyio.abc.Process, incoming: "MemoryObjectSendStream[SessionMessage]"
    ) -> None:
        assert process.stdout is not None
        try:
            with incoming, suppress(*_GONE):
                await self._read_lines(process.stdout, incoming)
        finally:
            # A server stuck writing does not notice that its input was closed.
            with anyio.move_on_after(3 * self._grace, shield=True), suppress(*_GONE):
                while True:
                    await process.stdout.receive()

    async def _read_lines(
        self,
        stdout: anyio.abc.ByteReceiveStream,
        incoming: "MemoryObjectSendStream[SessionMessage]",
    ) -> None:
        parts: list[bytes] = []
        size = 0
        async for chunk in stdout:
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                # Joined once per line: joining chunk by chunk would copy them over and over.
                await _deliver(b"".join((*parts, line)), incoming)
                parts, size = [], 0
            parts.append(rest)
            size += len(rest)
            if size > MAX_MESSAGE_BYTES:
                self.fault = f"it sent a message of more than {MAX_MESSAGE_BYTES:,} bytes"
                return

    async def _speak(
        self,
        process: anyio.abc.Process,
        outgoing: "MemoryObjectReceiveStream[SessionMessage]",
        incoming: "MemoryObjectSendStream[SessionMessage]",
        is_flushed: anyio.Event,
    ) -> None:
        assert process.stdin is not None
        try:
            with outgoing:
                async for message in outgoing:
                    line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await process.stdin.send(line.encode() + b"\n")
        except _GONE:
            # It no longer listens, so callers that wait for an answer get an error.
            incoming.close()
        finally:
            is_flushed.set()

    async def _keep_words(self, process: anyio.abc.Process) -> None:
        assert process.stderr is not None
        with suppress(*_GONE):
            async for chunk in process.stderr:
                self._words = (self._words + chunk)[-_KEPT_WORDS:]


async def _deliver(line: bytes, incoming: "MemoryObjectSendStream[SessionMessage]") -> None:
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return  # a banner, a log line or other output
    await incoming.send(SessionMessage(message))


async def _take_down(process: anyio.abc.Process, grace: float) -> None:
    """Close its input, send SIGTERM, then kill the process and everything it started in its
    session."""
    if process.stdin is not None:
        with suppress(*_GONE):
            await process.stdin.aclose()
    await _until(lambda: process.returncode is not None, grace)
    for sign in _SIGNS:
        if not _signal_group(process.pid, sign):
            break
        await _until(
            lambda: process.returncode is not None and not _signal_group(process.pid, 0), grace
        )
    # A process outside the session that still has the pipes would keep the transport open, and
    # there is no public way to close it without waiting for them.
    transport = getattr(getattr(process, "_process", None), "_transport", None)
    if transport is not None:
        with suppress(PermissionError):
            transport.close()
    await anyio.lowlevel.checkpoint()


async def _until(is_so: Callable[[], bool], seconds: float) -> None:
    """Poll until the condition is true or time runs out. `wait()` would also wait for the pipes,
    which a grandchild may keep open."""
    with anyio.move_on_after(seconds):
        while not is_so():  # noqa: ASYNC110 - there is no event to wait for
            await anyio.sleep(_POLL_SECONDS)


if sys.platform == "win32":
    _SIGNS = (signal.SIGTERM,)

    def _executable(command: str) -> str:
        # On Windows, commands such as npx are scripts, found only by their full name.
        return shutil.which(command) or command

    def _signal_group(pid: int, sign: int) -> bool:
        """End the process; on Windows its children are unknown."""
        with suppress(OSError):
            os.kill(pid, sign or signal.SIGTERM)
        return False

else:
    _SIGNS = (signal.SIGTERM, signal.SIGKILL)

    def _executable(command: str) -> str:
        return command

    def _signal_group(pid: int, sign: int) -> bool:
        """Signal a whole process session; return whether it still had any processes."""
        try:
            os.killpg(pid, sign)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True  # it exists, but we may not signal it
        return True
