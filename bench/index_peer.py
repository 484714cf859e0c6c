"""The peer's row of the index benchmark: sentence-transformers, with the same weights. Run by
bench/index.py, each task in a process of its own, by any Python that has the peer:

    python bench/index_peer.py versions|cold|index|search WORK SIZE

It keeps nothing on disk and has no search by words, so a cold start embeds everything each time.
"""

import json
import resource
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from versions import version

# What the weights do not say of the model, in the form in which it is published.
FILES = {
    "config.json": {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": 384,
        "intermediate_size": 1536,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 512,
        "num_attention_heads": 12,
        "num_hidden_layers": 6,
        "pad_token_id": 0,
        "type_vocab_size": 2,
        "vocab_size": 30522,
    },
    "tokenizer_config.json": {"tokenizer_class": "BertTokenizer", "do_lower_case": True},
    "sentence_bert_config.json": {"max_seq_length": 256, "do_lower_case": False},
    "modules.json": [
        {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for n, (path, kind) in enumerate(
            (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
        )
    ],
    "1_Pooling/config.json": {
        "word_embedding_dimension": 384,
        "pooling_mode_cls_token": False,
        "pooling_mode_mean_tokens": True,
    },
}


def unpack(folder: Path, weights: Path, tokenizer: Path) -> None:
    """The model's folder as the peer wants it, with the very files that Lamina uses."""
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), "utf-8")
    (folder / "model.safetensors").symlink_to(weights)
    (folder / "tokenizer.json").symlink_to(tokenizer)


def load(work: Path) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(work / "peer"), device="cpu")


def encode(model: Any, texts: list[str], batch: int = 32) -> Any:
    return model.encode(texts, batch_size=batch, show_progress_bar=False)


def versions(work: Path, texts: dict[str, list[str]], size: int) -> dict[str, Any]:
    return {name: version(name) for name in ("sentence-transformers", "torch", "transformers")}


def cold(work: Path, texts: dict[str, list[str]], size: int) -> dict[str, Any]:
    from sentence_transformers import util

    model = load(work)
    vectors = encode(model, texts["chunks"][:size])
    hits = util.semantic_search(encode(model, texts["questions"][:1]), vectors, top_k=10)
    print("found", hits[0][0]["corpus_id"], flush=True)
    return {}


def index(work: Path, texts: dict[str, list[str]], size: int) -> dict[str, Any]:
    import numpy

    model, chunks = load(work), texts["chunks"][:size]
    encode(model, chunks[:8])
    figures = {}
    for batch in (32, 4):
        start = time.perf_counter()
        vectors = encode(model, chunks, batch)
        figures[f"embed_{batch}_ms"] = (time.perf_counter() - start) * 1e3 / size
    numpy.save(work / "peer.npy", vectors)
    times = []
    for question in texts["questions"]:
        start = time.perf_counter()
        encode(model, [question])
        times.append((time.perf_counter() - start) * 1e3)
    return figures | {"question_ms": median(times)}


def search(work: Path, texts: dict[str, list[str]], size: int) -> dict[str, Any]:
    import torch
    from sentence_transformers import util

    model = load(work)
    torch.manual_seed(7)
    vectors = torch.nn.functional.normalize(torch.randn(size, 384), dim=1)
    times = []
    for question in texts["questions"]:
        start = time.perf_counter()
        vector = model.encode([question], convert_to_tensor=True, show_progress_bar=False)
        util.semantic_search(vector, vectors, top_k=10)
        times.append((time.perf_counter() - start) * 1e3)
    return {"query_ms": median(times[2:])}


TASKS = {"versions": versions, "cold": cold, "index": index, "search": search}


def main() -> int:
    task, folder, size = sys.argv[1:]
    work = Path(folder)
    texts = json.loads((work / "texts.json").read_text("utf-8"))
    figures = TASKS[task](work, texts, int(size))
    figures["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
