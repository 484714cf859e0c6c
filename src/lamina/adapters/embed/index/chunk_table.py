"""What is known of texts, in memory and ready for arithmetic.

Law: a text, known by its digest, has one row however often it occurs, so that equal texts have
equal scores to the last bit. Vectors have passed through float16, so those just made and those read
from disk are the same. A row that was seen once never changes.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from threading import Lock

import numpy
from numpy.typing import NDArray

from lamina.adapters.embed.index.chunk_file import ChunkData
from lamina.core.selection.lexicon import NO_POSTINGS, PART, Postings
from lamina.core.selection.scores import Matrix

# A rounded row of length 1 is nearly that long; one that is far from it is not a vector.
SHORTEST, LONGEST = 0.9, 1.1
PIECE = 4096
# Room for more texts: one row in eight, and a few.
SPARE, FREE = 8, 64


class _Block:
    """Memory that tables share: each sees the rows up to its own length, and only the longest may
    take more. Room that was never written to costs nothing."""

    def __init__(self, rows: int, taken_rows: int = 0) -> None:
        self.capacity = rows + rows // SPARE + FREE
        self.rows: dict[bytes, int] = {}
        # Which rows have a vector, and which belong to blank texts, which have none.
        self.is_embedded = numpy.zeros(self.capacity, bool)
        self.is_blank = numpy.zeros(self.capacity, bool)
        self.vectors: Matrix | None = None
        self._taken_rows = taken_rows
        self._lock = Lock()

    def take(self, known_rows: int, rows: int) -> bool:
        """Whether the rows from `known_rows` up to `rows` are now the caller's."""
        with self._lock:
            if self._taken_rows != known_rows or rows > self.capacity:
                return False
            self._taken_rows = rows
            return True

    def copy_rows(self, length: int, rows: int) -> "_Block":
        """A copy of its first `length` rows, with room for `rows`."""
        other = _Block(rows, length)
        # Copied in one go, as another table may take rows meanwhile.
        rows_by_digest = self.rows.copy()
        other.rows = {digest: row for digest, row in rows_by_digest.items() if row < length}
        other.is_embedded[:length] = self.is_embedded[:length]
        other.is_blank[:length] = self.is_blank[:length]
        if self.vectors is not None:
            other.vectors = numpy.empty((other.capacity, self.vectors.shape[1]), numpy.float32)
            other.vectors[:length] = self.vectors[:length]
        return other


