"""`lamina agent`: list and check agents, show what they contain, and how their rules, references
and tools were used.

Law: a session that cannot be read loses only its own turns, and is named.
"""

import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console, ConsoleRenderable, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.text import Text as Styled

from lamina.adapters.agents.agent_yaml import write_skeleton
from lamina.adapters.agents.settings_edit import MODEL, change_setting, session_name
from lamina.apps.cli.flags import AgentWorkspace, AsJson, SessionWorkspace
from lamina.apps.cli.import_export import write_output
from lamina.apps.cli.index_progress import track
from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.outcome import print_outcome
from lamina.apps.cli.report_text import BADGES
from lamina.apps.cli.screen import make_table, open_page
from lamina.apps.cli.terminal_text import one_line, print_labelled, print_note, print_text, visible
from lamina.apps.views.agent_overview import (
    GuideRow,
    UsageReport,
    collect_usage,
    count_levels,
    describe_agent,
    describe_found_agent,
    describe_problem,
    guide_row,
    guides_in_order,
    read_agents,
    read_all_agents,
    server_terms,
    write_csv,
    write_json,
)
from lamina.apps.views.plain_text import format_json
from lamina.apps.views.settings_by_name import (
    NONE,
    OWN_VALUES,
    parse_setting,
    require_setting,
    write_value,
)
from lamina.apps.wiring import default_store
from lamina.apps.wiring.agent_defaults import read_agent_defaults
from lamina.apps.wiring.agent_finder import (
    FoundAgent,
    agent_folders,
    bringer_of,
    find_agent,
    list_agents,
    persona_parts,
)
from lamina.core.audit.item_usage import AgentUse, ItemUse
from lamina.core.values.agent import Agent, Problem
from lamina.core.values.selection import SearchSettings
from lamina.errors import UsageError

app = typer.Typer(
    name="agent",
    help="Manage agents on disk: create, list, show and check them, and see how they are used.",
    no_args_is_help=True,
)

# From this many sessions on, reading them shows a progress bar.
MANY = 20
NO_AGENT = "(no agent)"
# On a narrower screen, the modes in which an item was in force are left to --json.
WIDE = 80
_MODES = ("always", "manual", "agent")
_FIGURES = ("in force", *_MODES, "chosen", "score", "used")


async def report_usage(
    workspace: Path, agent: str | None, export: Path | None, *, as_json: bool
) -> None:
    """Write the usage report on the screen, and to a file if `export` is given.

    Raises:
        UsageError: no session names the agent, or the file cannot be written.
    """
    writers = {".json": write_json, ".csv": write_csv}
    if export is not None and export.suffix.lower() not in writers:
        raise UsageError(f"{str(export)!r} ends in neither .json nor .csv")
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
        parts.append(Text("No question has been answered in this workspace yet.", style="dim"))
    for lost in usage.unread:
        what = "damaged, counted as far as it could be read" if lost.counted else "not counted"
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


# From this width on agents are listed as a table.
# From this width on a table of rules has room for their descriptions.
WIDE_GUIDES = 100
# The counts shown for an agent, with the singular noun.
_PARTS = {"rules": "rule", "references": "reference", "skills": "skill", "servers": "server"}


def write_new_agent(name: str, parent: Path | None, workspace: Path) -> str:
    """Write a starter agent, and return a message that says where it is.

    Raises:
        UsageError: the agent exists already, or the name is not allowed.
    """
    folder = write_skeleton(name, parent or dict(agent_folders(workspace))["workspace"])
    # The workspace's own agents are found by name.
    where = "" if workspace == Path() else f" -w {shlex.quote(str(workspace))}"
    which = shlex.quote(name if parent is None else str(folder))
    return (
        f"Wrote {folder}. Describe it in persona.md, inspect it with `lamina agent show {which}"
        f"{where}`, and talk to it with `lamina chat --agent {which}{where}`."
    )


