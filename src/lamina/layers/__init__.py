"""L1-L5 to a `Prompt` of segments in wire order."""

from lamina.layers.assembler import (
    MESSAGE_TOKENS,
    Assembler,
    ItemVersions,
    Layout,
    measure_layers,
)

__all__ = [
    "MESSAGE_TOKENS",
    "Assembler",
    "ItemVersions",
    "Layout",
    "measure_layers",
]
