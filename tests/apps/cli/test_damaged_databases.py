"""Commands where sessions are rows of a database, and one such database is damaged."""

import json
import os
import sqlite3
import time
from pathlib import Path

import anyio
import pytest
from tests.apps.cli.inside import error, lamina, output
from tests.apps.cli.test_session_commands import TARGET, ask, ask_twice, keep
from tests.fakes.clock import FakeClock
from tests.fakes.files import session_file

from lamina import Session, open_session
from lamina.apps.wiring.folders import workspace_folder

PAGE = 4096


@pytest.fixture
def rows(notes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace whose sessions are rows."""
    monkeypatch.setenv("LAMINA_STORE", "sqlite")
    return notes


def database_of(workspace: Path) -> Path:
    return workspace_folder(workspace) / "sessions.sqlite"


async def ask_much(session: Session) -> None:
    for number in range(30):
        await ask(session, f"What about {number}? " * 20, answer=f"That is {number}. " * 20)


def spoil_page(path: Path, start: int) -> None:
    """Zeroes the page in which a byte is."""
    data = path.read_bytes()
    start -= start % PAGE
    path.write_bytes(data[:start] + bytes(PAGE) + data[start + PAGE :])


def test_commands_work_with_what_is_left_beside_a_bad_page(rows: Path) -> None:
    keep(rows, "harbour", ask_much)
    path = database_of(rows)
    spoil_page(path, path.read_bytes().index(b"That is 17. That is 17."))
    log = output("log", "harbour", "--full", cwd=rows)
    assert "That is 12." in log
    assert "That is 25." in log
    assert "- bad_page: a page of the database is damaged" in log
    assert "That is 29." in output("export", "harbour", cwd=rows)
    code, verified, _ = lamina("verify", "harbour", cwd=rows)
    assert code == 1
    assert "- missing_entries: row " in verified
    assert "`lamina repair` writes a copy" in verified
    (row,) = json.loads(output("sessions", "--json", cwd=rows))
    assert (row["session"], row["problem"]) == ("harbour", "")
    problem = error("ask", "-s", "harbour", "And now?", cwd=rows)
    assert "`lamina export` and `lamina repair`" in problem
    spoiled = path.read_bytes()
    repaired = output("repair", "harbour", cwd=rows)
    copy = session_file(rows, "harbour.repaired")
    assert repaired.startswith(f"{copy}: ")
    assert "It is a file, because the whole database is damaged" in repaired
    assert "That is 29." in output("log", str(copy), "--full", cwd=rows)
    assert path.read_bytes() == spoiled
    # As it is told: the database out of the way, and the file into a new one.
    path.rename(rows / "damaged.sqlite")
    output("import", str(copy), cwd=rows)
    code, listed, others = lamina("sessions", "--json", cwd=rows)
    (row,) = json.loads(listed)
    assert (code, row["messages"] > 40) == (0, True)
    assert others == (
        "This workspace has more sessions: 1 session in the other store (LAMINA_STORE=jsonl).\n"
    )

    async def go_on() -> None:
        async with await open_session(
            row["session"], workspace=rows, target=TARGET, clock=FakeClock()
        ) as session:
            await ask(session, "And now?")

    anyio.run(go_on)


def test_a_damaged_row_is_called_a_row(rows: Path) -> None:
    keep(rows, "harbour", ask_twice)
    path = database_of(rows)
    path.write_bytes(path.read_bytes().replace(b"In May.", b"In Mai."))
    verified = lamina("verify", "harbour", cwd=rows)[1]
    assert "- checksum: row " in verified
    assert "byte " not in verified.partition("- checksum")[2]
    # The database itself is sound, and takes the copy.
    assert "session 'harbour.repaired'" in output("repair", "harbour", cwd=rows)
    sessions = json.loads(output("sessions", "--json", cwd=rows))
    assert {row["session"] for row in sessions} == {"harbour", "harbour.repaired"}


@pytest.fixture
def garbled(rows: Path) -> Path:
    """The database of another workspace, which is none any more, beside a sound one."""
    other = rows.parent / "other"
    other.mkdir()
    keep(other, "museum", ask_twice)
    keep(rows, "harbour", ask_twice)
    path = database_of(other)
    path.write_bytes(os.urandom(len(path.read_bytes())))
    return path


def test_sessions_of_all_workspaces_are_listed_beside_a_damaged_one(
    rows: Path, garbled: Path
) -> None:
    code, table, problem = lamina("sessions", "--all", cwd=rows)
    assert (code, "harbour" in table) == (0, True)
    assert f"{str(garbled)!r} is not a session database" in problem
    listed = json.loads(output("sessions", "--all", "--json", cwd=rows))
    assert [(row["session"], row["workspace"]) for row in listed] == [
        ("harbour", "notes"),
        ("", garbled.parent.name),
    ]
    assert str(garbled) in listed[1]["problem"]


def test_what_is_installed_is_told_beside_a_damaged_workspace(rows: Path, garbled: Path) -> None:
    info = json.loads(output("info", "--json", cwd=rows))
    assert (info["sessions"], info["workspaces"]) == (1, 1)
    assert [str(garbled) in problem for problem in info["problems"]] == [True]
    assert f"! not counted: {str(garbled)!r} is not a session database" in output("info", cwd=rows)


def test_old_sessions_are_deleted_beside_a_damaged_workspace(
    rows: Path, garbled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr("time.time", lambda: now + 7_200)
    before = garbled.read_bytes()
    everything = ("sessions", "delete", "--older-than", "1h", "--all", "--yes")
    code, deleted, problem = lamina(*everything, cwd=rows)
    assert (code, deleted) == (1, "Deleted: 1 session.\n")
    assert problem.startswith(f"not examined: {str(garbled)!r} is not a session database")
    code, deleted, _ = lamina(*everything, "--json", cwd=rows)
    (row,) = json.loads(deleted)
    assert (code, row["session"], row["workspace"]) == (1, "", garbled.parent.name)
    assert garbled.read_bytes() == before


def test_a_session_of_which_nobody_knows_when_it_was_written_is_not_old(
    rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(rows, "harbour", ask_twice)
    now = time.time()
    monkeypatch.setattr("time.time", lambda: now + 7_200)
    connection = sqlite3.connect(database_of(rows))
    query = "select rootpage from sqlite_master where name = 'session'"
    ((root,),) = connection.execute(query).fetchall()
    connection.close()
    spoil_page(database_of(rows), (root - 1) * PAGE)
    (row,) = json.loads(output("sessions", "--json", cwd=rows))
    assert (row["written"], row["damage"] > 0) == (0.0, True)
    deleted = output("sessions", "delete", "--older-than", "1h", "--yes", cwd=rows)
    assert deleted == "No session is older than 1h.\n"
