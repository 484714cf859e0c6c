"""Every command works on sessions that are rows of a SQLite file."""

import json
import sqlite3
from pathlib import Path

import anyio
import pytest
from tests.apps.cli.inside import error, lamina, output
from tests.fakes.replies import openai_reply

from lamina.apps.wiring import open_session
from lamina.apps.wiring.folders import workspace_folder
from lamina.apps.wiring.stores import DATABASE


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with a session of two turns."""
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("LAMINA_STORE", "sqlite")
    folder = tmp_path / "work"
    folder.mkdir()

    async def body() -> None:
        async with await open_session("pier", workspace=folder, target="openai:gpt-4o") as session:
            for question in ("When does it open?", "And close?"):
                turn = await session.prepare(question)
                await turn.commit(openai_reply("In May.", input=50))

    anyio.run(body)
    return folder


def test_a_session_of_rows_is_listed_told_explained_and_verified(rows: Path) -> None:
    (row,) = json.loads(output("sessions", "--json", cwd=rows))
    assert (row["session"], row["name"], row["messages"]) == ("pier", "When does it open?", 4)
    assert row["usage"]["input"] == 100
    assert json.loads(output("sessions", "--all", "--json", cwd=rows)) == [row]
    assert "In May." in output("log", "pi", cwd=rows)
    assert "path to a .jsonl file" not in error("log", "tower", cwd=rows)
    assert "question 2 of 2: And close?" in output("why", "pier", cwd=rows)
    assert "2 of 2 requests rebuilt byte for byte" in output("verify", "pier", cwd=rows)


def test_a_session_of_rows_can_be_exported_and_imported_again(rows: Path) -> None:
    output("export", "pier", "-f", "jsonl", "-o", "pier.jsonl", cwd=rows)
    assert "In May." in output("log", "pier.jsonl", cwd=rows)
    output("import", "pier.jsonl", "--session", "again", cwd=rows)
    assert "The session is sound." in output("verify", "again", cwd=rows)
    assert output("export", "pier", cwd=rows) == output("export", "again", cwd=rows)
    assert "pier.jsonl exists already; nothing was written" in error(
        "export", "pier", "-f", "jsonl", "-o", "pier.jsonl", cwd=rows
    )


def test_a_damaged_session_of_rows_is_reported_and_a_repaired_copy_is_written(rows: Path) -> None:
    connection = sqlite3.connect(workspace_folder(rows) / DATABASE)
    with connection:
        text = "cast(replace(cast(line as text), 'And close', 'And clothes') as blob)"
        connection.execute(f"update entry set line = {text} where kind = 'message'")
    connection.close()
    assert lamina("verify", "pier", cwd=rows)[0] == 1
    assert "the checksum does not fit" in lamina("verify", "pier", cwd=rows)[1]
    assert output("repair", "pier", cwd=rows).splitlines()[0].count("pier.repaired") == 1
    assert "When does it open?" in output("log", "pier.repaired", cwd=rows)
    assert "nothing is wrong with" in error("repair", "pier.repaired", cwd=rows)


def test_sessions_of_the_other_store_are_mentioned(
    rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINA_STORE", "jsonl")
    hint = "1 session in the other store (LAMINA_STORE=sqlite)"
    assert hint in error("log", "pier", cwd=rows)
    assert hint in lamina("sessions", cwd=rows)[2]
    monkeypatch.setenv("LAMINA_STORE", "paper")
    assert "LAMINA_STORE is 'paper', but must be 'jsonl' or 'sqlite'" in error("sessions", cwd=rows)
