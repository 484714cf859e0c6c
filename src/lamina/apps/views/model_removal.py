"""A model that is to be removed from this machine."""

from msgspec import Struct

from lamina.adapters.downloads.wheel import ModelWheel
from lamina.adapters.downloads.wheel_removal import model_files, remove_model_files, size_of
from lamina.adapters.embed.model import MINILM
from lamina.adapters.providers.local.models import LOCAL_MODELS, is_model_path, model_name
from lamina.errors import UsageError


class RemovableModel(Struct, frozen=True, kw_only=True):
    """A model that is here, and the bytes that its files take."""

    name: str
    bytes: int
    files: tuple[str, ...]


def find_removable(name: str) -> RemovableModel:
    """What would be removed.

    Raises:
        UsageError: it is not known, a file of the person's own, or not on this machine.
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
    """Removes it; gives the bytes that are free now.

    Raises:
        UsageError: it is in use, or cannot be removed.
    """
    return remove_model_files(_find_wheel(model.name))


def _find_wheel(name: str) -> ModelWheel:
    if name == MINILM.name:
        return MINILM.wheel
    name = model_name(name)
    if is_model_path(name) and name not in LOCAL_MODELS:
        raise UsageError(f"{name!r} is a file of your own: Lamina did not fetch it, and leaves it")
    if name not in LOCAL_MODELS:
        known = ", ".join((*LOCAL_MODELS, MINILM.name))
        raise UsageError(f"there is no model {name!r}; Lamina fetches {known}")
    return LOCAL_MODELS[name].wheel
