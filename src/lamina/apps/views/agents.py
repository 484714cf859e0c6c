"""The agents there are, what they hold, and what is odd about them.

Law: keys of servers are taken out here, and nowhere else.
"""

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec
from msgspec import Struct

from lamina.adapters.providers.tokens import EncodingCounter
from lamina.apps.wiring.agents import (
    FoundAgent,
    check_agent,
    find_agent,
    list_agents,
    persona_parts,
    read_agent,
)
from lamina.core.values.agent import Agent, Guide, Problem

# What tokens are estimated with, whoever answers in the end.
ENCODING = "o200k_base"


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
    """What is shown, as data; servers without what may be secret."""
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
    """What may be shown of a server: how it is reached and on which terms, not with which keys."""
    plain = ("command", "type", "disabled")
    shown: dict[str, Any] = {key: entry[key] for key in plain if key in entry}
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


def guide_row(guide: Guide) -> GuideRow:
    own = {name: getattr(guide, name) for name in GuideRow.__struct_fields__ if name != "tokens"}
    return GuideRow(tokens=EncodingCounter(ENCODING).count(guide.text), **own)


def guides_in_order(guides: tuple[Guide, ...]) -> list[Guide]:
    """As they are sent: references, then rules; by level, then by name."""
    return sorted(guides, key=lambda guide: (guide.kind, guide.level, guide.name))


def read_agents(paths: list[str], workspace: Path) -> list[Agent]:
    return [
        check_agent(read_agent(find_agent(path, workspace), workspace), os.environ)
        for path in paths
    ]


def read_all_agents(workspace: Path) -> list[Agent]:
    """Those that cannot be read at all as well, with their problem."""
    return [
        check_agent(found.agent, os.environ)
        if found.agent
        else Agent(name=found.name, problems=(Problem(path=found.path, problem=found.problem),))
        for found in list_agents(workspace)
    ]


def describe_problem(problem: Problem) -> dict[str, Any]:
    """With all of its fields, in one order."""
    return {"path": "", "line": None, "level": "error", **msgspec.to_builtins(problem)}


def count_levels(problems: tuple[Problem, ...]) -> tuple[int, int]:
    errors = sum(problem.level == "error" for problem in problems)
    return errors, len(problems) - errors
