"""Agents by name and by path, and whose word counts for who answers."""

from pathlib import Path

import pytest
from tests.adapters.agents.files import write

from lamina.adapters.agents import read_agent
from lamina.apps.wiring.agent_finder import check_agent, find_agent, list_agents, persona_parts
from lamina.core.values.agent import Agent
from lamina.errors import UsageError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    return tmp_path


def test_a_name_is_looked_for_among_ones_own_then_in_the_workspace(home: Path) -> None:
    write(
        home,
        {
            "work/.lamina/agents/both/agent.yaml": "name: both",
            "work/.lamina/agents/theirs/agent.yaml": "name: theirs",
            "data/agents/both/agent.yaml": "name: both",
            "data/agents/mine/agent.yaml": "name: My Own",
            "data/agents/spark.yaml": "metadata: {name: Spark}",
            "work/mine/AGENTS.md": "A folder that happens to be called that.",
        },
    )
    work = home / "work"
    assert find_agent("both", work) == home / "data/agents/both"
    assert find_agent("theirs", work) == work / ".lamina/agents/theirs"
    assert find_agent("mine", work) == home / "data/agents/mine"
    assert find_agent("spark", work) == home / "data/agents/spark.yaml"
    assert find_agent("My Own", work) == home / "data/agents/mine"
    assert find_agent(str(work / "mine"), work) == work / "mine"


def test_a_path_is_a_path(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home, {"work/AGENTS.md": "x", "work/.lamina/agents/work/agent.yaml": ""})
    monkeypatch.chdir(home / "work")
    assert find_agent(".", ".") == Path()
    assert find_agent("AGENTS.md", ".") == Path("AGENTS.md")


def test_an_agent_that_is_not_there_is_said_with_those_that_are(home: Path) -> None:
    write(home, {"data/agents/mine/agent.yaml": ""})
    with pytest.raises(UsageError, match=r"no agent 'yours': .*\(mine\)"):
        find_agent("yours", home)


def test_all_agents_are_listed_with_what_the_workspace_itself_is(home: Path) -> None:
    write(
        home,
        {
            "work/.lamina/agents/a/agent.yaml": "",
            "work/.lamina/agents/empty/x": "",
            "data/agents/b/agent.yaml": "",
            "work/AGENTS.md": "Hello.",
        },
    )
    found = list_agents(home / "work")
    assert [(agent.name, agent.where, agent.agent is not None) for agent in found] == [
        ("b", "user", True),
        ("a", "workspace", True),
        ("empty", "workspace", False),
        ("work", "folder", True),
    ]
    assert "holds no agent" in found[2].problem
    assert list_agents(home / "nowhere") == found[:1]


def test_who_answers_is_the_agent_then_the_workspace_then_the_user(home: Path) -> None:
    agent = Agent(name="a", persona="I am a.")
    assert persona_parts(agent, home) == (("persona", "I am a."),)
    assert persona_parts(None, home) == ()
    assert persona_parts(Agent(name="b"), home, "Helpful.") == (("persona", "Helpful."),)
    write(home, {".lamina/persona.md": "Be brief.\r\n", "data/persona.md": "Call me Ada.\n"})
    assert persona_parts(agent, home) == (
        ("persona", "I am a."),
        ("workspace_persona", "Be brief."),
        ("user_persona", "Call me Ada."),
    )
    write(home, {"data/persona.md": b"\xff"})
    with pytest.raises(UsageError, match="is not UTF-8"):
        persona_parts(agent, home)


def test_what_only_this_machine_can_tell_is_a_warning(home: Path) -> None:
    servers = '{"mcpServers": {"a": {"command": "${WHAT}"}, "b": {}, "c": {"command": "ls"}}}'
    write(home / "x", {"agent.yaml": "model: nobody:knows", "mcp.json": servers})
    agent = read_agent(home / "x")
    checked = check_agent(agent, {})
    added = checked.problems[len(agent.problems) :]
    assert [problem.level for problem in added] == ["warning", "warning"]
    assert "'nobody:knows' is not 'provider:model'" in added[0].problem
    assert "the server 'a': the variable WHAT" in added[1].problem
    assert len(check_agent(agent, {"WHAT": "ls"}).problems) == len(agent.problems) + 1
