"""One conversation, assembled in several ways for one model and measured by its own counters.

Laws: all ways are treated alike. Each has its own session and its own slot, which starts cold, and
gets the same system prompt, questions and notes, in the same wrapper. Each gives its own answers,
always the likeliest word and at most so many: its next request then continues what its slot
contains, as in real use. Giving one way the answers of another would charge it for reading what it
never said. Answers thus differ between ways by some tokens; they are generated and not read, so the
limit that all ways are compared with does not depend on them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import anyio
from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.providers.wires.llamacpp import TEMPERATURE
from lamina.adapters.stores.memory import MemoryStore
from lamina.apps.cli.script import EditedWorkspace, Script, ScriptTurn
from lamina.apps.wiring.runners import open_chat
from lamina.core.layers import MESSAGE_TOKENS
from lamina.core.ports import Provider, Providers, TokenCounter, WorkspaceSource
from lamina.core.text import render_item
from lamina.core.text.wording import wording
from lamina.core.values.entry import RENDERER
from lamina.core.values.envelope import Options
from lamina.core.values.event import BlockDelta, Event, PromptProgress, UsageReported
from lamina.core.values.item import LoadedItem as ReadItem
from lamina.core.values.item import Shape
from lamina.core.values.request import CacheVerdict, LeftOut, RequestContext
from lamina.core.values.settings import Promotion, Settings, Target
from lamina.core.values.usage import Usage
from lamina.core.values.wire import ProgressPiece, Reply, TextPiece
from lamina.engine.runners.runner import ChatRunner
from lamina.engine.session.turn import Turn
from lamina.errors import ProviderError

MAX_TOKENS = 60
Listener = Callable[[Event], None]


class Measurement(Struct, frozen=True, kw_only=True):
    """The figures of one turn of one way. `layers` are runs of one layer in wire order, by our
    count; all other figures are the model's."""

    way: str
    layers: tuple[tuple[str, int], ...]
    usage: Usage
    first_s: float
    answer: str
    context: RequestContext | None = None
    verdict: CacheVerdict | None = None

    @property
    def reprocessed(self) -> int:
        return self.usage.input - self.usage.cached


class Way(Protocol):
    """A way to assemble a conversation for a model."""

    @property
    def name(self) -> str: ...

    async def ask(self, asked: ScriptTurn, listen: Listener) -> Measurement:
        """Ask the next question.

        Raises:
            ProviderError: there is no answer.
        """
        ...


class LaminaWay:
    """Lamina itself, with one of its policies."""

    def __init__(self, runner: ChatRunner, name: Promotion) -> None:
        self._runner = runner
        self.name: str = name

    async def ask(self, asked: ScriptTurn, listen: Listener) -> Measurement:
        first: float | None = None

        def watch(event: Event) -> None:
            nonlocal first
            if isinstance(event, UsageReported):
                first = event.first_s
            listen(event)

        answer = await self._runner.run(asked.ask, attach=asked.attach, on_event=watch)
        turn = answer.turn
        if turn is None or first is None:
            raise ProviderError(f"the model said nothing to {asked.ask!r}")
        return Measurement(
            way=self.name,
            layers=layer_runs(turn),
            usage=answer.usage,
            first_s=first,
            answer=answer.text,
            context=turn.context,
            verdict=turn.verdict,
        )


