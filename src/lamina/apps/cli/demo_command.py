"""`lamina demo`: one conversation with the embedded model, assembled in three ways and measured.

Law: nothing on the screen is made up. The answers are the model's, and token figures and times
come from its own counters; `demo_ways` defines what is fair. If the model is not available, or with
`--no-model`, the same conversation is played without one: the answers come from the script, and
tokens are counted, not measured.
"""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

import typer
from msgspec import Struct
from rich.console import Console
from rich.live import Live
from rich.padding import Padding
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text as Styled

from lamina.adapters.files.extras import require
from lamina.adapters.providers.model_book import DEFAULT_TARGET, load_book
from lamina.adapters.stores.memory import MemoryStore
from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.apps.cli.console_notices import ConsoleNotices
from lamina.apps.cli.demo_ways import (
    MAX_TOKENS,
    Measurement,
    SampleWorkspace,
    Way,
    layer_runs,
    longest_request,
    open_ways,
    physical_limit,
    read_notes,
)
from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.outcome import refuse_if
from lamina.apps.cli.script import (
    EditedWorkspace,
    Script,
    ScriptClock,
    ScriptTurn,
    read_script,
    scripted_reply,
)
from lamina.apps.views.session_opener import ensure_target
from lamina.apps.wiring import open_session
from lamina.apps.wiring.runners import Clients
from lamina.core.layers import MESSAGE_TOKENS
from lamina.core.ports import Providers, WorkspaceSource
from lamina.core.values.event import BlockDelta, Event, PromptProgress
from lamina.core.values.prompt import LAYERS
from lamina.core.values.request import ContextItem
from lamina.core.values.settings import Settings, Target
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn
from lamina.errors import ModelMissing, RequestTooLong, UsageError

app = typer.Typer()

# With a name before it and three figures after it, the line has 79 characters.
BAR = 34
STYLES = {
    "tools": "magenta",
    "L1": "blue",
    "L2": "cyan",
    "L3": "green",
    "L4": "yellow",
    "L5": "red",
}
LAYER_NAMES = {"L1": "system", "L2": "library", "L3": "this turn", "L4": "history", "L5": "message"}


EXPLANATION = (
    "lazy:  an item stays where it was first sent; later turns only refer to it\n"
    "eager: an item moves into the system prompt one turn after it was sent\n"
    "naive: every attached note is sent again with every question\n"
)


def draw_legend() -> Styled:
    legend = Styled("  ")
    for layer, name in LAYER_NAMES.items():
        legend.append(f"{layer} {name}  ", style=STYLES[layer])
    return legend


def label_items(items: Sequence[ContextItem], *aside: str) -> list[str]:
    """Labels for new items and for items only referred to, except placements in `aside`."""
    labels = {
        "new": [item.label for item in items if item.placement == "message"],
        "named": [item.label for item in items if item.placement not in ("message", *aside)],
    }
    return [f"{word}: {', '.join(names)}" for word, names in labels.items() if names]


def draw_bar(name: str, layers: Sequence[tuple[str, int]], kept: int, scale: float) -> Styled:
    """The bar of a request, padded to a fixed width; `scale` is tokens per cell."""
    total = sum(tokens for _, tokens in layers)
    # All bars share a scale, unless one would overflow its line.
    scale = max(scale, total / BAR)
    bar = Styled(f"  {name:<6}")
    before = 0
    for layer, tokens in layers:
        stays = max(0, min(tokens, kept - before))
        bar.append("░" * _width(stays, scale), style=STYLES[layer])
        bar.append("█" * _width(tokens - stays, scale), style=STYLES[layer])
        before += tokens
    bar.append(" " * max(1, BAR + 12 - len(bar)))
    return bar


def _width(tokens: int, scale: float) -> int:
    return max(1, round(tokens / scale)) if tokens else 0


class DryRunCost(Struct):
    """The cost of one way of assembling so far."""

    sent: int = 0
    reprocessed: int = 0
    breaks: int = 0


