"""Runners over fakes: one scene holds the world, the model, the tools, and what was seen."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Self

from tests.fakes.book import SMALL, FakeBook
from tests.fakes.clock import FakeClock
from tests.fakes.providers import ProviderFake, ProvidersFake, Step
from tests.fakes.store import FakeStore
from tests.fakes.tools import ApproverFake, ToolHostFake
from tests.fakes.workspace import FakeWorkspace

import lamina
from lamina.core.audit.verification import verify
from lamina.core.ports import GuideSource, Index, JournalStore
from lamina.core.values.entry import Entry, RequestEntry
from lamina.core.values.event import Event
from lamina.core.values.message import ToolDefinition, ToolResult
from lamina.core.values.request import RequestContext
from lamina.core.values.settings import Settings, Target
from lamina.core.values.tool import OfferedTool
from lamina.engine.runners.runner import AgentRunner, Answer, ChatRunner, PlanRunner
from lamina.engine.session.session import core_of
from lamina.engine.sources.selector import Selector


class Scene:
    """An agent, or with `chat` a chat, that can be closed and opened again, also as another `kind`.
    `guides` are the rules and references of its agent, `index` is where it searches, `definitions`
    are tools that an application brings."""

    def __init__(
        self,
        *scripts: Iterable[Step],
        tools: Iterable[OfferedTool] = (),
        approver: ApproverFake | None = None,
        store: JournalStore | None = None,
        chat: bool = False,
        max_requests: int = 20,
        target: Target = SMALL,
        guides: GuideSource | None = None,
        index: Index | None = None,
        relations: Mapping[str, Sequence[str]] | None = None,
        definitions: Sequence[ToolDefinition] | None = None,
        **given: Any,
    ) -> None:
        self.provider = ProviderFake(*scripts)
        self.providers = ProvidersFake(self.provider)
        self.host = ToolHostFake(*tools)
        self.approver = approver
        self.store = store or FakeStore()
        self.book = FakeBook(target)
        self.clock = FakeClock()
        self.workspace = FakeWorkspace()
        self.events: list[Event] = []
        # Called with every event, and how many there were before it.
        self.on_event: Callable[[Event, int], Awaitable[None] | None] | None = None
        self._selecting = (index, guides, relations)
        self._target = target
        self.kind: Literal["agent", "chat", "plan"] = "chat" if chat else "agent"
        self._definitions = definitions
        self._max_requests = max_requests
        limits = Settings.__struct_fields__
        self._settings = {name: value for name, value in given.items() if name in limits}
        self._given = {name: value for name, value in given.items() if name not in limits}
        self._runner: ChatRunner | None = None

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.runner.__aexit__()

    async def open(self, session: str = "talk") -> None:
        settings = Settings(target=self._target.name, **self._settings)
        opened = await lamina.open_session(
            session,
            settings=settings,
            workspace=self.workspace,
            store=self.store,
            book=self.book,
            clock=self.clock,
            tools=self._definitions,
            **self._given,
        )
        index, guides, relations = self._selecting
        core_of(opened).turns.tools.selector = Selector(index, guides, relations=relations)
        if self.kind == "chat":
            self._runner = ChatRunner(opened, self.providers)
        elif self.kind == "plan":
            self._runner = PlanRunner(opened, self.providers, self.host, approver=self.approver)
        else:
            self._runner = AgentRunner(
                opened,
                self.providers,
                self.host,
                approver=self.approver,
                max_requests=self._max_requests,
            )
        await self._runner.__aenter__()

    async def restart(self) -> None:
        """The process ends, and another one opens the session."""
        await self.runner.__aexit__()
        await self.open()

    def use_index(self, index: Index | None) -> None:
        """Where it searches once it is opened again."""
        self._selecting = (index, *self._selecting[1:])

    @property
    def runner(self) -> ChatRunner:
        assert self._runner is not None
        return self._runner

    @property
    def agent(self) -> AgentRunner:
        assert isinstance(self._runner, AgentRunner)
        return self._runner

    def plays(self, *scripts: Iterable[Step]) -> None:
        """What the model does next."""
        self.provider.scripts += scripts

    async def ask(self, text: str = "Q", **given: Any) -> Answer:
        self.events = []
        return await self.runner.run(text, on_event=self._seen, **given)

    async def go_on(self) -> Answer:
        self.events = []
        return await self.runner.resume(on_event=self._seen)

    def _seen(self, event: Event) -> Awaitable[None] | None:
        number = len(self.events)
        self.events.append(event)
        return self.on_event(event, number) if self.on_event is not None else None

    def abort_at(self, kind: type[Event], *, after: int = 0) -> None:
        """Stops the turn when an event of a kind comes, or one of those behind the first."""
        left = [after]

        def watch(event: Event, number: int) -> None:
            if isinstance(event, kind):
                left[0] -= 1
                if left[0] < 0:
                    self.on_event = None
                    assert self.runner.abort()

        self.on_event = watch

    # -- what came of it -------------------------------------------------------------------------

    @property
    def context(self) -> RequestContext:
        """What the last request was built from, as the journal has it."""
        request: RequestEntry = self.kept(RequestEntry)[-1]
        return request.context

    @property
    def kinds(self) -> list[str]:
        """The names of the events, the same in a row once."""
        names = [type(event).__name__ for event in self.events]
        return [name for at, name in enumerate(names) if not at or names[at - 1] != name]

    def told(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def kept(self, kind: type[Any]) -> list[Any]:
        """The entries of a kind on the path."""
        return [entry for entry in self.runner.session.path if isinstance(entry, kind)]

    @property
    def history(self) -> list[tuple[str, str]]:
        """The messages that stand, with the texts of results."""
        said: list[tuple[str, str]] = []
        for message in self.runner.session.envelope.cached.since(0):
            results = [b.text for b in message.blocks if isinstance(b, ToolResult)]
            said.append((message.role, " | ".join(results) or message.text))
        return said

    @property
    def results(self) -> list[str]:
        """The texts of the results in the last request, as the model got them."""
        return results_in(self.provider.bodies[-1])

    async def require_sound(self, text: str = "And now?") -> None:
        """The journal can be verified, the session takes another question, and every request
        pairs calls with results."""
        answer = await self.ask(text)
        assert answer.ending == "answered", answer
        assert self.provider.bodies[-1]["messages"][-1] == {"role": "user", "content": text}
        await self.verify()

    async def verify(self) -> None:
        session = self.runner.session
        verdict = verify(await self.store.read(session.id), self.book)
        assert verdict.sound, verdict
        for body in self.provider.bodies:
            require_paired(body)
        require_reasons(session.entries)


def results_in(body: Mapping[str, Any]) -> list[str]:
    return [each["content"] for each in body["messages"] if each["role"] == "tool"]


def require_paired(body: Mapping[str, Any]) -> None:
    """Every call has its result right behind it, in order, and every result its call."""
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            assert waiting, body
            assert message["tool_call_id"] == waiting.pop(0), body
            continue
        assert not waiting, body
        waiting = [call["id"] for call in message.get("tool_calls", ())]
    assert not waiting, body


def require_reasons(entries: Iterable[Entry]) -> None:
    """Every request extends the last one that was sent, or says why it does not."""
    for entry in entries:
        if isinstance(entry, RequestEntry) and (broke := entry.context.agreement.broke):
            assert broke.reason.strip(), entry
