"""Agents for tests, written to disk."""

from collections.abc import Callable, Mapping
from pathlib import Path

from lamina.adapters.agents import read_agent
from lamina.core.values.agent import Agent, Guide, Problem

Write = Callable[[Mapping[str, str | bytes]], Path]


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Writes files by their paths inside a folder, which it returns."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def read(folder: Path, files: Mapping[str, str | bytes]) -> Agent:
    return read_agent(write(folder, files))


def guide(agent: Agent, name: str) -> Guide:
    (found,) = [guide for guide in agent.guides if guide.name == name]
    return found


def problems_of(agent: Agent, folder: Path) -> list[str]:
    """Problems as `check` would print them, seen from the folder."""
    return [_shown(problem, folder) for problem in agent.problems]


def _shown(problem: Problem, folder: Path) -> str:
    return f"{problem.level[0].upper()} {problem}".replace(f"{folder}/", "")
