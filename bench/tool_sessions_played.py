"""A session in agent mode over many tools, as `tool_sessions.py` plays it on an emulated vendor.

Law: what is asked, what a tool gives and what is answered are the same for every way of offering
tools; what can be called is decided by what stands on the wire, and so is what counts as a break.
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from allowed import recording
from lamina.adapters.providers.model_book import load_book
from lamina.adapters.stores.memory import MemoryStore
from lamina.adapters.tools.offered_tool import exposed_name, offer_tool
from lamina.apps.wiring.runners import open_agent
from lamina.core.audit.verification import verify
from lamina.core.codec import canonical_bytes
from lamina.core.ports import Index, Provider, TargetBook, TokenCounter, Wire
from lamina.core.text.renderer import render_item
from lamina.core.text.wording import wording
from lamina.core.values.entry import RENDERER, ItemEntry, ResultEntry
from lamina.core.values.event import Event, RequestStarted, ToolFinished
from lamina.core.values.settings import Settings, Target
from lamina.core.values.tool import OfferedTool, ToolOutput, Toolset
from lamina.emulators.answers import EmulatedAnswer, EmulatedCall, EmulatedRequest
from lamina.emulators.cost_report import CostRow
from lamina.emulators.emulator import MovableClock, serve_emulator
from lamina.emulators.openai import checks
from played import Writer
from thirty_turns import IDLE_S, SYSTEM_TOKENS, connect, sum_costs

RESULT_TOKENS, ANSWER_TOKENS = 200, 300
SEED = 20_260
USE_TOOL, FIND_TOOLS = "use_tool", "find_tools"
_NUMBER = re.compile(r"^\s*(?:\d+[.)]|[-*])\s*")
MAX_TOOLS_OPENAI = checks._MAX_TOOLS


# -- what is asked ---------------------------------------------------------------------------------


class Tool(Struct, frozen=True):
    """A tool as the data has it."""

    name: str
    description: str
    server: str = ""
    params: tuple[str, ...] = ()


class Question(Struct, frozen=True):
    """A question with the tools it needs, each with the servers that have the right one, and the
    steps of the annotators, one a line."""

    query: str
    gold: tuple[str, ...]
    gold_servers: dict[str, tuple[str, ...]] = {}
    category: str = ""
    steps: str = ""

    @property
    def searches(self) -> tuple[str, ...]:
        """What a model asks for that looks for tools: the question, and each of its steps."""
        steps = [_NUMBER.sub("", line).strip() for line in self.steps.splitlines()]
        return tuple(dict.fromkeys(filter(None, (self.query, *steps))))

    @property
    def right_names(self) -> list[set[str]]:
        """For each tool that it needs, the names of those that would do."""
        return [{exposed_name(s, gold) for s in self.gold_servers[gold]} for gold in self.gold]


class ToolSet(Struct, frozen=True):
    tools: tuple[Tool, ...]
    queries: tuple[Question, ...]


def read_tools(path: Path) -> ToolSet:
    """Tools and questions; those that need no tool are left out."""
    data = msgspec.json.decode(path.read_bytes(), type=ToolSet)
    return replace(data, queries=tuple(query for query in data.queries if query.gold))


def orders(questions: Sequence[Question]) -> dict[str, list[Question]]:
    """The same questions as they come, in any order, and by somebody who stays with a topic."""
    order = list(questions)
    random.Random(SEED).shuffle(order)
    topics = list(dict.fromkeys(question.category for question in questions))
    return {
        "as written": list(questions),
        "shuffled": order,
        "by topic": sorted(questions, key=lambda question: topics.index(question.category)),
    }


class Way(Struct, frozen=True, kw_only=True):
    """A way of offering tools, to a model that `searches` for what it misses, or does not."""

    name: str
    settings: Settings
    searches: bool = False


# -- the world -------------------------------------------------------------------------------------


class ManyTools:
    """A host of tools that are all chosen by search; each gives a text of its own for each turn."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.turn = 0
        self.ran: list[str] = []
        self.params = {exposed_name(tool.server, tool.name): tool.params for tool in tools}
        self._offered = tuple(map(offer, tools))

    async def toolset(self) -> Toolset:
        return Toolset(tools=self._offered)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput:  # noqa: ARG002
        self.ran.append(name)
        return ToolOutput(text=Writer(f"{self.turn} {name}").text(RESULT_TOKENS))


def offer(tool: Tool) -> OfferedTool:
    """A tool of the data, to be chosen by search."""
    schema = {"type": "object", "properties": {param: {"type": "string"} for param in tool.params}}
    tool_offer = offer_tool(tool.server, tool.name, tool.description, schema, "free", "agent")
    assert isinstance(tool_offer, OfferedTool), tool_offer
    return tool_offer


