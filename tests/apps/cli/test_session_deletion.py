"""`lamina sessions delete`: what goes with a session, and what stays."""

import json
import os
import subprocess
import time
from pathlib import Path

import anyio
import pytest
from tests.apps.cli.commands import LAMINA
from tests.apps.cli.inside import error, lamina, output
from tests.apps.cli.test_session_commands import ask_twice, keep
from tests.fakes.files import session_file
from tests.terminal import Terminal

from lamina import open_session
from lamina.adapters.files.cache_folder import slots_folder
from lamina.adapters.providers.local import model_catalogue as models
from lamina.adapters.providers.local.slots import SlotFiles


@pytest.fixture
def talks(notes: Path) -> Path:
    """A folder with two sessions."""
    keep(notes, "harbour", ask_twice)
    keep(notes, "museum", ask_twice)
    return notes


def sessions_in(folder: Path) -> set[str]:
    return {row["session"] for row in json.loads(output("sessions", "--json", cwd=folder))}


def test_a_session_is_deleted_with_its_index(talks: Path) -> None:
    path = session_file(talks, "harbour")
    path.with_suffix(".index").write_bytes(b"any")
    assert output("sessions", "delete", "harbour", "--yes", cwd=talks) == "Deleted: 1 session.\n"
    assert not list(path.parent.glob("harbour*"))
    assert sessions_in(talks) == {"museum"}


def test_several_go_by_the_beginnings_of_their_ids_and_each_once(talks: Path) -> None:
    deleted = output("sessions", "delete", "harb", "harbour", "mus", "-y", "--json", cwd=talks)
    rows = json.loads(deleted)
    assert [(row["session"], row["messages"], row["problem"]) for row in rows] == [
        ("harbour", 4, ""),
        ("museum", 4, ""),
    ]
    assert all(row["bytes"] > 1_000 and row["name"].startswith("When") for row in rows)
    assert sessions_in(talks) == set()


def test_what_would_go_is_shown_and_nothing_goes_without_a_yes(talks: Path) -> None:
    command = [str(LAMINA), "sessions", "delete", "harbour", "museum"]
    settings = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    for answer, code in (("n\n", 1), ("", 1), ("y\n", 0)):
        done = subprocess.run(
            command, cwd=talks, input=answer, env=os.environ | settings,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        assert "harbour  When does the pier open?         4" in done.stderr
        assert "Delete these 2 sessions (" in done.stderr
        assert ("Deleted: 2 sessions." in done.stdout) is (code == 0)
        assert sessions_in(talks) == (set() if code == 0 else {"harbour", "museum"})


def test_the_first_ctrl_c_at_the_question_ends_it(talks: Path) -> None:
    with Terminal([str(LAMINA), "sessions", "delete", "harbour"], cwd=talks) as terminal:
        terminal.wait_for("[y/N]:")
        terminal.type("\x03")
        terminal.wait_for("Aborted")
        assert terminal.wait_for_end() == 1
    assert sessions_in(talks) == {"harbour", "museum"}


def test_an_unknown_session_keeps_all_of_them(talks: Path) -> None:
    problem = error("sessions", "delete", "harbour", "pier", "--yes", cwd=talks)
    # A file is not what one deletes by this name.
    assert problem == (
        "error: no session 'pier' in the workspace '.'; `lamina sessions` lists them. "
        "-w DIR looks in another workspace\n"
    )
    assert sessions_in(talks) == {"harbour", "museum"}


def test_an_open_session_stays_and_the_others_go(talks: Path) -> None:
    async def body() -> tuple[int, str, str]:
        async with await open_session("harbour", workspace=talks):
            run = anyio.to_thread.run_sync
            return await run(
                lambda: lamina("sessions", "delete", "harbour", "museum", "-y", cwd=talks)
            )

    code, out, err = anyio.run(body)
    assert (code, out) == (1, "Deleted: 1 session.\n")
    assert err.startswith("harbour is still there: ")
    assert sessions_in(talks) == {"harbour"}


def test_old_ones_go_by_their_age(talks: Path) -> None:
    path = session_file(talks, "museum")
    old = time.time() - 31 * 86_400
    os.utime(path, (old, old))
    arguments = ("sessions", "delete", "--older-than", "30d", "--yes")
    assert output(*arguments, cwd=talks) == "Deleted: 1 session.\n"
    assert output(*arguments, cwd=talks) == "No session is older than 30d.\n"
    assert json.loads(output(*arguments, "--json", cwd=talks)) == []
    assert sessions_in(talks) == {"harbour"}


def test_old_ones_of_every_workspace_go_with_all(talks: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    for path in (session_file(talks, "museum"), keep(other, "far", ask_twice)):
        os.utime(path, (1, 1))
    rows = json.loads(
        output("sessions", "delete", "--older-than", "4w", "--all", "-y", "--json", cwd=talks)
    )
    assert {row["session"] for row in rows} == {"museum", "far"}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("", "name sessions, or give --older-than"),
        ("harbour --older-than 3d", "cannot be combined"),
        ("harbour --all", "--all needs --older-than"),
        ("harbour --json", "--json needs --yes"),
    ],
)
def test_what_does_not_go_together_is_refused(talks: Path, arguments: str, problem: str) -> None:
    assert problem in error("sessions", "delete", *arguments.split(), cwd=talks, code=2)
    assert sessions_in(talks) == {"harbour", "museum"}


@pytest.mark.parametrize("age", ["30", "d", "-1d", "1y", "1.5d"])
def test_an_age_that_is_none_is_refused(talks: Path, age: str) -> None:
    problem = error("sessions", "delete", f"--older-than={age}", "--yes", cwd=talks)
    assert problem == f"error: {age!r} is not an age: write 12h, 30d or 4w\n"


def test_what_the_embedded_model_read_of_it_is_forgotten(
    talks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINA_CACHE", str(tmp_path / "cache"))
    file = models.LOCAL_MODELS[models.DEFAULT_MODEL].path
    file.parent.mkdir(parents=True)
    with file.open("wb") as model:
        model.truncate(models.LOCAL_MODELS[models.DEFAULT_MODEL].size)
    slots = SlotFiles(slots_folder(), file)
    for session in ("harbour", "museum"):
        (slots.folder / slots.file_name(session)).write_bytes(b"x" * 1_000)
    (row,) = json.loads(output("sessions", "delete", "harbour", "-y", "--json", cwd=talks))
    assert row["slot_bytes"] == 1_000
    assert [slots.has("harbour"), slots.has("museum")] == [False, True]
