"""Whatever bytes a file of an agent holds: it is read, and nothing is raised."""

import os
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.adapters.agents.files import write

from lamina.adapters.agents import read_agent
from lamina.core.codec import canonical_bytes

FILES = (
    "agent.yaml", "tsagent.yaml", "tsagent.json", "mcp.json", "AGENTS.md", "CLAUDE.md", "r.mdc",
    "x/SKILL.md", ".claude/rules/a.md", "other.yaml", "other.json", "other.md",
)  # fmt: skip
PIECES = st.sampled_from(
    (
        "---\n", "name: ", "description: ", "globs: ", "**/*.ts", "paths:", "\n", "- ", "  ", "\t",
        "{", "}", "[", "]", '"', "'", ": ", ",", "&a ", "*a ", "!!x ", "<<", "|", ">", "%", "@",
        "`", "```\n", "rules", "settings", "mcpServers", "metadata", "systemPrompt", "text",
        "true", "7",
        "1e999", ".nan", "\\ud800", "\x00", "\ufeff", "\r\n", "é", "2024-13-45", "? ", "@a.md", "#",
        "search", "tool_search", "relations", "serverToolDefaults", "tools", "permission",
    )
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=40).map("".join).map(str.encode) | st.binary(max_size=60)


@given(name=st.sampled_from(FILES), data=TEXTS)
def test_any_bytes_are_an_agent_or_a_problem(name: str, data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), {name: data}) / name
        for place in (path, path.parent):
            # A file that holds nothing makes no agent of the folder around it, perhaps.
            if place.is_dir() and name.startswith(("other", ".claude")):
                continue
            agent = read_agent(place)
            # What was read can be kept and sent.
            canonical_bytes(msgspec.to_builtins(agent.guides))
            canonical_bytes([agent.persona, agent.name, agent.description])
            assert all(problem.problem and problem.path for problem in agent.problems)
            assert len({guide.id for guide in agent.guides}) == len(agent.guides)


def test_names_of_files_that_are_no_text_are_read(tmp_path: Path) -> None:
    write(tmp_path, {"agent.yaml": "name: a"})
    os.makedirs(bytes(tmp_path / "rules"))
    Path(os.fsdecode(bytes(tmp_path / "rules") + b"/caf\xe9.md")).write_text("---\n---\nText")
    agent = read_agent(tmp_path)
    assert [(guide.name, guide.text) for guide in agent.guides] == [("caf", "Text")]
    canonical_bytes(msgspec.to_builtins(agent))


@pytest.mark.parametrize("name", ["rules/a.md", "agent.yaml", "persona.md", "mcp.json"])
def test_a_folder_where_a_file_should_be_is_no_harm(tmp_path: Path, name: str) -> None:
    write(tmp_path, {"AGENTS.md": "Hello.", "rules/b.md": "---\n---\nB", f"{name}/inner.txt": "x"})
    if name != "agent.yaml":
        write(tmp_path, {"agent.yaml": "name: a"})
        assert [guide.name for guide in read_agent(tmp_path).guides] == ["b"]
    else:
        assert [guide.name for guide in read_agent(tmp_path).guides] == ["AGENTS.md"]
