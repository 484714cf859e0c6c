"""`lamina agent usage`: what became of an agent's rules, references and tools, over its sessions.

Law: a session that cannot be read costs its own turns and nothing else, and is named.
"""

from functools import partial
from pathlib import Path

import typer
from rich.console import ConsoleRenderable, Group
from rich.text import Text

from lamina.apps.cli.index_progress import track
from lamina.apps.cli.screen import make_table, open_page
from lamina.apps.cli.terminal_text import one_line
from lamina.apps.cli.transfer import write_output
from lamina.apps.views.agent_usage import UsageReport, collect_usage, write_csv, write_json
from lamina.apps.wiring import default_store
from lamina.core.audit.usage import AgentUse, ItemUse
from lamina.errors import UsageError

# How many sessions it takes for reading them to be shown.
MANY = 20
NO_AGENT = "(no agent)"
# On a narrower screen, the modes in which an item was in force are left to --json.
WIDE = 80
_MODES = ("always", "manual", "agent")
_FIGURES = ("in force", *_MODES, "chosen", "score", "used")


async def report_usage(
    workspace: Path, agent: str | None, export: Path | None, *, as_json: bool
) -> None:
    """What the command does.

    Raises:
        UsageError: no session names the agent, or the file cannot be written.
    """
    writers = {".json": write_json, ".csv": write_csv}
    if export is not None and export.suffix.lower() not in writers:
        raise UsageError(f"{str(export)!r} is neither .json nor .csv; name the file by its form")
    usage = await collect_usage(
        default_store(workspace), agent, partial(track, description="reading sessions", many=MANY)
    )
    if export is not None:
        write_output(export, writers[export.suffix.lower()](usage).encode())
    if as_json:
        typer.echo(write_json(usage), nl=False)
        return
    screen = open_page()
    screen.show(draw_usage(usage, screen.width))
    if export is not None:
        rows = sum(len(agent.items) for agent in usage.agents)
        screen.show(f"{export}: {rows:,} item{'s' * (rows != 1)}")


def draw_usage(usage: UsageReport, width: int) -> ConsoleRenderable:
    parts: list[ConsoleRenderable] = []
    for agent in usage.agents:
        parts += [*_agent(agent, width), Text()]
    if not usage.agents:
        parts.append(Text("No question was answered yet in this workspace.", style="dim"))
    for lost in usage.unread:
        what = "damaged, counted as far as it can be read" if lost.counted else "not counted"
        problem = f"! session {one_line(lost.session)}: {what}: {one_line(lost.problem)}"
        parts.append(Text(problem, style="yellow"))
    return Group(*parts)


def _agent(agent: AgentUse, width: int) -> list[ConsoleRenderable]:
    sessions = f"{agent.sessions:,} session{'s' * (agent.sessions != 1)}"
    counted = f"{agent.turns:,} answered turn{'s' * (agent.turns != 1)} in {sessions}"
    head = Text.assemble((one_line(agent.agent) or NO_AGENT, "bold"), f" · {counted}")
    if not agent.items:
        return [head, Text("no rules, references or tools were in force", style="dim")]
    names = [name for name in _FIGURES if width >= WIDE or name not in _MODES]
    table = make_table("item", *names, right=names)
    for use in agent.items:
        figures = dict(zip(_FIGURES, _figures(use), strict=True))
        table.add_row(Text(one_line(use.item)), *(figures[name] for name in names))
    parts: list[ConsoleRenderable] = [head, Text(), table]
    if suggestions := [use for use in agent.items if use.suggestion]:
        parts += [Text(), Text("Suggestions", style="bold")]
        parts += [Text(f"- {one_line(use.item)}: {use.suggestion}") for use in suggestions]
    return parts


def _figures(use: ItemUse) -> tuple[str, ...]:
    counts = (use.turns, use.always, use.manual, use.agent, use.chosen)
    score = "" if use.score is None else f"{use.score:.2f}"
    return (*(f"{count:,}" if count else "-" for count in counts), score, f"{use.used:,}")
