"""`lamina --help` lists commands that are not loaded yet; one is loaded when it is called."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer

from lamina.apps.cli.app import LISTED_COMMANDS, load_command

RUN = """
import sys
from lamina.apps.cli import main
sys.argv = ["lamina", *sys.argv[1:]]
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize("name", LISTED_COMMANDS)
def test_the_list_has_the_first_paragraph_of_a_commands_own_help(name: str) -> None:
    _, line = LISTED_COMMANDS[name]
    assert (load_command(name).help or "").split("\n\n")[0] == line


@pytest.mark.parametrize("module", sorted({module for module, _ in LISTED_COMMANDS.values()}))
def test_every_command_of_a_module_is_listed(module: str) -> None:
    outer = typer.Typer()
    outer.add_typer(import_module(f"lamina.apps.cli.{module}").app)
    listed = {name for name, (place, _) in LISTED_COMMANDS.items() if place == module}
    assert {*typer.main.get_group(outer).commands} == listed


@pytest.mark.parametrize(
    ("command", "unneeded"),
    [
        ("--help", ("lamina.apps.views", "lamina.apps.wiring", "lamina.core", "lamina.engine")),
        ("--version", ("lamina.apps.views", "lamina.core", "pydantic", "rich")),
        ("doctor --sample", ("lamina.apps.wiring", "lamina.engine", "pydantic", "rich.console")),
        ("emulate --help", ("starlette", "uvicorn")),
        ("web --help", ("starlette", "uvicorn")),
        ("search --help", ("numpy",)),
    ],
)
def test_what_a_command_does_not_need_is_not_imported(
    tmp_path: Path, command: str, unneeded: tuple[str, ...]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN, *command.split()], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0
    assert not {*unneeded} & {*done.stderr.split()}