def set_agent_default(which: str, workspace: Path, name: str, text: str) -> str:
    """Change a default of an agent, and return what was done.

    Raises:
        UsageError: there is no such agent or setting, or its file cannot be changed.
        InvalidSetting: the value does not suit the setting.
    """
    name = session_name(name)
    if text.lower() == NONE:
        value = None
        require_setting(name, MODEL)
    else:
        value = text if name == MODEL else parse_setting(name, text)
    place = find_agent(which, workspace)
    file = change_setting(place, bringer_of(place, workspace), name, value)
    line = f"{file}: {name} is {write_value(value)} in sessions opened from now on"
    notice = run_async(read_agent_defaults, place, workspace).trust.notice()
    return f"{line}\n{notice}" if notice else line


def show_agents(workspace: Path, as_json: bool) -> None:
    agents = list_agents(workspace)
    console = Console(highlight=False)
    if as_json:
        typer.echo(format_json([describe_found_agent(agent) for agent in agents]))
    elif agents:
        console.print(_table(agents) if console.width >= WIDE else _blocks(agents))
    else:
        console.print(
            f"No agents in {workspace / '.lamina' / 'agents'} or among your own, and nothing like "
            f"AGENTS.md here. `lamina agent new NAME` writes one.",
            soft_wrap=True,
        )


def _table(agents: tuple[FoundAgent, ...]) -> Table:
    table = Table(box=None)
    for heading in ("name", "where", "rules", "refs", "skills", "servers", "problems", "what for"):
        numeric = heading in ("rules", "refs", "skills", "servers")
        table.add_column(heading, justify="right" if numeric else "left", overflow="fold")
    for agent in agents:
        row = describe_found_agent(agent)
        table.add_row(
            Styled(visible(agent.name)),
            _where(agent, agents),
            *(str(row[name]) for name in _PARTS),
            _render_counts(row["errors"], row["warnings"]) or "-",
            Styled(one_line(agent.problem or row["description"], 60)),
        )
    return table


def _blocks(agents: tuple[FoundAgent, ...]) -> Group:
    """A few lines per agent, for screens too narrow for a table."""
    parts: list[ConsoleRenderable] = []
    for agent in agents:
        row = describe_found_agent(agent)
        counts = [_count(row[many], single) for many, single in _PARTS.items() if row[many]]
        summary = ", ".join((*counts, _render_counts(row["errors"], row["warnings"])))
        name = Styled.assemble((visible(agent.name), "bold"), f" ({_where(agent, agents)})")
        lines = (summary.strip(", "), one_line(agent.problem or row["description"], 200))
        parts += [name, *(Padding(Styled(line), (0, 0, 0, 2)) for line in lines if line)]
    return Group(*parts)


def _where(agent: FoundAgent, agents: tuple[FoundAgent, ...]) -> str:
    """Where an agent is; one with the name of a user's own agent is reached by its path."""
    own = {other.name for other in agents if other.where == "user"}
    is_shadowed = agent.where == "workspace" and agent.name in own
    return f"{agent.where}, by path" if is_shadowed else agent.where


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def print_agent(which: str, workspace: Path, as_json: bool) -> None:
    """
    Raises:
        UsageError: there is no such agent.
    """
    [agent] = read_agents([which], workspace)
    if as_json:
        typer.echo(format_json(describe_agent(agent, workspace)))
        return
    console = Console()
    _draw_head(console, agent, workspace)
    _draw_guides(console, agent)
    _draw_rest(console, agent)
    for problem in agent.problems:
        style = "red" if problem.level == "error" else "yellow"
        print_labelled(console, f"{problem.level}: ", visible(str(problem)), style)
    for note in agent.notes:
        print_note(console, f"note: {visible(note)}", "dim")


def _draw_line(console: Console, label: str, text: str) -> None:
    if text:
        print_labelled(console, f"{label:<12}", visible(text), "bold")


