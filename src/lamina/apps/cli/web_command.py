"""`lamina web`: the web app, until somebody ends it."""

import webbrowser
from functools import partial
from pathlib import Path
from typing import Annotated

import anyio
import anyio.to_thread
import typer
from rich.console import Console

from lamina.adapters.files.extras import require
from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.outcome import error_console
from lamina.apps.cli.stdio import stop_on_signals
from lamina.errors import UsageError

app = typer.Typer()


async def run_web(folder: Path, *, port: int | None, opens: bool, console: Console) -> None:
    """Serves until a signal ends it. What goes on then is stopped, and what came of it is kept.

    Raises:
        UsageError: there is no such folder, or the port is taken.
    """
    # The server needs an extra, and the help of the command does not.
    from lamina.apps.web.http_server import serve_web
    from lamina.apps.web.static_files import NOT_BUILT

    if not await anyio.Path(folder).is_dir():
        raise UsageError(f"there is no folder {str(folder)!r}")
    async with stop_on_signals() as stop:
        ended = anyio.Event()

        def end() -> bool:
            ended.set()
            return True

        stop.abort = end
        async with serve_web(folder, port=port) as server:
            if not server.static.is_built:
                console.print(NOT_BUILT.strip())
            address = server.entrance()
            console.print("Lamina is at this address, which works once. Ctrl-C ends it.")
            # Whole, whatever the width: it is there to be clicked and copied.
            console.print(address, soft_wrap=True)
            if opens:
                await anyio.to_thread.run_sync(webbrowser.open, address)
            await ended.wait()
            console.print("ending: answers under way are stopped, and what came of them is kept")


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
    run_async(partial(run_web, folder, port=port, opens=not no_open, console=error_console()))
