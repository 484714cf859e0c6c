"""How well chunks fit a query, as numbers."""

import numpy
from msgspec import Struct
from numpy.typing import NDArray

Matrix = NDArray[numpy.float32]


class Scores(Struct, frozen=True, kw_only=True):
    """A row per part of a query, a column per chunk: chunks of all documents of a corpus, in order.
    `cosine` is None where there are no vectors; NaN where one chunk has none."""

    lexical: Matrix
    cosine: Matrix | None = None
