"""The conversation that `providers.py` plays: thirty turns with notes, edits, tools, one
compaction and pauses, and Lamina's way through it on an emulated vendor.

Law: what is said, attached and answered is the same for everybody who plays it; what is sent for it
is each one's own.
"""

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from allowed import Sent, allowed, count_markers, recording
from lamina.adapters.providers.model_book import load_book
from lamina.adapters.stores.memory import MemoryStore
from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.apps.wiring.runners import open_agent
from lamina.core.ports import Provider
from lamina.core.text import render_item
from lamina.core.text.wording import wording
from lamina.core.values.entry import RENDERER
from lamina.core.values.event import Event, UsageReported
from lamina.core.values.item import LoadedItem
from lamina.core.values.request import CacheVerdict
from lamina.core.values.settings import Settings, Target, cache_rules
from lamina.emulators.answers import EmulatedAnswer, EmulatedCall, ScriptedAnswers
from lamina.emulators.cost_report import CostRow
from lamina.emulators.emulator import Emulator, MovableClock, serve_emulator
from lamina.engine.runners.runner import AgentRunner
from played import Writer

TURNS = 30
KEY = "sk-bench-0123456789abcdefghij"
SYSTEM_TOKENS, NOTE_TOKENS, ASKED_TOKENS, ANSWER_TOKENS = 1_500, 2_000, 50, 300
# What a compaction leaves of the conversation: that many tokens, which is about as many turns.
KEPT_TOKENS, KEPT_TURNS = 2_000, 4
# A little while by default. Ten minutes outlive the caches of five, forty those of thirty.
IDLE_S = 30.0
PAUSES = {9: 600.0, 12: 200.0, 16: 600.0, 24: 600.0, 28: 2_400.0}
# The calls of a turn, and how long what each gives is.
CALLS = {3: (1, 400), 6: (2, 300), 11: (18, 60), 14: (2, 300), 21: (3, 300), 26: (1, 400)}
EDITS = (7, 13, 20, 25)
COMPACTED_AFTER = 18
# Files are as old in every run.
_WRITTEN = 1_790_000_000


class Turn(Struct, frozen=True, kw_only=True):
    """One turn: how long nobody said anything, what applies, what is written before it is asked,
    and what is answered, request by request."""

    number: int
    idle: float
    question: str
    attached: tuple[str, ...]
    written: dict[str, str]
    answers: tuple[EmulatedAnswer, ...]


class Plan(Struct, frozen=True, kw_only=True):
    system: str
    turns: tuple[Turn, ...]
    # What the tool says, by what it is asked.
    entries: dict[str, str]
    summary: str

    def answers(self) -> list[EmulatedAnswer]:
        """Everything the model says, in order."""
        replies: list[EmulatedAnswer] = []
        for turn in self.turns:
            replies += turn.answers
            if turn.number == COMPACTED_AFTER:
                replies.append(EmulatedAnswer(text=self.summary))
        return replies


