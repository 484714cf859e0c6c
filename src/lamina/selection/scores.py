"""How well chunks fit a query, as numbers, and where each document stands among them."""

from collections.abc import Sequence

import numpy
from msgspec import Struct
from numpy.typing import NDArray

from lamina.values.item import key_of
from lamina.values.selection import Document

Matrix = NDArray[numpy.float32]
Vector = NDArray[numpy.float64]
Indices = NDArray[numpy.int64]


class ChunkLayout(Struct, frozen=True, kw_only=True):
    """Where documents stand among the columns of scores. By document: `starts`, the column of its
    first chunk; `company`, a number that tools of one server share (-1 for anything else). By
    chunk: `owner`, the place of its document. `filled` are the documents that have chunks."""

    starts: Indices
    owner: Indices
    filled: Indices
    company: Indices


class Scores(Struct, frozen=True, kw_only=True):
    """A row per part of a query, a column per chunk: chunks of all documents of a corpus, in order.
    `cosine` is None where there are no vectors; NaN where one chunk has none. Those who ask
    often pass the `layout` of the documents, which takes longer to make than the comparison."""

    lexical: Matrix
    cosine: Matrix | None = None
    layout: ChunkLayout | None = None


def lay_out_chunks(documents: Sequence[Document]) -> ChunkLayout:
    """Where documents stand."""
    sizes = numpy.array(
        [len(document.chunks) or len(document.digests) for document in documents], numpy.int64
    )
    company = numpy.full(len(documents), -1)
    numbers: dict[str, int] = {}
    for place, document in enumerate(documents):
        if document.id.startswith("tool:"):
            name = key_of(document.id).partition("/")[0]
            # A tool that has no server's name has no company.
            company[place] = numbers.setdefault(name, len(numbers)) if name else -1
    return ChunkLayout(
        starts=numpy.cumsum(sizes) - sizes,
        owner=numpy.repeat(numpy.arange(len(documents)), sizes),
        filled=numpy.flatnonzero(sizes),
        company=company,
    )


def best_of(layout: ChunkLayout, values: Vector) -> Vector:
    """The best value of each document's chunks; NaN where none is known."""
    best = numpy.full(len(layout.starts), numpy.nan)
    if len(layout.filled):
        best[layout.filled] = numpy.fmax.reduceat(values, layout.starts[layout.filled])
    return best
