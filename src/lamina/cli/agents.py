"""`lamina agent`: what agents there are, what they hold, and what is odd about them."""

import os
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec
from msgspec import Struct
from rich.console import Console, ConsoleRenderable, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text as Styled

from lamina.agents.agent_reader import read_agent
from lamina.agents.skeleton import write_skeleton
from lamina.cli.terminal_text import one_line, visible
from lamina.errors import UsageError
from lamina.faces.settings import OWN_VALUES, write_value
from lamina.providers.tokens import EncodingCounter
from lamina.values.agent import Agent, Guide, Problem
from lamina.values.selection import SearchSettings
from lamina.wiring.agents import (
    FoundAgent,
    agent_folders,
    check_agent,
    find_agent,
    list_agents,
    persona_parts,
)

# What tokens are estimated with, whoever answers in the end.
ENCODING = "o200k_base"
# As `lamina why` has them.
BADGES = {"always": "green", "manual": "cyan", "agent": "magenta"}
# From this width on agents are listed as a table.
WIDE = 80
# What is counted of an agent, and what one of each is called.
_HELD = {"rules": "rule", "references": "reference", "skills": "skill", "servers": "server"}


class GuideRow(Struct, frozen=True, kw_only=True):
    """A guide as `show --json` gives it: with its size, without its text."""

    kind: str
    name: str
    level: int
    include: str
    tokens: int
    description: str
    globs: tuple[str, ...]
    place: str


def write_new_agent(name: str, parent: Path | None, workspace: Path) -> str:
    """Writes an agent to begin with, and says where it is.

    Raises:
        UsageError: there is one already, or the name will not do.
    """
    folder = write_skeleton(name, parent or dict(agent_folders(workspace))["workspace"])
    # Those of the workspace are known by name.
    where = "" if workspace == Path() else f" -w {shlex.quote(str(workspace))}"
    which = shlex.quote(name if parent is None else str(folder))
    return (
        f"Wrote {folder}. Say who it is in persona.md, look at it with `lamina agent show {which}"
        f"{where}`, and talk to it with `lamina chat --agent {which}{where}`."
    )


def show_agents(workspace: Path, as_json: bool) -> str:
    """The agents for machines; or drawn, and nothing to print."""
    found = list_agents(workspace)
    if as_json:
        return _json([_list_row(agent) for agent in found])
    console = Console()
    if not found:
        console.print(
            f"No agents in {workspace / '.lamina' / 'agents'} or among your own, and nothing like "
            f"AGENTS.md here. `lamina agent new NAME` writes one.",
            highlight=False,
            soft_wrap=True,
        )
        return ""
    console.print(_table(found) if console.width >= WIDE else _blocks(found), highlight=False)
    return ""


def _table(found: tuple[FoundAgent, ...]) -> Table:
    table = Table(box=None)
    for heading in ("name", "where", "rules", "refs", "skills", "servers", "problems", "what for"):
        numeric = heading in ("rules", "refs", "skills", "servers")
        table.add_column(heading, justify="right" if numeric else "left", overflow="fold")
    for agent in found:
        row = _list_row(agent)
        problems = _say_counts(row["errors"], row["warnings"]) or "-"
        table.add_row(
            Styled(visible(agent.name)),
            agent.where,
            *(str(row[name]) for name in ("rules", "references", "skills", "servers")),
            problems,
            Styled(one_line(agent.problem or row["description"], 60)),
        )
    return table


def _blocks(found: tuple[FoundAgent, ...]) -> Group:
    """A few lines an agent, where a table would be all folds."""
    parts: list[ConsoleRenderable] = []
    for agent in found:
        row = _list_row(agent)
        counts = [_count(row[many], one) for many, one in _HELD.items() if row[many]]
        held = ", ".join((*counts, _say_counts(row["errors"], row["warnings"])))
        name = Styled.assemble((visible(agent.name), "bold"), f" ({agent.where})")
        lines = (held.strip(", "), one_line(agent.problem or row["description"], 200))
        parts += [name, *(Padding(Styled(line), (0, 0, 0, 2)) for line in lines if line)]
    return Group(*parts)


def _count(number: int, one: str) -> str:
    return f"{number:,} {one}{'s' * (number != 1)}"


