"""The command line as a whole: its commands in the order of `lamina --help`, and what all of them
share.

Laws: only the module of the command that is called is imported; `lamina --help` imports none. An
option of the outermost group that stands behind a command is answered with where it belongs. In
the help a flag stands alone: it takes no value, so none is named behind it.
"""

import inspect
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import takewhile
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from lamina import __version__
from lamina.apps.cli.interrupts import ignore_interrupts_at_exit
from lamina.apps.cli.verbosity import write_log
from lamina.errors import LaminaError


class PlainCommand(TyperCommand):
    """A command."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _plain(super().get_params(ctx))


class PlainGroup(TyperGroup):
    """Commands under one name."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _plain(super().get_params(ctx))


def _plain(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
        if "process_value" not in vars(parameter):
            parameter.process_value = partial(_process_value, parameter, parameter.process_value)
    return parameters


def _process_value(parameter: Any, convert: Callable[[Any, Any], Any], ctx: Any, value: Any) -> Any:
    """What Typer's own `process_value` gives. It imports Pydantic to convert even an option that is
    not given, and that takes longer than many a command."""
    if value is not None or parameter.required:
        return convert(ctx, value)
    absent = () if parameter.multiple or parameter.nargs == -1 else None
    return absent if parameter.callback is None else parameter.callback(ctx, parameter, absent)


class CommandGroup(PlainGroup):
    """Commands below options that go before all of them."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        own = {option for parameter in self.params for option in parameter.opts}
        command, *words = args
        for word in takewhile(lambda word: word != "--", words):
            if word in own:
                place = f"lamina {word} {command}"
                raise typer.BadParameter(f"{word} stands before the command: {place} ...", ctx=ctx)
        name, found, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name else found, rest


app = typer.Typer(
    cls=CommandGroup,
    help="Lamina decides what a model sees, keeps those bytes still, and shows you.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
# The commands in the order of `lamina --help`: the module of each, and its line there, which is the
# first paragraph of its own help.
LISTED_COMMANDS = {
    "chat": ("chat.startup", "Talk to a model about a folder, and see what it was shown."),
    "ask": ("ask", "Ask one question and print the answer as it comes."),
    "rpc": (
        "rpc.rpc_server",
        "Serve one session over JSON-RPC 2.0: one message per line on standard input and output.",
    ),
    "web": (
        "web_command",
        "Open the web app: chat, what each request was made of, caches, costs, agents and notes.",
    ),
    "notes": (
        "notes_commands",
        "The notes of a workspace: search them, query their properties, find what is wrong.",
    ),
    "agent": (
        "agent_commands",
        "Agents on disk: create, list, show and check them, and see how they are used.",
    ),
    "trust": (
        "trust_command",
        "Show what an agent's folder or a file of hooks would run, and trust it as it is.",
    ),
    "select": (
        "search_commands",
        "Choose the rules, references and tools that a question needs, as a session would.",
    ),
    "search": (
        "search_commands",
        "Rank rules, references and tools by how well they fit: score, rank by words, best text.",
    ),
    "index": (
        "search_commands",
        "Index tools, rules and references now, instead of when they are first searched.",
    ),
    "context": (
        "context",
        "Show the request for a question as `lamina ask` would send it: layers, items, what "
        "is left out, and why.",
    ),
    "why": (
        "why_command",
        "Show which rules, references and tools a question was answered with, and why.",
    ),
    "demo": (
        "demo_command",
        "Talk to the embedded model and measure what it has to read again: lazy, eager, naive.",
    ),
    "targets": (
        "targets_command",
        "List the providers and models Lamina knows: prices, windows, cache lifetimes, and "
        "sources.",
    ),
    "memory": (
        "memory_command",
        "What every chat is told about you: a file that becomes a part of the system prompt.",
    ),
    "log": (
        "log",
        "Show a session's entries: what was said, sent, changed and left out, and what it cost.",
    ),
    "verify": (
        "verify_command",
        "Rebuild every request of a session from its journal and compare it with what was sent.",
    ),
    "repair": (
        "verify_command",
        "Write a repaired copy beside a damaged session; the damaged file is not touched.",
    ),
    "export": (
        "import_export",
        "Write a session as a Markdown chat (Obsidian Copilot's format), as its journal, or "
        "what its requests were made of (docs/requests.md).",
    ),
    "import": ("import_export", "Turn what other systems store into sessions."),
    "sessions": (
        "session_commands",
        "List the stored sessions, with what they cost; `sessions delete` deletes some.",
    ),
    "spend": ("spending_command", "Show what was spent, in all workspaces, and what is reserved."),
    "doctor": (
        "doctor_command",
        "Where did the cache go? Looks through sessions for what was paid for twice, and says why.",
    ),
    "info": (
        "info_command",
        "Show where everything is and how large, versions, what is installed, and what is missing.",
    ),
    "emulate": (
        "emulate_command",
        "Speak a vendor's wire on this machine, and account for its prefix cache by its rules.",
    ),
    "models": (
        "model_commands",
        "Models that run on this machine: list, download, locate and remove them.",
    ),
    "tools": (
        "tool_commands",
        "The tools of MCP servers: list them, see what changed, and approve it.",
    ),
}


def _stub() -> None:
    """Stands for a command until it is called."""


for _name, (_, _line) in LISTED_COMMANDS.items():
    app.command(_name, help=_line)(_stub)


def load_command(name: str) -> Any:
    """A command with its flags, or a group with its commands."""
    module = import_module(f"lamina.apps.cli.{LISTED_COMMANDS[name][0]}")
    outer = typer.Typer()
    outer.add_typer(module.app)
    _flow(outer)
    return typer.main.get_group(outer).commands[name]


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


def run() -> None:
    """Runs the command line; an error of ours is one line and an exit code, not a traceback."""
    ignore_interrupts_at_exit()
    try:
        app()
    except (LaminaError, OSError) as error:
        from lamina.apps.cli.terminal_text import print_text

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
