"""Runners without `await`: a question in, events while it is worked on, an answer out.

Law: what a runner calls back (`on_event`, an approver) runs in the thread that waits for the
answer, and the loop goes on meanwhile.
"""

import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol, Self, Unpack

from msgspec import Struct

from lamina.apps.wiring import runners
from lamina.apps.wiring.opening_arguments import AgentOpening, SessionOpening, require_port, takes
from lamina.core import ports
from lamina.core.ports import Providers, ToolHost, WebSearch
from lamina.core.values.entry import Delivery
from lamina.core.values.event import Ending, Event
from lamina.core.values.message import ToolCall
from lamina.core.values.note import NoteSearchResult, Scope
from lamina.core.values.selection import AgentChoice, Preset
from lamina.core.values.tool import Decision, OfferedTool, Toolset
from lamina.core.values.usage import Usage
from lamina.engine.runners import answer as async_answer
from lamina.engine.runners import answer as async_preview
from lamina.engine.runners import qa as qa_runner
from lamina.engine.runners import runner as async_runners
from lamina.engine.runners.agent import MAX_REQUESTS
from lamina.engine.runners.agent_search import ALL_KINDS, SearchedKind
from lamina.engine.runners.answer import CitedSource, PlanPreview
from lamina.engine.runners.answer import Preview as AsyncPreview
from lamina.engine.runners.approvals import WaitingCall
from lamina.engine.runners.mode import Listener
from lamina.engine.sources.attachments import Attachable
from lamina.engine.sources.note_search import EVERYWHERE, TOP
from lamina.sync.portal import HeldContext, Portal, call_back, portal
from lamina.sync.session import Session, Turn


class Answer(Struct, frozen=True, kw_only=True):
    """The answer to a question; `lamina.Answer` with a turn that needs no `await`."""

    ending: Ending
    text: str
    turn: Turn | None = None
    requests: int = 0
    usage: Usage = Usage()
    # In US dollars, without the `unpriced` requests, whose price nobody knows; None if that is all.
    cost: float | None = 0.0
    unpriced: int = 0
    waiting_calls: tuple[WaitingCall, ...] = ()
    warnings: tuple[str, ...] = ()
    sources: tuple[CitedSource, ...] = ()
    search_result: NoteSearchResult | None = None


class Preview(Struct, frozen=True, kw_only=True):
    """A turn that was prepared and not sent; `search_result` is what a search brought to it."""

    turn: Turn
    search_result: NoteSearchResult | None = None
    warnings: tuple[str, ...] = ()


def wrap_answer(portal: Portal, answer: async_answer.Answer) -> Answer:
    """The answer for a caller who does not await."""
    fields = {name: getattr(answer, name) for name in answer.__struct_fields__}
    turn = answer.turn and Turn(portal, answer.turn)
    return Answer(**fields | {"turn": turn})


def wrap_preview(portal: Portal, preview: async_preview.Preview) -> Preview:
    """The preview for a caller who does not await."""
    fields = {name: getattr(preview, name) for name in preview.__struct_fields__}
    return Preview(**fields | {"turn": Turn(portal, preview.turn)})


Decide = Callable[[ToolCall, OfferedTool], Decision | Awaitable[Decision]]


class Approver(Protocol):
    """Asks a person whether a call may run, in the thread that waits for the answer."""

    def decide(self, call: ToolCall, tool: OfferedTool) -> Decision | Awaitable[Decision]:
        """The person's decision about a call of a tool."""
        ...


class CallerApprover:
    """An approver of the caller's for a runner in the loop."""

    def __init__(self, approver: Approver | Decide) -> None:
        self._decide: Any = getattr(approver, "decide", approver)
        require_port(self._decide, "approver", "decide", or_function=True)

    async def decide(self, call: ToolCall, tool: OfferedTool) -> Decision:
        decision: Decision = await call_back(self._decide, call, tool)
        return decision


def _listen(listener: Listener | None) -> Listener | None:
    """A listener of the caller's for a runner in the loop."""
    if listener is None:
        return None

    async def hear(event: Event) -> None:
        await call_back(listener, event)

    return hear