async def play_scripted(
    console: Console, script: Script, workspace: WorkspaceSource, target: Target
) -> None:
    """Play the conversation; its edits stay in memory."""
    await _ScriptedDemo(console, script, EditedWorkspace(workspace), target).play()


class _ScriptedDemo:
    def __init__(
        self, console: Console, script: Script, folder: EditedWorkspace, target: Target
    ) -> None:
        self.console = console
        self.script = script
        self.folder = folder
        self.target = target
        self.clock = ScriptClock()
        self.spent = {name: DryRunCost() for name in ("lazy", "eager", "naive")}
        self.naive = _Naive(script.system, folder, target)
        self.scale = 1.0

    async def play(self) -> None:
        title = self.script.title or "A conversation"
        lifetime = self.target.cache.lifetime_s
        lives = "until its process ends" if lifetime is None else f"{lifetime / 60:g} minutes"
        self.console.print(
            f"\n[bold]{title}[/bold]: {len(self.script.turns)} turns, no model.\n"
            f"Counted as {self.target.name} does; its cache lives {lives}.\n"
            f"░ unchanged since the last request   █ processed again"
        )
        self.console.print(draw_legend())
        count = load_book().counter(self.target).count
        self.scale = await longest_request(self.script, self.folder, count) / BAR
        lazy, eager = await self._open("lazy"), await self._open("eager")
        for number, turn in enumerate(self.script.turns, 1):
            self.clock.time += turn.pause
            self.folder.edit(turn.edit)
            self._head(number, turn)
            await self._turn(lazy, "lazy", turn)
            await self._turn(eager, "eager", turn)
            await self._naive_turn(turn)
        self._summary()

    async def _open(self, promotion: Literal["lazy", "eager"]) -> Session:
        return await open_session(
            system=self.script.system, target=self.target.name, workspace=self.folder,
            settings=Settings(promotion=promotion), clock=self.clock, store=MemoryStore(),
        )  # fmt: skip

    def _head(self, number: int, turn: ScriptTurn) -> None:
        notes = ", ".join(turn.attach) or "nothing"
        pause = f", {turn.pause / 60:.0f} minutes later" if turn.pause > 300 else ""
        edits = f", {', '.join(turn.edit)} edited" if turn.edit else ""
        self.console.rule(
            f"[bold]turn {number}[/bold] · attached: {notes}{edits}{pause}", align="left"
        )
        self.console.print(f"  [italic]{turn.ask}[/italic]")

    async def _turn(self, session: Session, name: str, asked: ScriptTurn) -> None:
        turn = await session.prepare(asked.ask, attach=asked.attach)
        is_expired = any(boundary.kind == "expired" for boundary in turn.context.boundaries)
        stable = 0 if is_expired else turn.context.agreement.tokens
        self._draw(name, layer_runs(turn), stable)
        if name == "lazy":
            self._explain(turn)
        self.spent[name].breaks += turn.context.agreement.broke is not None and not is_expired
        await turn.commit(scripted_reply(asked.answer))

    async def _naive_turn(self, asked: ScriptTurn) -> None:
        is_expired = asked.pause > (self.target.cache.lifetime_s or float("inf"))
        atoms, stable, broke = await self.naive.turn(asked)
        self.spent["naive"].breaks += broke and not is_expired
        self._draw("naive", atoms, 0 if is_expired else stable)

    def _draw(self, name: str, layers: Sequence[tuple[str, int]], stable: int) -> None:
        total = sum(tokens for _, tokens in layers)
        spent = self.spent[name]
        spent.sent += total
        spent.reprocessed += total - stable
        bar = draw_bar(name, layers, stable, self.scale)
        bar.append(f"{stable:>5,} stay", style="dim")
        bar.append(f" {total - stable:>5,} again")
        self.console.print(bar, soft_wrap=True)

    def _explain(self, turn: Turn) -> None:
        sizes = {size.layer: size.tokens for size in turn.layers}
        layers = "  ".join(f"{layer} {sizes[layer]:,}" for layer in LAYERS if sizes[layer])
        parts = [layers, *label_items(turn.context.items)]
        parts += [
            f"boundary: {boundary.reason}"
            for boundary in turn.context.boundaries
            if boundary.kind != "first_request"
        ]
        for part in parts:
            self.console.print(f"         [dim]{part}[/dim]", highlight=False)

    def _summary(self) -> None:
        best = self.spent["lazy"].reprocessed
        table = Table(title="\nThe whole conversation", title_justify="left")
        for heading in ("", "tokens sent", "re-processed", "against lazy", "prefix broken"):
            table.add_column(heading, justify="right" if heading else "left")
        for name, spent in self.spent.items():
            table.add_row(
                name,
                f"{spent.sent:,}",
                f"{spent.reprocessed:,}",
                f"{spent.reprocessed / best:.2f}x",
                f"{spent.breaks}x",
            )
        self.console.print(table)
        self.console.print(
            f"{EXPLANATION}\n"
            'See one request in full: lamina context "Your question" --attach NOTE.md\n'
        )


