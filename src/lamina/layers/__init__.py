"""L1-L5 to a `Prompt` of segments in wire order.

Private: see `lamina` for what is public.
"""

from lamina.layers.assembler import Assembler, ItemVersions, Layout, segment_digest
from lamina.layers.token_sizes import MESSAGE_TOKENS, measure_layers

__all__ = [
    "MESSAGE_TOKENS",
    "Assembler",
    "ItemVersions",
    "Layout",
    "measure_layers",
    "segment_digest",
]