class KnowingModel:
    """A model that knows which tools a question needs. It calls those that it can: the ones in the
    list or loaded, and through `use_tool` the ones that are described to it. Then it answers. If it
    `searches` and misses one, it asks `find_tools` first, once, with the words of the question and
    of each of its steps: it does not know what the tool is called."""

    def __init__(self, params: Mapping[str, Sequence[str]], *, searches: bool = False) -> None:
        self._params = params
        self._searches = searches
        self._turn = 0
        self._question = Question("", ())
        # What is left to do in the turn under way.
        self._may_search = self._may_call = False
        self.wanted = self.callable = self.described = self.searched = 0

    def expect(self, turn: int, question: Question) -> None:
        self._turn, self._question = turn, question
        self._may_search, self._may_call = self._searches, True
        self.wanted += len(question.gold)

    async def answer(self, request: EmulatedRequest) -> EmulatedAnswer:
        asks = any(
            self._question.query in text for role, text in request.messages if role == "user"
        )
        if not asks:
            # Somebody wants a summary of it all.
            return EmulatedAnswer(text=Writer(f"summary {self._turn}").text(RESULT_TOKENS))
        if not self._may_call:
            return EmulatedAnswer(text=self.final)
        calls = self._calls(request)
        misses = len(calls) < len(self._question.gold)
        if misses and self._may_search and FIND_TOOLS in request.tools:
            self._may_search = False
            queries = self._question.searches
            self.searched += len(queries)
            searches = [EmulatedCall(name=FIND_TOOLS, arguments={"query": q}) for q in queries]
            return EmulatedAnswer(text="Let me look.", calls=tuple(searches))
        self._may_call = False
        self.callable += len(calls)
        self.described += sum(call.name == USE_TOOL for call in calls)
        if not calls:
            return EmulatedAnswer(text=self.final)
        return EmulatedAnswer(text="Let me see.", calls=tuple(calls))

    @property
    def final(self) -> str:
        return Writer(f"answer {self._turn}").text(ANSWER_TOKENS)

    def _calls(self, request: EmulatedRequest) -> list[EmulatedCall]:
        # Where results and a person's words are one message, descriptions stand behind results.
        roles = ("system", "user", "tool")
        prompt = "\n".join(text for role, text in request.messages if role in roles)
        calls = []
        for gold in self._question.gold:
            names = [exposed_name(server, gold) for server in self._question.gold_servers[gold]]
            names_offered = [name for name in names if name in request.tools]
            names_described = [name for name in names if f"<tool_context>\n{name}: " in prompt]
            if names_offered:
                calls.append(
                    EmulatedCall(name=names_offered[0], arguments=self._arguments(names_offered[0]))
                )
            elif names_described and USE_TOOL in request.tools:
                name = names_described[0]
                arguments = {"name": name, "arguments": self._arguments(name)}
                calls.append(EmulatedCall(name=USE_TOOL, arguments=arguments))
        return calls

    def _arguments(self, name: str) -> dict[str, str]:
        return dict.fromkeys(self._params[name], "something")