class _Naive:
    """Glue: bare history, then all attached notes and the question in one message."""

    def __init__(self, system: str, workspace: WorkspaceSource, target: Target) -> None:
        self._workspace = workspace
        self._count = load_book().counter(target).count
        self._history: list[tuple[str, str]] = [("L1", system)]
        self._before: list[tuple[str, str]] = []

    async def turn(self, asked: ScriptTurn) -> tuple[list[tuple[str, int]], int, bool]:
        notes = [("L3", text) for text in await read_notes(asked.attach, self._workspace)]
        atoms = [*self._history, *notes, ("L5", asked.ask)]
        shared = 0
        for old, new in zip(self._before, atoms, strict=False):
            if old[1] != new[1]:
                break
            shared += 1
        broke = shared < len(self._before)
        self._before = atoms
        self._history += [("L4", asked.ask), ("L4", asked.answer)]
        sizes = [(layer, self._count(text) + MESSAGE_TOKENS) for layer, text in atoms]
        return sizes, sum(tokens for _, tokens in sizes[:shared]), broke


WAYS = 3
# The sample needs half of the model's window; more would only cost memory.
SAMPLE_WINDOW = 4_096
SAMPLE_WRITTEN = "2026-05-04T08:00:00.000Z"
COUNTED_AS = "openai:gpt-5"


def sample_folder() -> Path:
    return Path(str(files("lamina.apps.cli").joinpath("sample")))


def sample_script() -> Path:
    return sample_folder() / "conversation.json"


async def play_demo(
    workspace: Path | None, script: Path | None, target: str | None, with_model: bool
) -> bool:
    """Play the conversation; return False if the model was not available.

    Raises:
        ExtraMissing: the model's runtime is not installed.
        UsageError: the script cannot be read, or the target is not a local model.
    """
    conversation = read_script(script or sample_script())
    console = Console()
    book = load_book()
    folder: WorkspaceSource = FolderWorkspace(workspace or sample_folder())
    if workspace is None:
        folder = SampleWorkspace(folder, SAMPLE_WRITTEN)
    if not with_model:
        await play_scripted(console, conversation, folder, book.find(target or COUNTED_AS))
        return True
    asked = book.find(target or DEFAULT_TARGET)
    if asked.provider != "local":
        raise UsageError(
            f"{asked.name!r} is not a model on this machine; --no-model counts tokens as it would"
        )
    require(asked.wire)
    window = SAMPLE_WINDOW if workspace is None else asked.window
    clients = Clients(slots=WAYS, window=window)
    aside = Console(stderr=True)
    try:
        await ensure_target(asked, ConsoleNotices(aside))
        if console.is_terminal:
            with console.status("loading the model"):
                await clients.provider(asked)
        else:
            await clients.provider(asked)
    except ModelMissing as error:
        aside.print(
            f"The model is not available: {error}\n\n"
            "Here is the same conversation without it: the answers come from a script, and "
            "reprocessed tokens are counted, not measured.",
            highlight=False,
        )
        await play_scripted(console, conversation, folder, book.find(COUNTED_AS))
        return False
    # Looked up again: now that the model's file is here, its counts are exact.
    await _MeasuredDemo(
        console, conversation, folder, book.find(asked.name), clients, window
    ).play()
    return True


