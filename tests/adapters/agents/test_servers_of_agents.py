"""`mcpServers` of agents, and JSON with the lines of what stands in it."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.adapters.agents.files import problems_of, read, write

from lamina.adapters.agents import read_agent
from lamina.adapters.agents.fields import ProblemList, UnreadableText, read_json


def test_servers_stay_as_they_are_written(tmp_path: Path) -> None:
    entry = {"command": "x", "env": {"K": "${KEY}"}, "alwaysAllow": ["other"], "tools": {"t": {}}}
    text = json.dumps({"mcpServers": {"a": entry}})
    agent = read(
        tmp_path, {".mcp.json": text, ".vscode/mcp.json": '{"servers": {"b": {"url": "u"}}}'}
    )
    assert agent.servers == {"a": entry, "b": {"url": "u"}}
    assert agent.problems == ()
    assert read_agent(tmp_path / ".mcp.json").servers == {"a": entry}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "E mcp.json:1: is empty; it has to be JSON"),
        ("{}", "E mcp.json:1: names no MCP servers"),
        ('{"mcpServers": []}', "E mcp.json:1: mcpServers: has to be an object, not a list"),
        ('{\n "mcpServers": {\n  // no\n }}', "E mcp.json:3: it is no JSON: a name in quotes is"),
        ('{"mcpServers": {"a": {"command": "x"},}}', "E mcp.json:1: it is no JSON: a name in"),
        ('{"mcpServers": {"": {"command": "x"}}}', "E mcp.json:1: a server needs a name"),
        ('{"mcpServers": {\n"a": {}}}', "E mcp.json:2: the server 'a' has neither 'command' nor"),
        (
            '{"mcpServers": {"a": {"command": "x"},\n"a": {"command": "y"}}}',
            "E mcp.json:2: 'a' is written twice, at line 1 and here; this counts",
        ),
        (
            '{"mcpServers": {"a": {"command": "x", "permission": "always"}}}',
            "E mcp.json:1: the server 'a': permission has to be one of required, free",
        ),
        (
            '{"mcpServers": {"a": {"command": "x", "tools": ["t"]}}}',
            "E mcp.json:1: the server 'a': 'tools' has to be an object of tools by name",
        ),
        ("[" * 5000, "E mcp.json:1: it is no JSON: it is nested too deep"),
    ],
)
def test_what_is_wrong_has_its_line(tmp_path: Path, text: str, problem: str) -> None:
    agent = read(tmp_path, {"agent.yaml": "name: a", "mcp.json": text})
    assert problems_of(agent, tmp_path)[0].startswith(problem)


def test_a_server_of_a_name_that_is_taken_is_named(tmp_path: Path) -> None:
    one, two = (json.dumps({"mcpServers": {"a": {"command": name}}}) for name in ("x", "y"))
    agent = read_agent(write(tmp_path, {"mcp.json": one, ".cursor/mcp.json": two}))
    assert agent.servers == {"a": {"command": "x"}}
    assert "there is a server 'a' already" in problems_of(agent, tmp_path)[0]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(VALUES, st.sampled_from([None, 1, "\t"]))
def test_json_is_read_as_python_reads_it(value: Any, indent: Any) -> None:
    text = json.dumps(value, indent=indent)
    problems = ProblemList()
    assert read_json(text, "x.json", problems).data == json.loads(text)
    assert problems.all == ()


@example("00")
@example("[0, 01]")
@given(st.text(alphabet='{}[]",:0eE.-+ \\ntruefalsn', max_size=40))
def test_what_is_no_json_is_unreadable_and_nothing_else(text: str) -> None:
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(UnreadableText):
            read_json(text, "x.json", ProblemList())
    else:
        assert read_json(text, "x.json", ProblemList()).data == expected
