"""Our own rows: naive glue, and Lamina with both promotions, behind one way of playing a
conversation: every row says, request by request, which atoms it sends in wire order."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import anyio

import lamina
from lamina.adapters.providers.tokens import EncodingCounter
from lamina.core.layers import MESSAGE_TOKENS
from lamina.core.ports import SummaryJob
from lamina.core.text import render_item
from lamina.core.text.wording import wording
from lamina.core.values.entry import RENDERER
from lamina.core.values.item import Item, note_id
from lamina.core.values.message import ToolText
from lamina.core.values.settings import Settings
from lamina.engine.session.summarizer import CompactionJob
from lamina.engine.session.turn import Turn
from peers import Line, Row
from played import Conversation, Note, Step

COUNTER = EncodingCounter("o200k_base")
UNLIMITED = 100_000_000
SUMMARY_TOKENS = 800
TARGET = "openai:gpt-4o"


@dataclass(frozen=True, slots=True)
class Atom:
    """A run of bytes on the wire. `kept` says that the next request is meant to begin with it."""

    key: str
    tokens: int
    kept: bool = True


@dataclass(frozen=True, slots=True)
class Sent:
    at: float
    atoms: tuple[Atom, ...]
    pruned: bool = False
    lost: bool = False
    # Earlier answers, and how many of them stand in it word for word.
    answers: int = 0
    answers_kept: int = 0
    # Tokens of an answer that other rows do not ask for: a summary.
    summary: int = 0


class Player(Protocol):
    name: str
    version: str

    def play(self, conversation: Conversation, budget: int | None) -> Iterator[Sent]: ...


class LaminaPlayer:
    """`variant` is the name of settings that are not the default; with `sums_up` there is a
    summarizer, whose requests count like any other."""

    def __init__(
        self, promotion: str, variant: str = "", *, sums_up: bool = False, **settings: object
    ) -> None:
        self.name = f"Lamina {promotion}{f', {variant}' if variant else ''}"
        self.version = f"lamina {lamina.__version__}"
        self._sums_up = sums_up
        self._settings = Settings(promotion=promotion, **settings)  # type: ignore[arg-type]

    def play(self, conversation: Conversation, budget: int | None) -> Iterator[Sent]:
        yield from anyio.run(self._play, conversation, budget)

    async def _play(self, conversation: Conversation, budget: int | None) -> list[Sent]:
        clock = _Clock()
        sent: list[Sent] = []
        answers: list[str] = []
        session = await lamina.open_session(
            system=conversation.system, target=TARGET, clock=clock,
            settings=_with_window(self._settings, budget), store=lamina.MemoryStore(),
            summarizer=_Summarizer(clock, sent) if self._sums_up else None,
        )  # fmt: skip
        turn: Turn | None = None
        for step in conversation.steps:
            clock.time += step.idle
            if step.question is not None:
                turn = await session.prepare(
                    step.question,
                    attach=[Item(id=note_id(n.path), content=n.text) for n in step.notes],
                    tool_texts=[
                        ToolText(name="search", text=text) for text in (step.tool_text,) if text
                    ],
                )
            else:
                assert turn is not None
                turn = await turn.resume(dict(step.results))
            kinds = {boundary.kind for boundary in turn.context.boundaries}
            atoms = tuple(Atom(s.digest, s.tokens, s.cached) for s in turn.prompt)
            cold = "pruned while" in str(turn.context.agreement.broke)
            cut = cold or bool(kinds & {"window", "compaction"})
            kept = _count_kept(answers, (s.text for s in turn.prompt))
            sent.append(Sent(clock.time, atoms, cut, answers=len(answers), answers_kept=kept))
            turn = await turn.commit(_reply(step))
            answers += [step.answer] if step.answer else []
        return sent


class _Summarizer:
    """Says as much as a summary of a long conversation usually takes, and notes what it was sent
    with the tokens that those who sent it before counted."""

    def __init__(self, clock: "_Clock", sent: list[Sent]) -> None:
        self._clock = clock
        self._sent = sent

    async def summarize(self, job: SummaryJob) -> object:
        assert isinstance(job, CompactionJob)
        counts = {atom.key: atom.tokens for past in self._sent[-1:] for atom in past.atoms}
        atoms = tuple(
            Atom(s.digest, counts.get(s.digest) or COUNTER.count(s.text), s.cached)
            for s in job._wire_request.prompt
        )
        answers = sum(past.answers for past in self._sent[-1:])
        self._sent.append(Sent(self._clock.time, atoms, answers=answers, summary=SUMMARY_TOKENS))
        return "## Goal\n" + "word " * (SUMMARY_TOKENS - 4)


def _count_kept(answers: Sequence[str], texts: Iterable[str]) -> int:
    there = set(texts)
    return sum(answer in there for answer in answers)


class _Clock:
    time = 1_000_000.0

    def now(self) -> float:
        return self.time


def _with_window(settings: Settings, budget: int | None) -> Settings:
    from msgspec.structs import replace

    return replace(settings, window=budget or UNLIMITED, output_reserve=0)


def _reply(step: Step) -> dict[str, object]:
    calls = [
        {"id": call, "function": {"name": "tool", "arguments": json.dumps({"a": text})}}
        for call, text in step.calls
    ]
    message = {"role": "assistant", "content": step.answer, "tool_calls": calls}
    return {"choices": [{"message": message, "finish_reason": "stop"}]}


class RowPlayer:
    """Plays a conversation on a row that thinks in lines."""

    def __init__(self, row: Row) -> None:
        self._row = row
        self.name = row.name
        self.version = row.version

    def play(self, conversation: Conversation, budget: int | None) -> Iterator[Sent]:
        row, now = self._row, 0.0
        answers: list[str] = []
        row.start(line("system", conversation.system), budget)
        for step in conversation.steps:
            now += step.idle
            if step.question is not None:
                notes = [note_line(note) for note in step.notes]
                if step.tool_text:
                    notes.append(
                        Line(role="user", text=step.tool_text, tokens=COUNTER.count(step.tool_text))
                    )
                row.ask(line("user", step.question), notes)
            else:
                for call, text in step.results:
                    row.say(line("tool", text, call_id=call))
            lines = row.request()
            atoms = tuple(
                Atom(f"{past.role}:{past.text}:{past.calls}", past.tokens) for past in lines
            )
            # A request without what is being asked is cheap, and useless.
            due = step.question if step.question is not None else step.results[-1][1]
            kept = _count_kept(answers, (past.text for past in lines))
            is_lost = all(past.text != due for past in lines)
            yield Sent(now, atoms, lost=is_lost, answers=len(answers), answers_kept=kept)
            answers += [step.answer] if step.answer else []
            calls = "".join(text for _, text in step.calls)
            row.say(
                line(
                    "assistant",
                    step.answer,
                    calls=tuple(call for call, _ in step.calls),
                    also=calls,
                )
            )


def line(
    role: str, text: str, *, calls: tuple[str, ...] = (), call_id: str | None = None, also: str = ""
) -> Line:
    tokens = COUNTER.count(text) + COUNTER.count(also) + MESSAGE_TOKENS
    tokens += 14 * len(calls) + (8 if call_id else 0)
    return Line(role=role, text=text, tokens=tokens, calls=calls, call_id=call_id)  # type: ignore[arg-type]


_rendered: dict[Note, Line] = {}


def note_line(note: Note) -> Line:
    """A note in the same wrapper that Lamina gives it, so that no row pays for another's words."""
    if note not in _rendered:
        text = render_item(Item(id=note_id(note.path), content=note.text), wording(RENDERER))
        _rendered[note] = Line(role="user", text=text, tokens=COUNTER.count(text))
    return _rendered[note]


class Naive:
    """Glue: system, bare history, then every attached note and the question; over the budget the
    oldest messages go, just enough of them."""

    name = "naive"
    version = "glue"

    def start(self, system: Line, budget: int | None) -> None:
        self._system = system
        self._budget = budget or UNLIMITED
        self._history: list[Line] = []
        self._turn: list[Line] = []
        self._notes: Sequence[Line] = ()

    def say(self, line: Line) -> None:
        self._turn.append(line)

    def ask(self, line: Line, notes: Sequence[Line]) -> None:
        self._history += self._turn
        self._turn, self._notes = [line], notes

    def request(self) -> list[Line]:
        fixed_lines = [*self._notes, *self._turn]
        room = self._budget - self._system.tokens - sum(past.tokens for past in fixed_lines)
        start = 0
        size = sum(past.tokens for past in self._history)
        while start < len(self._history) and (size > room or self._history[start].role == "tool"):
            size -= self._history[start].tokens
            start += 1
        return [self._system, *self._history[start:], *fixed_lines]