def _draw_head(console: Console, agent: Agent, workspace: Path) -> None:
    line = partial(_draw_line, console)
    title = f"{agent.name} {agent.version}".strip()
    console.print(Styled(visible(title), style="bold"), soft_wrap=True)
    line("for", agent.description)
    line("from", agent.place)
    line("model", agent.model)
    settings = {**agent.options, **agent.settings}
    line("settings", ", ".join(_render_setting(*setting) for setting in settings.items()))
    for name, text in persona_parts(agent, workspace):
        line(name.replace("_", " ").removesuffix(" persona"), one_line(text, 200))
    line("memory", one_line(agent.memory, 200))
    for project in agent.projects:
        line("project", f"{project.name}: {one_line(project.prompt or project.context, 100)}")


def _render_value(value: Any) -> str:
    return str(value) if isinstance(value, str) else msgspec.json.encode(value).decode()


def _render_setting(name: str, value: Any) -> str:
    """A setting; for search settings, the preset or only what differs from the defaults."""
    if name.endswith("_search"):
        usual = msgspec.structs.asdict(SearchSettings())
        own = {key: part for key, part in value.items() if usual[key] != part}
        named = write_value(SearchSettings(**value))
        value = own if named == OWN_VALUES else named
    return f"{name}={_render_value(value)}"


def _draw_guides(console: Console, agent: Agent) -> None:
    if not agent.guides:
        return
    rows = tuple(map(guide_row, guides_in_order(agent.guides)))
    console.print()
    if console.width < WIDE_GUIDES:
        console.print(_guide_blocks(rows), highlight=False)
    else:
        console.print(_guide_table(rows), highlight=False)
    console.print()


def _guide_blocks(rows: Sequence[GuideRow]) -> Group:
    """A line per rule or reference with its full name, and its description below."""
    parts: list[ConsoleRenderable] = []
    for row in rows:
        badge = (f"{f'[{row.include}]':<8}", BADGES[row.include])
        name = (visible(row.name), "bold")
        head = Styled.assemble(
            f"{row.level:03}  {row.kind:<9}  ", badge, "  ", name, f"  ~{row.tokens:,} tokens"
        )
        parts += [head, Padding(Styled(_about_guide(row)), (0, 0, 0, 5))]
    return Group(*parts)


def _about_guide(row: GuideRow) -> str:
    about = row.description or "-"
    if row.globs:
        about = f"{about} (with {', '.join(row.globs)})"
    return one_line(about, 200)


