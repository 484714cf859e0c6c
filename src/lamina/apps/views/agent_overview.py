"""Overview of the available agents: their contents, their problems, and how their rules,
references and tools were used across sessions.

Laws: server keys are removed here and nowhere else. A session that cannot be read is named;
it only removes its own turns from the counts.
"""

import csv
import io
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from lamina.adapters.providers.tokens import EncodingCounter
from lamina.apps.views.plain_text import format_json
from lamina.apps.wiring.agent_finder import (
    FoundAgent,
    check_agent,
    find_agent,
    list_agents,
    persona_parts,
    read_agent,
)
from lamina.core.audit.item_usage import AgentUse, TurnUse, agent_of, read_turns, sum_use
from lamina.core.journal import Journal
from lamina.core.ports import JournalStore
from lamina.core.values.agent import Agent, Guide, GuideKind, Problem
from lamina.core.values.entry import SessionEntry
from lamina.core.values.item import Include
from lamina.errors import LaminaError, UsageError

# Tokens are estimated with this model, whichever model answers in the end.
ENCODING = "o200k_base"


class GuideRow(Struct, frozen=True, kw_only=True):
    """A guide as `show --json` prints it: with its size, without its text."""

    kind: GuideKind
    name: str
    level: int
    include: Include
    tokens: int
    description: str
    globs: tuple[str, ...]
    place: str


def describe_found_agent(found: FoundAgent) -> dict[str, Any]:
    agent = found.agent or Agent(name=found.name)
    errors, warnings = count_levels(agent.problems)
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


def describe_agent(agent: Agent, workspace: Path) -> dict[str, Any]:
    """Return what is shown of an agent as data; servers without possible secrets."""
    whole = msgspec.to_builtins(agent)
    whole["guides"] = msgspec.to_builtins(
        [guide_row(guide) for guide in guides_in_order(agent.guides)]
    )
    whole["servers"] = {name: server_terms(entry) for name, entry in agent.servers.items()}
    whole["persona_parts"] = [
        {"name": name, "text": text} for name, text in persona_parts(agent, workspace)
    ]
    return {key: whole.get(key, value) for key, value in _EMPTY.items()}


_EMPTY: dict[str, Any] = {
    "name": "", "description": "", "version": "", "model": "", "place": "", "persona_parts": [],
    "persona": "", "memory": "", "settings": {}, "options": {}, "guides": [], "servers": {},
    "projects": [], "skills": [], "relations": {}, "problems": [], "notes": [], "autonomous": False,
}  # fmt: skip


def server_terms(entry: dict[str, Any]) -> dict[str, Any]:
    """Return what may be shown of a server: its address and terms, without keys."""
    plain = ("command", "type", "disabled")
    shown: dict[str, Any] = {key: entry[key] for key in plain if key in entry}
    if isinstance(entry.get("url"), str):
        # Keys appear before the host and after the path.
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


def guide_row(guide: Guide) -> GuideRow:
    own = {name: getattr(guide, name) for name in GuideRow.__struct_fields__ if name != "tokens"}
    return GuideRow(tokens=EncodingCounter(ENCODING).count(guide.text), **own)


def guides_in_order(guides: tuple[Guide, ...]) -> list[Guide]:
    """Guides in the order they are sent: references, then rules; by level, then by name."""
    return sorted(guides, key=lambda guide: (guide.kind, guide.level, guide.name))


def read_agents(paths: list[str], workspace: Path) -> list[Agent]:
    return [
        check_agent(read_agent(find_agent(path, workspace), workspace), os.environ)
        for path in paths
    ]


def read_all_agents(workspace: Path) -> list[Agent]:
    """Return all agents, including unreadable ones with their problem."""
    return [
        check_agent(found.agent, os.environ)
        if found.agent
        else Agent(name=found.name, problems=(Problem(path=found.path, problem=found.problem),))
        for found in list_agents(workspace)
    ]


def describe_problem(problem: Problem) -> dict[str, Any]:
    """Return the problem with all of its fields, in a fixed order."""
    return {"path": "", "line": None, "level": "error", **msgspec.to_builtins(problem)}


def count_levels(problems: tuple[Problem, ...]) -> tuple[int, int]:
    errors = sum(problem.level == "error" for problem in problems)
    return errors, len(problems) - errors


# Characters that a spreadsheet would read as the start of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_COLUMNS = (
    "agent", "item", "turns", "always", "manual", "agent_mode", "chosen", "score", "used",
    "needed", "since", "sessions", "suggestion",
)  # fmt: skip


Track = Callable[[Sequence[str]], Iterable[str]]


class UnreadSession(Struct, frozen=True, kw_only=True):
    """A session that could not be read in full. `counted` means that the rest was counted."""

    session: str
    problem: str
    counted: bool


class UsageReport(Struct, frozen=True, kw_only=True):
    agents: tuple[AgentUse, ...] = ()
    unread: tuple[UnreadSession, ...] = ()


async def collect_usage(store: JournalStore, agent: str | None, track: Track = iter) -> UsageReport:
    """Return how items of one agent, or of every agent, were used across all sessions of a store.
    `track` wraps the sessions and may show progress.

    Raises:
        UsageError: there are sessions, but none of them used the agent.
    """
    sessions = await store.sessions()
    turns: dict[str, list[TurnUse]] = {}
    unread: list[UnreadSession] = []
    for session in track(sessions):
        try:
            journal = await store.read(session)
        except (LaminaError, OSError) as error:
            unread.append(UnreadSession(session=session, problem=str(error), counted=False))
            continue
        name = agent_of(journal)
        is_counted = agent is None or name == agent
        # If the beginning is lost, its agent is unknown.
        if journal.damage and (is_counted or not name):
            problem = "; ".join(map(str, journal.damage))
            unread.append(UnreadSession(session=session, problem=problem, counted=is_counted))
        if not is_counted:
            turns.setdefault(name, [])
            continue
        turns.setdefault(name, []).extend(
            read_turns(journal, inherited=_origin(journal) not in sessions)
        )
    if agent is not None and agent not in turns:
        raise _no_sessions_of(agent, sorted(turns), unread)
    names = sorted(turns) if agent is None else [agent]
    uses = (sum_use(name, turns[name]) for name in names)
    return UsageReport(
        agents=tuple(use for use in uses if use.turns or agent is not None), unread=tuple(unread)
    )


def _origin(journal: Journal) -> str:
    """Return the session that this one was forked from."""
    header = next(iter(journal.entries.values()), None)
    return header.forked_from if isinstance(header, SessionEntry) else ""


def _no_sessions_of(
    agent: str, others: Sequence[str], unread: Sequence[UnreadSession]
) -> UsageError:
    names = ", ".join(repr(other) for other in others if other) or "none"
    gap = f"; {len(unread)} could not be read" if unread else ""
    return UsageError(
        f"no session of this workspace used the agent {agent!r}; "
        f"agents used here: {names}{gap}. -w DIR looks in another workspace"
    )


def write_json(collected: UsageReport) -> str:
    return format_json(collected) + "\n"


def write_csv(collected: UsageReport) -> str:
    """Return one row per item; unread sessions are only in the JSON."""
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
