"""`lamina --verbose` and LAMINA_LOG: what happens inside, on standard error and nowhere else."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.apps.cli.forks import run_fork
from tests.apps.cli.inside import error, output

LINE = re.compile(r"\d\d:\d\d:\d\d (DEBUG|INFO|WARNING) +lamina\.(session|request): .+")


def show(folder: Path, *before: str, log: str = "") -> subprocess.CompletedProcess[str]:
    """Looks at what would be sent for a question about a note."""
    (folder / "a.md").write_text("canary7Qz\n", "utf-8")
    arguments = [*before, "context", "What is in it?", "-w", ".", "-a", "a.md", "--json"]
    settings = {"NO_COLOR": "1", "LAMINA_DATA": str(folder / "data"), "LAMINA_LOG": log}
    return run_fork(*arguments, cwd=folder, env=os.environ | settings, stdin="")


def test_without_a_word_nothing_is_told(tmp_path: Path) -> None:
    done = show(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("before", "log", "levels"),
    [
        (["--verbose"], "", {"INFO"}),
        ([], "info", {"INFO"}),
        ([], "debug", {"INFO", "DEBUG"}),
        (["--verbose"], "DEBUG", {"INFO", "DEBUG"}),
        ([], "warning", set()),
    ],
)
def test_the_log_is_on_standard_error_and_leaves_json_alone(
    tmp_path: Path, before: list[str], log: str, levels: set[str]
) -> None:
    done = show(tmp_path, *before, log=log)
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)
    matches = [LINE.fullmatch(line) for line in done.stderr.splitlines()]
    assert {match and match[1] for match in matches} == levels
    assert "canary7Qz" not in done.stderr


def test_a_level_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    done = show(tmp_path, log="loud")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: LAMINA_LOG must be debug or info or warning, not 'loud'\n"


def test_the_help_says_so(tmp_path: Path) -> None:
    settings = {"NO_COLOR": "1", "COLUMNS": "100"}
    done = run_fork("--help", cwd=tmp_path, env=os.environ | settings, stdin="")
    assert "--verbose" in done.stdout
    assert "LAMINA_LOG=debug" in done.stdout


@pytest.mark.parametrize("command", [("ask", "hi"), ("agent", "check"), ("sessions",)])
def test_behind_a_command_it_is_told_where_it_stands(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    shown = error(*command, "--verbose", cwd=tmp_path, code=2)
    problem = " ".join(shown.replace("│", " ").split())
    assert f"--verbose goes before the command: lamina --verbose {command[0]}" in problem


def test_a_question_may_be_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    assert "--verbose" in output("context", "--", "--verbose", cwd=tmp_path)