def _list_row(found: FoundAgent) -> dict[str, Any]:
    agent = found.agent or Agent(name=found.name)
    errors, warnings = _counts(agent.problems)
    return {
        "name": found.name,
        "where": found.where,
        "path": found.path,
        "description": agent.description,
        "model": agent.model,
        "rules": sum(guide.kind == "rule" for guide in agent.guides),
        "references": sum(guide.kind == "reference" for guide in agent.guides),
        "skills": len(agent.skills),
        "servers": len(agent.servers),
        "projects": len(agent.projects),
        "errors": errors + bool(found.problem),
        "warnings": warnings,
        "problem": found.problem,
    }


def print_agent(which: str, workspace: Path, as_json: bool) -> str:
    """An agent for machines; or drawn, and nothing to print.

    Raises:
        UsageError: there is no such agent.
    """
    agent = check_agent(read_agent(find_agent(which, workspace)), os.environ)
    if as_json:
        return _json(_plain(agent, workspace))
    console = Console()
    _draw_head(console, agent, workspace)
    _draw_guides(console, agent)
    _draw_rest(console, agent)
    for problem in agent.problems:
        style = "red" if problem.level == "error" else "yellow"
        said = Styled.assemble((f"{problem.level}: ", style), visible(str(problem)))
        console.print(said, soft_wrap=True)
    return ""


def _plain(agent: Agent, workspace: Path) -> dict[str, Any]:
    """What is shown, as data; servers without what may be secret."""
    whole = msgspec.to_builtins(agent)
    whole["guides"] = msgspec.to_builtins([_guide_row(guide) for guide in _in_order(agent.guides)])
    whole["servers"] = {name: _terms(entry) for name, entry in agent.servers.items()}
    whole["persona_parts"] = [
        {"name": name, "text": text} for name, text in persona_parts(agent, workspace)
    ]
    return {key: whole.get(key, value) for key, value in _EMPTY.items()}


_EMPTY: dict[str, Any] = {
    "name": "", "description": "", "version": "", "model": "", "place": "", "persona_parts": [],
    "persona": "", "memory": "", "settings": {}, "options": {}, "guides": [], "servers": {},
    "projects": [], "skills": [], "relations": {}, "problems": [],
}  # fmt: skip


