"""The memory that the slots of an embedded model take: each holds a whole window."""

from pathlib import Path
from typing import Any

from lamina.adapters.providers.local.gguf import ARCHITECTURE, read_metadata

# What the slots of a model may take, unless somebody says how many they want.
MOST_BYTES = 2 << 30
_NUMBER_BYTES = 2  # llama.cpp keeps keys and values as half floats

_NAMES = (
    "block_count", "embedding_length", "attention.head_count", "attention.head_count_kv",
    "attention.key_length", "attention.value_length",
)  # fmt: skip


def token_bytes(path: Path) -> int | None:
    """The bytes that a token takes in a slot; None if the file does not say.

    Raises:
        ModelMissing: the file cannot be read.
    """
    keys = {name: f"{ARCHITECTURE}.{name}" for name in _NAMES}
    metadata = read_metadata(path, tuple(keys.values()))
    facts: dict[str, Any] = {name: metadata.get(key) for name, key in keys.items()}
    blocks, width, heads = (facts[name] for name in _NAMES[:3])
    if not all(isinstance(fact, int) and fact > 0 for fact in (blocks, width, heads)):
        return None
    shared_heads = facts["attention.head_count_kv"]
    shared_heads = shared_heads if isinstance(shared_heads, int) and shared_heads > 0 else heads
    lengths = (facts[name] or width // heads for name in _NAMES[4:])
    return int(blocks * shared_heads * sum(lengths) * _NUMBER_BYTES)


def most_slots(path: Path, window: int) -> int:
    """How many slots of this window fit into `MOST_BYTES`; at least one.

    Raises:
        ModelMissing: the file cannot be read.
    """
    return max(1, MOST_BYTES // ((token_bytes(path) or 1) * window))
