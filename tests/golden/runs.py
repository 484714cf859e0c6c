"""Sessions that a runner leads: chats, agents with tools, plans, questions about notes; drawn."""

from collections.abc import Iterable
from typing import Any, Literal

from msgspec.structs import replace
from tests.fakes.notes import NoteSourceFake, WordIndexFake
from tests.fakes.providers import Call, ProviderFake, ProvidersFake, Script, calling, saying, spoken
from tests.fakes.tools import ApproverFake, ToolHostFake, tool
from tests.golden.draw import Draw
from tests.golden.talk import Talk
from tests.golden.tape import Tape
from tests.golden.wires import TARGETS
from tests.golden.world import KEY, offered_tools

from lamina import AgentRunner, ChatRunner, PlanRunner, QaRunner, Scope
from lamina.core.ports import JournalStore
from lamina.core.values.event import AnswerChanged, AnswerHeld, Event, HookShown
from lamina.core.values.settings import Target
from lamina.core.values.tool import Decision, ToolOutput, WithheldTool
from lamina.core.values.usage import Usage
from lamina.core.values.wire import ProgressPiece, ThinkingPiece
from lamina.engine.session.summarizer import ModelSummarizer
from lamina.engine.sources.note_search import WorkspaceSearch
from lamina.errors import ProviderBusy, ProviderError, RequestTooLong

Kind = Literal["chat", "agent", "plan", "qa"]
KINDS: tuple[Kind, ...] = ("chat", "agent", "agent", "plan", "qa")
NOTES = {
    "sea/harbour.md": (
        "---\ntags: [sea]\n---\n# Berths\n\n## North\n\nThe north quay has nine berths.\n\n"
        "## South\n\nThe south quay and its crane are closed until spring.\n"
    ),
    "sea/ferry log.md": "# Log #sea/log\nThe ferry Aurora sails at noon with the tide.\n",
    "land/trains.md": f"Trains leave from platform four. {KEY}\n",
    "land/long.md": "\n\n".join(f"## Part {n}\n\nThe rope is {n} long." * 4 for n in range(12)),
}
QUESTIONS = (
    "How many berths does the quay have?", "When does the ferry sail with the tide?",
    "Which rope? Which crane?", "And the trains?", "@composer write it down", "lantern anchor",
    "rope, then lantern; then tide", "Thanks!",
)  # fmt: skip
SEARCHES: tuple[dict[str, Any], ...] = (
    {"query": "berths of the quay"}, {"query": "tide", "since": "soon"}, {},
    {"query": "rope", "folders": ["land", "/sea/"], "until": "2026-01-31"},
    {"query": "ferry", "tags": ["#sea"], "since": "1970-01-01T00:00:00"},
)  # fmt: skip
SCOPES = (
    Scope(), Scope(folders=("sea",)), Scope(tags=("sea",)), Scope(since=1.0), Scope(folders=("x",)),
)  # fmt: skip