def _terms(entry: dict[str, Any]) -> dict[str, Any]:
    """What may be told of a server: how it is reached and on which terms, not with which keys."""
    told = ("command", "type", "disabled")
    shown: dict[str, Any] = {key: entry[key] for key in told if key in entry}
    if isinstance(entry.get("url"), str):
        # Keys stand before the host and behind the path.
        parts = urlsplit(entry["url"])
        shown["url"] = urlunsplit(
            (parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")
        )
    shown["permission"] = entry.get("permission", "required")
    shown["include"] = entry.get("include", "always")
    if entry.get("tools"):
        shown["tools"] = {
            tool: {key: terms[key] for key in ("permission", "include", "disabled") if key in terms}
            for tool, terms in entry["tools"].items()
        }
    return shown


def _guide_row(guide: Guide) -> GuideRow:
    return GuideRow(
        kind=guide.kind,
        name=guide.name,
        level=guide.level,
        include=guide.include,
        tokens=EncodingCounter(ENCODING).count(guide.text),
        description=guide.description,
        globs=guide.globs,
        place=guide.place,
    )


def _in_order(guides: tuple[Guide, ...]) -> list[Guide]:
    """As they are sent: references, then rules; by level, then by name."""
    return sorted(guides, key=lambda guide: (guide.kind, guide.level, guide.name))


def _draw_head(console: Console, agent: Agent, workspace: Path) -> None:
    def line(label: str, text: str) -> None:
        if text:
            said = Styled.assemble((f"{label:<12}", "bold"), visible(text))
            console.print(said, soft_wrap=True)

    title = f"{agent.name} {agent.version}".strip()
    console.print(Styled(visible(title), style="bold"), soft_wrap=True)
    line("for", agent.description)
    line("from", agent.place)
    line("model", agent.model)
    said = {**agent.options, **agent.settings}
    line("settings", ", ".join(_say_setting(*each) for each in said.items()))
    for name, text in persona_parts(agent, workspace):
        line(name.replace("_", " ").removesuffix(" persona"), one_line(text, 200))
    line("memory", one_line(agent.memory, 200))
    for project in agent.projects:
        line("project", f"{project.name}: {one_line(project.prompt or project.context, 100)}")


def _say(value: Any) -> str:
    return str(value) if isinstance(value, str) else msgspec.json.encode(value).decode()


def _say_setting(name: str, value: Any) -> str:
    """A setting; of a search, the preset that it is, or what is not as everybody has it."""
    if name.endswith("_search"):
        usual = msgspec.structs.asdict(SearchSettings())
        own = {key: each for key, each in value.items() if usual[key] != each}
        named = write_value(SearchSettings(**value))
        value = own if named == OWN_VALUES else named
    return f"{name}={_say(value)}"


def _draw_guides(console: Console, agent: Agent) -> None:
    if not agent.guides:
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("level", justify="right", no_wrap=True)
    for heading in ("kind", "include"):
        table.add_column(heading, no_wrap=True)
    table.add_column("name", overflow="fold")
    table.add_column("tokens", justify="right", no_wrap=True)
    table.add_column("description", overflow="fold", ratio=1)
    for row in map(_guide_row, _in_order(agent.guides)):
        said = row.description or "-"
        if row.globs:
            said = f"{said} (with {', '.join(row.globs)})"
        table.add_row(
            f"{row.level:03}",
            row.kind,
            Styled(f"[{row.include}]", style=BADGES[row.include]),
            Styled(visible(row.name)),
            f"~{row.tokens:,}",
            Styled(one_line(said, 200)),
        )
    console.print()
    console.print(table, highlight=False)
    console.print()


def _draw_rest(console: Console, agent: Agent) -> None:
    for name, entry in agent.servers.items():
        terms = _terms(entry)
        reached = terms.get("url") or terms.get("command") or "?"
        said = f"{name}: {reached} ({terms['permission']}, {terms['include']})"
        off = " disabled" if terms.get("disabled") else ""
        line = Styled.assemble(("server      ", "bold"), visible(f"{said}{off}"))
        console.print(line, soft_wrap=True)
        for tool, own in terms.get("tools", {}).items():
            words = ", ".join(f"{key} {_say(value)}" for key, value in own.items()) or "-"
            console.print(Styled(visible(f"              {tool}: {words}")), soft_wrap=True)
    for skill in agent.skills:
        said = f"{skill.name}: {one_line(skill.description, 100)}"
        console.print(Styled.assemble(("skill       ", "bold"), visible(said)), soft_wrap=True)
    for source, others in agent.relations.items():
        said = f"{source} brings {', '.join(others)}"
        console.print(Styled.assemble(("relation    ", "bold"), visible(said)), soft_wrap=True)


def print_problems(
    paths: list[str], workspace: Path, strict: bool, as_json: bool
) -> tuple[str, bool]:
    """Every problem of some agents, or of all there are, and whether they may pass.

    Raises:
        UsageError: a path leads to no agent, or there is nothing to check.
    """
    agents = _agents_at(paths, workspace) if paths else _agents_there_are(workspace)
    if not agents:
        raise UsageError("there is nothing to check here; name a folder or a file of an agent")
    problems = tuple(dict.fromkeys(problem for agent in agents for problem in agent.problems))
    errors, warnings = _counts(problems)
    is_fine = not errors and not (strict and warnings)
    if as_json:
        rows = [{"path": "", "line": None, "level": "error"} | _problem_row(p) for p in problems]
        return _json(rows), is_fine
    lines = [visible(_say_problem(problem)) for problem in problems]
    counted = _say_counts(errors, warnings) or "no problems"
    whole = f"{_count(len(agents), 'agent')}: {counted}."
    return "\n".join((*lines, whole)), is_fine


def _agents_at(paths: list[str], workspace: Path) -> list[Agent]:
    return [check_agent(read_agent(find_agent(path, workspace)), os.environ) for path in paths]


def _agents_there_are(workspace: Path) -> list[Agent]:
    """Those that cannot be read at all as well, with their problem."""
    return [
        check_agent(found.agent, os.environ)
        if found.agent
        else Agent(name=found.name, problems=(Problem(path=found.path, problem=found.problem),))
        for found in list_agents(workspace)
    ]


def _problem_row(problem: Problem) -> dict[str, Any]:
    return dict(msgspec.to_builtins(problem))


def _say_problem(problem: Problem) -> str:
    place = f"{problem.path}:{problem.line or 1}"
    word = "warning: " if problem.level == "warning" else ""
    return f"{place}: {word}{problem.problem}"


def _counts(problems: tuple[Problem, ...]) -> tuple[int, int]:
    errors = sum(problem.level == "error" for problem in problems)
    return errors, len(problems) - errors


def _say_counts(errors: int, warnings: int) -> str:
    said = ((errors, "error"), (warnings, "warning"))
    return ", ".join(_count(number, word) for number, word in said if number)


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
