"""An agent's folder is read once per opening, however many want to know of it; and a change of its
texts is still seen."""

import json
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.agents.files import write

import lamina
from lamina.adapters.agents import read_agent
from lamina.apps.views.session_opener import Notices, open_runner
from lamina.apps.views.session_options import SessionOptions
from lamina.apps.wiring.trust_lookup import FolderTrust

pytestmark = pytest.mark.anyio
TARGET = "openai:gpt-4o"
HEAD = "---\ninclude: always\n---\n"
FILES = {
    "agent.yaml": "name: Pilot\nmodel: openai:gpt-4o\n",
    "persona.md": "I am the pilot.",
    "memory.md": "The tide turns at nine.",
    "rules/tide.md": f"{HEAD}Mind the tide.",
    "mcp.json": json.dumps({"mcpServers": {"clock": {"command": "true"}}}),
}
_open_names: list[str] | None = None


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _open_names is not None and isinstance(arguments[0], str):
        _open_names.append(os.path.basename(arguments[0]))


# For the whole process, as hooks of this kind are; it only listens while a test counts.
sys.addaudithook(_hear)


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """How often each of the agent's files is opened, by its name."""
    global _open_names
    counts: Counter[str] = Counter()
    names: list[str] = []
    _open_names = names
    try:
        yield counts
    finally:
        _open_names = None
        files = {Path(path).name for path in FILES}
        counts.update(name for name in names if name in files)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An agent of a workspace, which is not trusted; written a while ago, as what is younger may
    change unseen and is read again."""
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    folder = write(work / ".lamina" / "agents" / "pilot", FILES)
    newest = max(path.stat().st_ctime_ns for path in (folder, *folder.rglob("*")))
    while time.time_ns() - newest < 60_000_000:
        pass
    return folder


def once(counts: Counter[str]) -> bool:
    return counts == Counter({Path(path).name: 1 for path in FILES})


async def test_the_files_of_an_agent_are_opened_once_with_its_tools_and_its_rules(
    place: Path,
) -> None:
    with counted() as counts:
        async with await lamina.open_agent("a", agent="pilot", target=TARGET) as agent:
            turn = await agent.session.prepare("When?")
    assert once(counts), counts
    assert "Mind the tide." in turn.processed_text + str(turn.request())
    assert any("not trusted" in warning for warning in turn.warnings)


@pytest.mark.parametrize("opener", [lamina.open_session, lamina.open_chat, lamina.open_plan])
async def test_so_they_are_however_a_session_is_opened(place: Path, opener: Any) -> None:
    with counted() as counts:
        opened = await opener(agent=place, target=TARGET, trust=True)
        await getattr(opened, "session", opened).prepare("When?")
        await opened.close()
    assert once(counts), counts


async def test_a_session_that_goes_on_reads_its_agent_once(place: Path) -> None:
    await (await lamina.open_session("a", agent="pilot", target=TARGET)).close()
    with counted() as counts:
        async with await lamina.open_agent("a") as agent:
            await agent.session.prepare("When?")
    assert once(counts), counts


async def test_an_agent_that_is_found_by_the_name_it_gives_itself_is_read_once(
    place: Path, tmp_path: Path
) -> None:
    shutil.move(place, tmp_path / "data" / "agents" / "first")
    with counted() as counts:
        session = await lamina.open_session(agent="Pilot", target=TARGET)
        await session.close()
    assert once(counts), counts


class NoticesFake(Notices):
    """A person who agrees to what they are shown, after somebody changed it under their eyes."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.shown: list[FolderTrust] = []

    def say(self, line: str) -> None:
        """Says nothing."""

    async def fetch_model(self, name: str) -> None:
        """There is nothing to fetch."""

    async def agree(self, folder: FolderTrust) -> bool:
        self.shown.append(folder)
        servers = {"mcpServers": {"clock": {"command": "false"}}}
        (self.place / "mcp.json").write_text(json.dumps(servers), "utf-8")
        return True

    def index_progress(self, action: str, things: str, *, at_most: bool = False) -> Any:
        return lambda done, total: None


async def test_what_a_person_was_shown_is_what_counts_though_the_folder_changed_since(
    place: Path,
) -> None:
    notices = NoticesFake(place)
    options = SessionOptions(workspace=place.parents[2], agent="pilot", target=TARGET)
    with counted() as counts:
        runner = await open_runner(options, notices)
        await runner.close()
    # Once to be read, and once by the test itself to be changed.
    assert counts.pop("mcp.json") == 2
    assert set(counts.values()) == {1}, counts
    (folder,) = notices.shown
    assert folder.claims.servers["clock"]["command"] == "true"
    (host,) = [host for host in _hosts(runner) if hasattr(host, "_config")]
    assert [server.command for server in host._config.servers] == ["true"]


def _hosts(runner: Any) -> tuple[Any, ...]:
    return tuple(runner._tools._hosts)


async def test_a_rule_that_is_edited_later_is_seen(place: Path) -> None:
    async with await lamina.open_session("a", agent="pilot", target=TARGET) as session:
        (place / "rules" / "tide.md").write_text(f"{HEAD}Mind the wind.", "utf-8")
        turn = await session.prepare("When?")
    assert "Mind the wind." in str(turn.request())
    assert "Mind the tide." not in str(turn.request())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mcp.json", '{"mcpServers": {"clock": {"command": "true"}}}'),
        ("mcp.json", '{"metadata": {"name": "Spark"}, "rules": [{"name": "a", "text": "b"}]}'),
        ("agent.yaml", "metadata:\n  name: Spark\nsystemPrompt: Shine.\n"),
    ],
)
def test_a_file_of_one_kind_or_another_is_opened_once_to_be_told_apart(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    with counted() as counts:
        agent = read_agent(tmp_path / name)
    assert counts == {name: 1}
    assert agent.name == "Spark" or agent.servers
