"""Agents of TeamSpark: the YAML file, and the older folder."""

# Problems as they are on a screen.
# ruff: noqa: E501

from pathlib import Path

import pytest
from inline_snapshot import snapshot
from tests.adapters.agents.files import guide, problems_of, read, write

from lamina.adapters.agents import read_agent

WHOLE = """\
metadata:
  name: Harbour
  version: 1.0.1
  description: Knows the harbour.
  skills: []
settings:
  maxChatTurns: 20
  temperature: 0.2
  model: anthropic:claude-opus-5
  contextTopK: 30
  contextTopN: 4
  contextIncludeScore: 0.6
  toolPermission: never
systemPrompt: |
  You are the harbour master.

  Be brief.
rules:
  - name: care
    description: Take care.
    priorityLevel: 7
    include: always
    text: |
      Care.
  - name: big
    text: Big ships first.
references:
  - {name: tides, description: When it is high., priorityLevel: 42, include: agent, text: Noon.}
mcpServers:
  files:
    type: stdio
    command: npx
    args: [-y, server]
    serverToolDefaults: {permissionRequired: false, include: agent}
    tools:
      write: {permissionRequired: true, include: manual}
      read: {}
  web:
    type: streamable-http
    url: https://example.org/mcp
"""


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    agent = read_agent(write(tmp_path, {"harbour.yaml": WHOLE}) / "harbour.yaml")
    assert problems_of(agent, tmp_path) == []
    assert (agent.name, agent.version, agent.description) == (
        "Harbour",
        "1.0.1",
        "Knows the harbour.",
    )
    assert (agent.model, agent.persona) == (
        "anthropic:claude-opus-5",
        "You are the harbour master.\n\nBe brief.",
    )
    # What it does not say is what TeamSpark takes.
    assert agent.options == {"max_tokens": 1000, "temperature": 0.2, "top_p": 0.5}
    search = {"top_k": 30, "top_n": 4, "include_score": 0.6}
    assert agent.settings == {
        "guide_search": search,
        "tool_search": search,
        "ask_before_tools": "never",
    }
    shown = [(e.kind, e.name, e.level, e.include, e.text) for e in agent.guides]
    assert shown == [
        ("rule", "care", 7, "always", "Care."),
        ("rule", "big", 500, "manual", "Big ships first."),
        ("reference", "tides", 42, "agent", "Noon."),
    ]
    assert guide(agent, "big").place == f"{tmp_path}/harbour.yaml:25"
    assert agent.servers == {
        "files": {
            "type": "stdio",
            "command": "npx",
            "args": ["-y", "server"],
            "permission": "free",
            "include": "agent",
            "tools": {"write": {"permission": "required", "include": "manual"}, "read": {}},
        },
        "web": {"type": "streamable-http", "url": "https://example.org/mcp"},
    }


def test_the_older_folder_is_read_with_line_ends_of_windows(tmp_path: Path) -> None:
    rule = "---\r\nname: care\r\ndescription: d\r\npriorityLevel: 9\r\ninclude: always\r\n---\r\n"
    agent = read(
        tmp_path,
        {
            "tsagent.json": """\
{
\t"metadata": {"name": "Old", "created": "2025"},
\t"settings": {"maxChatTurns": "20", "temperature": "0.7", "maxOutputTokens": "300"},
\t"providers": {"openai": {"OPENAI_API_KEY": "sk-1"}},
\t"mcpServers": {"files": {"command": "fs", "toolPermissionRequired":
\t\t{"serverDefault": true, "tools": {"read": false}}, "toolInclude": {"serverDefault": "manual"}}}
}""",
            "prompt.md": "You are old.\r\n",
            "rules/care.mdt": f"{rule}Care.\r\nAlways.\r\n",
            "rules/plain.mdt": "No head.",
            "refs/tides.mdt": "---\n---\nNoon.",
        },
    )
    assert (agent.name, agent.persona) == ("Old", "You are old.")
    assert agent.options == {"temperature": 0.7, "max_tokens": 300, "top_p": 0.5}
    assert [(e.kind, e.name, e.level, e.include, e.text) for e in agent.guides] == [
        ("rule", "care", 9, "always", "Care.\nAlways."),
        ("rule", "plain", 500, "manual", "No head."),
        ("reference", "tides", 500, "manual", "Noon."),
    ]
    assert agent.servers["files"] == {
        "command": "fs",
        "permission": "required",
        "include": "manual",
        "tools": {"read": {"permission": "free"}},
    }
    assert "sk-1" not in str(agent)
    assert problems_of(agent, tmp_path) == snapshot(
        [
            "W tsagent.json:4: providers is not used: keys of providers come from the environment, not from an agent",
            "W prompt.md:1: has line ends of Windows; they are read as plain ones",
            "W rules/care.mdt:1: has line ends of Windows; they are read as plain ones",
            "W rules/plain.mdt:1: has no head, so it joins only when it is added by hand",
        ]
    )


