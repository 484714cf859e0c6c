"""The installed `lamina` command, as a person runs it."""

import os
import subprocess
import sys
from pathlib import Path

from tests.apps.cli.forks import run_fork

LAMINA = Path(sys.executable).parent / "lamina"


def lamina(*arguments: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Runs a command in a folder, on a terminal of 100 columns without colours."""
    settings = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
    clean = {
        name: value
        for name, value in os.environ.items()
        if name in ("LAMINA_CACHE", "LAMINA_THREADS") or not name.startswith("LAMINA_")
    }
    return run_fork(*arguments, cwd=cwd, env=clean | settings, stdin=stdin)


def output(*arguments: str, cwd: Path, stdin: str = "") -> str:
    """What a command prints that must succeed without a word on standard error."""
    done = lamina(*arguments, cwd=cwd, stdin=stdin)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def error(*arguments: str, cwd: Path, code: int = 1) -> str:
    """What a command says that must fail: no traceback, and nothing on standard output."""
    done = lamina(*arguments, cwd=cwd)
    assert (done.returncode, done.stdout) == (code, "")
    assert "Traceback" not in done.stderr
    return done.stderr