class _MeasuredDemo:
    def __init__(
        self, console: Console, script: Script, source: WorkspaceSource, target: Target,
        providers: Providers, window: int,
    ) -> None:  # fmt: skip
        self._console = console
        self._script = script
        self._source = source
        self._folder = EditedWorkspace(source)
        self._target = target
        self._providers = providers
        self._window = window
        self._counter = load_book().counter(target)
        self._measurements: dict[str, list[Measurement]] = {}
        self._scale = 1.0

    async def play(self) -> None:
        turns = self._script.turns
        title = self._script.title or "A conversation"
        self._console.print(
            f"\n[bold]{title}[/bold]: {len(turns)} turns with {self._target.name}.\n"
            f"Lazy, eager and naive each start with their own empty cache slot and give their\n"
            f"own answers: always the likeliest word, at most {MAX_TOKENS} tokens. All figures\n"
            f"come from the model.\n\n  ░ cached   █ processed again",
            highlight=False,
        )
        self._console.print(draw_legend())
        longest = await longest_request(self._script, self._source, self._counter.count)
        self._scale = longest / BAR
        ways = await open_ways(
            self._script, self._folder, self._target, self._providers, self._counter, self._window
        )
        self._measurements = {way.name: [] for way in ways}
        for number, turn in enumerate(turns, 1):
            self._folder.edit(turn.edit)
            self._head(number, turn)
            for way in list(ways):
                try:
                    await self._turn(way, turn)
                except RequestTooLong as error:
                    # Lamina shrinks its requests; the naive way cannot.
                    self._console.print(f"  {way.name:<6} drops out: {error}", highlight=False)
                    ways.remove(way)
                    del self._measurements[way.name]
        await self._summary()

    def _head(self, number: int, turn: ScriptTurn) -> None:
        notes = ", ".join(turn.attach) or "nothing"
        edited = f" · {', '.join(turn.edit)} was edited" if turn.edit else ""
        self._console.print()
        self._console.rule(f"[bold]turn {number}[/bold] · attached: {notes}{edited}", align="left")
        self._console.print(f"  [bold]{turn.ask}[/bold]", highlight=False)

    async def _turn(self, way: Way, turn: ScriptTurn) -> None:
        watch = _Watch(way.name)
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            with Live(watch, console=self._console, transient=True, refresh_per_second=12):
                measured = await way.ask(turn, watch.take)
        else:
            measured = await way.ask(turn, _ignore)
        self._measurements[way.name].append(measured)
        if way.name == "lazy":
            self._explain(measured)
        usage = measured.usage
        bar = draw_bar(way.name, measured.layers, usage.cached, self._scale)
        bar.append(f"{usage.input:>7,}", style="dim")
        bar.append(f"{measured.reprocessed:>14,}")
        bar.append(f"{measured.first_s:>10.1f} s")
        self._console.print(bar, soft_wrap=True)

    def _explain(self, measured: Measurement) -> None:
        answer = Styled(" ".join(measured.answer.split()), style="italic")
        self._console.print(Padding(answer, (0, 2), expand=False))
        sizes: dict[str, int] = dict.fromkeys(LAYERS, 0)
        for layer, tokens in measured.layers:
            sizes[layer] += tokens
        line = Styled(" " * 8)
        for layer, tokens in sizes.items():
            if tokens:
                line.append(f"{layer} {tokens:,}  ", style=STYLES[layer])
        items = measured.context.items if measured.context else ()
        labels = " " * 8 + " · ".join(label_items(items, "left_out"))
        self._console.print(line, soft_wrap=True)
        self._console.print(Styled(labels, style="dim"), soft_wrap=True)
        heads = f"{'prompt':>{BAR + 19}}{'re-processed':>14}{'first word':>12}"
        self._console.print(Styled(heads, style="dim"), soft_wrap=True)

    async def _summary(self) -> None:
        limit = await physical_limit(self._script, self._source, self._counter.count)
        lazy = self._measurements["lazy"]
        least, soonest = _reprocessed(lazy), _waited(lazy)
        table = Table(title="\nThe whole conversation", title_justify="left")
        for heading in ("", "prompt", "re-processed", "over limit", "vs lazy", "first words",
                        "vs lazy"):  # fmt: skip
            table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
        for name, turns in self._measurements.items():
            again, waited = _reprocessed(turns), _waited(turns)
            table.add_row(
                name,
                f"{sum(turn.usage.input for turn in turns):,}",
                f"{again:,}",
                f"{again / limit:.2f}x",
                f"{again / least:.2f}x",
                f"{waited:.1f} s",
                f"{waited / soonest:.2f}x",
            )
        table.add_row("limit", "", f"{limit:,}", "1.00x", "", "", "", style="dim")
        self._console.print(table)
        self._console.print(
            f"{EXPLANATION}"
            "limit: the system prompt, each version of a note and each question, all once\n\n"
            "Try it yourself: lamina chat\n"
            'See a request: lamina context "Why?" --attach NOTE.md\n',
            highlight=False,
        )