class Runner:
    """What all runners can do. Tools that have to be opened are opened by `with`."""

    def __init__(self, portal: Portal, runner: async_runners.Runner) -> None:
        self.session = Session(portal, runner.session)
        self._portal = portal
        self._runner = runner
        self._held: HeldContext[async_runners.Runner] | None = None

    def __enter__(self) -> Self:
        self._held = HeldContext(self._portal, lambda: self._runner)
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

    def close(self) -> None:
        """Closes the session; leaving `with` does it, too."""
        self._portal.close(self._runner.close)

    def toolset(self) -> Toolset:
        """What can be called now, and what is withheld and why; nothing, where no tools are run."""
        return self._portal.run(self._runner.toolset)

    @property
    def running(self) -> bool:
        """Whether a turn is under way, in whichever thread."""
        return self._runner.running

    @property
    def cites(self) -> bool:
        """Whether the answer under way may cite: then its numbers are final when it is complete."""
        return self._runner.cites

    def abort(self) -> bool:
        """Stops the turn under way, from another thread or from `on_event`; what there is of its
        answer is kept. False if there is none."""
        return self._portal.read(self._runner.abort)

    def run(
        self,
        text: str,
        *,
        attach: Iterable[Attachable] = (),
        target: str | None = None,
        on_event: Listener | None = None,
    ) -> Answer:
        """Asks, and gives the answer. `on_event` is called in this thread with what happens
        meanwhile; what interrupts it stops the turn, and what came of the answer is kept.

        Raises:
            ProviderError: there is no answer; `resume` tries again, if anything was sent.
            BudgetError, PrefixMoved, HookError: as `Session.prepare`.
        """
        hear = _listen(on_event)
        return self._answer(
            lambda: self._runner.run(text, attach=attach, target=target, on_event=hear)
        )

    def resume(self, *, target: str | None = None, on_event: Listener | None = None) -> Answer:
        """Goes on with a turn that was left in the middle; as `lamina.ChatRunner.resume`.

        Raises:
            TurnStateError: the last turn is complete.
        """
        hear = _listen(on_event)
        return self._answer(lambda: self._runner.resume(target=target, on_event=hear))

    def edit(
        self,
        question: str,
        text: str,
        *,
        attach: Iterable[Attachable] | None = None,
        target: str | None = None,
        on_event: Listener | None = None,
    ) -> Answer:
        """Asks an earlier question otherwise, in its place; as `lamina.ChatRunner.edit`."""
        hear = _listen(on_event)
        return self._answer(
            lambda: self._runner.edit(question, text, attach=attach, target=target, on_event=hear)
        )

    def regenerate(
        self,
        answer: str | None = None,
        *,
        target: str | None = None,
        on_event: Listener | None = None,
    ) -> Answer:
        """Asks for an answer again, the last one if none is named; as
        `lamina.ChatRunner.regenerate`."""
        hear = _listen(on_event)
        return self._answer(lambda: self._runner.regenerate(answer, target=target, on_event=hear))

    def preview(
        self, text: str, *, attach: Iterable[Attachable] = (), target: str | None = None
    ) -> Preview | PlanPreview:
        """What `run` would send first; no model is asked, no tool is run. As
        `lamina.ChatRunner.preview`."""
        preview = self._portal.run(lambda: self._runner.preview(text, attach=attach, target=target))
        return wrap_preview(self._portal, preview) if isinstance(preview, AsyncPreview) else preview

    @contextmanager
    def stream(
        self,
        text: str | None,
        *,
        attach: Iterable[Attachable] = (),
        target: str | None = None,
    ) -> Iterator[Iterator[Event]]:
        """The events of a turn, to be read while it runs: `with runner.stream("...") as events: for
        event in events`. Without a text it goes on where the last turn was left. Leaving the block
        stops the turn; what went wrong with it is raised then."""
        held = HeldContext(
            self._portal, lambda: self._runner.stream(text, attach=attach, target=target)
        )
        with held as events:
            yield held.items(events)

    def _answer(self, ask: Callable[[], Awaitable[async_runners.Answer]]) -> Answer:
        return wrap_answer(self._portal, self._portal.run(ask))

    def send_message(self, text: str, *, deliver: Delivery = "steer") -> None:
        """Sends a message while a turn is under way, from another thread or from `on_event`; as
        `lamina.Runner.send_message`."""
        self._portal.run(lambda: self._runner.send_message(text, deliver=deliver))


