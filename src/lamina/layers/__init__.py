"""L1-L5 to a `Prompt` of segments in wire order."""

from lamina.layers.assembling import (
    IMAGE_TOKENS,
    MESSAGE_TOKENS,
    Assembler,
    Items,
    Layout,
    measure_layers,
    picture_tokens,
    segment_digest,
)
from lamina.layers.strands import Strand, StrandRecord, link

__all__ = [
    "IMAGE_TOKENS",
    "MESSAGE_TOKENS",
    "Assembler",
    "Items",
    "Layout",
    "Strand",
    "StrandRecord",
    "link",
    "measure_layers",
    "picture_tokens",
    "segment_digest",
]
