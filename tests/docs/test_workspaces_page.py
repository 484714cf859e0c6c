"""What docs/workspaces.md says of workspaces is so."""

import functools
import re
import shlex
from pathlib import Path
from typing import Any, get_args

import anyio
import pytest
from tests.adapters.workspace.test_folder import png
from tests.adapters.workspace.test_pdf_text import make_pdf
from tests.fakes.providers import ProviderFake, ProvidersFake, saying

import lamina
from lamina.adapters.agents.agent_reader import read_agent
from lamina.adapters.tools.functions import FunctionTool, FunctionTools
from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.apps.cli.app import LISTED_COMMANDS, load_command
from lamina.apps.cli.chat.command_table import COMMANDS
from lamina.apps.wiring.file_tools import file_tools
from lamina.core.values.item import ITEM_KINDS, ItemId, kind_of
from lamina.core.values.settings import Settings
from lamina.core.values.web_access import WebAccess
from lamina.engine.sources.attachments import AttachmentReader

PAGE = (Path(__file__).parents[2] / "docs" / "workspaces.md").read_text("utf-8")
NOTE = (
    "---\naliases: [an alias]\n---\none\n\ntwo\n\n# Errors\n\nIt fails. ^mark\n\n# End\n\n#draft\n"
)


def section(heading: str) -> str:
    return PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]


def rows() -> list[tuple[list[str], list[str]]]:
    """What may be written, and the kinds of item that it is."""
    table = section("What can be attached").split("|---|---|---|\n", 1)[1].split("\n\n", 1)[0]
    cells = [line.strip("|").split("|") for line in table.splitlines()]
    return [
        (re.findall(r"`(.*?)`", written), re.findall(r"`(.*?)`", kinds))
        for written, _, kinds in cells
    ]


