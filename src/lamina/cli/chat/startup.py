"""`lamina chat`: a conversation with a model, on a terminal or through a pipe."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
from msgspec import Struct

from lamina.cli.chat.approver import KeyboardApprover
from lamina.cli.chat.chat import Chat
from lamina.cli.chat.message_source import open_lines
from lamina.cli.runner import Mode, RunOptions, open_runner
from lamina.cli.screen import Screen, open_screen
from lamina.errors import LaminaError, UsageError
from lamina.faces.mentions import workspace_path
from lamina.faces.paths import Paths
from lamina.notes.references import is_url
from lamina.ports import Approver, JournalStore, WorkspaceSource
from lamina.runners.runner import ChatRunner
from lamina.values.entry import MessageEntry
from lamina.values.note import Scope
from lamina.values.patch import OptionsSet
from lamina.values.request import LeftOut
from lamina.values.settings import Settings
from lamina.wiring import default_store
from lamina.wiring.workspaces import open_workspace

HISTORY = "chat_history"


class ChatOptions(Struct, frozen=True, kw_only=True):
    """How a person wants to talk. `latest` is the latest session, instead of one by name."""

    workspace: Path = Path()
    session: str | None = None
    latest: bool = False
    target: str | None = None
    attach: tuple[str, ...] = ()
    essential: tuple[str, ...] = ()
    system: str = ""
    agent: str | None = None
    project: str | None = None
    mcp: Path | None = None
    window: int | None = None
    max_tokens: int | None = None
    active: str | None = None
    mode: Mode = "agent"
    files: bool = False
    scope: Scope = Scope()
    memory: bool = True
    changes: dict[str, Any] = {}


async def run_chat(options: ChatOptions) -> int:
    """Talks until somebody leaves; the exit code.

    Raises:
        UsageError: something to be attached cannot be read.
        SessionBusy: the session is open elsewhere.
    """
    screen = open_screen()
    workspace = open_workspace(options.workspace)
    try:
        attached = await read_attached(options, workspace)
        approver = KeyboardApprover(screen)
        runner = await _open(options, screen, approver)
        async with runner:
            chat = Chat(
                runner, screen, approver,
                workspace=workspace, root=options.workspace, attached=attached,
                active=_open_note(options),
            )  # fmt: skip
            async with connect_input(chat):
                with catch_signals(chat):
                    return await chat.talk()
    finally:
        await workspace.aclose()


async def _open(options: ChatOptions, screen: Screen, approver: Approver) -> ChatRunner:
    session = options.session
    if options.latest and (session := await find_latest(default_store(options.workspace))) is None:
        screen.tell("there is no session here to go on with: this is a new one")
    # An agent has settings of its own, as a session that is there has.
    plain = session is None and options.agent is None
    runner = await open_runner(
        RunOptions(
            workspace=options.workspace,
            session=session,
            target=options.target,
            system=options.system,
            agent=options.agent,
            project=options.project,
            mcp=options.mcp,
            mode=options.mode,
            files=options.files,
            scope=options.scope,
            memory=options.memory,
            changes=options.changes,
            settings=Settings(window=options.window) if plain and options.window else None,
        ),
        screen.err,
        approver=approver,
    )
    try:
        # A session that is there keeps its other settings.
        if not plain and options.window and runner.session.settings.window != options.window:
            await runner.session.change(window=options.window)
        limit = options.max_tokens
        if limit and runner.session.envelope.options.max_tokens != limit:
            await runner.session.apply("lamina.chat", OptionsSet(max_tokens=limit))
    except BaseException:
        with anyio.CancelScope(shield=True):
            await runner.close()
        raise
    return runner


async def read_attached(options: ChatOptions, workspace: WorkspaceSource) -> dict[str, bool]:
    """What is attached from the beginning, and whether it is essential.

    Raises:
        UsageError: something of it cannot be read.
    """
    attached = dict.fromkeys(options.attach, False) | dict.fromkeys(options.essential, True)
    attached = {workspace_path(path, options.workspace): vital for path, vital in attached.items()}
    active = _open_note(options)
    for path in (*attached, active):
        if path is None or is_url(path):
            continue
        found = await workspace.read(path, "attached")
        if isinstance(found, LeftOut):
            raise UsageError(f"cannot attach: {found.detail}")
    return attached


def _open_note(options: ChatOptions) -> str | None:
    return workspace_path(options.active, options.workspace) if options.active else None


async def find_latest(store: JournalStore) -> str | None:
    """The session that was written last, if anything was said in it."""
    for session in await store.sessions():
        try:
            journal = await store.read(session)
        except LaminaError:
            continue
        if any(isinstance(entry, MessageEntry) for entry in journal.entries.values()):
            return session
    return None


@asynccontextmanager
async def connect_input(chat: Chat) -> AsyncIterator[None]:
    """Gives a chat the keyboard, or else the lines of standard input."""
    if not chat.screen.live:
        async with open_lines() as lines:
            chat.listen_to(lines)
            yield
        return
    from lamina.cli.chat.completer import ChatCompleter
    from lamina.cli.chat.keyboard import Keyboard

    completer = ChatCompleter(Paths(chat.root), chat.commands.arguments)
    folder = default_store(chat.root).folder
    chat.listen_to(Keyboard(folder / HISTORY, completer, chat.toolbar))
    yield


@contextmanager
def catch_signals(chat: Chat) -> Iterator[None]:
    """Ctrl-C interrupts what runs; what ends a process ends the chat, with everything kept."""
    loop = asyncio.get_running_loop()

    def take(number: int, _frame: object) -> None:
        if number == signal.SIGINT:
            loop.call_soon_threadsafe(chat.interrupt)
        else:
            loop.call_soon_threadsafe(chat.end, 128 + number)

    names = ("SIGINT", "SIGTERM", "SIGHUP")
    wanted = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.signal(number, take) for number in wanted}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
