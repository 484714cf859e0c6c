"""What people see on a terminal of 80 columns: nothing that matters is cut."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from rich.cells import cell_len
from tests.apps.cli.commands import LAMINA
from tests.apps.cli.test_chat_items import talk
from tests.fakes.files import session_file
from tests.fakes.replies import openai_reply
from tests.terminal import Terminal
from typer.testing import CliRunner

from lamina import open_session
from lamina.adapters.agents.agent_yaml import write_skeleton
from lamina.apps.cli.app import LISTED_COMMANDS, app, load_command
from lamina.apps.cli.demo_command import draw_bar
from lamina.core.values.agent import Guides, Problem
from lamina.engine.sources.selector import Selector


def screen(folder: Path, *arguments: str) -> str:
    with Terminal([str(LAMINA), *arguments], cwd=folder, rows=200, is_forked=True) as terminal:
        assert terminal.wait_for_end() == 0
        return terminal.everything.rstrip()


def test_the_demo_names_its_rows_and_keeps_its_figures_in_line(tmp_path: Path) -> None:
    lines = screen(tmp_path, "demo", "--no-model").splitlines()
    rows = [line.split("│")[1].strip() for line in lines if line.startswith("│")]
    assert rows == ["lazy", "eager", "naive"]
    # A line that ran over would go on at the beginning of the next one.
    bars = [line for line in lines if line.startswith(("  lazy ", "  eager ", "  naive "))]
    assert len(bars) >= 12
    assert all(line.endswith(" again") for line in bars)
    assert "…" not in "".join(lines)


@pytest.mark.parametrize("tokens", [1, 50, 400, 999_999])
def test_a_bar_leaves_room_for_the_figures_behind_it(tokens: int) -> None:
    layers = [(layer, tokens) for layer in ("L1", "L2", "L3", "L4", "L5")]
    for kept in (0, tokens * 2, tokens * 5):
        assert len(draw_bar("naive", layers, kept, 1.0).plain) + 33 <= 80


def test_the_list_of_models_fits(tmp_path: Path) -> None:
    shown = screen(tmp_path, "models", "list")
    assert "qwen2.5-coder-1.5b  chat       1.1 GB  Apache-2.0   32,768  " in shown
    assert (
        "qwen2.5-coder-1.5b: Qwen2.5-Coder-1.5B-Instruct Q4_K_M, answers and calls tools" in shown
    )


class OddAgent:
    """An agent's folder with two files that are odd."""

    async def guides(self) -> Guides:
        odd = Problem(path="rules/plain.md", level="warning", problem="no frontmatter")
        return Guides(problems=(odd, odd))


@pytest.mark.parametrize("acts", [("/items", "One?", "/items"), ("One?", "/items", "Two?")])
def test_how_much_is_odd_about_an_agent_is_said_once(tmp_path: Path, acts: tuple[str, ...]) -> None:
    (tmp_path / "note.md").write_text("A note.", "utf-8")
    talked = talk(tmp_path, *acts, selector=Selector(source=OddAgent()))
    assert (talked.out + talked.err).count("2 oddities in the files of the agent") == 1


# -- every command -----------------------------------------------------------------------------------

