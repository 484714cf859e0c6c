"""Chats in this process: a model that plays scripts, and a person who does."""

import io
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from rich.console import Console
from tests.fakes.providers import ProviderFake, ProvidersFake
from tests.fakes.tools import ToolHostFake

from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.apps.cli.chat.approver import KeyboardApprover
from lamina.apps.cli.chat.chat import Chat
from lamina.apps.cli.chat.message_source import InputInterrupt
from lamina.apps.cli.screen import Screen
from lamina.apps.wiring import open_session
from lamina.core.values.message import Text
from lamina.core.values.usage import Usage
from lamina.core.values.wire import Piece, ProgressPiece, Reply, TextPiece
from lamina.engine.runners.runner import AgentRunner
from lamina.engine.session.session import Session
from lamina.engine.sources.hooks import Hooks

TARGET = "local:smollm2-135m"
CTRL_C = object()
# What a person does at the prompt: types a line, presses Ctrl-C, or sees to something first.
Act = str | object | Callable[[], None]


def answer(
    text: str, *, input: int = 100, cached: int = 0, stop: str = "stop"
) -> list[Piece | BaseException | anyio.Event]:
    """The pieces of an answer."""
    usage = Usage(input=input, cached=cached, output=len(text.split()))
    return [
        ProgressPiece(done=input, total=input, cached=cached),
        *(TextPiece(line) for line in text.splitlines(keepends=True)),
        Reply(blocks=(Text(text),), usage=usage, stop=stop),
    ]


class SourceFake:
    """Says its lines in turn; `offered` is what it was given to edit, `questions` what it was
    asked, which it answers by `choices`."""

    def __init__(self, *acts: Act) -> None:
        self._acts = list(acts)
        self.choices: list[str | object | None] = []
        self.offered: list[str] = []
        self.questions: list[str] = []

    async def read(self, default: str = "", /) -> str:
        self.offered.append(default)
        await anyio.lowlevel.checkpoint()
        while self._acts:
            act = self._acts.pop(0)
            if act is CTRL_C:
                raise InputInterrupt
            if isinstance(act, str):
                return act
            assert callable(act)
            act()
        raise EOFError

    async def choose(self, question: str, answers: Mapping[str, str], /) -> str | None:
        self.questions.append(question)
        choice = self.choices.pop(0)
        if choice is CTRL_C:
            raise InputInterrupt
        assert choice is None or choice in answers
        return None if choice is None else str(choice)

    def interrupt(self) -> bool:
        return False


class Talk:
    """What a chat came to: what was asked for, what was said about it, and its session."""

    def __init__(self, chat: Chat, out: io.StringIO, err: io.StringIO) -> None:
        self.chat = chat
        self.code = -1
        self._out = out
        self._err = err

    @property
    def out(self) -> str:
        return self._out.getvalue()

    @property
    def err(self) -> str:
        return self._err.getvalue()

    @property
    def session(self) -> Session:
        return self.chat.session


@asynccontextmanager
async def opened(
    folder: Path,
    source: SourceFake,
    provider: ProviderFake,
    host: ToolHostFake | None = None,
    *,
    session: str | None = None,
    hooks: Hooks | None = None,
) -> AsyncIterator[Talk]:
    """A chat that is about to begin, without a terminal."""
    out, err = io.StringIO(), io.StringIO()

    def plain(stream: io.StringIO) -> Console:
        return Console(
            file=stream, width=100, color_system=None, force_terminal=False,
            highlight=False, markup=False, emoji=False,
        )  # fmt: skip

    screen = Screen(plain(out), plain(err), live=False)
    approver = KeyboardApprover(screen)
    target = None if session else TARGET
    opening = await open_session(session, target=target, workspace=folder, hooks=hooks)
    host = host or ToolHostFake()
    async with AgentRunner(opening, ProvidersFake(provider), host, approver=approver) as runner:
        workspace = FolderWorkspace(folder)
        chat = Chat(runner, screen, approver, workspace=workspace, root=folder)
        chat.listen_to(source)
        yield Talk(chat, out, err)


def talk(
    folder: Path,
    *acts: Act,
    replies: Sequence[Sequence[Piece | BaseException | anyio.Event]] = (),
    host: ToolHostFake | None = None,
    choices: Sequence[str | object | None] = (),
    session: str | None = None,
    provider: ProviderFake | None = None,
    source: SourceFake | None = None,
    hooks: Hooks | None = None,
) -> Talk:
    """A whole chat, from its first line to its last."""
    person = source or SourceFake(*acts)
    person.choices = list(choices)

    async def body() -> Talk:
        answering = provider or ProviderFake(*replies)
        async with opened(folder, person, answering, host, session=session, hooks=hooks) as talked:
            talked.code = await talked.chat.talk()
            return talked

    return anyio.run(body)
