"""What docs/agents.md says of an agent's files is what is read of them."""

import re
from pathlib import Path
from typing import get_args

from msgspec.structs import asdict
from tests.adapters.agents.files import write

from lamina.adapters.agents.agent_reader import read_agent
from lamina.core.values.agent import DEFAULT_LEVEL, Guide
from lamina.core.values.selection import Preset, SearchSettings, preset

PAGE = (Path(__file__).parents[2] / "docs" / "agents.md").read_text("utf-8")


def rows(heading: str, column: str) -> list[list[str]]:
    """The rows of the table that begins with `column`, under a heading."""
    section = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    table = section.split(f"| {column} |", 1)[1].split("\n\n", 1)[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]
    ]


def names(heading: str, column: str) -> list[str]:
    return [name for row in rows(heading, column) for name in re.findall(r"`(.*?)`", row[0])]


def test_the_examples_are_agents_without_problems(tmp_path: Path) -> None:
    (yaml,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (json,) = re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    files = {
        "agent.yaml": yaml,
        "mcp.json": json,
        "rules/commits.md": "---\ninclude: agent\ndescription: Commits\n---\nSay why.",
    }
    agent = read_agent(write(tmp_path / "reviewer", files))
    assert agent.problems == ()
    assert agent.settings["guide_search"]["top_k"] == preset("conservative").top_k
    assert agent.servers["git"]["tools"]["git_status"]["include"] == "always"
    assert agent.relations == {"tool:git/git_diff": ("tool:git/git_log", "rule:commits")}


def test_the_keys_of_agent_yaml_are_those_that_are_known(tmp_path: Path) -> None:
    agent = read_agent(write(tmp_path / "a", {"agent.yaml": "zzzzz: 1\n"}))
    (problem,) = agent.problems
    known = problem.problem.split("known are ")[1].split(", ")
    assert sorted(names("agent.yaml", "key")) == known


def test_the_parts_of_a_search_and_the_presets_are_as_they_are() -> None:
    told = {row[0].strip("`"): row[2:] for row in rows("What search chooses", "part")}
    assert set(told) == set(asdict(SearchSettings()))
    for at, name in enumerate(get_args(Preset)):
        for part, value in asdict(preset(name)).items():
            said = ("no", "yes")[value] if isinstance(value, bool) else str(value)
            assert told[part][at] == said, part


def test_the_head_of_a_rule_has_the_keys_and_defaults_that_are_told(tmp_path: Path) -> None:
    files = {"agent.yaml": "name: a\n", "rules/r.md": "---\nzzzzz: 1\n---\nText."}
    agent = read_agent(write(tmp_path / "a", files))
    (problem,) = agent.problems
    known = problem.problem.split("known are ")[1].split(", ")
    table = {row[0].strip("`"): row[2] for row in rows("Rules and references", "key")}
    assert sorted(table) == known
    assert (table["priority"], table["include"]) == (str(DEFAULT_LEVEL), "`manual`")
    (rule,) = agent.guides
    assert rule == Guide(kind="rule", name="r", text="Text.", place=rule.place)