def commands(command: Any, before: tuple[str, ...]) -> dict[tuple[str, ...], set[str]]:
    """A command and all below it, with their options."""
    found = {
        before: {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
    }
    for name, inner in getattr(command, "commands", {}).items():
        found |= commands(inner, (*before, name))
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMINA_EMBED", "off")
    notes = tmp_path / "notes"
    for path in ("notes", "src", "projects", "runbooks"):
        (notes / path).mkdir(parents=True)
    (notes / "notes" / "api.md").write_text(NOTE, "utf-8")
    (notes / "src" / "main.py").write_text("x = 1\n", "utf-8")
    (notes / "projects" / "boat.md").write_text("A boat.\n", "utf-8")
    (notes / "runbooks" / "keys.md").write_text("# Keys\n\nRotate keys on Mondays.\n", "utf-8")
    (notes / "sales.csv").write_text("month,units\n1,20\n", "utf-8")
    (notes / "sales.tsv").write_text("month\tunits\n1\t20\n", "utf-8")
    (notes / "report.pdf").write_bytes(make_pdf("Hello"))
    (notes / "plan.png").write_bytes(png(2))
    return notes


def test_every_form_of_the_table_is_the_kind_of_item_that_it_says(folder: Path) -> None:
    workspace = FolderWorkspace(folder, watch=False)

    async def body() -> None:
        listed = rows()
        assert len(listed) == 8
        for written, kinds in listed:
            assert set(kinds) <= set(ITEM_KINDS)
            if kinds == ["url"]:
                continue
            expected = kinds if len(kinds) == len(written) else kinds * len(written)
            for reference, kind in zip(written, expected, strict=True):
                found = await workspace.gather(reference, "attached")
                assert found.readings, (reference, found.left_out)
                assert kind_of(found.readings[0].item.id) == kind, reference
        found = await workspace.gather("an alias", "attached")
        assert found.readings[0].item.id == "note:notes/api.md"
        await workspace.aclose()

    anyio.run(body)


def test_a_page_is_an_item_of_its_kind(folder: Path) -> None:
    ((url,), (kind,)) = rows()[-1]

    async def body() -> None:
        async with await lamina.open_session(
            workspace=folder, store=lamina.MemoryStore(), target="openai:gpt-4o"
        ) as session:
            reader = AttachmentReader(session.workspace, lamina.MemoryStore())
            found = await reader.read_all([url], session.state)
            assert [kind_of(ItemId(omission.what)) for omission in found.left_out] == [kind]

    anyio.run(body)


def test_the_settings_that_are_named_are_there_with_their_values() -> None:
    settings = Settings()
    for name in ("web", "allow_hosts", "secrets", "embed_depth"):
        assert f"`{name}`" in PAGE
        assert hasattr(settings, name)
    assert "`embed_depth` levels deep (1)" in PAGE.replace("\n", " ").replace("  ", " ")
    assert settings.embed_depth == 1
    assert "(`secrets`: `redact`, `warn` or `off`)" in PAGE
    for value in ("redact", "warn", "off"):
        Settings(secrets=value)
    assert "`web` is `listed` (hosts of `allow_hosts`) or `public`" in PAGE
    assert set(get_args(WebAccess)) == {"off", "listed", "public"}
    assert (settings.web, settings.secrets) == ("off", "redact")


def test_an_agents_files_cannot_set_what_is_a_persons_to_set(tmp_path: Path) -> None:
    assert "`web`, `allow_hosts` and `secrets` are yours to set; an agent's files cannot." in PAGE
    yaml = "name: a\nsettings:\n  web: public\n  allow_hosts: [localhost]\n  secrets: 'off'\n"
    (tmp_path / "agent.yaml").write_text(yaml, "utf-8")
    agent = read_agent(tmp_path)
    assert not {"web", "allow_hosts", "secrets"} & set(agent.settings)
    assert agent.problems


def test_the_commands_and_options_that_are_named_are_there() -> None:
    known: dict[tuple[str, ...], set[str]] = {}
    for name in LISTED_COMMANDS:
        known |= commands(load_command(name), (name,))
    said = [each.removeprefix("$ ") for each in re.findall(r"^\$ lamina .*", PAGE, re.MULTILINE)]
    said += re.findall(r"`(lamina [^`]*)`", PAGE)
    assert len(said) >= 6
    for line in said:
        _, *words = shlex.split(line)
        path = tuple(word for word in words if not word.startswith("-"))
        while path and path not in known:
            path = path[:-1]
        assert path, line
        for word in words:
            assert not word.startswith("--") or word in known[path], line
    for option in set(re.findall(r"`(--[a-z-]+)", PAGE)):
        assert any(option in options for options in known.values()), option
        assert option in known[("ask",)] or option in known[("chat",)], option


def test_the_commands_of_the_chat_that_are_named_are_there() -> None:
    named = set(re.findall(r"`/([a-z]+)", PAGE))
    assert {"attach", "active", "refresh"} <= named
    assert named <= set(COMMANDS)


def test_the_tools_are_those_that_are_told_and_looking_is_free(folder: Path) -> None:
    told = section("Tools over files").split("offers ", 1)[1].split(" on the same", 1)[0]
    names = re.findall(r"`(\w+)`", told)

    async def offer() -> list[FunctionTool[..., Any]]:
        async with await lamina.open_session(
            workspace=folder, store=lamina.MemoryStore(), target="openai:gpt-4o"
        ) as session:
            return file_tools(FolderWorkspace(folder), session)

    tools = anyio.run(offer)
    assert [tool.name for tool in tools] == names
    offered = anyio.run(FunctionTools(*tools).toolset).tools
    free = [tool.definition.name for tool in offered if tool.permission == "free"]
    assert free == ["ls", "read", "grep", "getFileTree"]


def test_the_names_of_the_api_that_are_named_are_there() -> None:
    for name in ("open_qa", "open_plan", "open_agent", "attach", "Scope"):
        assert name in PAGE
        assert hasattr(lamina, name)
    for method in re.findall(r"`session\.(\w+)\(\)`", PAGE):
        assert hasattr(lamina.Session, method)


def example(text: str) -> str:
    """The example that holds a text."""
    codes = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (code,) = [code for code in codes if text in code]
    return str(code)


def test_notes_are_searched_as_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LAMINA_EMBED", "off")
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    for folder in ("runbooks", "drafts"):
        (tmp_path / "notes" / folder).mkdir(parents=True)
        note = tmp_path / "notes" / folder / "keys.md"
        note.write_text("Rotate keys on Mondays.\n", "utf-8")
    names: dict[str, Any] = {}
    exec(example("def find_passages"), names)
    anyio.run(names["find_passages"], "How do I rotate keys?")
    shown = capsys.readouterr().out
    hit, tier, _ = shown.splitlines()
    assert hit == "runbooks/keys.md#L1-L1  None shares 'rotate', 'keys'"
    assert tier == "by words"


def test_the_example_runs_as_it_stands(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = example("async def ask")
    provider = ProviderFake(saying("On Mondays [^1]."))
    given = functools.partial(
        lamina.open_qa, providers=ProvidersFake(provider), target="openai:gpt-4o"
    )
    monkeypatch.setattr(lamina, "open_qa", given)
    monkeypatch.chdir(folder.parent)
    names: dict[str, Any] = {}
    exec(code, names)
    anyio.run(names["ask"])
    assert capsys.readouterr().out == "On Mondays [^1].\n1 runbooks/keys.md#Keys 1 3\n"


def test_links_of_the_page_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([\w./-]+\.md)\)", PAGE):
        assert (Path(__file__).parents[2] / "docs" / target).is_file(), target
