"""`lamina import` of folders and of stores."""

import json
import os
from pathlib import Path

from tests.apps.cli.commands import error, lamina
from tests.doctor import request_samples as samples
from tests.doctor.request_samples import write_lines
from tests.doctor.test_request_files import make_database


def test_a_folder_is_imported_with_subagents_and_every_session_of_a_database(
    notes: Path,
) -> None:
    folder = notes / "found"
    write_lines(folder / "s.jsonl", *samples.CLAUDE)
    write_lines(folder / "s" / "subagents" / "agent-7.jsonl", *samples.CLAUDE)
    write_lines(folder / "session-1.json", samples.GEMINI)
    make_database(folder / "opencode.db")
    (folder / "readme.txt").write_text("not a session", "utf-8")
    done = lamina("import", "found", "--json", cwd=notes)
    report = json.loads(done.stdout)
    assert (done.returncode, report["failed"]) == (0, [])
    assert sorted(one["source"] for one in report["imported"]) == [
        "claude_code", "claude_code", "gemini_cli", "opencode",
    ]  # fmt: skip
    assert "--session works with one session only, and there are 4" in error(
        "import", "found", "--session", "mine", cwd=notes
    )


def test_a_folder_without_sessions_says_what_it_looked_for(notes: Path) -> None:
    (notes / "empty").mkdir()
    done = lamina("import", "empty", cwd=notes)
    assert done.returncode == 1
    assert "no file in this folder ends in .jsonl .json" in done.stdout
    (notes / "empty" / "note.md").write_text("# Tides\n\nHigh at noon.\n", "utf-8")
    done = lamina("import", "empty", cwd=notes)
    assert done.returncode == 1
    assert "and its Markdown file is not a chat" in done.stdout


def test_markdown_chats_of_a_folder_are_imported_and_notes_passed_over(notes: Path) -> None:
    folder = notes / "chats"
    (folder / "old").mkdir(parents=True)
    for name in ("one.md", "old/two.markdown"):
        chat = f"**user**: When does the {name} pier open?\n\n**ai**: In May.\n"
        (folder / name).write_text(chat, "utf-8")
    for name in ("note.md", "plan.md"):
        (folder / name).write_text("# Tides\n\nHigh at noon.\n", "utf-8")
    os.mkfifo(folder / "pipe.md")
    os.mkfifo(folder / "pipe.jsonl")
    done = lamina("import", "chats", "--json", cwd=notes)
    report = json.loads(done.stdout)
    assert [one["source"] for one in report["imported"]] == ["markdown"] * 2
    assert report["passed_over"] == 2
    assert [Path(one["file"]).name for one in report["failed"]] == ["pipe.jsonl", "pipe.md"]
    assert all("it is a named pipe" in one["problem"] for one in report["failed"])
    assert done.returncode == 1
    for pipe in folder.glob("pipe.*"):
        pipe.unlink()
    (folder / "one.md").write_text("**user**: And now?\n\n**ai**: No.\n", "utf-8")
    (folder / "old" / "two.markdown").unlink()
    done = lamina("import", "chats", cwd=notes)
    assert done.returncode == 0
    assert done.stdout.endswith("skipped 2 Markdown files without a chat\n")


def test_a_pipe_that_is_named_is_not_waited_for(notes: Path) -> None:
    os.mkfifo(notes / "pipe.jsonl")
    done = lamina("import", "pipe.jsonl", cwd=notes)
    assert done.returncode == 1
    assert "pipe.jsonl: cannot be read: it is a named pipe" in done.stdout
