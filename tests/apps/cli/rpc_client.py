"""A client of `lamina rpc` on a real pipe, and a server over fakes."""

import io
import json
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from rich.console import Console
from tests.fakes.providers import ProviderFake, ProvidersFake, Step
from tests.fakes.sessions import World
from tests.fakes.tools import ToolHostFake

from lamina.apps.cli.console_notices import ConsoleNotices
from lamina.apps.cli.rpc.jsonrpc import OverlongLine, split_lines
from lamina.apps.cli.rpc.rpc_server import RpcServer
from lamina.apps.cli.stdio import open_input
from lamina.apps.views.approvers import PendingApprovals
from lamina.apps.views.session_options import PromptOptions
from lamina.core.ports import ToolHost
from lamina.core.values.tool import OfferedTool
from lamina.engine.runners.runner import AgentRunner
from lamina.engine.sources.hooks import Hooks


class Client:
    """The other side: writes lines, reads messages off a pipe."""

    def __init__(self, world: World, provider: ProviderFake, host: ToolHostFake) -> None:
        self.world = world
        self.provider = provider
        self.host = host
        self.server: RpcServer | None = None
        self.runner: AgentRunner | None = None
        self.ended = anyio.Event()
        self.sink = -1
        self.seen: list[dict[str, Any]] = []
        self._send, self.lines = anyio.create_memory_object_stream[bytes | OverlongLine](100)
        self.messages: AsyncIterator[bytes | OverlongLine] | None = None
        self._number = 0

    async def write(self, line: bytes | OverlongLine) -> None:
        await self._send.send(line)

    async def send(self, method: str, **params: Any) -> int:
        self._number += 1
        call = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        await self.write(json.dumps(call).encode())
        return self._number

    async def read(self) -> dict[str, Any]:
        assert self.messages is not None
        with anyio.fail_after(20):
            line = await anext(self.messages)
        assert isinstance(line, bytes)
        message: dict[str, Any] = json.loads(line)
        assert message.pop("jsonrpc") == "2.0"
        self.seen.append(message)
        return message

    async def answer(self, number: int | None) -> dict[str, Any]:
        """The answer to a call; events in front of it are in `seen`."""
        while True:
            message = await self.read()
            if "method" not in message and message["id"] == number:
                return message

    async def call(self, method: str, **params: Any) -> Any:
        message = await self.answer(await self.send(method, **params))
        assert "result" in message, message
        return message["result"]

    async def refusal(self, method: str, **params: Any) -> Any:
        message = await self.answer(await self.send(method, **params))
        assert "error" in message, message
        return message["error"]

    async def event(self, kind: str) -> dict[str, Any]:
        while True:
            message = await self.read()
            if message.get("method") == "event" and message["params"]["type"] == kind:
                params: dict[str, Any] = message["params"]
                return params

    def end(self) -> None:
        """Standard input ends."""
        self._send.close()

    @property
    def events(self) -> list[str]:
        told = [each["params"]["type"] for each in self.seen if each.get("method") == "event"]
        return [kind for at, kind in enumerate(told) if not at or told[at - 1] != kind]

    @property
    def kept(self) -> list[tuple[str, str]]:
        assert self.runner is not None
        return [(m.role, m.text) for m in self.runner.session.envelope.cached.since(0)]


@asynccontextmanager
async def serving(
    *scripts: Iterable[Step],
    tools: Iterable[OfferedTool] = (),
    notes: dict[str, str] | None = None,
    world: World | None = None,
    host: ToolHost | None = None,
    hooks: Hooks | None = None,
    **prompt: Any,
) -> AsyncIterator[Client]:
    """A server and its client; the input ends with the block."""
    client = Client(world or World(notes), ProviderFake(*scripts), ToolHostFake(*tools))
    source, sink = os.pipe()
    client.sink = sink
    desk = PendingApprovals()
    session = await client.world.open("talk", hooks=hooks)
    runner = AgentRunner(
        session, ProvidersFake(client.provider), host or client.host, approver=desk
    )
    client.runner = runner
    client.server = RpcServer(
        runner,
        desk,
        sink,
        prompt=PromptOptions(**prompt),
        notices=ConsoleNotices(Console(file=io.StringIO())),
        book=client.world.book,
    )

    async def work() -> None:
        assert client.server is not None
        async with runner:
            await client.server.run(client.lines)
        os.close(sink)
        client.ended.set()

    async with anyio.create_task_group() as group, open_input(source) as chunks:
        client.messages = split_lines(chunks)
        group.start_soon(work)
        yield client
        client.end()
        with anyio.fail_after(20):
            async for _ in client.messages:
                pass
            await client.ended.wait()
    os.close(source)
    await client.lines.aclose()
