"""A cloned folder is opened as an agent: nothing that it brings runs before a person trusted it as
it is (issue 16, A.3). Servers are real processes; what was started is witnessed by a file that each
start writes and by the interpreter's own audit events."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.adapters.agents.files import write
from tests.fakes.book import SMALL, FakeBook
from tests.fakes.index import IndexFake
from tests.fakes.providers import ProviderFake, ProvidersFake, calling, saying
from tests.fakes.replies import openai_reply
from tests.fakes.store import FakeStore

import lamina
from lamina.apps.wiring.agent_defaults import read_agent_defaults
from lamina.apps.wiring.trust_lookup import keep_trust, trust_book
from lamina.core.values.tool import Toolset
from lamina.engine.runners.runner import AgentRunner
from lamina.engine.session.session import Session

ODD = str(Path(__file__).parents[1] / "adapters" / "tools" / "odd_server.py")
# A server of the folder's own: it notes its start, and serves.
SERVER = f"import runpy\nrunpy.run_path({ODD!r}, run_name='__main__')\n"
TEXTS = {"AGENTS.md": "Always answer in rhymes."}
_started: list[str] = []
_is_watching = False


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _is_watching and event in ("subprocess.Popen", "os.posix_spawn", "os.exec"):
        _started.append(str(arguments[:2]))


sys.addaudithook(_watch)


class Clone:
    """A stranger's folder, one store, and a model that plays scripts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.starts = folder.parent / "starts"
        self.store, self.provider = FakeStore(), ProviderFake()
        self.place: Path = folder

    def entry(self, **terms: Any) -> dict[str, Any]:
        env = {"STARTS": str(self.starts)}
        return {"command": sys.executable, "args": ["./server.py"], "cwd": ".", "env": env, **terms}

    def add(self, file: str, root: str = "mcpServers", **terms: Any) -> Path:
        """Writes a file that names the folder's own server."""
        content = json.dumps({root: {"odd": self.entry(**terms)}})
        return write(self.folder, {file: content, "server.py": SERVER, **TEXTS})

    async def open(self, **given: Any) -> AgentRunner:
        opening: dict[str, Any] = {
            "store": self.store, "book": FakeBook(), "index": IndexFake(), "agent": self.place,
            "workspace": self.folder, "target": SMALL.name,
            "providers": ProvidersFake(self.provider),
        }  # fmt: skip
        return await lamina.open_agent("talk", **(opening | given))

    async def look(self, **given: Any) -> tuple[Toolset, str, tuple[str, ...]]:
        """The tools, what the model was sent, and the warnings of a question."""
        async with await self.open(**given) as runner:
            toolset = await runner.toolset()
            answer = await runner.run("Hello?")
            assert answer.turn is not None
            return toolset, str(self.provider.bodies[-1]), answer.turn.context.warnings

    async def trust(self) -> None:
        keep_trust((await read_agent_defaults(self.place, self.folder)).trust)

    @property
    def ran(self) -> bool:
        return self.starts.exists() or bool(_started)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clone]:
    global _is_watching
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    write(tmp_path, {"clone/notes.md": "x"})
    monkeypatch.chdir(tmp_path / "clone")
    _started.clear()
    _is_watching = True
    yield Clone(tmp_path / "clone")
    _is_watching = False


KINDS = [
    ("mcp.json", "mcpServers"),
    (".mcp.json", "mcpServers"),
    (".cursor/mcp.json", "mcpServers"),
    (".vscode/mcp.json", "servers"),
]


@pytest.mark.parametrize(("file", "root"), KINDS)
def test_servers_of_a_clone_start_only_once_it_is_trusted(
    clone: Clone, file: str, root: str
) -> None:
    async def body() -> None:
        clone.add(file, root, permission="free")
        toolset, sent, warnings = await clone.look()
        assert not clone.ran
        assert toolset.tools == ()
        assert [omission.reason for omission in toolset.withheld] == ["untrusted"]
        # What it says is read, as any text is.
        assert "answer in rhymes" in sent
        (warning,) = warnings
        assert "its servers (odd) are not started" in warning
        assert warning.endswith(f"`lamina trust {clone.folder}`")
        await clone.trust()
        toolset, _, warnings = await clone.look()
        assert clone.ran
        assert "tool:odd/echo" in [tool.id for tool in toolset.tools]
        assert warnings == ()

    anyio.run(body)


@pytest.mark.parametrize("name", ["agent.yaml", "tsagent.yaml", "tsagent.json"])
def test_neither_does_an_agent_in_the_clone(clone: Clone, name: str) -> None:
    async def body() -> None:
        clone.place = clone.folder / "pilot"
        servers = {"mcpServers": {"odd": clone.entry(cwd="..")}}
        spark = {"metadata": {"name": "pilot"}, "systemPrompt": "You are a pilot.", **servers}
        spark["settings"] = {"toolPermission": "never"}
        own = {
            "agent.yaml": "settings: {ask_before_tools: never}",
            "persona.md": "You are a pilot.",
            "mcp.json": json.dumps(servers),
        }
        files = own if name == "agent.yaml" else {name: json.dumps(spark)}
        write(clone.folder, {"server.py": SERVER})
        write(clone.place, files)
        async with await clone.open() as runner:
            assert (await runner.toolset()).tools == ()
            assert runner.session.settings.ask_before_tools == "tool"
            await runner.run("Hello?")
        assert "You are a pilot." in str(clone.provider.bodies[-1])
        assert not clone.ran
        clone.store = FakeStore()
        async with await clone.open(trust=True) as runner:
            assert (await runner.toolset()).tools
            assert runner.session.settings.ask_before_tools == "never"
        # That session goes on, and the folder is trusted no more.
        async with await clone.open(agent=None, target=None) as runner:
            assert runner.session.settings.ask_before_tools == "tool"

    anyio.run(body)