class Run(Talk):
    """A runner over a session; the model plays what was drawn for it."""

    def __init__(self, draw: Draw, tape: Tape, store: JournalStore, target: Target) -> None:
        super().__init__(draw, tape, store, target)
        self.kind = draw.pick(KINDS)
        self.given["tools"] = None
        asking = draw.pick(("tool", "tool", "always", "never"))
        self.settings = replace(self.settings, ask_before_tools=asking)
        self.host = ToolHostFake(*offered_tools(draw))
        self.host.outputs = {
            "find": ToolOutput(text=draw.words(draw.pick((5, 200)))),
            "clock": ToolOutput(text="It is late.", is_error=True),
            "read": ToolOutput(text="The tide table: rope, crane."),
        }
        decisions: list[Decision] = ["allow_once", "allow_session", "deny"]
        asked = draw.some(decisions, 3)
        self.approver = ApproverFake(*asked) if asked else None
        self.provider = ProviderFake()
        self.notes = NoteSourceFake(NOTES, dict.fromkeys(list(NOTES)[:2], 100.0))
        self.words = WordIndexFake()
        if draw.chance(0.1):
            self.words.lexical = "there is no model"
        if draw.chance(0.3):
            self.summarizer = ModelSummarizer(ProvidersFake(self.provider))
        self.limit = draw.pick((2, 20))
        self.runner: ChatRunner | None = None

    def led(self) -> ChatRunner:
        """The runner of the session as it is open now."""
        if self.runner is not None and self.runner.session is self.session:
            return self.runner
        session, providers = self.session, ProvidersFake(self.provider)
        search = WorkspaceSearch(self.notes, self.words)
        match self.kind:
            case "chat":
                self.runner = ChatRunner(session, providers)
            case "agent":
                self.runner = AgentRunner(
                    session, providers, self.host, approver=self.approver, max_requests=self.limit
                )
            case "plan":
                found = search if self.draw.chance(0.7) else None
                self.runner = PlanRunner(
                    session, providers, self.host, search=found, approver=self.approver, top=3
                )
            case "qa":
                scope = self.draw.pick(SCOPES)
                self.runner = QaRunner(session, providers, search, scope=scope, top=4)
        return self.runner

    # -- what the model does -----------------------------------------------------------------------

    def calls(self) -> list[Call]:
        draw = self.draw
        there = [each.definition.name for each in self.host.tools] or ["absent"]
        made: list[Call] = []
        for index in range(draw.pick((1, 1, 2, 3))):
            name = draw.pick((*there, *there, "absent", "use_tool", "localSearch"))
            given: Any = draw.pick(({"path": "a.md"}, {"path": "a.md"}, {}, "[1]", "{broken"))
            if name == "use_tool":
                inner = draw.pick(there)
                given = draw.pick(
                    (
                        {"name": inner, "arguments": {"path": "b.md"}},
                        {"name": f"fake/{inner}", "arguments": '{"path": "c.md"}'},
                        {"arguments": {}},
                    )
                )
            if name == "localSearch":
                given = draw.pick(SEARCHES)
            # Some servers give one id to several calls.
            made.append((f"c{self.number}-{draw.pick((index, index, 0))}", name, given))
        return made

    def script(self, *, may_call: bool) -> Script:
        draw = self.draw
        usage = Usage(input=draw.number(10, 900), cached=draw.pick((0, 8, 64)), output=5)
        text = draw.words(draw.pick((1, 4, 40, 150)), f"r{self.number}")
        choice = draw.number(0, 19)
        if may_call and choice < 12:
            return calling(*self.calls(), text=draw.pick(("", "Let me see.")), usage=usage)
        if choice == 12:
            return [RequestTooLong("too long", 900, 800)]
        if choice == 13:
            return [*spoken(text), ProviderError("it fell over")]
        if choice == 14:
            return [ProviderBusy("try later", 3.0)]
        if choice == 15:
            return [ProgressPiece(done=5, total=9, cached=2), ThinkingPiece("hm"), *spoken(text)]
        stop = draw.pick(("stop", "stop", "length"))
        return saying(f"{text} [^1][^2]", usage=usage, stop=stop)

    def scripts(self) -> Iterable[Script]:
        calls = self.kind in ("agent", "plan") or self.draw.chance(0.1)
        for _ in range(self.draw.pick((1, 2, 3, 4))):
            yield self.script(may_call=calls)

    # -- a turn ------------------------------------------------------------------------------------

    async def ask(self) -> None:
        self.number += 1
        draw = self.draw
        self.world.clock.pass_by(draw.pick((10.0, 10.0, 400.0)))
        self.change_host()
        runner = self.led()
        self.provider.scripts = list(self.scripts())
        stops = draw.number(1, 14) if draw.chance(0.15) else 0
        seen = 0

        def watch(event: Event) -> None:
            nonlocal seen
            # Where a run is stopped was drawn before there were these.
            seen += not isinstance(event, AnswerChanged | AnswerHeld | HookShown)
            if seen == stops:
                runner.abort()

        before = len(self.provider.bodies)
        try:
            if isinstance(runner, AgentRunner) and draw.chance(0.15):
                await runner.send_message(
                    "Also the crane.", deliver=draw.pick(("steer", "follow_up"))
                )
            if self.left_open() and draw.chance(0.6):
                await self.decide()
                answer = await runner.resume(on_event=watch)
            else:
                other = draw.pick(TARGETS).name if draw.chance(0.05) else None
                attached = self.attachments() if draw.chance(0.4) else []
                answer = await runner.run(
                    draw.pick(QUESTIONS), attach=attached, target=other, on_event=watch
                )
            self.tape.outcome(answer.ending, answer.text, answer.requests)
        finally:
            for body in self.provider.bodies[before:]:
                self.tape.request(body)

    def left_open(self) -> bool:
        return self.session.interrupted or bool(self.session.pending_calls)

    async def decide(self) -> None:
        """A person decides a call that waits, before the turn goes on."""
        waiting = self.session.pending_calls
        if isinstance(self.runner, AgentRunner) and waiting and self.draw.chance(0.7):
            decision: Decision = self.draw.pick(("allow_once", "allow_session", "deny"))
            await self.runner.decide(waiting[0].id, decision)

    def change_host(self) -> None:
        """Servers come and go, and change what they say of their tools."""
        draw = self.draw
        if draw.chance(0.1):
            self.host.tools = [t for t in self.host.tools if draw.chance(0.8)]
        if draw.chance(0.1):
            self.host.tools = [
                tool("find", description="Finds more.") if t.definition.name == "find" else t
                for t in self.host.tools
            ]
        if draw.chance(0.05):
            gone = WithheldTool(what="fake", reason="unreachable", detail="fake does not answer")
            self.host.withheld = (gone,)
        if draw.chance(0.1):
            self.notes.notes["land/new.md"] = draw.words(30)

    async def settle(self) -> None:
        """A runner takes up what was left, or gives it up by itself."""