class _One:
    """One provider for every target."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    async def provider(self, target: Target) -> Provider:  # noqa: ARG002
        return self._provider


class _LongLists:
    """The book, where every vendor takes lists of any length."""

    def __init__(self, book: TargetBook) -> None:
        self._book = book

    def find(self, name: str) -> Target:
        return replace(self._book.find(name), max_tools=0)

    def counter(self, target: Target) -> TokenCounter:
        return self._book.counter(target)

    def wire(self, target: Target) -> Wire:
        return self._book.wire(target)


@contextmanager
def _any_number_of_tools() -> Iterator[None]:
    """OpenAI refuses long lists; what they would cost is asked all the same, and marked."""
    checks._MAX_TOOLS = 1_000_000
    try:
        yield
    finally:
        checks._MAX_TOOLS = MAX_TOOLS_OPENAI


# -- what came of it -------------------------------------------------------------------------------


class Outcome(Struct, frozen=True, kw_only=True):
    """One session, as the emulated vendor accounts for it. `breaks` are counted on the wire;
    `reasons` are those that the ledger gives, one for each break that it knows of."""

    target: str
    order: str
    way: str
    turns: int
    rows: tuple[CostRow, ...]
    breaks: int
    reasons: tuple[str, ...]
    wanted: int
    callable: int
    described: int
    most_tools: int
    # Calls of `find_tools`; what all descriptions in the conversation took, each said once; and how
    # much of that the model found.
    searched: int = 0
    described_tokens: int = 0
    found_tokens: int = 0

    def total(self, name: str) -> int:
        return sum(getattr(row.usage, name) for row in self.rows)

    @property
    def cost(self) -> float:
        return sum_costs(self.rows)

    @property
    def recall(self) -> float:
        """Of the tools that questions needed, those that could be called in their turn."""
        return self.callable / self.wanted

    @property
    def refused(self) -> bool:
        """Whether the vendor would not have taken so many tools."""
        return self.target.startswith("openai:") and self.most_tools > MAX_TOOLS_OPENAI

    def as_dict(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in ("target", "order", "way", "turns")},
            "requests": len(self.rows),
            "breaks": self.breaks,
            **{name: self.total(name) for name in ("input", "cached", "written", "output")},
            "cost": round(self.cost, 6),
            "recall": round(self.recall, 4),
            "calls": self.callable,
            "calls_of_described": self.described,
            "searches": self.searched,
            "described_tokens": self.described_tokens,
            "found_tokens": self.found_tokens,
            "most_tools": self.most_tools,
            "vendor_refuses_so_many": self.refused,
            "reasons": list(self.reasons),
        }


def count_breaks(bodies: Sequence[Mapping[str, Any]]) -> int:
    """How many requests do not begin with all of the one before."""
    pieces = [_pieces(body) for body in bodies]
    return sum(after[: len(before)] != before for before, after in pairwise(pieces))


def _pieces(body: Mapping[str, Any]) -> list[Any]:
    """A request in the order in which a vendor reads it, without markers."""
    pieces: list[Any] = [_unmarked(_listed(body)), _unmarked(body.get("system"))]
    for message in body["messages"]:
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        pieces += [(message["role"], _unmarked(block)) for block in blocks]
        pieces += [(message["role"], call) for call in message.get("tool_calls") or ()]
    return pieces


def _listed(body: Mapping[str, Any]) -> list[Any]:
    """The tools of the list. What is deferred is no part of the prefix until a result names it."""
    return [tool for tool in body.get("tools") or () if not tool.get("defer_loading")]


def _unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmarked(inner) for inner in value]
    if isinstance(value, dict):
        markers = ("cache_control", "prompt_cache_breakpoint")
        return {key: _unmarked(inner) for key, inner in value.items() if key not in markers}
    return value


# -- playing it ------------------------------------------------------------------------------------


async def play(
    name: str, way: Way, order: str, questions: Sequence[Question], tools: Sequence[Tool],
    index: Index,
) -> Outcome:  # fmt: skip
    """One session: all questions, on the emulated vendor of the target `name`."""
    book: TargetBook = _LongLists(load_book())
    target = book.find(name)
    host = ManyTools(tools)
    model = KnowingModel(host.params, searches=way.searches)
    clock = MovableClock()
    emulator, requests = recording(target.wire, answers=model, clock=clock)
    store = MemoryStore()
    reasons: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, RequestStarted) and (broke := event.context.agreement.broke):
            reasons.append(broke.reason)
        if isinstance(event, ToolFinished):
            assert not event.result.is_error, event.result

    with _any_number_of_tools():
        async with serve_emulator(emulator) as url:
            client = connect(target, url, clock)
            try:
                async with await open_agent(
                    "bench", providers=_One(client), tools=host, index=index, book=book,
                    target=name, system=Writer("tool sessions").text(SYSTEM_TOKENS), store=store,
                    clock=clock, settings=way.settings,
                ) as agent:  # fmt: skip
                    for number, question in enumerate(questions, start=1):
                        clock.move(IDLE_S)
                        host.turn = number
                        model.expect(number, question)
                        answer = await agent.run(question.query, on_event=listen)
                        assert answer.ending == "answered", answer
                        assert answer.text == model.final
            finally:
                await client.aclose()
    refusals = [row for row in emulator.report.rows if row.status != 200]
    assert not refusals, refusals[0].missed
    assert len(host.ran) == model.callable
    journal = await store.read("bench")
    verdict = verify(journal, book)
    assert verdict.sound, verdict
    entries = journal.entries.values()
    found = {t.item for e in entries if isinstance(e, ResultEntry) for t in e.found}
    count = book.counter(target).count
    items = [e.item for e in entries if isinstance(e, ItemEntry) and e.item.kind == "tool"]
    sizes = {item.id: count(render_item(item, wording(RENDERER))) for item in items}
    loads = [e.loads for e in entries if isinstance(e, ResultEntry) and e.loads]
    sizes |= {
        t.item: count(canonical_bytes(t.definition).decode())
        for block in loads
        for t in block.tools
    }
    bodies = [request.body for request in requests]
    return Outcome(
        target=name, order=order, way=way.name, turns=len(questions),
        rows=tuple(emulator.report.rows), breaks=count_breaks(bodies), reasons=tuple(reasons),
        wanted=model.wanted, callable=model.callable, described=model.described,
        most_tools=max(len(_listed(body)) for body in bodies), searched=model.searched,
        described_tokens=sum(sizes.values()),
        found_tokens=sum(tokens for item, tokens in sizes.items() if item in found),
    )  # fmt: skip
