"""L1-L5 to a `Prompt` of segments in wire order.

Private: see `lamina` for what is public.
"""

from lamina.layers.assembler import Assembler, ItemVersions, segment_digest
from lamina.layers.layout import Layout, layout_for
from lamina.layers.system_text import with_compiled_system
from lamina.layers.token_sizes import MESSAGE_TOKENS, measure_layers

__all__ = [
    "MESSAGE_TOKENS",
    "Assembler",
    "ItemVersions",
    "Layout",
    "layout_for",
    "measure_layers",
    "segment_digest",
    "with_compiled_system",
]