class ChatRunner(Runner):
    """Asks a model, once per question; `lamina.ChatRunner` without `await`."""


class QaRunner(ChatRunner):
    """Searches the notes for every question and asks once; `lamina.QaRunner` without `await`."""

    def __init__(self, portal: Portal, runner: qa_runner.QaRunner) -> None:
        super().__init__(portal, runner)
        self._qa = runner

    @property
    def scope(self) -> Scope:
        """Where it searches unless a question says otherwise."""
        return self._qa.scope

    @scope.setter
    def scope(self, scope: Scope) -> None:
        self._qa.scope = scope

    def run(
        self,
        text: str,
        *,
        attach: Iterable[Attachable] = (),
        target: str | None = None,
        on_event: Listener | None = None,
        scope: Scope | None = None,
    ) -> Answer:
        """Searches and asks, and gives the answer with its sources; `scope` is for this question.

        Raises:
            ProviderError: there is no answer; `resume` tries again, with what was found.
            BudgetError, PrefixMoved, HookError: as `Session.prepare`.
        """
        hear = _listen(on_event)
        return self._answer(
            lambda: self._qa.run(text, attach=attach, target=target, on_event=hear, scope=scope)
        )


class AgentRunner(ChatRunner):
    """Asks a model, runs the tools it calls, and asks again; `lamina.AgentRunner` without `await`.
    Use it in `with`, which opens tools that have to be opened, and closes them with the session."""

    def __init__(self, portal: Portal, runner: async_runners.AgentRunner) -> None:
        super().__init__(portal, runner)
        self._agent = runner

    def search(
        self,
        question: str,
        *,
        kinds: Collection[SearchedKind] = ALL_KINDS,
        preset: Preset | None = None,
        top: int | None = None,
    ) -> AgentChoice:
        """What a question would choose of the agent's rules, references and tools, and what only
        just not; as `lamina.AgentRunner.search`.

        Raises:
            ExtraMissing: search is not installed.
            UsageError: the question is empty, a kind is unknown, or `top` and `preset` are given.
        """
        return self._portal.run(
            lambda: self._agent.search(question, kinds=kinds, preset=preset, top=top)
        )

    def decide(self, call_id: str, decision: Decision) -> None:
        """Decides a call that waits; `resume` then takes the turn up again.

        Raises:
            TurnStateError: no such call waits.
        """
        self._portal.run(lambda: self._agent.decide(call_id, decision))


class PlanRunner(AgentRunner):
    """Asks which tools to run, runs them together, and asks for the answer; `lamina.PlanRunner`
    without `await`."""


@takes(SessionOpening)
def open_chat(
    session: str | None = None,
    *,
    providers: Providers | None = None,
    **opening: Unpack[SessionOpening],
) -> ChatRunner:
    """A session with a model that answers: `with open_chat() as chat: chat.run("Hello")`. Takes
    what `lamina.open_chat` takes."""
    here = portal()
    runner = here.open(lambda: runners.open_chat(session, providers=providers, **opening))
    return ChatRunner(here, runner)


@takes(SessionOpening)
def open_qa(
    session: str | None = None,
    *,
    scope: Scope = EVERYWHERE,
    top: int = TOP,
    providers: Providers | None = None,
    **opening: Unpack[SessionOpening],
) -> QaRunner:
    """As `open_chat`, answering from the notes of the workspace, with citations. Takes what
    `lamina.open_qa` takes."""
    here = portal()
    runner = here.open(
        lambda: runners.open_qa(session, scope=scope, top=top, providers=providers, **opening)
    )
    return QaRunner(here, runner)


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
    """As `open_agent`, with one planned batch of tools. Takes what `lamina.open_plan` takes."""
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
    """As `open_chat`, with tools that the model may call. Takes what `lamina.open_agent` takes; the
    `approver` may also be a plain function of the call and the tool, and is called in the thread
    that waits for the answer. Use it in `with`."""
    here = portal()
    decider = None if approver is None else CallerApprover(approver)
    runner = here.open(
        lambda: runners.open_agent(
            session, tools=tools, mcp=mcp, files=files, web_search=web_search, scope=scope,
            approver=decider, max_requests=max_requests, providers=providers, **opening,
        )
    )  # fmt: skip
    return AgentRunner(here, runner)
