"""The peers' rows of the benchmark of first searches. Run by bench/first_search.py, each in a
process of its own, by any Python that has them:

    python bench/first_search_peer.py PEER VAULT WORK QUESTIONS

bm25s reads, cuts and indexes all notes. The others embed all passages with the same weights as
Lamina before they can answer; some are embedded here, and the time for all of them is extrapolated.
"""

import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from versions import version
from workspace_peer import Searcher, cut

SAMPLE = 400
TOP = 10


def passages(vault: Path) -> list[str]:
    return [
        f"{path.stem}\n{passage}"
        for path in sorted(vault.rglob("*.md"))
        for passage in cut(path.read_text("utf-8"))
    ]


def bm25s(vault: Path, work: Path, questions: Sequence[str]) -> dict[str, Any]:
    versions = {name: version(name) for name in ("bm25s", "PyStemmer")}
    searcher = Searcher(vault)
    searcher.ask(questions[0])
    print("found", flush=True)
    return versions


def _extrapolate(
    vault: Path, load: Callable[[], Callable[[list[str]], object]], *packages: str
) -> dict[str, Any]:
    """`load` gives what indexes passages and answers a question."""
    versions = {name: version(name) for name in ("sentence-transformers", "torch", *packages)}
    start = time.perf_counter()
    index = load()
    texts = passages(vault)
    loaded = time.perf_counter() - start
    # From all over the folder.
    sample = texts[:: max(1, len(texts) // SAMPLE)][:SAMPLE]
    start, cpu = time.perf_counter(), time.process_time()
    index(sample)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    return {
        "passages": len(texts),
        "embedded": len(sample),
        "load_seconds": loaded,
        "extrapolated_seconds": loaded + seconds * len(texts) / len(sample),
        "ms_of_processor_per_passage": cpu_seconds * 1e3 / len(sample),
        **versions,
    }


def _model(work: Path) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(work / "peer"), device="cpu")


def _encode(model: Any, texts: Sequence[str]) -> Any:
    return model.encode(list(texts), batch_size=32, show_progress_bar=False)


def sentence_transformers(vault: Path, work: Path, questions: Sequence[str]) -> dict[str, Any]:
    def load() -> Callable[[list[str]], object]:
        from sentence_transformers import util

        model = _model(work)

        def index(texts: list[str]) -> object:
            vectors = _encode(model, texts)
            return util.semantic_search(_encode(model, questions[:1]), vectors, top_k=TOP)

        return index

    return _extrapolate(vault, load)


def langchain(vault: Path, work: Path, questions: Sequence[str]) -> dict[str, Any]:
    def load() -> Callable[[list[str]], object]:
        from langchain_core.embeddings import Embeddings
        from langchain_core.vectorstores import InMemoryVectorStore

        model = _model(work)

        class Local(Embeddings):  # type: ignore[misc]
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                rows: list[list[float]] = _encode(model, texts).tolist()
                return rows

            def embed_query(self, text: str) -> list[float]:
                row: list[float] = _encode(model, [text])[0].tolist()
                return row

        def index(texts: list[str]) -> object:
            store = InMemoryVectorStore(Local())
            store.add_texts(texts)
            return store.similarity_search(questions[0], k=TOP)

        return index

    return _extrapolate(vault, load, "langchain-core")


def llama_index(vault: Path, work: Path, questions: Sequence[str]) -> dict[str, Any]:
    def load() -> Callable[[list[str]], object]:
        from llama_index.core.schema import TextNode
        from llama_index.core.vector_stores import SimpleVectorStore
        from llama_index.core.vector_stores.types import VectorStoreQuery

        model = _model(work)

        def index(texts: list[str]) -> object:
            store = SimpleVectorStore()
            vectors = _encode(model, texts)
            store.add(
                [
                    TextNode(text=text, embedding=vector.tolist())
                    for text, vector in zip(texts, vectors, strict=True)
                ]
            )
            question = _encode(model, questions[:1])[0].tolist()
            return store.query(VectorStoreQuery(query_embedding=question, similarity_top_k=TOP))

        return index

    return _extrapolate(vault, load, "llama-index-core")


ROWS = {
    "bm25s": bm25s,
    "sentence-transformers": sentence_transformers,
    "LangChain": langchain,
    "LlamaIndex": llama_index,
}


def main() -> int:
    peer, vault, work, questions = sys.argv[1:]
    asked = [text for _, text in json.loads(Path(questions).read_text("utf-8"))]
    figures = ROWS[peer](Path(vault), Path(work), asked)
    figures["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