class _Watch:
    """The current activity of a way, for a terminal."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._text = ""
        self._spinner = Spinner("dots", text=f"{name:<6} reads")

    def take(self, event: Event) -> None:
        match event:
            case PromptProgress(done=done, total=total, cached=cached):
                text = f"{self._name:<6} has read {done - cached:,} of {total - cached:,} tokens"
                self._spinner.update(text=text)
            case BlockDelta(text=text):
                self._text += text
                self._spinner.update(text=f"{self._name:<6} {' '.join(self._text.split())}")
            case _:
                pass

    def __rich__(self) -> Padding:
        return Padding(self._spinner, (0, 2))


def _ignore(event: Event) -> None:
    """Draw nothing: where lines cannot be redrawn, only results are shown."""


def _reprocessed(turns: list[Measurement]) -> int:
    return sum(turn.reprocessed for turn in turns)


def _waited(turns: list[Measurement]) -> float:
    return sum(turn.first_s for turn in turns)


@app.command()
def demo(
    workspace: Annotated[
        Path | None, typer.Option("--workspace", "-w", help="Your own folder, with --script.")
    ] = None,
    script: Annotated[
        Path | None, typer.Option(help="Your own conversation, in the form of --show-script.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t",
            help="The local model; with --no-model, the one whose counts and cache rules to use.",
        ),
    ] = None,
    no_model: Annotated[
        bool, typer.Option("--no-model", help="Use the script's answers, and only count tokens.")
    ] = False,
    show_script: Annotated[
        bool, typer.Option("--show-script", help="Print the sample conversation and stop.")
    ] = False,
) -> None:  # fmt: skip
    """Chat with the embedded model and measure what it has to reread: lazy, eager, naive.

    Five turns over a sample folder take two or three minutes. The model is downloaded if it is
    missing (93 MB, once); if that fails, the conversation is played without it and the exit code
    is 1.
    """
    if show_script:
        typer.echo(sample_script().read_text("utf-8"), nl=False)
        return
    refuse_if((workspace is None) != (script is None), "--workspace and --script need each other")
    if not run_async(play_demo, workspace, script, target, not no_model):
        raise typer.Exit(1)
