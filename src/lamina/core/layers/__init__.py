"""Assembles L1-L5 into a `Prompt` of segments in wire order.

Private: see `lamina` for what is public.
"""

from lamina.core.layers.assembler import Assembler, ItemVersions, with_compiled_system
from lamina.core.layers.layout import Layout, layout_for, layout_of
from lamina.core.layers.thinking import bind_thinking
from lamina.core.layers.token_sizes import MESSAGE_TOKENS, measure_layers

__all__ = [
    "MESSAGE_TOKENS",
    "Assembler",
    "ItemVersions",
    "Layout",
    "bind_thinking",
    "layout_for",
    "layout_of",
    "measure_layers",
    "with_compiled_system",
]