class ChunkTable:
    """A row per text, in the order they became known: its terms, and its vector (not a number if it
    has none). There is room for the number of `rows` expected."""

    def __init__(self, rows: int = 0) -> None:
        self._block = _Block(rows)
        self._length = 0
        # Rows from here on belong to this table alone, and may still get a vector.
        self._own = 0
        self._postings = NO_POSTINGS
        # Terms that are not gathered yet.
        self._packed_terms: list[bytes] = []
        # Whether anything was added.
        self.has_changed = False

    def __len__(self) -> int:
        return self._length

    def extended(self) -> "ChunkTable":
        """A table that begins with the rows of this one and shares their memory."""
        other = ChunkTable()
        other._block, other._length, other._own = self._block, self._length, self._length
        other._postings = self.postings
        return other

    @property
    def memory(self) -> int:
        """Tells which live tables share their memory."""
        return id(self._block)

    @property
    def postings(self) -> Postings:
        """The terms of all rows."""
        if self._packed_terms:
            self._gather()
        return self._postings

    @property
    def vectors(self) -> Matrix | None:
        """The vectors; None while no text has one."""
        vectors = self._block.vectors
        has_any = vectors is not None and bool(self.is_embedded.any())
        return vectors[: self._length] if vectors is not None and has_any else None

    @property
    def is_embedded(self) -> NDArray[numpy.bool_]:
        return self._block.is_embedded[: self._length]

    @property
    def is_settled(self) -> NDArray[numpy.bool_]:
        """Which rows have their vector, or can have none."""
        return self.is_embedded | self._block.is_blank[: self._length]

    def row(self, digest: bytes) -> int:
        """The row of a text; -1 if it has none."""
        row = self._block.rows.get(digest, -1)
        # Rows beyond the length were taken by a table that grew from this one.
        return row if row < self._length else -1

    def find(self, digests: Collection[bytes]) -> NDArray[numpy.int64]:
        """The rows of texts; -1 for those that have none."""
        rows = self._block.rows
        rows_found = numpy.fromiter(
            (rows.get(digest, -1) for digest in digests), numpy.int64, len(digests)
        )
        rows_found[rows_found >= self._length] = -1
        return rows_found

    def digests(self) -> list[bytes]:
        """The texts of all rows, in order."""
        # Rows are only ever added behind the others; those beyond the length are another table's.
        return list(self._block.rows.copy())[: self._length]

    def put(self, chunks: Mapping[bytes, ChunkData], *, settled: bool) -> list[bytes]:
        """Takes what was made or stored of texts whose terms are known. If they are `settled`,
        those without a vector never get one. Returns the texts whose vector has another length than
        the others', which makes it useless."""
        usable = {digest: chunk for digest, chunk in chunks.items() if chunk.terms is not None}
        begin = self._length
        self._lay_down({d: chunk.terms or b"" for d, chunk in usable.items() if self.row(d) < 0})
        width = self._width(usable.values())
        vectors: dict[int, bytes] = {}
        blank: list[int] = []
        unfit: list[bytes] = []
        for row, (digest, chunk) in zip(self.find(usable).tolist(), usable.items(), strict=True):
            if not chunk.vector:
                blank += [row] if settled else []
            elif len(chunk.vector) != width:
                unfit.append(digest)
            elif not self._block.is_embedded[row]:
                vectors[row] = chunk.vector
        if any(row < self._own for row in (*vectors, *blank)):
            self._part(self._length)
        self.has_changed |= bool(vectors or blank or begin < self._length)
        self._block.is_blank[blank] = True
        self._place(vectors, begin)
        return unfit

    def _lay_down(self, terms: Mapping[bytes, bytes]) -> None:
        """Adds rows for new texts after the others."""
        length = self._length + len(terms)
        # A table that another grew from has to copy everything for one more row.
        if terms and not self._block.take(self._length, length):
            self._part(length)
            self._block.take(self._length, length)
        self._block.rows.update(zip(terms, range(self._length, length), strict=True))
        self._length = length
        self._packed_terms += terms.values()
        if len(self._packed_terms) >= PART:
            self._gather()

    def _gather(self) -> None:
        self._postings, self._packed_terms = self._postings.extended(self._packed_terms), []

    def _part(self, rows: int) -> None:
        """Continues in memory of its own, with room for `rows`."""
        self._block, self._own = self._block.copy_rows(self._length, rows), 0

    def _place(self, vectors: Mapping[int, bytes], begin: int) -> None:
        """Fills in the vectors of rows; those from `begin` on are new."""
        block = self._block
        if vectors and block.vectors is None:
            width = len(next(iter(vectors.values()))) // 2
            block.vectors = numpy.empty((block.capacity, width), numpy.float32)
            begin = 0
        if block.vectors is None:
            return
        rows = list(vectors)
        # In pieces: while bytes become numbers, they are in memory twice.
        for start in range(0, len(rows), PIECE):
            piece = rows[start : start + PIECE]
            block.vectors[piece] = unpack_vectors([vectors[row] for row in piece])
        block.is_embedded[rows] = True
        bare = begin + numpy.flatnonzero(~block.is_embedded[begin : self._length])
        block.vectors[bare] = numpy.nan

    def _width(self, chunks: Iterable[ChunkData]) -> int:
        """How many bytes a vector has: all come from one model."""
        if self._block.vectors is not None:
            return int(self._block.vectors.shape[1]) * 2
        first = next((len(chunk.vector) for chunk in chunks if chunk.vector), 0)
        return first if first % 2 == 0 else 0


def pack_vectors(rows: Matrix, count: int) -> list[bytes | None]:
    """Vectors as they are stored; None for a row that is not a vector.

    Raises:
        ValueError: the number of rows is not `count`.
    """
    if rows.ndim != 2 or len(rows) != count:
        raise ValueError(f"{count} texts gave numbers of the shape {rows.shape}")
    lengths = numpy.linalg.norm(rows, axis=1)
    is_sound = (lengths > SHORTEST) & (lengths < LONGEST)
    halves = rows.astype("<f2")
    return [row.tobytes() if good else None for row, good in zip(halves, is_sound, strict=True)]


def unpack_vectors(packed_vectors: Sequence[bytes]) -> Matrix:
    """Vectors to calculate with, from stored rows of one length."""
    matrix = numpy.frombuffer(b"".join(packed_vectors), "<f2").reshape(len(packed_vectors), -1)
    return matrix.astype(numpy.float32)
