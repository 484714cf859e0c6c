"""`lamina agent usage`: what became of an agent's rules, references and tools, over its sessions.

Law: a session that cannot be read costs its own turns and nothing else, and is named.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console, ConsoleRenderable, Group
from rich.text import Text

from lamina.audit.usage import AgentUse, ItemUse
from lamina.cli.index_progress import track
from lamina.cli.screen import Screen, make_table
from lamina.cli.terminal_text import one_line
from lamina.errors import UsageError
from lamina.faces.agent_usage import UsageReport, collect_usage, write_csv, write_json
from lamina.stores.disk import write_new_file
from lamina.wiring import default_store

# From so many sessions on, reading them is shown.
MANY = 20
NO_AGENT = "(no agent)"
# Where there is less room than this, in which mode an item was in force is told to machines only.
WIDE = 80
_MODES = ("always", "manual", "agent")
_FIGURES = ("in force", *_MODES, "chosen", "score", "used")


def _track(sessions: Sequence[str]) -> Iterable[str]:
    return track(sessions, "reading sessions", MANY)


async def report_usage(
    workspace: Path, agent: str | None, export: Path | None, *, as_json: bool
) -> str:
    """What the command does; the JSON it prints, or else it is drawn and there is nothing to.

    Raises:
        UsageError: no session names the agent, or the file cannot be written.
    """
    if export is not None and export.suffix.lower() not in (".json", ".csv"):
        raise UsageError(f"{str(export)!r} is neither .json nor .csv; name the file by its form")
    collected = await collect_usage(default_store(workspace), agent, _track)
    if export is not None:
        form = export.suffix.lower()
        _write(export, write_csv(collected) if form == ".csv" else write_json(collected))
    if as_json:
        return write_json(collected)
    screen = Screen(Console(highlight=False, markup=False, emoji=False), live=False)
    screen.show(draw_usage(collected, screen.width))
    if export is not None:
        rows = sum(len(agent.items) for agent in collected.agents)
        screen.show(f"{export}: {rows:,} item{'s' * (rows != 1)}")
    return ""


def _write(path: Path, text: str) -> None:
    try:
        write_new_file(path, text.encode())
    except FileExistsError:
        raise UsageError(f"{path} is there already; nothing was written") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error}") from error


def draw_usage(collected: UsageReport, width: int) -> ConsoleRenderable:
    parts: list[ConsoleRenderable] = []
    for agent in collected.agents:
        parts += [*_agent(agent, width), Text()]
    if not collected.agents:
        parts.append(Text("No question was answered yet in this workspace.", style="dim"))
    for lost in collected.unread:
        what = "damaged, counted as far as it can be read" if lost.counted else "not counted"
        said = f"! session {one_line(lost.session)}: {what}: {one_line(lost.problem)}"
        parts.append(Text(said, style="yellow"))
    return Group(*parts)


def _agent(agent: AgentUse, width: int) -> list[ConsoleRenderable]:
    sessions = f"{agent.sessions:,} session{'s' * (agent.sessions != 1)}"
    counted = f"{agent.turns:,} answered turn{'s' * (agent.turns != 1)} in {sessions}"
    head = Text.assemble((one_line(agent.agent) or NO_AGENT, "bold"), f" · {counted}")
    if not agent.items:
        return [head, Text("no rules, references or tools were in force", style="dim")]
    shown = [name for name in _FIGURES if width >= WIDE or name not in _MODES]
    made = make_table("item", *shown, right=shown)
    for use in agent.items:
        figures = dict(zip(_FIGURES, _figures(use), strict=True))
        made.add_row(Text(one_line(use.item)), *(figures[name] for name in shown))
    parts: list[ConsoleRenderable] = [head, Text(), made]
    suggested = [use for use in agent.items if use.suggestion]
    if suggested:
        parts += [Text(), Text("Suggestions", style="bold")]
        parts += [Text(f"- {one_line(use.item)}: {use.suggestion}") for use in suggested]
    return parts


def _figures(use: ItemUse) -> tuple[str, ...]:
    counts = (use.turns, use.always, use.manual, use.agent, use.chosen)
    score = "" if use.score is None else f"{use.score:.2f}"
    return (*(f"{count:,}" if count else "-" for count in counts), score, f"{use.used:,}")
