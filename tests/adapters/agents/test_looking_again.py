"""An agent that is looked at before every turn: edits are seen, and nothing is read for nothing."""

import os
from pathlib import Path

import pytest
from tests.adapters.agents.files import write

from lamina.adapters.agents import AgentFolder
from lamina.core.values.agent import Agent
from lamina.errors import UsageError

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def aged(folder: Path) -> Path:
    """The folder with everything in it written a while ago."""
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (1_000_000_000, 1_000_000_000), follow_symlinks=False)
    return folder


async def texts(folder: AgentFolder) -> dict[str, str]:
    return {guide.name: guide.text for guide in (await folder.guides()).guides}


async def test_edits_additions_and_removals_are_seen(tmp_path: Path) -> None:
    head = "---\ninclude: always\n---\n"
    write(tmp_path, {"agent.yaml": "name: a", "rules/a.md": f"{head}one", "rules/b.md": head})
    folder = AgentFolder(aged(tmp_path))
    assert await texts(folder) == {"a": "one", "b": ""}
    # As long as before.
    (tmp_path / "rules" / "a.md").write_text(f"{head}two")
    assert await texts(folder) == {"a": "two", "b": ""}
    write(tmp_path, {"references/deep/c.md": f"{head}three"})
    assert await texts(folder) == {"a": "two", "b": "", "c": "three"}
    (tmp_path / "rules" / "b.md").unlink()
    (tmp_path / "rules" / "a.md").rename(tmp_path / "rules" / "d.md")
    assert await texts(folder) == {"d": "two", "c": "three"}
    (tmp_path / "agent.yaml").write_text("name: other")
    assert (await folder.agent()).name == "other"


async def test_what_did_not_change_is_the_same_value(tmp_path: Path) -> None:
    folder = AgentFolder(write(tmp_path, {"agent.yaml": "name: a", "rules/a.md": "---\n---\nA"}))
    seen: list[Agent] = []
    # Files so young that they might still change are read once more; then they are old.
    while len(seen) < 2 or seen[-1] is not seen[-2]:
        seen.append(await folder.agent())
        assert seen[-1] == seen[0]


async def test_what_others_wrote_is_looked_at_too(tmp_path: Path) -> None:
    folder = AgentFolder(aged(write(tmp_path, {"CLAUDE.md": "@later.md"})))
    assert await texts(folder) == {"CLAUDE.md": "@later.md"}
    (tmp_path / "later.md").write_text("Now.")
    assert await texts(folder) == {"CLAUDE.md": "@later.md", "later.md": "Now."}
    (tmp_path / "AGENTS.md").write_text("Agents.")
    assert "AGENTS.md" in await texts(folder)
    write(tmp_path, {".cursor/rules/r.mdc": "---\n---\nR"})
    assert "r" in await texts(folder)


async def test_an_agent_that_went_away_has_nothing_and_says_so(tmp_path: Path) -> None:
    file = write(tmp_path, {"r.mdc": "---\nalwaysApply: true\n---\nR"}) / "r.mdc"
    folder = AgentFolder(file)
    assert await texts(folder) == {"r": "R"}
    file.unlink()
    gone = await folder.guides()
    assert gone.guides == ()
    assert "the agent is gone" in gone.problems[0].problem
    file.write_text("---\nalwaysApply: true\n---\nBack")
    assert await texts(folder) == {"r": "Back"}


async def test_where_there_never_was_an_agent_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no agent"):
        await AgentFolder(tmp_path).guides()
