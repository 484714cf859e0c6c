"""`lamina agent usage`: what became of an agent's rules, references and tools, over its sessions.

Law: a session that cannot be read costs its own turns and nothing else, and is named.
"""

import csv
import io
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import asdict
from rich.console import Console, ConsoleRenderable, Group
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from lamina.audit.usage import AgentUse, ItemUse, TurnUse, agent_of, read_turns, sum_use
from lamina.cli.screen import Screen
from lamina.cli.terminal_text import one_line
from lamina.cli.verdict import write_new_file
from lamina.errors import LaminaError, UsageError
from lamina.journal import Journal
from lamina.ports import JournalStore
from lamina.values.entry import SessionEntry
from lamina.wiring import default_store

# From so many sessions on, reading them is shown.
MANY = 20
NO_AGENT = "(no agent)"
# Where there is less room than this, in which mode an item was in force is told to machines only.
WIDE = 80
_MODES = ("always", "manual", "agent")
_FIGURES = ("in force", *_MODES, "chosen", "score", "used")
# What a spreadsheet would take for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_COLUMNS = (
    "agent", "item", "turns", "always", "manual", "agent_mode", "chosen", "score", "used",
    "needed", "since", "sessions", "suggestion",
)  # fmt: skip


class UnreadSession(Struct, frozen=True, kw_only=True):
    """A session of which something could not be read. `counted` says that the rest was."""

    session: str
    problem: str
    counted: bool


class UsageReport(Struct, frozen=True, kw_only=True):
    agents: tuple[AgentUse, ...] = ()
    unread: tuple[UnreadSession, ...] = ()


async def report_usage(
    workspace: Path, agent: str | None, export: Path | None, *, as_json: bool
) -> str:
    """What the command does; the JSON it prints, or else it is drawn and there is nothing to.

    Raises:
        UsageError: no session names the agent, or the file cannot be written.
    """
    if export is not None and export.suffix.lower() not in (".json", ".csv"):
        raise UsageError(f"{str(export)!r} is neither .json nor .csv; name the file by its form")
    collected = await collect_usage(default_store(workspace), agent)
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


async def collect_usage(store: JournalStore, agent: str | None) -> UsageReport:
    """The use of one agent's items, or of each agent's, over all sessions of a store.

    Raises:
        UsageError: sessions there are, and none names the agent.
    """
    known = await store.sessions()
    turns: dict[str, list[TurnUse]] = {}
    unread: list[UnreadSession] = []
    quiet = len(known) < MANY or not sys.stderr.isatty()
    with Progress(transient=True, disable=quiet, console=Console(stderr=True)) as progress:
        for session in progress.track(known, description="reading sessions"):
            try:
                journal = await store.read(session)
            except (LaminaError, OSError) as error:
                unread.append(UnreadSession(session=session, problem=str(error), counted=False))
                continue
            name = agent_of(journal)
            wanted = agent is None or name == agent
            # Where its beginning is lost, nobody can tell whose session it is.
            if journal.damage and (wanted or not name):
                problem = "; ".join(map(str, journal.damage))
                unread.append(UnreadSession(session=session, problem=problem, counted=wanted))
            if not wanted:
                turns.setdefault(name, [])
                continue
            turns.setdefault(name, []).extend(
                read_turns(journal, inherited=_origin(journal) not in known)
            )
    if agent is not None and agent not in turns:
        raise _nobody(agent, sorted(turns), unread)
    names = sorted(turns) if agent is None else [agent]
    summed = (sum_use(name, turns[name]) for name in names)
    return UsageReport(
        agents=tuple(use for use in summed if use.turns or agent is not None),
        unread=tuple(unread),
    )


def _origin(journal: Journal) -> str:
    """The session that this one was forked from."""
    header = next(iter(journal.entries.values()), None)
    return header.forked_from if isinstance(header, SessionEntry) else ""


def _nobody(agent: str, others: Sequence[str], unread: Sequence[UnreadSession]) -> UsageError:
    named = ", ".join(repr(other) for other in others if other) or "none"
    lost = f"; {len(unread)} could not be read" if unread else ""
    return UsageError(
        f"no session of this workspace was opened with the agent {agent!r}; "
        f"agents that were: {named}{lost}. -w DIR looks in another workspace"
    )


def _write(path: Path, text: str) -> None:
    try:
        write_new_file(path, text.encode())
    except FileExistsError:
        raise UsageError(f"{path} is there already; nothing was written") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error}") from error


# -- for machines -------------------------------------------------------------------------------


def write_json(collected: UsageReport) -> str:
    return msgspec.json.format(msgspec.json.encode(collected), indent=2).decode() + "\n"


def write_csv(collected: UsageReport) -> str:
    """A row an item; what was not read is in the JSON only."""
    out = io.StringIO()
    table = csv.DictWriter(out, _COLUMNS, lineterminator="\n")
    table.writeheader()
    for agent in collected.agents:
        for use in agent.items:
            row = asdict(use) | {"agent": _plain(agent.agent), "agent_mode": use.agent}
            table.writerow(row | {"score": "" if use.score is None else f"{use.score:.4f}"})
    return out.getvalue()


def _plain(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text


# -- for people ---------------------------------------------------------------------------------


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


def _agent(each: AgentUse, width: int) -> list[ConsoleRenderable]:
    sessions = f"{each.sessions:,} session{'s' * (each.sessions != 1)}"
    counted = f"{each.turns:,} answered turn{'s' * (each.turns != 1)} in {sessions}"
    head = Text.assemble((one_line(each.agent) or NO_AGENT, "bold"), f" · {counted}")
    if not each.items:
        return [head, Text("no rules, references or tools were in force", style="dim")]
    made = Table(box=None, pad_edge=False, header_style="bold")
    made.add_column("item", overflow="fold")
    shown = [name for name in _FIGURES if width >= WIDE or name not in _MODES]
    for name in shown:
        made.add_column(name, justify="right", no_wrap=True)
    for use in each.items:
        figures = dict(zip(_FIGURES, _figures(use), strict=True))
        made.add_row(Text(one_line(use.item)), *(figures[name] for name in shown))
    parts: list[ConsoleRenderable] = [head, Text(), made]
    said = [use for use in each.items if use.suggestion]
    if said:
        parts += [Text(), Text("Suggestions", style="bold")]
        parts += [Text(f"- {one_line(use.item)}: {use.suggestion}") for use in said]
    return parts


def _figures(use: ItemUse) -> tuple[str, ...]:
    counts = (use.turns, use.always, use.manual, use.agent, use.chosen)
    score = "" if use.score is None else f"{use.score:.2f}"
    return (*(f"{count:,}" if count else "-" for count in counts), score, f"{use.used:,}")