def test_what_is_wrong_is_named_with_its_line_and_nothing_else_is_lost(tmp_path: Path) -> None:
    agent = read(
        tmp_path,
        {
            "tsagent.yaml": """\
metadata: {name: x}
settings:
  maxChatTurns: 50
  temperature: warm
  contextTopN: -2
  toolPermission: ask
  themes: dark
systemPrompt: [a]
rules:
  - just a text
  - {text: nameless, priorityLevel: 2000, include: often}
  - [1]
references: none
mcpServers:
  a: {command: x, url: y}
  b: 5
  c: {command: x, serverToolDefaults: {permissionRequired: "no", include: sometimes}}
  d: {command: x, tools: {t: 7, u: {include: rarely, permissionRequired: false}}}
"""
        },
    )
    assert problems_of(agent, tmp_path) == snapshot(
        [
            "E tsagent.yaml:4: temperature: has to be a number, not 'warm'; it is not used",
            "E tsagent.yaml:5: top_n: must be a whole number from 0 on, not -2; it is not used",
            "E tsagent.yaml:6: toolPermission: has to be one of always, never, tool, not 'ask'; tool is used",
            "W tsagent.yaml:7: 'themes' means nothing here and is not used; did you mean 'theme'?",
            "E tsagent.yaml:8: systemPrompt: has to be a text, not a list",
            "E tsagent.yaml:10: rules: entry 1 has to have a name and a text, and is 'just a text'",
            "E tsagent.yaml:10: name: is missing; it is called rule-1",
            "E tsagent.yaml:11: name: is missing; it is called rule-2",
            "E tsagent.yaml:11: priorityLevel: is 2000, and goes from 0 to 999; 999 is used",
            "E tsagent.yaml:11: include: has to be one of always, manual, agent, not 'often'; manual is used",
            "E tsagent.yaml:12: rules: entry 3 has to have a name and a text, and is a list",
            "E tsagent.yaml:13: references: has to be a list, not 'none'",
            "E tsagent.yaml:15: the server 'a' has both 'command' and 'url'; it needs one",
            "E tsagent.yaml:16: the server 'b' has to be an object, not 5",
            "E tsagent.yaml:17: the server 'c': permission has to be one of required, free, not 'no'",
            "E tsagent.yaml:17: the server 'c': include has to be one of always, manual, agent, not 'sometimes'",
            "E tsagent.yaml:18: the tool 't' of 'd' has to be an object, not 7",
            "E tsagent.yaml:18: the tool 'u' of 'd': include has to be one of always, manual, agent, not 'rarely'",
        ]
    )
    assert [(guide.name, guide.text) for guide in agent.guides] == [
        ("rule-1", "just a text"),
        ("rule-2", "nameless"),
    ]
    # A permission that cannot be read is the stricter one.
    assert agent.servers["c"] == {"command": "x", "permission": "required"}
    assert agent.servers["d"]["tools"] == {"u": {"permission": "free"}}


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("tsagent.json", '{"metadata": {,}}', "E tsagent.json:1: it is no JSON: a name in quotes"),
        ("tsagent.json", "[1]", "E tsagent.json:1: has to hold 'metadata'"),
        ("tsagent.yaml", "a: b: c", "E tsagent.yaml:1: mapping values are not allowed here"),
        ("tsagent.yaml", "", "E tsagent.yaml:1: has to hold 'metadata'"),
    ],
)
def test_a_broken_file_costs_nothing_beside_it(
    tmp_path: Path, name: str, text: str, problem: str
) -> None:
    agent = read(tmp_path, {name: text, "prompt.md": "Hello.", "rules/a.mdt": "---\n---\nA"})
    assert problems_of(agent, tmp_path)[0].startswith(problem)
    assert (agent.persona, [guide.text for guide in agent.guides]) == ("Hello.", ["A"])