def _guide_table(rows: Sequence[GuideRow]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("level", justify="right", no_wrap=True)
    for heading in ("kind", "include"):
        table.add_column(heading, no_wrap=True)
    table.add_column("name", overflow="fold")
    table.add_column("tokens", justify="right", no_wrap=True)
    table.add_column("description", overflow="fold", ratio=1)
    for row in rows:
        table.add_row(
            f"{row.level:03}",
            row.kind,
            Styled(f"[{row.include}]", style=BADGES[row.include]),
            Styled(visible(row.name)),
            f"~{row.tokens:,}",
            Styled(_about_guide(row)),
        )
    return table


def _draw_rest(console: Console, agent: Agent) -> None:
    for name, entry in agent.servers.items():
        terms = server_terms(entry)
        reached = terms.get("url") or terms.get("command") or "?"
        text = f"{name}: {reached} ({terms['permission']}, {terms['include']})"
        off = " disabled" if terms.get("disabled") else ""
        _draw_line(console, "server", f"{text}{off}")
        for tool, own in terms.get("tools", {}).items():
            words = ", ".join(f"{key} {_render_value(value)}" for key, value in own.items()) or "-"
            print_note(console, visible(f"              {tool}: {words}"))
    for skill in agent.skills:
        name = f"{skill.name} {skill.argument_hint}".rstrip()
        hand = "" if skill.model_invocable else " (added by hand only)"
        _draw_line(console, "skill", f"{name}{hand}: {one_line(skill.description, 100)}")
    for source, others in agent.relations.items():
        _draw_line(console, "relation", f"{source} brings {', '.join(others)}")


def print_problems(
    paths: list[str], workspace: Path, strict: bool, as_json: bool
) -> tuple[str, bool]:
    """The problems of the agents (by default all agents), and whether they pass the check.

    Raises:
        UsageError: a path is not an agent, or there is nothing to check.
    """
    agents = read_agents(paths, workspace) if paths else read_all_agents(workspace)
    if not agents:
        raise UsageError("there is nothing to check here; name an agent's folder or file")
    problems = tuple(dict.fromkeys(problem for agent in agents for problem in agent.problems))
    errors, warnings = count_levels(problems)
    is_fine = not errors and not (strict and warnings)
    if as_json:
        return format_json([describe_problem(problem) for problem in problems]), is_fine
    lines = [visible(_render_problem(problem)) for problem in problems]
    counts = _render_counts(errors, warnings) or "no problems"
    return "\n".join((*lines, f"{_count(len(agents), 'agent')}: {counts}.")), is_fine


def _render_problem(problem: Problem) -> str:
    word = "warning: " if problem.level == "warning" else ""
    return f"{problem.path}:{problem.line or 1}: {word}{problem.problem}"


def _render_counts(errors: int, warnings: int) -> str:
    counts = ((errors, "error"), (warnings, "warning"))
    return ", ".join(_count(number, word) for number, word in counts if number)


@app.command("new")
def new_agent(
    name: Annotated[str, typer.Argument(help="The name of the agent and of its folder.")],
    parent: Annotated[
        Path | None, typer.Option("--in", metavar="FOLDER", help="Where to put its folder.")
    ] = None,
    workspace: AgentWorkspace = Path(),
) -> None:
    """Create a starter agent in the workspace's .lamina/agents, or in the --in folder.

    Existing files are never overwritten.
    """
    print_text(write_new_agent(name, parent, workspace))


@app.command("list")
def list_command(workspace: AgentWorkspace = Path(), as_json: AsJson = False) -> None:
    """List your own agents, the workspace's agents, and what the workspace's folder defines."""
    show_agents(workspace, as_json)


@app.command("show")
def show_command(
    which: Annotated[
        str,
        typer.Argument(metavar="PATH|NAME", help="A folder, a file, or a name from `agent list`."),
    ] = ".",
    workspace: AgentWorkspace = Path(),
    as_json: AsJson = False,
) -> None:
    """Show an agent: its persona, rules, references, servers, projects and problems."""
    print_agent(which, workspace, as_json)


@app.command("set")
def set_default(
    which: Annotated[str, typer.Argument(metavar="PATH|NAME", help="The agent.")],
    setting: Annotated[
        str,
        typer.Argument(
            help="model, or a setting such as temperature, max_tokens, search or search.top_n."
        ),
    ],
    value: Annotated[str, typer.Argument(help="Its value, or none to leave it to the session.")],
    workspace: AgentWorkspace = Path(),
) -> None:
    """Change a default in an agent's file, for sessions opened from now on.

    Comments and everything else in the file stay as they are. A setting of the session itself takes
    precedence.
    """
    print_text(set_agent_default(which, workspace, setting, value))


@app.command("check")
def check_agents(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH...", help="Folders, files or names; by default all of `agent list`."
        ),
    ] = None,
    workspace: AgentWorkspace = Path(),
    strict: Annotated[bool, typer.Option("--strict", help="Fail on warnings, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print every problem in agents' files as file:line. Exits with 1 if any is an error."""
    report, is_fine = print_problems(paths or [], workspace, strict, as_json)
    print_outcome(report, is_fine, as_json=as_json)


@app.command()
def usage(
    agent: Annotated[
        str | None, typer.Argument(help="An agent's name; by default every agent.")
    ] = None,
    workspace: SessionWorkspace = Path(),
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="FILE", help="Also write it to a new .json or .csv file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show which rules, references and tools were in force, chosen and used, and what to change.

    Counts every session of the workspace. A tool is used when it is called, a rule or reference
    when an answer names it.
    """
    run_async(partial(report_usage, workspace, agent, export, as_json=as_json))
