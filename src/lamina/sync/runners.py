"""Runners without `await`: a question in, events while it is worked on, an answer out.

Law: a runner's callbacks (`on_event`, an approver) run in the thread that waits for the answer,
while the loop continues.
"""

import os
from collections.abc import Awaitable, Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Protocol, Self, Unpack

from msgspec import Struct

from lamina.apps.wiring import runners
from lamina.apps.wiring.opening_arguments import AgentOpening, require_port, takes
from lamina.core import ports
from lamina.core.ports import Providers, ToolHost, WebSearch
from lamina.core.values.event import Ending, Event
from lamina.core.values.message import ToolCall
from lamina.core.values.note import NoteSearchResult, Scope
from lamina.core.values.tool import Decision, OfferedTool
from lamina.core.values.usage import Usage
from lamina.engine.runners.agent import MAX_REQUESTS
from lamina.engine.runners.answer import Answer as AsyncAnswer
from lamina.engine.runners.answer import CitedSource, PlanPreview
from lamina.engine.runners.answer import Preview as AsyncPreview
from lamina.engine.runners.approvals import WaitingCall
from lamina.engine.runners.mode import Listener
from lamina.engine.runners.qa import QaRunner as AsyncQaRunner
from lamina.engine.runners.runner import AgentRunner as AsyncAgentRunner
from lamina.engine.runners.runner import Runner as AsyncRunner
from lamina.engine.sources.note_search import EVERYWHERE
from lamina.sync.portal import HeldContext, Portal, call_back, portal
from lamina.sync.session import Session, Turn
from lamina.sync.twin import (
    Mirror,
    Twin,
    closes,
    documented,
    gives,
    opens,
    reads,
    streams,
    waits,
)

P = ParamSpec("P")


class Answer(Struct, frozen=True, kw_only=True):
    """The answer to a question; `lamina.Answer` with a turn that needs no `await`."""

    ending: Ending
    text: str
    turn: Turn | None = None
    requests: int = 0
    usage: Usage = Usage()
    # In US dollars, without the `unpriced` requests, whose price is unknown; None if all are.
    cost: float | None = 0.0
    unpriced: int = 0
    waiting_calls: tuple[WaitingCall, ...] = ()
    warnings: tuple[str, ...] = ()
    sources: tuple[CitedSource, ...] = ()
    search_result: NoteSearchResult | None = None


class Preview(Struct, frozen=True, kw_only=True):
    """A turn that was prepared and not sent; `search_result` is what a search added to it."""

    turn: Turn
    search_result: NoteSearchResult | None = None
    warnings: tuple[str, ...] = ()


def wrap_answer(portal: Portal, answer: AsyncAnswer) -> Answer:
    """The answer for a caller who does not await."""
    fields = {name: getattr(answer, name) for name in answer.__struct_fields__}
    return Answer(**fields | {"turn": answer.turn and Turn(portal, answer.turn)})


def wrap_preview(portal: Portal, preview: AsyncPreview | PlanPreview) -> Preview | PlanPreview:
    """The preview for a caller who does not await."""
    if isinstance(preview, PlanPreview):
        return preview
    fields = {name: getattr(preview, name) for name in preview.__struct_fields__}
    return Preview(**fields | {"turn": Turn(portal, preview.turn)})


Decide = Callable[[ToolCall, OfferedTool], Decision | Awaitable[Decision]]


class Approver(Protocol):
    """Asks a person whether a call may run, in the thread that waits for the answer."""

    def decide(self, call: ToolCall, tool: OfferedTool) -> Decision | Awaitable[Decision]:
        """Returns the person's decision about a tool call."""
        ...


class CallerApprover:
    """Wraps the caller's approver for a runner in the loop."""

    def __init__(self, approver: Approver | Decide) -> None:
        self._decide: Any = getattr(approver, "decide", approver)
        require_port(self._decide, "approver", "decide", or_function=True)

    async def decide(self, call: ToolCall, tool: OfferedTool) -> Decision:
        decision: Decision = await call_back(self._decide, call, tool)
        return decision


def _listen(listener: Listener | None) -> Listener | None:
    """Wraps the caller's listener for a runner in the loop."""
    if listener is None:
        return None

    async def hear(event: Event) -> None:
        await call_back(listener, event)

    return hear


def asks(
    method: Callable[Concatenate[Any, P], Awaitable[AsyncAnswer]],
) -> Callable[Concatenate[Any, P], Answer]:
    """A method that returns an answer, and calls `on_event` in the thread that waits for it."""
    ask: Callable[..., Answer] = gives(method, wrap_answer)

    @documented(method, Answer)
    def call(self: "Runner", /, *args: P.args, **kwargs: P.kwargs) -> Answer:
        listener: Any = kwargs.get("on_event")
        kwargs["on_event"] = _listen(listener)
        return ask(self, *args, **kwargs)

    return call


