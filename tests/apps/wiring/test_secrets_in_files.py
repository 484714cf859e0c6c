"""Secrets in files, where a model has tools for these."""

from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

import lamina
from lamina.adapters.tools.functions import FunctionTools
from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.apps.wiring.file_tools import file_tools
from lamina.core.values.tool import ToolOutput

KEY = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "env.md").write_text(f"name = boat\ntoken = {KEY}\n", "utf-8")
    return tmp_path / "notes"


def call(
    folder: Path,
    name: str,
    secrets: Literal["redact", "warn", "off"] = "redact",
    **arguments: Any,
) -> ToolOutput:
    async def body() -> ToolOutput:
        settings = lamina.Settings(secrets=secrets)
        async with await lamina.open_session(
            workspace=folder, store=lamina.MemoryStore(), target="openai:gpt-4o", settings=settings
        ) as session:
            tools = FunctionTools(*file_tools(FolderWorkspace(folder), session))
            return await tools.call(name, arguments)

    return anyio.run(body)


def test_reading_and_finding_do_not_give_them_away(folder: Path) -> None:
    for output in (call(folder, "read", path="env.md"), call(folder, "grep", pattern="token")):
        assert not output.is_error
        assert KEY not in output.text
        assert "[redacted: GitHub token]" in output.text


def test_they_are_given_where_the_session_says_so(folder: Path) -> None:
    assert KEY in call(folder, "read", "off", path="env.md").text


def test_a_secret_cannot_be_written_over_by_the_mark_that_stands_for_it(folder: Path) -> None:
    new = "name = ship\ntoken = [redacted: GitHub token]\n"
    output = call(folder, "write", path="env.md", content=new, overwrite=True)
    assert output.is_error
    assert "where a secret was left out" in output.text
    assert KEY in (folder / "env.md").read_text("utf-8")


def test_what_stands_around_a_secret_can_be_changed(folder: Path) -> None:
    output = call(folder, "edit", path="env.md", old="name = boat", new="name = ship")
    assert not output.is_error
    assert (folder / "env.md").read_text("utf-8") == f"name = ship\ntoken = {KEY}\n"