class NaiveWay:
    """The naive way: bare history, then every attached note in full and the question."""

    name = "naive"

    def __init__(
        self,
        system: str,
        workspace: WorkspaceSource,
        provider: Provider,
        count: Callable[[str], int],
    ) -> None:
        self._workspace = workspace
        self._provider = provider
        self._count = count
        # A slot's key is a session's id; this way has no session.
        self._key = f"naive-{id(self):x}"
        self._system = system
        self._history: list[tuple[str, str]] = []

    async def ask(self, asked: ScriptTurn, listen: Listener) -> Measurement:
        notes = await read_notes(asked.attach, self._workspace)
        message = "\n\n".join([*notes, asked.ask])
        messages = [("system", self._system), *self._history, ("user", message)]
        began, first = anyio.current_time(), None
        text: list[str] = []
        reply: Reply | None = None
        async for piece in self._provider.stream(self._body(messages)):
            match piece:
                case TextPiece(text=words):
                    first = first or anyio.current_time() - began
                    text.append(words)
                    listen(BlockDelta(index=0, text=words))
                case ProgressPiece(done=done, total=total, cached=cached):
                    listen(PromptProgress(done=done, total=total, cached=cached))
                case Reply():
                    reply = piece
                case _:
                    pass
        if reply is None or first is None:
            raise ProviderError(f"the model said nothing to {asked.ask!r}")
        answer = "".join(text)
        layers = self._layers(notes, asked.ask)
        self._history += [("user", asked.ask), ("assistant", answer)]
        return Measurement(
            way=self.name, layers=layers, usage=reply.usage, first_s=first, answer=answer
        )

    def _body(self, messages: Sequence[tuple[str, str]]) -> Mapping[str, Any]:
        return {
            "messages": [{"role": role, "content": text} for role, text in messages],
            "temperature": TEMPERATURE,
            "max_tokens": MAX_TOKENS,
            "session": self._key,
        }

    def _layers(self, notes: Sequence[str], question: str) -> tuple[tuple[str, int], ...]:
        history = sum(self._count(text) + MESSAGE_TOKENS for _, text in self._history)
        runs = (
            ("L1", self._count(self._system) + MESSAGE_TOKENS),
            ("L4", history),
            ("L3", sum(map(self._count, notes))),
            ("L5", self._count(question) + MESSAGE_TOKENS),
        )
        return tuple((layer, tokens) for layer, tokens in runs if tokens)


async def open_ways(
    script: Script, workspace: WorkspaceSource, target: Target, providers: Providers,
    counter: TokenCounter, window: int | None = None,
) -> list[Way]:  # fmt: skip
    """Open lazy, eager and naive at the beginning of the conversation."""

    async def open_lamina(promotion: Promotion) -> LaminaWay:
        runner = await open_chat(
            system=script.system, target=target.name, workspace=workspace, store=MemoryStore(),
            settings=Settings(promotion=promotion, window=window),
            options=Options(max_tokens=MAX_TOKENS), providers=providers,
        )  # fmt: skip
        return LaminaWay(runner, promotion)

    naive = NaiveWay(script.system, workspace, await providers.provider(target), counter.count)
    return [await open_lamina("lazy"), await open_lamina("eager"), naive]


async def physical_limit(
    script: Script, workspace: WorkspaceSource, count: Callable[[str], int]
) -> int:
    """Count the tokens that every way has to process: the system prompt, each version of a note as
    all ways send it, and each question, once. Answers are in the model's cache as it gives them;
    what a chat template puts around messages is not counted."""
    edited = EditedWorkspace(workspace)
    texts = {script.system}
    asked = 0
    for turn in script.turns:
        edited.edit(turn.edit)
        texts.update(await read_notes(turn.attach, edited))
        asked += count(turn.ask)
    return sum(map(count, texts)) + asked


async def longest_request(
    script: Script, workspace: WorkspaceSource, count: Callable[[str], int]
) -> int:
    """Estimate the tokens of the last request, for the scale of bars."""
    answers = sum(count(turn.answer) for turn in script.turns)
    return await physical_limit(script, workspace, count) + answers + 45 * len(script.turns)


async def read_notes(paths: Sequence[str], workspace: WorkspaceSource) -> list[str]:
    """Read the notes as they are sent; unreadable ones are left out, as in Lamina."""
    readings = [await workspace.read(path, "attached") for path in paths]
    items = [reading.item for reading in readings if not isinstance(reading, LeftOut)]
    return [render_item(item, wording(RENDERER)) for item in items]


def layer_runs(turn: Turn) -> tuple[tuple[str, int], ...]:
    """The runs of one layer in wire order, as a bar shows them."""
    runs: list[tuple[str, int]] = []
    for segment in turn.prompt:
        if runs and runs[-1][0] == segment.layer:
            runs[-1] = (segment.layer, runs[-1][1] + segment.tokens)
        else:
            runs.append((segment.layer, segment.tokens))
    return tuple(runs)


class SampleWorkspace:
    """Notes with the same date on every machine: installation dates would change the tokens, and
    with a small model the words."""

    def __init__(self, inner: WorkspaceSource, written: str) -> None:
        self._inner = inner
        self._written = written

    @property
    def name(self) -> str:
        return self._inner.name

    async def read(self, reference: str, shape: Shape) -> ReadItem | LeftOut:
        reading = await self._inner.read(reference, shape)
        if isinstance(reading, LeftOut):
            return reading
        item = replace(reading.item, ctime=self._written, mtime=self._written)
        return replace(reading, item=item)
