"""Agents of our own form: a folder with agent.yaml, and everything that may stand beside it."""

# Problems as they are on a screen.
# ruff: noqa: E501

from pathlib import Path

import msgspec
import pytest
from inline_snapshot import snapshot
from tests.adapters.agents.files import guide, problems_of, read, write

from lamina.adapters.agents import read_agent
from lamina.core.values.agent import Project
from lamina.core.values.selection import SearchSettings
from lamina.errors import UsageError

WHOLE = {
    "agent.yaml": """\
name: harbour
description: >
  Knows the harbour,
  and its ships.
version: 1.10
model: anthropic:claude-opus-5
settings:
  promotion: eager
  temperature: 1
  max_tokens: 500
  top_p: 0.9
  relevance_priority: true
search:
  top_n: 3
  include_score: 0.5
tool_search: false
tool_policy: exact
relations:
  files/read: [tool:files/write, "rule:care"]
  rule:care: reference:tides
""",
    "persona.md": "You are the harbour master.\n",
    "memory.md": "The pier opened in May.\n",
    "rules/care.md": "---\ndescription: Take care.\npriority: 7\ninclude: always\n---\nCare.\n",
    "rules/ships/big.md": '---\nname: big-ships\ninclude: agent\ndescription: "Big: ships"\n'
    'globs: ["ships/**", "*.{ship,boat}"]\n---\n\nBig ships first.\n',
    "references/tides.md": "---\npriority: 042\n---\nHigh at noon.",
    "mcp.json": '{"mcpServers": {"files": {"command": "fs", "permission": "free"}}}',
    "projects/pier/prompt.md": "Build the pier.",
    "projects/pier/context.md": "It is long.",
    "projects/dock/context.md": "It is wide.",
}


def test_a_whole_agent_is_read(tmp_path: Path) -> None:
    agent = read(tmp_path, WHOLE)
    assert problems_of(agent, tmp_path) == []
    assert (agent.name, agent.description) == ("harbour", "Knows the harbour, and its ships.")
    assert (agent.version, agent.model) == ("1.10", "anthropic:claude-opus-5")
    assert agent.persona == "You are the harbour master."
    assert agent.memory == "The pier opened in May."
    assert agent.options == {"temperature": 1, "max_tokens": 500, "top_p": 0.9}
    assert agent.settings == {
        "promotion": "eager",
        "relevance_priority": True,
        "guide_search": {"top_n": 3, "include_score": 0.5},
        "tool_search": {"search": False},
        "tool_policy": "exact",
    }
    assert agent.servers == {"files": {"command": "fs", "permission": "free"}}
    assert agent.projects == (
        Project(name="dock", context="It is wide."),
        Project(name="pier", prompt="Build the pier.", context="It is long."),
    )
    assert agent.relations == {
        "tool:files/read": ("tool:files/write", "rule:care"),
        "rule:care": ("reference:tides",),
    }


def test_rules_and_references_are_read_with_what_their_heads_say(tmp_path: Path) -> None:
    agent = read(tmp_path, WHOLE)
    shown = [
        (guide.kind, guide.name, guide.level, guide.include, guide.globs, guide.text)
        for guide in agent.guides
    ]
    assert shown == snapshot(
        [
            ("rule", "care", 7, "always", (), "Care."),
            ("rule", "big-ships", 500, "agent", ("ships/**", "*.{ship,boat}"), "Big ships first."),
            ("reference", "tides", 42, "manual", (), "High at noon."),
        ]
    )
    assert guide(agent, "big-ships").place == f"{tmp_path}/rules/ships/big.md:8"


@pytest.mark.parametrize("name", ["conservative", "normal", "aggressive"])
def test_a_preset_is_a_search_with_all_its_settings(tmp_path: Path, name: str) -> None:
    text = f"search: {name}\ntool_search:\n  preset: {name}\n  top_n: 2\n"
    agent = read(tmp_path, {"agent.yaml": text})
    assert agent.problems == ()
    whole = msgspec.convert(agent.settings["guide_search"], SearchSettings)
    assert msgspec.convert(agent.settings["tool_search"], SearchSettings).top_n == 2
    assert agent.settings["tool_search"] | {"top_n": whole.top_n} == agent.settings["guide_search"]


def test_relations_that_name_nothing_are_told_with_their_line(tmp_path: Path) -> None:
    yaml = "name: a\nrelations:\n  git/log: [rule:style, rule:gone]\n  other/x: [git/log]\n"
    files = {
        "agent.yaml": yaml,
        "rules/style.md": "---\ninclude: always\n---\nBe brief.",
        "mcp.json": '{"mcpServers": {"git": {"command": "git-server"}}}',
    }
    agent = read_agent(write(tmp_path, files))
    assert [(problem.line, problem.problem) for problem in agent.problems] == [
        (3, "relations: there is no rule 'gone'"),
        (4, "relations: there is no server 'other' in mcp.json"),
    ]


