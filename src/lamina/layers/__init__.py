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
from lamina.layers.strands import Strand, StrandRecord, link_segments

__all__ = [
    "IMAGE_TOKENS",
    "MESSAGE_TOKENS",
    "Assembler",
    "ItemVersions",
    "Layout",
    "Strand",
    "StrandRecord",
    "link_segments",
    "measure_layers",
    "picture_tokens",
    "segment_digest",
]
