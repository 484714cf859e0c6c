"""L1-L5 to a `Prompt` of segments in wire order."""

from lamina.layers.assembler import (
    IMAGE_TOKENS,
    MESSAGE_TOKENS,
    Assembler,
    ItemVersions,
    Layout,
    measure_layers,
    picture_tokens,
    segment_digest,
)

__all__ = [
    "IMAGE_TOKENS",
    "MESSAGE_TOKENS",
    "Assembler",
    "ItemVersions",
    "Layout",
    "measure_layers",
    "picture_tokens",
    "segment_digest",
]
