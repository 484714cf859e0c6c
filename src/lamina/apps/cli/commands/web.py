"""`lamina web`."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from lamina.adapters.files.extras import require
from lamina.apps.cli.interrupts import run_async

app = typer.Typer()


@app.command()
def web(
    folder: Annotated[
        Path, typer.Argument(metavar="[FOLDER]", help="The folder to work in; by default this one.")
    ] = Path(),
    port: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=65535,
            help="Where to listen; by default 8417, or a free port if that is taken. 0 takes a "
            "free one.",
        ),
    ] = None,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Only print the address, and open no browser.")
    ] = False,
) -> None:
    """Open the web app: chat, what each request was made of, caches, costs, agents and notes.

    It is for you alone: it listens on this machine only, and the address it prints lets one
    browser in, once. It works on the same sessions as the other commands. What a model answers goes
    on without a browser; Ctrl-C ends the server, stops answers under way and keeps what came of
    them.
    """
    require("web")
    from lamina.apps.cli.outcome import error_console
    from lamina.apps.cli.web_command import run_web

    run_async(partial(run_web, folder, port=port, opens=not no_open, console=error_console()))
