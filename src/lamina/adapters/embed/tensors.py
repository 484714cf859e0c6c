"""Reads the tensors of a safetensors file in place, without copying what nobody looks at."""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from lamina.errors import ModelMissing

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Tensor = NDArray[numpy.float32]

FLOAT: Final = "F32"
_LENGTH = struct.Struct("<Q")


class _Place(msgspec.Struct, frozen=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


def read_tensors(path: Path) -> "Mapping[str, Tensor]":
    """Every tensor of 32-bit floats, by name.

    Raises:
        ModelMissing: it is not a safetensors file, or it is cut off.
    """
    import numpy

    try:
        content = numpy.memmap(path, dtype=numpy.uint8, mode="r")
        (length,) = _LENGTH.unpack(content[: _LENGTH.size].tobytes())
        start = _LENGTH.size + length
        if start > content.size:
            raise ValueError(f"its header has {length:,} bytes, more than the file")
        header = msgspec.json.decode(
            content[_LENGTH.size : start].tobytes(), type=dict[str, msgspec.Raw]
        )
        header.pop("__metadata__", None)
        places = {name: msgspec.json.decode(raw, type=_Place) for name, raw in header.items()}
        return {
            name: content[start + place.data_offsets[0] : start + place.data_offsets[1]]
            .view(numpy.float32)
            .reshape(place.shape)
            for name, place in places.items()
            if place.dtype == FLOAT
        }
    except (OSError, ValueError, struct.error, msgspec.MsgspecError) as error:
        raise ModelMissing(f"{str(path)!r} is not a safetensors file: {error}") from error
