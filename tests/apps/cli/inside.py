"""Commands in this process: for tests that need many of them."""

import contextlib
import io
import sys
from pathlib import Path

from lamina.apps.cli.app import run


def lamina(*arguments: str, cwd: Path) -> tuple[int, str, str]:
    """Runs a command in a folder, without the half second that a process of its own takes."""
    out, err, before, code = io.StringIO(), io.StringIO(), sys.argv, 0
    sys.argv = ["lamina", *arguments]
    try:
        with (
            contextlib.chdir(cwd),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            run()
    except SystemExit as left:
        code = int(left.code or 0)
    finally:
        sys.argv = before
    return code, out.getvalue(), err.getvalue()


def output(*arguments: str, cwd: Path) -> str:
    """What a command prints that must succeed without a word on standard error."""
    code, out, err = lamina(*arguments, cwd=cwd)
    assert (code, err) == (0, "")
    return out


def error(*arguments: str, cwd: Path, code: int = 1) -> str:
    """What a command says that must fail, with nothing on standard output."""
    got, out, err = lamina(*arguments, cwd=cwd)
    assert (got, out) == (code, "")
    return err
