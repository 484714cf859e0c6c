"""The conversations that the cache benchmark plays: attach scenarios and recorded session shapes.

A conversation is a list of steps. Texts are made of one-token words, so that sizes are exact and
two texts never agree by accident.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

WORDS = tuple(
    """
    time year people way day man thing woman life child world school state family student group
    country problem hand part place case week company system program question work government
    number night point home water room mother area money story fact month lot right study book
    eye job word business issue side kind head house service friend father power hour game line
    end member law car city community name president team minute idea kid body information back
    parent face others level office door health person art war history party result change
    morning reason research girl guy moment air teacher force education
    """.split()  # noqa: SIM905
)

# Agent sessions are code and tool output: about three characters a token.
CHARS_PER_TOKEN = 3.0
LIFETIME_S = 300.0


@dataclass(frozen=True, slots=True)
class Note:
    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Step:
    """One request: what is new since the last one, then the answer it gets. `idle` is the time
    since the request before. A step without `question` goes on with the results of the calls."""

    idle: float
    question: str | None
    answer: str
    notes: tuple[Note, ...] = ()
    tool_text: str = ""
    results: tuple[tuple[str, str], ...] = ()
    calls: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    name: str
    system: str
    steps: tuple[Step, ...]


class Writer:
    """Texts of a given number of tokens, the same for the same seed."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def text(self, tokens: int) -> str:
        return " ".join(self._random.choices(WORDS, k=max(1, tokens)))

    def chance(self, share: float) -> bool:
        return self._random.random() < share


def scenario(
    turns: int, *, tools: bool = False, gaps: bool = False, edits: bool = False
) -> Conversation:
    """L1 of 1,500 tokens, questions of 50, answers of 300, and a new note of 2,000 tokens on turns
    1, 4, 7...; what is attached stays attached."""
    traits = [name for name, on in (("tools", tools), ("gaps", gaps), ("edits", edits)) if on]
    name = f"{turns} turns" + "".join(f" +{trait}" for trait in traits)
    writer = Writer(name)
    system = writer.text(1_500)
    edit_on = {turns * part // 5 + 1 for part in range(1, 5)} if edits else set()
    notes: list[Note] = []
    steps = []
    for turn in range(1, turns + 1):
        if turn % 3 == 1:
            notes.append(Note(f"note-{len(notes) + 1}.md", writer.text(2_000)))
        if turn in edit_on:
            change_count = len(notes) // 2
            notes[change_count] = Note(notes[change_count].path, writer.text(2_000))
        is_expired = gaps and turn > 1 and writer.chance(0.27)
        steps.append(
            Step(
                idle=600.0 if is_expired else 30.0,
                question=writer.text(50),
                answer=writer.text(300),
                notes=tuple(notes),
                tool_text=writer.text(1_500) if tools else "",
            )
        )
    return Conversation(name, system, tuple(steps))


def scenarios(lengths: Sequence[int] = (20, 40, 60)) -> Iterator[Conversation]:
    for turns in lengths:
        yield scenario(turns)
        yield scenario(turns, tools=True)
        yield scenario(turns, gaps=True)
        yield scenario(turns, edits=True)
        yield scenario(turns, tools=True, gaps=True)


@dataclass(slots=True)
class _Pending:
    """What has been said since the last request of a recorded session."""

    idle: float = 0.0
    asked: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)


def recorded(path: Path) -> Iterator[Conversation]:
    """The recorded shapes as conversations. Compactions and markers are left out: each row prunes
    by its own rules. Thinking is not sent again. An answer that nothing was asked for is given a
    one-word question, and results that no call asked for are taken as typed."""
    with path.open(encoding="utf-8") as lines:
        for index, line in enumerate(lines):
            shape = json.loads(line)
            yield _conversation(f"{index:02d} {shape['id']}", shape)


def _conversation(name: str, shape: dict) -> Conversation:  # type: ignore[type-arg]
    writer = Writer(name)

    def text(chars: int) -> str:
        return writer.text(round(chars / CHARS_PER_TOKEN))

    steps: list[Step] = []
    pending = _Pending()
    for event in shape["events"]:
        idle = float(event.get("idle_s") or 0.0)
        match event["role"]:
            case "assistant":
                steps.append(_step(name, len(steps), pending, event, text))
                # The next request starts after this answer was made.
                pending = _Pending(idle=idle, calls=[call for call, _ in steps[-1].calls])
            case "tool":
                pending.idle += idle
                pending.results += [text(chars) for chars in event.get("result_chars", ())]
            case "user" | "system":
                pending.idle += idle
                pending.asked.append(text(event["chars"]))
                pending.asked += [text(chars) for chars in event.get("result_chars", ())]
            case _:
                pending.idle += idle
    return Conversation(name, writer.text(round(max(shape["system_chars"], 600) / CHARS_PER_TOKEN)),
                        tuple(steps))  # fmt: skip


def _step(name: str, number: int, pending: _Pending, event: dict, text) -> Step:  # type: ignore[type-arg, no-untyped-def]
    calls = tuple(
        (f"{name}-{number}-{index}", text(chars))
        for index, chars in enumerate(event.get("call_chars", ()))
    )
    answer = text(event["chars"]) if event["chars"] else ""
    texts, results = list(pending.asked), list(pending.results)
    if not pending.calls:
        texts += results
        return Step(pending.idle, "\n".join(texts) or "continue", answer, calls=calls)
    while len(results) < len(pending.calls):
        results.append("none")
    # More results than calls: they belong to the last one.
    head, tail = results[: len(pending.calls) - 1], results[len(pending.calls) - 1 :]
    pairs = tuple(zip(pending.calls, [*head, "\n".join([*tail, *texts])], strict=True))
    return Step(pending.idle, None, answer, results=pairs, calls=calls)