LONG = "a-name-that-is-longer-than-most-columns-日本語-🎉"
RULE = "a-rule-whose-name-is-longer-than-most-columns"
SESSION = "talk-about-the-harbour-and-its-berths-日本語"
QUESTION = "What does a berth cost in the harbour with the long name, and who wants to know that?"
# A line of each is cut where it would say more of the same: what is typed elsewhere never is.
SHORTENED = {
    "sessions", "sessions list", "sessions --all", "log", "log --tree", "log --request", "why",
    "notes search", "select", "search",
}  # fmt: skip


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A workspace whose names are long and of several scripts, with sessions of it that are sound
    and damaged, an agent, memory, and servers."""
    root = tmp_path_factory.mktemp("house")
    notes = root / f"harbour-notes-{LONG}"
    notes.mkdir()
    (notes / f"{LONG}.md").write_text(
        f"---\nstatus: open\n---\n# Berths of the harbour {LONG}\n\nA berth costs ten crowns a "
        f"night, and [[nothing-{LONG}]] leads nowhere. #harbour/with-a-long-tag-{LONG}\n",
        "utf-8",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAMINA_DATA", str(root / "data"))
        patch.setenv("LAMINA_EMBED", "off")
        patch.chdir(notes)
        folder = write_skeleton("reviewer", notes / ".lamina" / "agents")
        (folder / "rules" / "long.md").write_text(
            f"---\nname: {RULE}\ndescription: {'日本語 and berths, ' * 9}\ninclude: agent\n---\nBe.\n",
            "utf-8",
        )
        programs = Path(sys.executable).parent
        servers = {
            "time": {"command": str(programs / "mcp-server-time")},
            f"server-{LONG}": {"command": "/no/such/program/anywhere", "args": ["--long", LONG]},
        }
        (notes / "mcp.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")
        anyio.run(talk_about, notes, SESSION)
        anyio.run(talk_about, notes, "damaged")
        path = session_file(notes, "damaged")
        path.write_bytes(path.read_bytes()[:-20])
        yield notes


async def talk_about(notes: Path, name: str) -> None:
    async with await open_session(
        name, workspace=notes, target="openai:gpt-4o", agent="reviewer"
    ) as session:
        for _ in range(2):
            turn = await session.prepare(QUESTION, attach=[f"{LONG}.md", "gone.md"])
            tokens = 12_345_678
            await turn.commit(openai_reply(QUESTION * 3, input=tokens, cached=tokens - 1))


# What each command is run with, and what must stand whole in what it shows. A text is why one is
# not run here.
COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]] | str] = {
    "chat": "tests/apps/cli/test_chat_on_a_screen.py draws it",
    "ask": "prints what a model says; what is said about it is wrapped as for all",
    "rpc": "speaks JSON",
    "web": "serves until it is ended; tests/apps/web/ runs it",
    "demo": "has a test of its own above",
    "emulate": (("--list-faults", "openai"), ("429",)),
    "targets": "has tests of its own",
    "notes search": (("berth", "--lexical"), (f"{LONG}.md#L",)),
    "notes index": (("--lexical",), ()),
    "notes query": ((f'LIST FROM "{LONG}"',), (f"{LONG}.md",)),
    "notes tags": ((), (f"#harbour/with-a-long-tag-{LONG.split('🎉')[0].rstrip('-')}",)),
    "notes undo": ((), ()),
    "notes check": ((), (f"{LONG}.md", f"nothing-{LONG}")),
    "agent new": (("another-agent",), ("another-agent",)),
    "agent list": ((), ("reviewer",)),
    "agent show": (("reviewer",), (RULE,)),
    "agent set": (("reviewer", "temperature", "0.5"), ("reviewer/agent.yaml", "0.5")),
    "agent check": ((), ()),
    "agent usage": (("reviewer",), (RULE, "2")),
    "trust": (("--list",), ()),
    "select": ((QUESTION, "-A", "reviewer", "--lexical"), ("style",)),
    "search": ((QUESTION, "-A", "reviewer", "--lexical"), (RULE,)),
    "index": (("--stats",), ("index.sqlite",)),
    "context": ((QUESTION, "-a", f"{LONG}.md", "-t", "openai:gpt-4o"), (f"{LONG}.md",)),
    "why": ((SESSION,), (f"{LONG}.md", "gone.md")),
    "memory": ((), ("memory.md",)),
    "memory add": ((QUESTION,), ("remembered",)),
    "memory forget": (("1",), ("forgotten:",)),
    "memory path": ((), ("memory.md",)),
    "log": ((SESSION,), (SESSION, "12,345,678")),
    "verify": (("damaged",), ()),
    "repair": (("damaged",), ()),
    "export": ((SESSION, "-o", "chat.md"), ("chat.md",)),
    "import": (("chat.md",), ()),
    "sessions": ((), (SESSION, "24,691,356", "24,691,354")),
    "sessions list": (("--all",), (SESSION, "24,691,356", "24,691,354")),
    "sessions adopt": ((SESSION,), ("Nothing to apply",)),
    "sessions delete": (("damaged", "--yes"), ()),
    "spend": (("--by", "session"), ("24,691,356", "24,691,354")),
    "spend clear": (("--all",), ("nothing is reserved",)),
    "doctor": ((".",), ()),
    "info": ((), ("index.sqlite",)),
    "models list": ((), ("qwen2.5-coder-1.5b", "1.1 GB", "32,768")),
    "models pull": "fetches; tests/apps/cli/test_models_command.py says what it shows",
    "models path": ((), ()),
    "models remove": (("minilm", "--yes"), ()),
    "tools list": (("--mcp", "mcp.json"), ("time__convert_time", f"server-{LONG}")),
    "tools changes": ((), ()),
    "tools approve": (("--all",), ()),
    # Further screens of the same commands.
    "log --tree": ((SESSION,), (SESSION,)),
    "log --requests": ((SESSION,), ("12,345,677", "openai:gpt-4o")),
    "log --request": (("last", SESSION), (f"{LONG}.md", "12,345,677")),
    "log --dropped": ((SESSION,), ()),
    "sessions --all": ((), (SESSION, "24,691,356")),
}
RUN = [(name, *given) for name, given in COMMANDS.items() if not isinstance(given, str)]


def commands_of(commands: dict[str, Any], above: str = "") -> Iterator[str]:
    for name, command in commands.items():
        if hasattr(command, "commands"):
            if command.invoke_without_command:
                yield f"{above}{name}"
            yield from commands_of(command.commands, f"{above}{name} ")
        else:
            yield f"{above}{name}"


EVERY_COMMAND = [*commands_of({name: load_command(name) for name in LISTED_COMMANDS})]


def test_every_command_is_looked_at_here() -> None:
    assert {*EVERY_COMMAND} <= {*COMMANDS}


@pytest.mark.parametrize("name", [*EVERY_COMMAND, "notes", "agent", "models"])
def test_help_fits_and_breaks_no_word(name: str) -> None:
    shown = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "80"})
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert max(map(cell_len, lines)) <= 80
    assert "…" not in shown.stdout
    assert "<bool>" not in shown.stdout
    # A choice that is broken in the middle would end a line here.
    cells = [line.strip("│ ").split("  ") for line in lines if line.startswith("│")]
    assert not [
        cell for row in cells for cell in row if cell.strip().startswith("<") and ">" not in cell
    ]


@pytest.mark.parametrize(("name", "arguments", "whole"), RUN, ids=[name for name, *_ in RUN])
def test_what_a_command_shows_fits_and_what_matters_stands_whole(
    house: Path, name: str, arguments: tuple[str, ...], whole: tuple[str, ...]
) -> None:
    command = [str(LAMINA), *name.split(), *arguments]
    with Terminal(command, cwd=house, rows=200, is_forked=True) as terminal:
        assert terminal.wait_for_end() in (0, 1)
        written = terminal.written.decode("utf-8").replace("\r", "")
        text = re.sub("\x1b\\[[0-9;?]*[A-Za-z]", "", written)
    assert "Traceback" not in text
    # What is sent is shown as it is.
    shown = re.sub(r"^```\n.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    # Only a path may run over the edge: it is left whole, to be copied.
    wide = [line for line in shown.splitlines() if cell_len(line.rstrip()) > 80]
    assert not [line for line in wide if cell_len(max(line.split(), key=cell_len)) < 40]
    if name not in SHORTENED:
        assert "…" not in text
    # An id that is folded in its column is whole.
    together = "".join(text.split())
    for words in whole:
        assert words in text or "".join(words.split()) in together or folded(words, text), text


def folded(words: str, text: str) -> bool:
    """Whether the pieces of a name stand below one another, at the beginnings of lines."""
    beginnings = "".join(line.split("  ")[0].strip() for line in text.splitlines())
    return words in beginnings
