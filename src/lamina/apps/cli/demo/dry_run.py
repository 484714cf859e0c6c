"""`lamina demo --no-model`: one conversation assembled three ways, counted and drawn turn by turn.
The answers are the script's."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from rich.console import Console
from rich.table import Table

from lamina.adapters.providers.model_book import load_book
from lamina.adapters.stores.memory import MemoryStore
from lamina.apps.cli.demo.bars import BAR, EXPLANATION, draw_bar, draw_legend, label_items
from lamina.apps.cli.demo.ways import layer_runs, longest_request, read_notes
from lamina.apps.cli.script import EditedWorkspace, Script, ScriptClock, ScriptTurn, scripted_reply
from lamina.apps.wiring import open_session
from lamina.core.layers import MESSAGE_TOKENS
from lamina.core.ports import WorkspaceSource
from lamina.core.values.prompt import LAYERS
from lamina.core.values.settings import Settings, Target
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn


class DryRunCost(Struct):
    """What one way of assembling has cost so far."""

    sent: int = 0
    reprocessed: int = 0
    breaks: int = 0


async def play_scripted(
    console: Console, script: Script, workspace: WorkspaceSource, target: Target
) -> None:
    """Plays the conversation; edits in it stay in memory."""
    await _Demo(console, script, EditedWorkspace(workspace), target).play()


class _Demo:
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
        lives = "as long as its process" if lifetime is None else f"{lifetime / 60:g} minutes"
        self.console.print(
            f"\n[bold]{title}[/bold]: {len(self.script.turns)} turns, no model.\n"
            f"Counted as {self.target.name} does; its cache lives {lives}.\n"
            f"░ stays where it was sent before   █ is processed again"
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
