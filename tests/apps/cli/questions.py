"""`lamina ask` over fakes: a person's desk with two streams on it."""

import errno
import io
from collections.abc import Iterable
from typing import Any, TextIO

from rich.console import Console
from tests.fakes.providers import ProviderFake, ProvidersFake, Step
from tests.fakes.sessions import World
from tests.fakes.tools import ToolHostFake

from lamina.apps.cli.ask import AT_THE_END, AskOutput, AskPlace, put_question, report_answer
from lamina.apps.views.approvers import AllowAllApprover, DenyAllApprover
from lamina.apps.views.session_opener import limit_answers
from lamina.apps.views.session_options import PromptOptions
from lamina.core.values.event import BlockDelta
from lamina.core.values.tool import OfferedTool
from lamina.engine.runners.runner import AgentRunner
from lamina.engine.sources.hooks import Hooks


class Screen(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


class Hung(io.StringIO):
    """A pipe whose reader goes away after some writes."""

    def __init__(self, writes: int) -> None:
        super().__init__()
        self.left = writes

    def write(self, text: str) -> int:
        self.left -= 1
        if self.left < 0:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        return super().write(text)


class Desk:
    """A person's desk: a session that is asked, and the two streams in front of them."""

    def __init__(
        self,
        *scripts: Iterable[Step],
        tools: Iterable[OfferedTool] = (),
        notes: dict[str, str] | None = None,
        hooks: Hooks | None = None,
    ) -> None:
        self.world = World(notes)
        self.hooks = hooks
        self.provider = ProviderFake(*scripts)
        self.host = ToolHostFake(*tools)
        self.runner: AgentRunner | None = None
        self.out: TextIO = io.StringIO()
        self.err = ""
        self.warnings: list[str] = []

    async def ask(
        self,
        text: str | None = "Q",
        *,
        out: TextIO | None = None,
        terminal: bool = False,
        abort_at: str | None = None,
        allow_tools: bool = False,
        as_json: bool = False,
        max_tokens: int | None = None,
        place: AskPlace = AT_THE_END,
        **prompt: Any,
    ) -> int:
        """One run of the command, up to where it has opened a session."""
        err = io.StringIO()
        self.out = out or io.StringIO()
        console = Console(file=err, force_terminal=terminal, no_color=True, width=100)
        voice = AskOutput(self.out, console, quiet=as_json)
        approver = AllowAllApprover() if allow_tools else DenyAllApprover(voice.warn)
        session = await self.world.open("talk", hooks=self.hooks)
        providers = ProvidersFake(self.provider)
        runner = AgentRunner(session, providers, self.host, approver=approver)
        self.runner = runner
        voice.on_gone = runner.abort
        if abort_at is not None:
            hear = voice.hear

            def watch(event: Any) -> None:
                hear(event)
                if isinstance(event, BlockDelta) and event.text == abort_at:
                    runner.abort()

            voice.hear = watch  # type: ignore[method-assign]
        try:
            async with runner:
                await limit_answers(session, max_tokens)
                answer = await put_question(
                    runner, text, PromptOptions(**prompt), voice, place=place
                )
                return report_answer(answer, runner, voice, as_json=as_json)
        finally:
            voice.end_line()
            self.err, self.warnings = err.getvalue(), voice.warnings

    @property
    def said(self) -> str:
        assert isinstance(self.out, io.StringIO)
        return self.out.getvalue()

    @property
    def kept(self) -> list[tuple[str, str]]:
        assert self.runner is not None
        return [(m.role, m.text) for m in self.runner.session.envelope.cached.since(0)]