def make_plan(answer_tokens: int = ANSWER_TOKENS) -> Plan:
    """The conversation: a new note on every third turn, all of which stay attached; one of them is
    edited now and then."""
    writer = Writer("thirty turns")
    system = writer.text(SYSTEM_TOKENS)
    entries: dict[str, str] = {}
    notes: list[str] = []
    turns = []
    for number in range(1, TURNS + 1):
        new_notes = {}
        if number % 3 == 1:
            notes.append(f"note{len(notes) + 1}.md")
            new_notes[notes[-1]] = writer.text(NOTE_TOKENS)
        if number in EDITS:
            new_notes[notes[len(notes) // 2]] = writer.text(NOTE_TOKENS)
        answers = []
        if number in CALLS:
            count, size = CALLS[number]
            names = [f"entry {number}-{index}" for index in range(count)]
            entries |= {name: writer.text(size) for name in names}
            calls = [EmulatedCall(name="look_up", arguments={"entry": name}) for name in names]
            answers.append(EmulatedAnswer(text="Let me look that up.", calls=tuple(calls)))
        answers.append(EmulatedAnswer(text=writer.text(answer_tokens)))
        turns.append(
            Turn(
                number=number,
                idle=PAUSES.get(number, IDLE_S),
                question=writer.text(ASKED_TOKENS),
                attached=tuple(notes),
                written=new_notes,
                answers=tuple(answers),
            )
        )
    return Plan(system=system, turns=tuple(turns), entries=entries, summary=writer.text(200))


def write_notes(folder: Path, turn: Turn) -> None:
    for name, text in turn.written.items():
        path = folder / name
        path.write_text(f"{text}\n", "utf-8")
        os.utime(path, (_WRITTEN + turn.number, _WRITTEN + turn.number))


async def rendered_notes(plan: Plan) -> list[dict[str, str]]:
    """What is attached to each turn, in the words that Lamina puts around a note: so that nobody
    pays for another's."""
    notes_rendered = []
    with TemporaryDirectory() as name:
        source = FolderWorkspace(name)
        for turn in plan.turns:
            write_notes(Path(name), turn)
            texts = {}
            for path in turn.attached:
                reading = await source.read(path, "attached")
                assert isinstance(reading, LoadedItem), reading
                texts[path] = render_item(reading.item, wording(RENDERER))
            notes_rendered.append(texts)
    return notes_rendered


# -- what came of it -------------------------------------------------------------------------------


def sum_costs(rows: Sequence[CostRow]) -> float:
    """What all requests cost; a benchmark has no use for models without a known price."""
    costs = [row.cost for row in rows if row.cost is not None]
    if len(costs) < len(rows):
        raise SystemExit(f"nobody knows the price of one of {sorted({row.model for row in rows})}")
    return sum(costs)


class Outcome(Struct, frozen=True, kw_only=True):
    """One way through the conversation, as the emulated vendor accounts for it. `allowed` is what
    could have been read of each request; `verdicts` are ours, None where nothing was predicted."""

    target: str
    way: str
    rows: tuple[CostRow, ...]
    allowed: tuple[int, ...]
    markers: int
    verdicts: tuple[CacheVerdict | None, ...] = ()

    def total(self, name: str) -> int:
        return sum(getattr(row.usage, name) for row in self.rows)

    @property
    def cost(self) -> float:
        return sum_costs(self.rows)

    @property
    def share(self) -> float:
        """Of the input, what was read from the cache."""
        return self.total("cached") / self.total("input")

    @property
    def of_allowed(self) -> float:
        """Of what the vendor's rules allowed to be read, what was."""
        return self.total("cached") / sum(self.allowed)

    @property
    def errors(self) -> list[int]:
        """By how many tokens each prediction was too high."""
        pairs = zip(self.verdicts, self.rows, strict=False)
        return [verdict.expected - row.usage.cached for verdict, row in pairs if verdict]

    @property
    def error(self) -> float:
        """All that predictions were off by, in either direction, over what was read."""
        prediction = sum(
            row.usage.cached for v, row in zip(self.verdicts, self.rows, strict=False) if v
        )
        return sum(map(abs, self.errors)) / prediction

    def as_dict(self) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "target": self.target,
            "way": self.way,
            "requests": len(self.rows),
            **{name: self.total(name) for name in ("input", "cached", "written", "output")},
            "cost": round(self.cost, 6),
            "share": round(self.share, 4),
            "of_allowed": round(self.of_allowed, 4),
            "markers": self.markers,
        }
        if self.verdicts:
            fields |= {
                "error": round(self.error, 5),
                "error_signed": sum(self.errors),
                "error_largest": max(map(abs, self.errors)),
            }
        return fields


def outcome(
    emulator: Emulator, sent: Sequence[Sent], target: Target, way: str, settings: Settings,
    verdicts: Sequence[CacheVerdict | None] = (),
) -> Outcome:  # fmt: skip
    """What an emulator's report comes to."""
    refused = [row for row in emulator.report.rows if row.status != 200]
    assert not refused, refused[0].missed
    rows = tuple(emulator.report.rows)
    assert len(rows) == len(sent)
    return Outcome(
        target=target.name,
        way=way,
        rows=rows,
        allowed=tuple(allowed(sent, target, cache_rules(settings, target))),
        markers=max(count_markers(request.body) for request in sent),
        verdicts=tuple(verdicts),
    )


# -- Lamina ----------------------------------------------------------------------------------------


class _One:
    """One provider for every target."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    async def provider(self, target: Target) -> Provider:  # noqa: ARG002
        return self._provider


def make_emulator(target: Target, plan: Plan) -> tuple[Emulator, list[Sent]]:
    """An emulated vendor that says what the plan has it say, and what it will be sent."""
    return recording(target.wire, answers=ScriptedAnswers(plan.answers()), clock=MovableClock())


def connect(target: Target, url: str, clock: MovableClock) -> Any:
    """Lamina's own client for a target that is served at `url`."""
    from lamina.adapters.providers.clients import anthropic, gemini, openai

    match target.wire:
        case "openai":
            return openai.connect(replace(target, base_url=f"{url}/v1"), KEY)
        case "anthropic":
            return anthropic.connect(replace(target, base_url=url), KEY)
        case _:
            return gemini.connect(replace(target, base_url=url), KEY, now=clock.now)


async def play_lamina(
    name: str, settings: Settings, plan: Plan, way: str = "Lamina", folder: Path | None = None
) -> Outcome:
    """Lamina's way through the conversation, on the emulated vendor of the target `name`."""
    if folder is None:
        with TemporaryDirectory() as place:
            return await play_lamina(name, settings, plan, way, Path(place))
    target = load_book().find(name)
    emulator, requests = make_emulator(target, plan)
    verdicts: list[CacheVerdict | None] = []

    def listen(event: Event) -> None:
        if isinstance(event, UsageReported):
            verdicts.append(event.verdict)

    async with _agent(emulator, target, settings, plan, folder) as agent:
        for turn in plan.turns:
            emulator.clock.move(turn.idle)
            write_notes(folder, turn)
            answer = await agent.run(turn.question, attach=turn.attached, on_event=listen)
            assert answer.ending == "answered", answer
            assert answer.text == turn.answers[-1].text
            if turn.number == COMPACTED_AFTER:
                compaction = await agent.session.compact()
                assert compaction.changed, compaction
                assert not compaction.problem, compaction
                # The request for the summary is none that anything is predicted of.
                verdicts.append(None)
    return outcome(emulator, requests, target, way, settings, verdicts)


@asynccontextmanager
async def _agent(
    emulator: Emulator, target: Target, settings: Settings, plan: Plan, folder: Path
) -> AsyncIterator[AgentRunner]:
    async with serve_emulator(emulator) as url:
        client = connect(target, url, emulator.clock)
        try:
            async with await open_agent(
                "bench",
                providers=_One(client),
                tools=[tool_of(plan)],
                target=target.name,
                system=plan.system,
                workspace=folder,
                store=MemoryStore(),
                clock=emulator.clock,
                settings=replace(
                    settings, ask_before_tools="never", compaction_keep=KEPT_TOKENS
                ),
            ) as agent:  # fmt: skip
                yield agent
        finally:
            await client.aclose()


def tool_of(plan: Plan) -> Callable[[str], str]:
    def look_up(entry: str) -> str:
        """What the archive has under an entry."""
        return plan.entries[entry]

    return look_up