def test_a_changed_script_asks_again_and_so_does_a_link_to_another(clone: Clone) -> None:
    async def body() -> None:
        clone.add(".mcp.json")
        (clone.folder / "server.py").rename(clone.folder / "one.py")
        (clone.folder / "server.py").symlink_to("one.py")
        await clone.trust()
        await clone.look()
        assert clone.ran
        for change in ("one.py", "two.py"):
            clone.starts.unlink()
            _started.clear()
            write(clone.folder, {change: f"{SERVER}# {change}"})
            (clone.folder / "server.py").unlink()
            (clone.folder / "server.py").symlink_to(change)
            toolset, _, warnings = await clone.look()
            assert not clone.ran
            assert toolset.tools == ()
            assert any("changed since you trusted it" in warning for warning in warnings)
            await clone.trust()
            assert (await clone.look())[0].tools

    anyio.run(body)


def test_a_script_that_changes_while_a_session_is_open_is_not_started_again(clone: Clone) -> None:
    async def body() -> None:
        clone.add(".mcp.json", permission="free")
        await clone.trust()
        async with await clone.open() as runner:
            assert (await runner.toolset()).tools
            assert len(clone.starts.read_text().split()) == 1
            write(clone.folder, {"server.py": f"{SERVER}# changed"})
            clone.provider.scripts += [calling(("c1", "odd__die", {})), saying("It died.")]
            await runner.run("Let it die.")
            toolset = await runner.toolset()
            assert toolset.tools == ()
            assert "changed since it was trusted" in toolset.withheld[0].detail
            assert len(clone.starts.read_text().split()) == 1

    anyio.run(body)


def test_a_session_that_goes_on_starts_nothing_that_is_trusted_no_more(clone: Clone) -> None:
    async def body() -> None:
        clone.add(".mcp.json")
        await clone.trust()
        assert (await clone.look())[0].tools
        clone.starts.unlink()
        _started.clear()
        assert trust_book().revoke(str(clone.folder))
        again = {"agent": None, "target": None}
        toolset, _, warnings = await clone.look(**again)
        assert not clone.ran
        assert toolset.tools == ()
        assert any("is not trusted" in warning for warning in warnings)
        assert (await clone.look(**again, trust=True))[0].tools

    anyio.run(body)


def test_trust_given_in_code_is_for_what_was_there(clone: Clone) -> None:
    async def body() -> None:
        clone.add(".mcp.json")
        digest = (await read_agent_defaults(clone.place, clone.folder)).trust.claims.digest
        clone.add(".mcp.json", args=["./server.py", "plain"])
        assert (await clone.look(trust=digest))[0].tools == ()
        assert not clone.ran
        assert (await clone.look(trust=True))[0].tools
        assert trust_book().records() == {}

    anyio.run(body)


async def ask_policy(session: Session) -> str:
    await (await session.prepare("Hello?")).commit(openai_reply("Hello."))
    return session.settings.ask_before_tools


def test_a_word_on_one_setting_drops_nothing_that_an_agent_is_strict_about(clone: Clone) -> None:
    async def body() -> None:
        write(clone.folder, {"pilot/agent.yaml": "settings: {ask_before_tools: always}"})
        opening: dict[str, Any] = {
            "store": clone.store, "book": FakeBook(), "target": SMALL.name,
            "workspace": clone.folder, "agent": clone.folder / "pilot",
        }  # fmt: skip
        window = lamina.Settings(window=5_000)
        async with await lamina.open_session("a", settings=window, **opening) as session:
            assert await ask_policy(session) == "always"
            assert session.settings.window == 5_000
        # Nor when the session is opened again with other settings, with its agent or without.
        for given in (opening, opening | {"agent": None}):
            window = lamina.Settings(window=window.window + 1)  # type: ignore[operator]
            async with await lamina.open_session("a", settings=window, **given) as session:
                assert await ask_policy(session) == "always"
                assert session.settings.window == window.window
        # A file does not undo it, even if it is trusted; a person does.
        write(clone.folder, {"pilot/agent.yaml": "settings: {ask_before_tools: never}"})
        async with await lamina.open_session("a", trust=True, **opening) as session:
            assert await ask_policy(session) == "always"
        never = lamina.Settings(ask_before_tools="never", window=7_000)
        async with await lamina.open_session("a", settings=never, **opening) as session:
            assert await ask_policy(session) == "never"

    anyio.run(body)
