"""A chat on a real terminal with a model that plays a script: `python -m tests.apps.cli.scripted_chat`."""

import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import anyio
from tests.apps.cli.chats import TARGET, answer
from tests.fakes.providers import ProviderFake, ProvidersFake, calling
from tests.fakes.tools import ToolHostFake, tool

from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.apps.cli.chat.approver import KeyboardApprover
from lamina.apps.cli.chat.chat import Chat
from lamina.apps.cli.chat.startup import catch_signals, connect_input
from lamina.apps.cli.screen import open_screen
from lamina.apps.wiring import open_session
from lamina.core.values.usage import Usage
from lamina.core.values.wire import Piece, ProgressPiece
from lamina.engine.runners.runner import AgentRunner

LONG = "\n".join(f"{number}. The berth number {number} is free." for number in range(1, 61))
EVIL = "Evil \x1b[2J\x1b]0;owned\x07 and &#27;[31m."


class Slow(ProviderFake):
    """A word at a time, as models speak."""

    async def stream(self, body: Mapping[str, Any]) -> AsyncIterator[Piece]:
        async for piece in super().stream(body):
            await anyio.sleep(0.01)
            yield piece


async def main() -> int:
    wipe = calling(("c1", "wipe", {"path": "/harbour"}), usage=Usage(input=10, output=1))
    provider = Slow(
        answer(LONG),
        wipe,
        answer("Wiped."),
        [ProgressPiece(done=512, total=3_210), *answer("It will not end")[:-1], anyio.Event()],
        [ProgressPiece(done=512, total=3_210), anyio.Event()],
        answer(EVIL),
    )
    screen = open_screen()
    approver = KeyboardApprover(screen)
    session = await open_session(target=TARGET, workspace=Path())
    host = ToolHostFake(tool("wipe", "required"))
    async with AgentRunner(session, ProvidersFake(provider), host, approver=approver) as runner:
        workspace = FolderWorkspace(Path())
        chat = Chat(runner, screen, approver, workspace=workspace, root=Path())
        async with connect_input(chat):
            with catch_signals(chat):
                return await chat.talk()


if __name__ == "__main__":
    sys.exit(anyio.run(main))
