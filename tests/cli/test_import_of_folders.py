"""`lamina import` of folders and of stores."""

import json
from pathlib import Path

from tests.cli.commands import error, lamina
from tests.formats import request_samples as samples
from tests.formats.request_samples import write_lines
from tests.formats.test_request_files import make_database


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
    assert "--session is for one session" in error(
        "import", "found", "--session", "mine", cwd=notes
    )


def test_a_folder_without_sessions_says_what_it_looked_for(notes: Path) -> None:
    (notes / "empty").mkdir()
    done = lamina("import", "empty", cwd=notes)
    assert done.returncode == 1
    assert "no file in this folder ends in .jsonl .json" in done.stdout
