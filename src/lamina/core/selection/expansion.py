"""Expands a choice with similar and related items.

Laws: nothing is added that is already included, and every addition names its source. Similarity is
a cosine: without vectors, nothing is expanded.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy
from numpy.typing import NDArray

from lamina.core.selection.chunks import LONGEST_CHUNK, split_sentences
from lamina.core.selection.scores import DIGITS, Matrix, Scores, best_of, lay_out_chunks
from lamina.core.values.item import ItemId
from lamina.core.values.selection import (
    Document,
    Origin,
    Query,
    QueryPart,
    SearchSettings,
    SelectedItem,
)

# Each item's similar items with their similarity, the most similar first.
SimilarityGraph = Mapping[ItemId, tuple[tuple[ItemId, float], ...]]

# How many cosines are computed together while a graph is built: 32 MB.
_BLOCK = 1 << 23
# A graph stores more than one search needs, so that it serves searches with other settings, too.
GRAPH_THRESHOLD, GRAPH_TOP = 0.5, 32


def graph_shape(settings: SearchSettings) -> tuple[float, int]:
    """Return the threshold and the size of a graph that serves an expansion with these settings."""
    return (
        min(GRAPH_THRESHOLD, settings.expansion_threshold),
        max(GRAPH_TOP, 2 * settings.expansion_top_n),
    )


def expansion_query(
    documents: Sequence[Document], chosen: Sequence[SelectedItem], settings: SearchSettings
) -> Query:
    """Return the query of the second search: the chunks of the chosen items; for a long item the
    best one and the first ones. Items without available texts are not searched from."""
    by_id = {document.id: document for document in documents}
    parts: list[QueryPart] = []
    for item in chosen:
        if document := by_id.get(item.item):
            chunks = tuple(dict.fromkeys((*filter(None, (item.chunk,)), *document.chunks)))
            parts += [_part(chunk, item.item) for chunk in chunks[: settings.expansion_chunks]]
    return Query(parts=tuple(parts))


def result_query(results: Sequence[tuple[str, str]], settings: SearchSettings) -> Query:
    """Return a search from tool results, as (name, text): the first chunks of each. The rest of a
    long one is not even read."""
    longest = 4 * LONGEST_CHUNK * settings.expansion_chunks
    return Query(
        parts=tuple(
            _part(chunk, name)
            for name, text in results
            for chunk in split_sentences(text[:longest])[: settings.expansion_chunks]
        )
    )


def _part(text: str, source: str) -> QueryPart:
    return QueryPart(text=text, claims=False, source=source)


def expand_by_search(
    documents: Sequence[Document],
    scores: Scores,
    query: Query,
    taken: Sequence[SelectedItem],
    settings: SearchSettings,
    *,
    origin: Origin = "expansion",
) -> tuple[SelectedItem, ...]:
    """Return items similar to the parts of an expansion's query, the most similar first."""
    if scores.cosine is None or not query.parts or not any(document.size for document in documents):
        return ()
    layout = scores.layout or lay_out_chunks(documents)
    cosine = numpy.where(numpy.isnan(scores.cosine), -numpy.inf, scores.cosine)
    most = cosine.max(axis=0)
    # Only possible matches are examined one by one.
    near = best_of(layout, most) >= settings.expansion_threshold - 10**-DIGITS
    candidates = []
    for place in numpy.flatnonzero(near).tolist():
        document = documents[place]
        begin = int(layout.starts[place])
        which = int(most[begin : begin + document.size].argmax())
        candidates.append(
            SelectedItem(
                item=document.id,
                score=round(float(most[begin + which]), DIGITS),
                origin=origin,
                source=query.parts[int(cosine[:, begin + which].argmax())].source,
                chunk=document.chunk(which),
                place=which,
            )
        )
    return take_nearest(candidates, {item.item for item in taken}, settings)