class Runner(Twin):
    """What all runners can do. `with` opens tools that need opening."""

    _original: AsyncRunner

    def __init__(self, portal: Portal, runner: AsyncRunner) -> None:
        super().__init__(portal, runner)
        self.session = Session(portal, runner.session)
        self._held: HeldContext[AsyncRunner] | None = None

    def __enter__(self) -> Self:
        self._held = HeldContext(self._portal, lambda: self._original)
        try:
            self._held.__enter__()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._held is not None:
            self._held.__exit__(kind, error, trace)

    close = closes(AsyncRunner.close)
    toolset = waits(AsyncRunner.toolset)
    running: Mirror[bool] = Mirror(AsyncRunner.running)
    cites: Mirror[bool] = Mirror(AsyncRunner.cites)
    abort = reads(AsyncRunner.abort)
    run = asks(AsyncRunner.run)
    resume = asks(AsyncRunner.resume)
    edit = asks(AsyncRunner.edit)
    regenerate = asks(AsyncRunner.regenerate)
    preview = gives(AsyncRunner.preview, wrap_preview)
    stream = streams(AsyncRunner.stream, Iterator[Iterator[Event]])
    send_message = waits(AsyncRunner.send_message)


class ChatRunner(Runner):
    """Asks a model, once per question; `lamina.ChatRunner` without `await`. `on_event` is called in
    the thread that waits for the answer; interrupting that thread stops the turn. `on_event` may
    `abort` the turn or send a message to it (`send_message`), as may any other thread."""


class QaRunner(ChatRunner):
    """Searches the notes for every question and asks once; `lamina.QaRunner` without `await`."""

    _original: AsyncQaRunner

    run = asks(AsyncQaRunner.run)

    @property
    def scope(self) -> Scope:
        """Where notes are searched, unless a question names another scope."""
        return self._original.scope

    @scope.setter
    def scope(self, scope: Scope) -> None:
        self._original.scope = scope


class AgentRunner(ChatRunner):
    """Asks a model, runs the tools it calls, and asks again; `lamina.AgentRunner` without `await`.
    Use it in `with`, which opens tools that need opening, and closes them with the session."""

    search = waits(AsyncAgentRunner.search)
    decide = waits(AsyncAgentRunner.decide)


class PlanRunner(AgentRunner):
    """Asks which tools to run, runs them together, and asks for the answer; `lamina.PlanRunner`
    without `await`."""


open_chat = opens(runners.open_chat, ChatRunner)
open_qa = opens(runners.open_qa, QaRunner)


@takes(AgentOpening)
def open_plan(
    session: str | None = None,
    *,
    tools: ToolHost | Iterable[Callable[..., Any]] = (),
    mcp: str | os.PathLike[str] | None = None,
    files: bool = False,
    web_search: str | WebSearch | None = None,
    scope: Scope = EVERYWHERE,
    approver: ports.Approver | Approver | Decide | None = None,
    providers: Providers | None = None,
    **opening: Unpack[AgentOpening],
) -> PlanRunner:
    """Like `open_agent`, with one planned batch of tools. Accepts what `lamina.open_plan`
    accepts."""
    here = portal()
    decider = None if approver is None else CallerApprover(approver)
    runner = here.open(
        lambda: runners.open_plan(
            session, tools=tools, mcp=mcp, files=files, web_search=web_search, scope=scope,
            approver=decider, providers=providers, **opening,
        )
    )  # fmt: skip
    return PlanRunner(here, runner)


@takes(AgentOpening)
def open_agent(
    session: str | None = None,
    *,
    tools: ToolHost | Iterable[Callable[..., Any]] = (),
    mcp: str | os.PathLike[str] | None = None,
    files: bool = False,
    web_search: str | WebSearch | None = None,
    scope: Scope = EVERYWHERE,
    approver: ports.Approver | Approver | Decide | None = None,
    max_requests: int = MAX_REQUESTS,
    providers: Providers | None = None,
    **opening: Unpack[AgentOpening],
) -> AgentRunner:
    """Like `open_chat`, with tools that the model may call. Accepts what `lamina.open_agent`
    accepts; the `approver` may also be a plain function of the call and the tool, and is called in
    the thread that waits for the answer. Use it in `with`."""
    here = portal()
    decider = None if approver is None else CallerApprover(approver)
    runner = here.open(
        lambda: runners.open_agent(
            session, tools=tools, mcp=mcp, files=files, web_search=web_search, scope=scope,
            approver=decider, max_requests=max_requests, providers=providers, **opening,
        )
    )  # fmt: skip
    return AgentRunner(here, runner)
