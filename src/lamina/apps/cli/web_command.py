"""`lamina web`: the web app, until it is stopped."""

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
    """Serve until a signal arrives. Running work is stopped then, and partial results are kept.

    Raises:
        UsageError: there is no such folder, or the port is in use.
    """
    # The server needs an extra; the command's help does not.
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
            console.print("Open Lamina at this address, which works once. Ctrl-C stops it.")
            # Never wrapped, so that it can be clicked and copied.
            console.print(address, soft_wrap=True)
            if opens:
                await anyio.to_thread.run_sync(webbrowser.open, address)
            await ended.wait()
            console.print("stopping: running answers end here, and partial answers are kept")


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
            help="The port; by default 8417, or a free one if that is in use. 0 picks a free one.",
        ),
    ] = None,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Print the address without opening a browser.")
    ] = False,
) -> None:
    """Open the web app: chat, the contents of each request, caches, costs, agents and notes.

    It is for you alone: it listens on this machine only, and the printed address admits one
    browser, once. It uses the same sessions as the other commands. Answers continue without a
    browser; Ctrl-C stops the server and running answers, and keeps partial answers.
    """
    require("web")
    run_async(partial(run_web, folder, port=port, opens=not no_open, console=error_console()))