def expand_by_graph(
    graph: SimilarityGraph,
    chosen: Sequence[SelectedItem],
    taken: Sequence[SelectedItem],
    settings: SearchSettings,
) -> tuple[SelectedItem, ...]:
    """Return the same from an existing graph, instead of a second search."""
    best: dict[ItemId, SelectedItem] = {}
    for source in chosen:
        for item, score in graph.get(source.item, ()):
            if item not in best or score > (best[item].score or 0.0):
                best[item] = SelectedItem(
                    item=item, score=score, origin="expansion", source=source.item
                )
    return take_nearest(best.values(), {item.item for item in (*chosen, *taken)}, settings)


def take_nearest(
    candidates: Collection[SelectedItem], taken: Collection[ItemId], settings: SearchSettings
) -> tuple[SelectedItem, ...]:
    """Return the candidates that are similar enough and not chosen yet, the most similar first,
    each once."""
    alike = [
        item
        for item in candidates
        if item.item not in taken
        and item.score is not None
        and item.score >= settings.expansion_threshold
    ]
    alike.sort(key=lambda item: -(item.score or 0.0))
    by_id: dict[ItemId, SelectedItem] = {}
    for item in alike:
        by_id.setdefault(item.item, item)
    return tuple(by_id.values())[: settings.expansion_top_n]


def find_related(
    chosen: Sequence[SelectedItem],
    relations: Mapping[str, Sequence[str]],
    known: Collection[ItemId],
    taken: Collection[ItemId] = (),
) -> tuple[SelectedItem, ...]:
    """Return the relations of the chosen items, as far as they are `known`."""
    inside = {*taken, *(item.item for item in chosen)}
    additions = []
    for source in chosen:
        for related_id in relations.get(source.item, ()):
            item = ItemId(related_id)
            if item in known and item not in inside:
                inside.add(item)
                additions.append(SelectedItem(item=item, origin="relation", source=source.item))
    return tuple(additions)


def build_similarity_graph(
    documents: Sequence[Document], vectors: Matrix, threshold: float, top: int
) -> dict[ItemId, tuple[tuple[ItemId, float], ...]]:
    """Return for each item the most similar ones: two items are as similar as their two most
    similar chunks. `vectors` has a row of length 1 for each chunk, NaN if the chunk has no
    vector."""
    filled_documents = [document for document in documents if document.size]
    begins = numpy.cumsum([0, *(document.size for document in filled_documents)])
    graph: dict[ItemId, tuple[tuple[ItemId, float], ...]] = {}
    for first, last in _blocks(begins.tolist(), len(vectors)):
        block = vectors[begins[first] : begins[last]]
        alike = _by_document(block, vectors, begins)
        alike = numpy.fmax.reduceat(alike, begins[first:last] - begins[first], axis=0)
        for place, row in enumerate(alike, start=first):
            row[place] = -numpy.inf
            near = numpy.flatnonzero(row >= threshold - 10**-DIGITS)
            order = near[numpy.argsort(-row[near], kind="stable")][:top]
            graph[filled_documents[place].id] = tuple(
                (filled_documents[other].id, round(float(row[other]), DIGITS))
                for other in order
                if round(float(row[other]), DIGITS) >= threshold
            )
    return graph


def _blocks(begins: list[int], chunks: int) -> Iterator[tuple[int, int]]:
    """Yield runs of whole documents whose chunks, against all chunks, fit into a block."""
    most = max(1, _BLOCK // max(1, chunks))
    first = 0
    for last in range(1, len(begins)):
        if last + 1 == len(begins) or begins[last + 1] - begins[first] > most:
            yield first, last
            first = last


def _by_document(block: Matrix, rows: Matrix, begins: NDArray[numpy.int64]) -> Matrix:
    """Return the similarity of each chunk of a block to each document."""
    most = max(1, _BLOCK // max(1, len(rows)))
    parts = [
        numpy.fmax.reduceat(block[at : at + most] @ rows.T, begins[:-1], axis=1)
        for at in range(0, len(block), most)
    ]
    return numpy.concatenate(parts)
