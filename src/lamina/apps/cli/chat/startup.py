"""`lamina chat`: a conversation with a model, on a terminal or through a pipe."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from lamina.apps.cli.chat.approver import KeyboardApprover
from lamina.apps.cli.chat.chat import Chat
from lamina.apps.cli.chat.message_source import open_lines
from lamina.apps.cli.chat.slash_commands import list_arguments
from lamina.apps.cli.console_notices import ConsoleNotices
from lamina.apps.cli.flags import (
    PersonFlags,
    SessionFlags,
    SpendUnasked,
    expand_flags,
    session_flag,
)
from lamina.apps.cli.outcome import refuse_if, run_to_exit
from lamina.apps.cli.screen import can_ask, open_screen
from lamina.apps.views.mentions import Paths, workspace_path
from lamina.apps.views.note_problems import open_notes
from lamina.apps.views.session_opener import open_runner, require_extras, require_readable
from lamina.apps.views.session_options import PromptOptions, SessionOptions, SettingChanges
from lamina.apps.wiring import default_store
from lamina.apps.wiring.folders import workspace_folder
from lamina.core.ports import JournalStore, WorkspaceSource
from lamina.core.values.entry import MessageEntry
from lamina.errors import LaminaError

app = typer.Typer()

HISTORY = "chat_history"


async def run_chat(
    options: SessionOptions,
    prompt: PromptOptions,
    *,
    latest: bool = False,
    asks_price: bool = True,
) -> int:
    """Run a chat until the person leaves; return the exit code. With `latest`, continue the latest
    session. With `asks_price`, ask the person before a costly action.

    Raises:
        ExtraMissing: something is not installed.
        UsageError: an attachment cannot be read.
        SessionBusy: the session is open elsewhere.
    """
    screen = open_screen()
    if latest:
        session = await find_latest(default_store(options.workspace))
        options = replace(options, session=session)
        if session is None:
            screen.tell("there is no session to continue here; this is a new one")
    require_extras(options, prompt, *(("line_editor",) if screen.live else ()))
    async with open_notes(options.workspace) as workspace:
        attached, active = await read_attached(prompt, options.workspace, workspace)
        approver = KeyboardApprover(screen)
        runner = await open_runner(
            options,
            ConsoleNotices(screen.err, asks=can_ask(screen.err)),
            approver=approver,
            workspace=workspace,
        )
        async with runner:
            chat = Chat(
                runner, screen, approver,
                workspace=workspace, root=options.workspace, attached=attached, active=active,
            )  # fmt: skip
            if asks_price:
                chat.ask_before_costly_acts()
            async with connect_input(chat):
                with catch_signals(chat):
                    return await chat.talk()


async def read_attached(
    prompt: PromptOptions, root: Path, workspace: WorkspaceSource
) -> tuple[dict[str, bool], str | None]:
    """Return the initial attachments, with whether they are essential, and the open note.

    Raises:
        UsageError: one of them cannot be read.
    """
    attached = dict.fromkeys(prompt.attach, False) | dict.fromkeys(prompt.essential, True)
    attached = {workspace_path(path, root): vital for path, vital in attached.items()}
    active = workspace_path(prompt.active, root) if prompt.active else None
    await require_readable((*attached, *((active,) if active else ())), workspace)
    return attached, active


async def find_latest(store: JournalStore) -> str | None:
    """Find the session that was written last, among those with messages."""
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
    """Connect a chat to the keyboard, or else to the lines of standard input."""
    if not chat.screen.live:
        async with open_lines() as lines:
            chat.listen_to(lines)
            yield
        return
    from lamina.apps.cli.chat.completer import ChatCompleter
    from lamina.apps.cli.chat.keyboard import Keyboard

    completer = ChatCompleter(Paths(chat.root), partial(list_arguments, chat))
    folder = workspace_folder(chat.root)
    chat.listen_to(Keyboard(folder / HISTORY, completer, chat.toolbar))
    yield


@contextmanager
def catch_signals(chat: Chat) -> Iterator[None]:
    """Let Ctrl-C interrupt the running work, and other signals end the chat with everything
    kept."""
    loop = asyncio.get_running_loop()

    def take(number: int, _frame: object) -> None:
        if number == signal.SIGINT:
            loop.call_soon_threadsafe(chat.interrupt)
        else:
            loop.call_soon_threadsafe(chat.end, 128 + number)

    names = ("SIGINT", "SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.signal(number, take) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@app.command()
@expand_flags
def chat(
    *,
    prompt: PersonFlags,
    opening: SessionFlags,
    latest: Annotated[
        bool, session_flag("--continue", "-c", help="Continue the latest session.")
    ] = False,
    window: Annotated[
        int | None,
        session_flag(
            min=1, metavar="TOKENS",
            help="Limit a whole request to this many tokens; by default to the model's window.",
        ),
    ] = None,
    yes: SpendUnasked = False,
) -> None:  # fmt: skip
    """Chat with a model about a folder, and see what it was shown.

    By default a small model answers on this machine; it is downloaded the first time. /help lists
    the commands. Through a pipe every line is a message; answers and the output of commands go to
    standard output, everything else to standard error.
    """
    refuse_if(opening.session is not None and latest, "--session and --continue cannot be combined")
    refuse_if(opening.new and latest, "--new and --continue cannot be combined")
    options = opening.options(SettingChanges(window=window))
    run_to_exit(run_chat, options, prompt.options(), latest=latest, asks_price=not yes)
