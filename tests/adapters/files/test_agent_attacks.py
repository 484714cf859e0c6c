"""Issue 16, A.1: files that a folder brings for an agent, a skill or a persona. Whatever stands in
their place, nothing outside the folder is opened, nothing waits, and the path is named."""

import contextlib
import itertools
import os
import socket
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from tests.adapters.agents.files import write
from tests.adapters.files.witness import audited, strays, watched

from lamina.adapters.agents import AgentFolder, read_agent
from lamina.adapters.tools.mcp_client.config import read_servers
from lamina.adapters.tools.skill_files import SkillTools
from lamina.adapters.workspace.memory_file import MemoryFile
from lamina.apps.views.search_candidates import read_tools
from lamina.apps.wiring.agent_finder import find_agent, list_agents, persona_parts
from lamina.apps.wiring.agent_finder import read_agent as read_found_agent
from lamina.core.values.agent import Agent, Skill
from lamina.errors import LaminaError, UsageError

pytestmark = pytest.mark.anyio

SECRET = "the secret outside"
HEAD = "---\ninclude: always\nname: x\ndescription: d\n---\n"
# A folder with everything that can be read of one, in every format.
FILES = {
    ".lamina/persona.md": "Be brief.",
    ".lamina/agents/own/agent.yaml": "name: own",
    ".lamina/agents/own/persona.md": "I am own.",
    ".lamina/agents/own/memory.md": "Tea.",
    ".lamina/agents/own/mcp.json": '{"mcpServers": {}}',
    ".lamina/agents/own/rules/style.md": f"{HEAD}Brief.",
    ".lamina/agents/own/references/deep/words.md": f"{HEAD}Words.",
    ".lamina/agents/own/projects/boat/prompt.md": "Row.",
    ".lamina/agents/own/projects/boat/context.md": "A boat.",
    ".lamina/agents/own/skills/tides/SKILL.md": f"{HEAD}Tides.",
    ".lamina/agents/spark/tsagent.json": '{"metadata": {"name": "spark"}}',
    ".lamina/agents/spark/prompt.md": "Spark.",
    ".lamina/agents/spark/rules/one.mdt": f"{HEAD}One.",
    ".lamina/agents/one.yaml": "name: one",
    "AGENTS.md": "Agents.",
    "CLAUDE.md": "Claude. @imported.md @docs/more.md",
    "imported.md": "Imported.",
    "docs/more.md": "More.",
    "CLAUDE.local.md": "Local.",
    ".claude/CLAUDE.md": "Inner.",
    ".claude/rules/rule.md": "Rule.",
    ".claude/skills/nets/SKILL.md": f"{HEAD}Nets.",
    ".cursor/rules/cursor.mdc": "---\nalwaysApply: true\n---\nCursor.",
    ".mcp.json": '{"mcpServers": {}}',
    ".cursor/mcp.json": '{"mcpServers": {}}',
    ".vscode/mcp.json": '{"servers": {}}',
}


class Ground:
    """A workspace, and outside of it the same files with a secret in each."""

    def __init__(self, base: Path, names: Iterable[str] = FILES) -> None:
        self.work, self.outside = base / "work", base / "outside"
        write(self.work, {name: FILES[name] for name in names})
        write(self.outside, {name: f"{FILES[name]}\n{SECRET}" for name in names})
        self.folders = [self.outside, *(path for path in self.outside.rglob("*") if path.is_dir())]


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    ground = Ground(tmp_path)
    # What is imported on the way is not what is watched.
    assert SECRET not in read_everything(ground.work)
    return ground


def read_everything(work: Path) -> str:
    """All that a folder brings, by all ways to it, with every problem in words."""
    words: list[str] = []
    agents: list[Agent] = []
    for found in list_agents(work):
        words.append(found.problem)
        if found.agent:
            agents.append(found.agent)
    readers: list[Callable[[], Agent]] = [
        lambda: read_agent(work),
        lambda: read_found_agent(find_agent("own", work), work),
        lambda: read_found_agent(work / "CLAUDE.md", work),
        lambda: read_found_agent(work / ".lamina/agents/own/rules/style.md", work),
    ]
    for read in readers:
        try:
            agents.append(read())
        except LaminaError as error:
            words.append(str(error))
    try:
        words.append(str(persona_parts(None, work)))
    except LaminaError as error:
        words.append(str(error))
    for agent in agents:
        words += [repr(agent), *map(str, agent.problems)]
    return "\n".join(words)


def _fifo(path: Path, _: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path, _: Path) -> None:
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)


def _device(path: Path, _: Path) -> None:
    try:
        os.mknod(path, 0o20644, os.makedev(1, 5))
    except PermissionError:
        os.mkfifo(path)


