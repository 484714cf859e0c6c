"""How much memory the slots of a model take, and how many there are unless somebody says."""

from pathlib import Path

from tests.adapters.providers.local.test_gguf import gguf_bytes

from lamina.adapters.providers.local.slots import most_slots, token_bytes

# As of Qwen2.5-Coder-1.5B: 28 layers, 12 heads of 128 that share 2 for keys and values.
QWEN = (
    ("general.architecture", 8, "qwen2"),
    ("qwen2.block_count", 4, 28),
    ("qwen2.embedding_length", 4, 1536),
    ("qwen2.attention.head_count", 4, 12),
    ("qwen2.attention.head_count_kv", 4, 2),
)


def test_a_large_model_gets_fewer_slots_than_a_small_one(
    tmp_path: Path, embedded_model: Path
) -> None:
    assert token_bytes(embedded_model) == 23_040
    assert most_slots(embedded_model, 8_192) >= 4
    qwen = tmp_path / "qwen.gguf"
    qwen.write_bytes(gguf_bytes(QWEN))
    assert token_bytes(qwen) == 28_672
    assert most_slots(qwen, 32_768) == 2
    assert most_slots(qwen, 1_000_000) == 1


def test_a_file_that_does_not_say_is_not_limited(tmp_path: Path) -> None:
    path = tmp_path / "mine.gguf"
    path.write_bytes(gguf_bytes(QWEN[:2]))
    assert token_bytes(path) is None
    assert most_slots(path, 8_192) > 100
