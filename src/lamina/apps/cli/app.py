"""The command line as a whole: its commands in the order of `lamina --help`, and what they share.

Laws: only the module of the called command is imported; `lamina --help` imports none. A global
option after a command is refused with a message that shows its right place. The help shows flags
without a value, as they have none.
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
    """Return what Typer's own `process_value` returns, without importing Pydantic for options that
    are absent: that import takes longer than many commands."""
    if value is not None or parameter.required:
        return convert(ctx, value)
    absent = () if parameter.multiple or parameter.nargs == -1 else None
    return absent if parameter.callback is None else parameter.callback(ctx, parameter, absent)


class CommandGroup(PlainGroup):
    """Commands, with global options that come before the command."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        own = {option for parameter in self.params for option in parameter.opts}
        command, *words = args
        for word in takewhile(lambda word: word != "--", words):
            if word in own:
                place = f"lamina {word} {command}"
                raise typer.BadParameter(f"{word} goes before the command: {place} ...", ctx=ctx)
        name, found, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name else found, rest


app = typer.Typer(
    cls=CommandGroup,
    help="Lamina decides what a model sees, keeps those bytes still, and shows you.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
# The commands in the order of `lamina --help`: each command's module, and its line there, which is
# the first paragraph of its own help.
LISTED_COMMANDS = {
    "chat": ("chat.startup", "Chat with a model about a folder, and see what it was shown."),
    "ask": ("ask", "Ask one question and print the answer as it arrives."),
    "rpc": (
        "rpc.rpc_server",
        "Serve one session over JSON-RPC 2.0: one message per line on standard input and output.",
    ),
    "web": (
        "web_command",
        "Open the web app: chat, the contents of each request, caches, costs, agents and notes.",
    ),
    "notes": (
        "notes_commands",
        "Work with a workspace's notes: search them, query their properties, find problems.",
    ),
    "agent": (
        "agent_commands",
        "Manage agents on disk: create, list, show and check them, and see how they are used.",
    ),
    "trust": (
        "trust_command",
        "Show what an agent's folder or a hooks file would run, and trust its current contents.",
    ),
    "select": (
        "search_commands",
        "Select the rules, references and tools that a question needs, as a session would.",
    ),
    "search": (
        "search_commands",
        "Rank rules, references and tools by relevance: score, rank by words, best passage.",
    ),
    "index": (
        "search_commands",
        "Index tools, rules and references now instead of at their first search.",
    ),
    "context": (
        "context",
        "Show the request that `lamina ask` would send for a question: layers, items, what is "
        "left out, and why.",
    ),
    "why": (
        "why_command",
        "Show which rules, references and tools were used to answer a question, and why.",
    ),
    "demo": (
        "demo_command",
        "Chat with the embedded model and measure what it has to reread: lazy, eager, naive.",
    ),
    "targets": (
        "targets_command",
        "List the providers and models Lamina knows: prices, windows, cache lifetimes, and "
        "sources.",
    ),
    "memory": (
        "memory_command",
        "Manage what every chat knows about you: a file that is part of the system prompt.",
    ),
    "log": (
        "log",
        "Show a session's entries: messages, requests, changes, what was left out, and the cost.",
    ),
    "verify": (
        "verify_command",
        "Rebuild every request of a session from its journal and compare it with what was sent.",
    ),
    "repair": (
        "verify_command",
        "Write a repaired copy next to a damaged session; the damaged file is not touched.",
    ),
    "export": (
        "import_export",
        "Export a session as a Markdown chat (Obsidian Copilot's format), as its journal, or as "
        "a list of what each request contained (docs/requests.md).",
    ),
    "import": ("import_export", "Import sessions from other tools."),
    "sessions": (
        "session_commands",
        "List the stored sessions and their cost; `sessions delete` deletes them.",
    ),
    "spend": ("spending_command", "Show spending across all workspaces, and what is reserved."),
    "doctor": (
        "doctor_command",
        "Find out where the cache was lost: what sessions paid for twice, and why.",
    ),
    "info": (
        "info_command",
        "Show where data is stored and how large it is, versions, and what is missing.",
    ),
    "emulate": (
        "emulate_command",
        "Emulate a vendor's API on this machine, and account for its prefix cache by its rules.",
    ),
    "models": (
        "model_commands",
        "Manage models that run on this machine: list, download, locate and remove them.",
    ),
    "tools": (
        "tool_commands",
        "Manage the tools of MCP servers: list them, see what changed, and approve changes.",
    ),
}


def _stub() -> None:
    """A placeholder for a command until it is called."""


for _name, (_, _line) in LISTED_COMMANDS.items():
    app.command(_name, help=_line)(_stub)


def load_command(name: str) -> Any:
    """Load a command with its flags, or a group with its commands."""
    module = import_module(f"lamina.apps.cli.{LISTED_COMMANDS[name][0]}")
    outer = typer.Typer()
    outer.add_typer(module.app)
    _flow(outer)
    return typer.main.get_group(outer).commands[name]


def _flow(group: typer.Typer) -> None:
    """Let help texts fill the terminal: only empty lines end a paragraph of a docstring. Flags get
    no column for values."""
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
    """Run the command line. One of our own errors is one line and an exit code, not a traceback."""
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
            help="Log what happens to standard error: sessions, requests, caches, tools. "
            "LAMINA_LOG=debug logs more.",
        ),
    ] = False,
) -> None:
    """Lamina decides what a model sees, keeps those bytes still, and shows you."""
    write_log(is_verbose=verbose)
