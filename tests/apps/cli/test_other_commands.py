"""`lamina targets`, help and version."""

from pathlib import Path

import pytest
from tests.apps.cli.commands import error, lamina, output

from lamina import __version__
from lamina.adapters.providers.model_book import load_book


def test_the_version_is_that_of_the_package(tmp_path: Path) -> None:
    assert output("--version", cwd=tmp_path) == f"lamina {__version__}\n"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ((), ("context", "demo", "targets", "--version")),
        (("context",), ("--attach", "--essential", "--script", "--json", "--wire", "--full")),
        (("demo",), ("--workspace", "--script", "--target", "--no-model", "--show-script")),
        (("targets",), ("List the providers",)),
    ],
)
def test_every_command_explains_itself(
    tmp_path: Path, command: tuple[str, ...], words: tuple[str, ...]
) -> None:
    shown = output(*command, "--help", cwd=tmp_path)
    assert f"Usage: {' '.join(['lamina', *command])}" in shown
    for word in words:
        assert word in shown


def test_the_lines_of_a_help_end_where_the_terminal_does(tmp_path: Path) -> None:
    # Not where those of the docstring end: one does in front of "for."
    assert "are not waited for." in output("ask", "--help", cwd=tmp_path)


def test_without_a_command_the_help_is_shown(tmp_path: Path) -> None:
    assert "Usage: lamina" in lamina(cwd=tmp_path).stdout


def test_an_unknown_command_is_an_error(tmp_path: Path) -> None:
    assert "No such command" in error("dmeo", cwd=tmp_path, code=2)


def test_all_providers_of_the_book_are_listed(tmp_path: Path) -> None:
    shown = output("targets", cwd=tmp_path)
    providers = {name.partition(":")[0] for name in load_book().names()}
    assert {line.split(" ")[0] for line in shown.splitlines()} >= providers


def test_only_the_emulated_anthropic_has_accounts_of_an_age(tmp_path: Path) -> None:
    command = ("emulate", "openai", "--account-created", "2026-08-30")
    assert "--account-created only works with anthropic, not with openai" in error(
        *command, cwd=tmp_path
    )
    command = ("emulate", "anthropic", "--account-created", "yesterday")
    assert "'yesterday' does not match the format" in error(*command, cwd=tmp_path, code=2)