@pytest.mark.parametrize("style", ["lines", "flow", "block"])
def test_vectors_that_are_kept_beside_texts_are_passed_over(tmp_path: Path, style: str) -> None:
    row = ", ".join(["-0.02968061901628971, 1.1e-33, 7"] * 128)
    block = "\n          ".join(f"- {figure}" for figure in row.split(", "))
    vectors = {
        "lines": f" # made by itself\n      - [ {row} ]\n      - [ {row} ]",
        "flow": f" [[{row}],\n [{row}]]",
        "block": f"\n      -\n          {block}",
    }[style]
    guides = "".join(
        f"  - name: r{number}\n    text: |\n      Text {number}.\n    embeddings:{vectors}\n"
        f"    hash: abc\n    include: agent\n    description: d\n"
        for number in range(40)
    )
    text = f"metadata: {{name: x}}\nrules:\n{guides}systemPrompt: Hello.\n"
    agent = read_agent(write(tmp_path, {"x.yaml": text}) / "x.yaml")
    assert problems_of(agent, tmp_path) == []
    assert [guide.text for guide in agent.guides] == [f"Text {number}." for number in range(40)]
    assert agent.persona == "Hello."
    # Lines are where they were.
    last = text.split("\n").index("  - name: r39") + 1
    assert guide(agent, "r39").place == f"{tmp_path}/x.yaml:{last}"


THEIRS = """\
metadata:
  name: Bob
  autonomous: {autonomous}
settings:
  maxChatTurns: 7
systemPrompt: You are Bob.
supervisors: []
mcpServers:
  rules: {{type: internal, tool: rules}}
  watch: {{type: internal, tool: supervision}}
  remote: {{type: sse, url: "https://example.org/sse", headers: {{X-Key: k}}}}
"""


@pytest.mark.parametrize("name", ["agent.yaml", "agent.yml", "tsagent.yaml"])
def test_an_agent_yaml_of_theirs_is_read_as_theirs(name: str, tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / name):
        write(tmp_path, {name: THEIRS.format(autonomous="true")})
        agent = read_agent(place)
        assert agent.problems == ()
        assert (agent.name, agent.persona) == ("Bob", "You are Bob.")
        assert agent.settings["max_requests"] == 7
        assert agent.autonomous
        # It loosens nothing.
        assert "ask_before_tools" not in agent.settings
        assert list(agent.servers) == ["remote"]
        assert agent.servers["remote"]["type"] == "sse"
        notes = "\n".join(agent.notes)
        assert "work without asking back; tools still ask" in notes
        assert "'rules' is built into TeamSpark; rules are chosen for each question here" in notes
        assert "'watch' is built into TeamSpark; it has no counterpart here" in notes


def test_an_agent_yaml_of_ours_stays_ours(tmp_path: Path) -> None:
    agent = read(tmp_path, {"agent.yaml": "name: Ada\n", "persona.md": "You are Ada."})
    assert (agent.name, agent.persona, agent.autonomous) == ("Ada", "You are Ada.", False)