def test_every_setting_that_is_wrong_is_named_with_its_line_and_costs_itself_alone(
    tmp_path: Path,
) -> None:
    agent = read(
        tmp_path,
        {
            "agent.yaml": """\
name: [a, b]
nmae: x
model: claude
settings:
  promotion: fast
  temprature: 1
  temperature: hot
  top_p: 7
  window: -1
  strip_turns: 3
  tool_policy: some
search: {top_n: -1, topN: 4, top_k: 9}
tool_search: wild
relations: {read: [write], "rule:a": "reference:b"}
"""
        },
    )
    assert problems_of(agent, tmp_path) == snapshot(
        [
            "E agent.yaml:1: name: has to be a text, not a list",
            "E agent.yaml:3: model: has to be 'provider:id', as anthropic:claude-opus-5, not 'claude'",
            "E agent.yaml:5: promotion: has to be one of lazy, eager, not 'fast'; it is not used",
            "E agent.yaml:6: there is no setting 'temprature'; did you mean 'temperature'?",
            "E agent.yaml:7: temperature: has to be a number, not 'hot'; it is not used",
            "E agent.yaml:8: top_p: must be a number from 0 to 1, not 7; it is not used",
            "E agent.yaml:9: window: must be a number from 0 on, not -1; it is not used",
            "E agent.yaml:11: tool_policy: has to be one of sticky, exact, all, not 'some'; it is not used",
            "E agent.yaml:12: top_n: must be a whole number from 0 on, not -1; it is not used",
            "E agent.yaml:12: a search has no setting 'topN'; did you mean 'top_n'?",
            "E agent.yaml:13: tool_search: the preset has to be one of conservative, normal, aggressive, not 'wild'",
            "E agent.yaml:14: relations: 'read' names nothing; write tool:server/name, rule:name or the like",
            "E agent.yaml:14: relations: 'write' names nothing; write tool:server/name, rule:name or the like",
            "W agent.yaml:2: 'nmae' means nothing here and is not used; did you mean 'name'?",
            "W agent.yaml:14: relations: there is no rule 'a'",
            "W agent.yaml:14: relations: there is no reference 'b'",
        ]
    )
    assert agent.settings == {"strip_turns": 3, "guide_search": {"top_k": 9}, "tool_search": {}}
    assert (agent.name, agent.model, agent.options) == (tmp_path.name, "", {})
    assert agent.relations == {"rule:a": ("reference:b",)}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "W agent.yaml:1: is empty; give the agent a name and a description"),
        ("- a\n", "E agent.yaml:1: has to hold entries like 'name: ...', not a list"),
        (
            "name: a\n  b: c\n",
            "E agent.yaml:2: it is no YAML: mapping values are not allowed here; "
            "nothing it says is used",
        ),
        ("name: a\n---\nname: b\n", "E agent.yaml:2: it is no YAML: expected a single document"),
        ("!!python/object/apply:os.system [id]", "E agent.yaml:1: the tag "),
        ("a: &a [*a]", "E agent.yaml:1: it is no YAML: it is refused: its aliases repeat it"),
        ("a: [" + "1," * 30_000 + "1]", "E agent.yaml:1: it is no YAML: it holds more than 20,000"),
        ("[" * 20_000, "E agent.yaml:1: it is no YAML: it is nested too deep to be read"),
    ],
)
def test_an_agent_file_that_cannot_be_read_costs_nothing_beside_it(
    tmp_path: Path, text: str, problem: str
) -> None:
    agent = read(tmp_path, {"agent.yaml": text, "rules/a.md": "---\ninclude: always\n---\nA"})
    assert problems_of(agent, tmp_path)[0].startswith(problem)
    assert [guide.text for guide in agent.guides] == ["A"]
    assert agent.name == tmp_path.name


def test_a_bomb_of_aliases_is_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    agent = read(tmp_path, {"agent.yaml": "\n".join(lines)})
    (problem,) = problems_of(agent, tmp_path)
    assert "its aliases repeat it without end" in problem


def test_an_alias_that_is_used_as_meant_is_read(tmp_path: Path) -> None:
    text = "search: &s {top_n: 2}\ntool_search: *s\n"
    agent = read(tmp_path, {"agent.yaml": text})
    assert agent.problems == ()
    assert agent.settings == {"guide_search": {"top_n": 2}, "tool_search": {"top_n": 2}}


def test_files_that_are_not_read_are_named(tmp_path: Path) -> None:
    files = {
        "agent.yaml": "name: a",
        "rules/notes.txt": "x",
        "rules/.hidden.md": "x",
        "refrences/a.md": "x",
        "AGENTS.md": "x",
        "projects/loose.md": "x",
        "projects/empty/readme.txt": "x",
    }
    assert problems_of(read(tmp_path, files), tmp_path) == snapshot(
        [
            "W rules/notes.txt: is not read: a rule is a file that ends in .md",
            "W projects/empty: is a project without prompt.md or context.md; it is empty",
            "W projects/loose.md: is not read: a project is a folder with prompt.md and context.md",
            "W AGENTS.md: is not read beside agent.yaml; make it a rule, or persona.md",
            "W refrences: is not read; did you mean 'references'?",
        ]
    )


def test_paths_are_shown_as_they_were_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"a/agent.yaml": "", "a/rules/r.md": "---\n---\nR"})
    monkeypatch.chdir(tmp_path)
    agent = read_agent("a")
    assert agent.place == "a"
    assert agent.problems[0].path == "a/agent.yaml"
    assert agent.guides[0].place == "a/rules/r.md:3"
    assert read_agent("a/agent.yaml").guides == agent.guides


@pytest.mark.parametrize("name", ["nowhere", "empty", "notes.txt"])
def test_a_path_without_an_agent_is_an_error_that_says_what_one_is(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(UsageError, match=name):
        read_agent(tmp_path / name)
