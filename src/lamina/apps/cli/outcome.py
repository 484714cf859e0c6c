"""How commands begin and end: conflicting flags, standard input, exit codes."""

import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.terminal_text import print_text
from lamina.errors import LaminaError

if TYPE_CHECKING:
    from rich.console import Console

    from lamina.apps.views.stored_sessions import StoredSession

Result = TypeVar("Result")


def refuse_if(is_wrong: object, problem: str) -> None:
    if is_wrong:
        raise typer.BadParameter(problem)


@contextmanager
def exit_on_error(code: int) -> Iterator[None]:
    """End a command with this code on one of our own errors, where 1 has another meaning. All other
    commands end with 1, in `app.py`."""
    try:
        yield
    except (LaminaError, OSError) as error:
        print_text(f"error: {error}", err=True)
        raise typer.Exit(code) from None


def read_argument(value: str, noun: str) -> str:
    """Return the value, or all of standard input if it is `-`."""
    text = sys.stdin.read() if value == "-" else value
    refuse_if(not text.strip(), f"the {noun} is empty")
    return text


def print_outcome(text: str, is_fine: bool, *, as_json: bool = False) -> None:
    """Print the text, and exit with 1 unless `is_fine`."""
    print_report(text, as_json=as_json)
    if not is_fine:
        raise typer.Exit(1)


def print_report(text: str, *, as_json: bool = False) -> None:
    """Print a command's report, for people or as JSON."""
    if as_json:
        typer.echo(text)
    else:
        print_text(text)


def run_on_session(
    name: str, workspace: Path, action: Callable[["StoredSession"], Awaitable[Result]]
) -> Result:
    from lamina.apps.views.stored_sessions import find_session

    async def run() -> Result:
        return await action(await find_session(name, workspace))

    return run_async(run)


def error_console() -> "Console":
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def run_to_exit(command: Callable[..., Awaitable[int]], *arguments: object, **named: Any) -> None:
    """Run a command and exit with its code: 130 for Ctrl-C where signals cannot be caught."""
    from lamina.apps.cli.stdio import fill_descriptors

    fill_descriptors()
    try:
        code = run_async(partial(command, *arguments, **named))
    except KeyboardInterrupt:
        code = 130
    if code:
        raise typer.Exit(code)
