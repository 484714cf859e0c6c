"""The command line as a whole: its commands in the order of `lamina --help`, and what all of them
share.

Laws: an option of the outermost group that stands behind a command is answered with where it
belongs. In the help a flag stands alone: it takes no value, so none is named behind it.
"""

import inspect
import sys
from itertools import takewhile
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from lamina import __version__
from lamina.apps.cli.commands import (
    agents,
    chat,
    context,
    doctor,
    memory,
    models,
    notes,
    search,
    sessions,
    spending,
    trust,
    web,
)
from lamina.apps.cli.interrupts import ignore_interrupts_at_exit
from lamina.apps.cli.terminal_text import print_text
from lamina.apps.cli.verbosity import write_log
from lamina.errors import LaminaError


class PlainCommand(TyperCommand):
    """A command."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_values(super().get_params(ctx))


class PlainGroup(TyperGroup):
    """Commands under one name."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_values(super().get_params(ctx))


def _without_values(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


class CommandGroup(PlainGroup):
    """Commands below options that go before all of them."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        own = {option for parameter in self.params for option in parameter.opts}
        command, *words = args
        for word in takewhile(lambda word: word != "--", words):
            if word in own:
                place = f"lamina {word} {command}"
                raise typer.BadParameter(f"{word} stands before the command: {place} ...", ctx=ctx)
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=CommandGroup,
    help="Lamina decides what a model sees, keeps those bytes still, and shows you.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
# In the order of `lamina --help`.
for group in (
    chat, web, notes, agents, trust, search, context, memory, sessions, spending, doctor, models,
):  # fmt: skip
    app.add_typer(group.app)


def _flow(group: typer.Typer) -> None:
    """Lets the help of commands fill the terminal: paragraphs of a docstring end at empty lines,
    and not where its lines do; and flags take no room for values."""
    for command in group.registered_commands:
        command.cls = PlainCommand
        if command.callback is not None and command.help is None:
            paragraphs = (inspect.getdoc(command.callback) or "").split("\n\n")
            command.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    for inner in group.registered_groups:
        if inner.typer_instance is not None:
            if inner.typer_instance.info.name or inner.name:
                inner.cls = PlainGroup
            _flow(inner.typer_instance)


_flow(app)


def run() -> None:
    """Runs the command line; an error of ours is one line and an exit code, not a traceback."""
    ignore_interrupts_at_exit()
    try:
        app()
    except (LaminaError, OSError) as error:
        print_text(f"error: {error}", err=True)
        sys.exit(1)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"lamina {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[  # noqa: ARG001
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            help="Tell on standard error what happens: sessions, requests, caches, tools. "
            "LAMINA_LOG=debug tells more.",
        ),
    ] = False,
) -> None:
    """Lamina decides what a model sees, keeps those bytes still, and shows you."""
    write_log(is_verbose=verbose)
