"""Builds all-MiniLM-L6-v2 as an ONNX graph: reads its tensors from a safetensors file, builds the
graph, and adds a stamp that distinguishes complete from damaged graphs.

Laws: there is one text per run, hence no padding and no mask. Only standard operators are used;
fusing them is left to the runtime. Unused tensors are not copied. A protobuf message ends where its
bytes end, and fields appended to it become part of it; so the stamp is the last entry of the
model's own metadata, and the file remains valid ONNX.
"""

import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

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
    """Return all tensors of 32-bit floats by name.

    Raises:
        ModelMissing: the file is not a safetensors file, or is truncated.
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


DIMENSIONS: Final = 384
LAYERS: Final = 6
HEADS: Final = 12
HEAD: Final = DIMENSIONS // HEADS
# Longer texts are truncated: the model was trained with at most this many tokens.
MAX_TOKENS: Final = 256
EPSILON: Final = 1e-12
INPUT: Final = "ids"
OUTPUT: Final = "vector"
OPSET: Final = 20
IR_VERSION: Final = 10


def build_onnx_graph(tensors: "Mapping[str, Tensor]") -> Any:
    """Return the network with these weights, as an `onnx.ModelProto` in 32-bit floats.

    Raises:
        KeyError: a weight is missing.
    """
    from onnx import TensorProto, helper

    draft = _GraphDraft(tensors)
    state = draft.embed_tokens()
    for number in range(LAYERS):
        state = draft.add_layer(state, f"encoder.layer.{number}")
    draft.add_pooling(state)
    graph = helper.make_graph(
        draft.nodes,
        "all-MiniLM-L6-v2",
        [helper.make_tensor_value_info(INPUT, TensorProto.INT64, ["tokens"])],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [DIMENSIONS])],
        draft.constants,
    )
    return helper.make_model(
        graph,
        producer_name="lamina",
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )


class _GraphDraft:
    """A graph under construction, starting with its input."""

    def __init__(self, tensors: "Mapping[str, Tensor]") -> None:
        import numpy

        self._tensors = tensors
        self._numpy = numpy
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._zero = self._constant("zero", numpy.array([0], numpy.int64))
        self._apart = self._constant("apart", numpy.array([0, HEADS, HEAD], numpy.int64))
        self._together = self._constant("together", numpy.array([0, DIMENSIONS], numpy.int64))
        self._scale = self._constant("scale", numpy.array(HEAD**-0.5, numpy.float32))

    def embed_tokens(self) -> str:
        """Add the embeddings of words and positions; every token has the first of two token
        types."""
        weight = "embeddings.{}_embeddings.weight".format
        places = self._tensors[weight("position")][:MAX_TOKENS]
        kind = self._tensors[weight("token_type")][0]
        words = self._constant("words", self._tensors[weight("word")])
        length = self._node("Shape", INPUT)
        where = self._node("Slice", self._constant("places", places + kind), self._zero, length)
        sum_node = self._node("Add", self._node("Gather", words, INPUT), where)
        return self._normal(sum_node, "embeddings.LayerNorm")

    def add_layer(self, state: str, name: str) -> str:
        attention = self._attend(state, f"{name}.attention.self")
        mixture = self._dense(attention, f"{name}.attention.output.dense")
        state = self._normal(
            self._node("Add", mixture, state), f"{name}.attention.output.LayerNorm"
        )
        wide = self._node("Gelu", self._dense(state, f"{name}.intermediate.dense"))
        narrow = self._dense(wide, f"{name}.output.dense")
        return self._normal(self._node("Add", narrow, state), f"{name}.output.LayerNorm")

    def add_pooling(self, state: str) -> None:
        """Add the mean of all tokens, scaled to length 1."""
        mean = self._node("ReduceMean", state, self._zero, keepdims=0)
        length = self._node("ReduceL2", mean, self._zero, keepdims=1)
        self._node("Div", mean, length, output=OUTPUT)

    def _attend(self, state: str, name: str) -> str:
        query = self._heads(state, f"{name}.query", (1, 0, 2))
        key = self._heads(state, f"{name}.key", (1, 2, 0))
        value = self._heads(state, f"{name}.value", (1, 0, 2))
        scores = self._node("Mul", self._node("MatMul", query, key), self._scale)
        context = self._node("MatMul", self._node("Softmax", scores, axis=-1), value)
        back = self._node("Transpose", context, perm=(1, 0, 2))
        return self._node("Reshape", back, self._together)

    def _heads(self, state: str, name: str, order: Sequence[int]) -> str:
        apart = self._node("Reshape", self._dense(state, name), self._apart)
        return self._node("Transpose", apart, perm=order)

    def _dense(self, state: str, name: str) -> str:
        weight = self._constant(f"{name}.weight", self._tensors[f"{name}.weight"].T)
        bias = self._constant(f"{name}.bias", self._tensors[f"{name}.bias"])
        return self._node("Add", self._node("MatMul", state, weight), bias)

    def _normal(self, state: str, name: str) -> str:
        weight = self._constant(f"{name}.weight", self._tensors[f"{name}.weight"])
        bias = self._constant(f"{name}.bias", self._tensors[f"{name}.bias"])
        return self._node("LayerNormalization", state, weight, bias, axis=-1, epsilon=EPSILON)

    def _constant(self, name: str, value: Any) -> str:
        from onnx import numpy_helper

        array = self._numpy.ascontiguousarray(value).reshape(value.shape)
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def _node(self, kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        from onnx import helper

        name = output or f"{kind}.{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name


KEY: Final = b"lamina"
# Tags of length-delimited fields: ModelProto.metadata_props, and its entries' keys and values.
_ENTRY, _KEY, _VALUE = 0x72, 0x0A, 0x12


def add_stamp(graph: bytes, origin: str) -> bytes:
    """Return the graph with a stamp that names its source."""
    return graph + _stamp(zlib.crc32(graph), origin)


def is_stamped(content: bytes, origin: str) -> bool:
    """Check whether a file contains an unmodified graph built from this source."""
    length = len(_stamp(0, origin))
    graph = memoryview(content)[:-length]
    return content[-length:] == _stamp(zlib.crc32(graph), origin)


def _stamp(checksum: int, origin: str) -> bytes:
    value = f"{origin} {checksum:08x}".encode()
    entry = _field(_KEY, KEY) + _field(_VALUE, value)
    return _field(_ENTRY, entry)


def _field(tag: int, content: bytes) -> bytes:
    # Shorter lengths take one byte.
    assert len(content) < 0x80
    return bytes((tag, len(content))) + content
