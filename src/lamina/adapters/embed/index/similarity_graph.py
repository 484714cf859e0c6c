"""Builds graphs of similar documents, and stores them beside the chunks.

Laws: a graph is identified by all its inputs (texts, ids, model, threshold, top), so it is never
confused with a graph of other documents. An unreadable graph is rebuilt.
"""

import hashlib
from struct import pack

import msgspec
import numpy
from msgspec import Struct

from lamina.adapters.embed.index.chunk_file import GRAPHS, ChunkData, ChunkFile
from lamina.adapters.embed.index.chunk_table import chunk_digests, digest_text
from lamina.adapters.embed.index.corpus import PreparedDocuments
from lamina.core.selection.expansion import SimilarityGraph, build_similarity_graph
from lamina.core.values.item import ItemId
from lamina.core.values.selection import Document

# The version of the graph's construction and packing.
VERSION = 1


class _PackedGraph(Struct, frozen=True, array_like=True):
    """Each document's similar documents, by position, and their similarities."""

    others: tuple[tuple[int, ...], ...]
    scores: tuple[tuple[float, ...], ...]


def find_graph(
    file: ChunkFile, maker: str, prepared: PreparedDocuments, threshold: float, top: int
) -> SimilarityGraph:
    """Return the document graph from the file; if missing, build and store it, in time quadratic in
    the number of chunks."""
    key = _digest(prepared, maker, threshold, top)
    chunk = file.fetch(GRAPHS, [key]).get(key)
    graph = _unpack(chunk.vector, prepared.documents) if chunk else None
    if graph is None:
        vectors = prepared.table.vectors
        assert vectors is not None
        rows = vectors[prepared.columns]
        rows[prepared.columns < 0] = numpy.nan
        graph = build_similarity_graph(prepared.documents, rows, threshold, top)
        file.keep(GRAPHS, {key: ChunkData(_pack(graph, prepared.documents), b"")})
    return graph


def _digest(prepared: PreparedDocuments, maker: str, threshold: float, top: int) -> bytes:
    """Return a digest of all inputs of a graph, including which chunks have a vector."""
    digest = hashlib.sha256(pack("<qdq", VERSION, threshold, top) + digest_text(maker))
    # Row -1 indexes the last element.
    is_embedded = iter(numpy.append(prepared.table.is_embedded, False)[prepared.columns].tolist())
    for document in prepared.documents:
        digest.update(digest_text(document.id) + pack("<q", document.size))
        for chunk in chunk_digests(document):
            digest.update(chunk if next(is_embedded) else b"-")
    return digest.digest()


def _pack(graph: SimilarityGraph, documents: tuple[Document, ...]) -> bytes:
    places = {document.id: place for place, document in enumerate(documents)}
    rows = [graph.get(document.id, ()) for document in documents]
    return msgspec.msgpack.encode(
        _PackedGraph(
            tuple(tuple(places[other] for other, _ in row) for row in rows),
            tuple(tuple(score for _, score in row) for row in rows),
        )
    )


def _unpack(data: bytes, documents: tuple[Document, ...]) -> SimilarityGraph | None:
    try:
        graph = msgspec.msgpack.decode(data, type=_PackedGraph)
        return {
            document.id: tuple(
                (ItemId(documents[other].id), score)
                for other, score in zip(others, scores, strict=True)
            )
            for document, others, scores in zip(documents, graph.others, graph.scores, strict=True)
            if document.size
        }
    except (msgspec.MsgspecError, ValueError, IndexError):
        return None