def _link_to_pipe(path: Path, _: Path) -> None:
    os.mkfifo(path.with_name("pipe-one"))
    path.symlink_to("pipe-one")


def _relative_link(path: Path, target: Path) -> None:
    path.symlink_to(os.path.relpath(target, path.parent))


def _chain(path: Path, target: Path) -> None:
    path.with_name("link-one").symlink_to(target)
    path.symlink_to("link-one")


TRAPS: dict[str, Callable[[Path, Path], None]] = {
    "link": lambda path, target: path.symlink_to(target),
    "relative link": _relative_link,
    "chain": _chain,
    "pipe": _fifo,
    "link to a pipe": _link_to_pipe,
    "socket": _socket,
    "device": _device,
    "link to a device": lambda path, _: path.symlink_to("/dev/zero"),
    "link to a process": lambda path, _: path.symlink_to("/proc/self/environ"),
    "link to itself": lambda path, _: path.symlink_to(path.name),
    "dangling link": lambda path, target: path.symlink_to(target.with_name("nowhere")),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_no_file_that_a_folder_brings_leads_out_of_it(ground: Ground, trap: str) -> None:
    for name in FILES:
        path = ground.work / name
        kept_path = path.rename(ground.work.parent / "kept")
        before = set(path.parent.iterdir())
        TRAPS[trap](path, ground.outside / name)
        with watched(*ground.folders) as watch:
            with audited() as heard:
                text = read_everything(ground.work)
            assert strays(heard, ground.work) == [], name
            assert watch.seen() == [], name
        assert SECRET not in text, name
        # Beside what is asked for by name, what a line imports is told by that line.
        assert Path(name).name in text, name
        for extra in set(path.parent.iterdir()) - before:
            extra.unlink()
        kept_path.rename(path)


FOLDERS = sorted({str(parent) for name in FILES for parent in Path(name).parents if parent.parts})


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_folder_that_leads_out_is_even_listed(ground: Ground, folder: str) -> None:
    (ground.work / folder).rename(ground.work.parent / "kept")
    (ground.work / folder).symlink_to(ground.outside / folder)
    with watched(*ground.folders) as watch:
        with audited() as heard:
            text = read_everything(ground.work)
        assert strays(heard, ground.work) == []
        assert watch.seen() == []
    assert SECRET not in text


SWAPPED: dict[str, Callable[[Path], object]] = {
    ".lamina": lambda work: persona_parts(None, work),
    ".lamina/agents/own": lambda work: read_found_agent(work / ".lamina/agents/own", work),
    ".lamina/agents/own/rules": lambda work: read_found_agent(work / ".lamina/agents/own", work),
    "docs": lambda work: read_found_agent(work / "CLAUDE.md", work),
}


@pytest.mark.parametrize("swapped", SWAPPED)
def test_a_swap_at_any_moment_does_not_lead_out(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    """A folder becomes a link in the moment before a call of the system, once for every call."""
    names = (
        ".lamina/persona.md", ".lamina/agents/own/agent.yaml", ".lamina/agents/own/rules/style.md",
        "CLAUDE.md", "docs/more.md",
    )  # fmt: skip
    # What is imported on the way is not what is watched.
    SWAPPED[swapped](Ground(tmp_path_factory.mktemp("warm"), names).work)
    for at in itertools.count(1):
        ground = Ground(tmp_path_factory.mktemp("swap"), names)
        monkeypatch.setenv("LAMINA_DATA", str(ground.work.parent / "data"))
        place = ground.work / swapped

        def become_a_link(place: Path = place, target: Path = ground.outside / swapped) -> None:
            place.rename(place.parent / "real-one")
            place.symlink_to(target)

        with watched(*ground.folders) as watch:
            with audited(at, become_a_link) as heard, contextlib.suppress(UsageError):
                assert SECRET not in repr(SWAPPED[swapped](ground.work))
            assert strays(heard, ground.work) == []
            assert watch.seen() == []
        if len(heard) < at:
            break
    assert at > 3


def test_links_that_stay_inside_are_followed(ground: Ground) -> None:
    work = ground.work
    (work / "CLAUDE.local.md").unlink()
    (work / "CLAUDE.local.md").symlink_to("AGENTS.md")
    (work / "skills").symlink_to(".claude/skills")
    (work / ".lamina/persona.md").unlink()
    (work / ".lamina/persona.md").symlink_to(work / "docs/more.md")
    (work / ".lamina/agents/two").symlink_to("own", target_is_directory=True)
    assert persona_parts(None, work) == (("workspace_persona", "More."),)
    assert read_found_agent(find_agent("two", work), work).persona == "I am own."
    agent = read_agent(work)
    assert {"Agents.", "Nets."} <= {guide.text for guide in agent.guides}
    assert not [problem for problem in agent.problems if "leads out" in problem.problem]


def test_an_agent_of_a_workspace_that_is_a_link_outside_is_refused_by_its_path(
    ground: Ground,
) -> None:
    link = ground.work / ".lamina/agents/far"
    link.symlink_to(ground.outside / ".lamina/agents/own")
    with pytest.raises(UsageError, match=r"\.lamina/agents/far' leads out of .* by a link"):
        read_found_agent(find_agent("far", ground.work), ground.work)
    (far,) = [found for found in list_agents(ground.work) if found.name == "far"]
    assert "leads out of" in far.problem
    # What it leads to is somebody's own as soon as they name it themselves.
    place = ground.outside / ".lamina/agents/own"
    assert SECRET in read_found_agent(place, ground.work).persona


async def test_an_agent_in_use_that_becomes_a_link_is_gone(ground: Ground) -> None:
    place = ground.work / ".lamina/agents/own"
    folder = AgentFolder(place, ground.work)
    assert (await folder.agent()).persona == "I am own."
    place.rename(place.with_name("real-one"))
    place.symlink_to(ground.outside / ".lamina/agents/own")
    agent = await folder.agent()
    assert agent.persona == ""
    assert "leads out of" in str(agent.problems[0])


def test_ones_own_agents_and_personas_may_be_links(ground: Ground) -> None:
    data = ground.work.parent / "data"
    (data / "agents").mkdir(parents=True)
    (data / "agents/linked").symlink_to(ground.outside / ".lamina/agents/own")
    (data / "persona.md").symlink_to(ground.outside / "imported.md")
    assert SECRET in read_found_agent(find_agent("linked", ground.work), ground.work).persona
    assert ("user_persona", f"Imported.\n{SECRET}") in persona_parts(None, ground.work)


@pytest.mark.parametrize("trap", ["pipe", "link to a pipe", "device", "link to a device", "socket"])
async def test_ones_own_files_do_not_make_us_wait_either(ground: Ground, trap: str) -> None:
    data = ground.work.parent / "data"
    data.mkdir()
    TRAPS[trap](data / "persona.md", data)
    with pytest.raises(UsageError, match=r"persona\.md' is not a regular file"):
        persona_parts(None, ground.work)
    with pytest.raises(UsageError, match=r"persona\.md' is not a regular file"):
        await MemoryFile(data / "persona.md").read()


def test_a_home_under_version_control_is_no_project(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a link in anything that was downloaded could lead anywhere in it."""
    home = ground.work.parent
    monkeypatch.setenv("HOME", str(home))
    write(home, {".git/HEAD": ""})
    (ground.work / "AGENTS.md").unlink()
    (ground.work / "AGENTS.md").symlink_to("../outside/AGENTS.md")
    assert SECRET not in read_everything(ground.work)


@pytest.fixture
def skill(ground: Ground) -> tuple[SkillTools, Path, Ground]:
    folder = ground.work / ".claude/skills/nets"
    write(folder, {"forms/a.md": "A form.", "b.md": "B."})
    write(ground.outside / ".claude/skills/nets", {"forms/a.md": SECRET, "b.md": SECRET})
    tools = SkillTools([Skill(name="nets", folder=str(folder))], str(ground.work))
    return tools, folder, ground


@pytest.mark.parametrize("swapped", ["", "forms", "forms/a.md"])
async def test_files_of_skills_do_not_lead_out_when_something_becomes_a_link(
    skill: tuple[SkillTools, Path, Ground], swapped: str
) -> None:
    tools, folder, ground = skill
    call = {"skill": "nets", "path": "forms/a.md"}
    assert (await tools.call("read_skill_file", call)).text == "A form."
    place = folder / swapped
    place.rename(place.with_name("real-one"))
    place.symlink_to(ground.outside / ".claude/skills/nets" / swapped)
    with watched(ground.outside / ".claude/skills/nets") as watch:
        output = await tools.call("read_skill_file", call)
        assert watch.seen() == []
    assert output.is_error
    assert SECRET not in output.text


def test_a_pipe_that_is_named_is_refused_unless_a_shell_hands_it_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "mcp.json")
    for read in (read_servers, read_tools):
        with pytest.raises(UsageError, match=r"mcp\.json' is not a regular file"):
            read(tmp_path / "mcp.json")
    out, into = os.pipe()
    os.write(into, b'{"mcpServers": {}}')
    os.close(into)
    assert read_servers(Path(f"/dev/fd/{out}")).servers == ()
    os.close(out)
