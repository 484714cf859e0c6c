"""`lamina web`: the web app, until somebody ends it."""

import webbrowser
from pathlib import Path

import anyio
import anyio.to_thread
from rich.console import Console

from lamina.apps.cli.stdio import stop_on_signals
from lamina.apps.web.http_server import serve_web
from lamina.apps.web.static_files import NOT_BUILT
from lamina.errors import UsageError


async def run_web(folder: Path, *, port: int | None, opens: bool, console: Console) -> None:
    """Serves until a signal ends it. What goes on then is stopped, and what came of it is kept.

    Raises:
        UsageError: there is no such folder, or the port is taken.
    """
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
