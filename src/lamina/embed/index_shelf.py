"""What is known of texts, in memory and ready for arithmetic.

Law: a text has one row however often it occurs, so that equal texts have equal scores to the last
bit. Vectors have passed through float16: those just made and those read again are the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from threading import Lock

import numpy
from numpy.typing import NDArray

from lamina.embed.index_file import Made
from lamina.selection.scoring import Matrix

# A row of length 1 that was rounded is nearly so; one that is far from it is no vector at all.
SHORTEST, LONGEST = 0.9, 1.1
PIECE = 4096
# Room for texts to come: one row in so many, and a few.
SPARE, FREE = 8, 64


class _Block:
    """Room for vectors that shelves share: each sees the rows that it knows of, and only the one
    that grew last may take more."""

    def __init__(self, rows: int, width: int) -> None:
        # Room that nobody writes to costs nothing.
        self.room = numpy.empty((rows + rows // SPARE + FREE, width), numpy.float32)
        self._taken = rows
        self._lock = Lock()

    def take(self, known: int, rows: int) -> bool:
        """Whether the rows from `known` up to `rows` are now the caller's."""
        with self._lock:
            if self._taken != known or rows > len(self.room):
                return False
            self._taken = rows
            return True


class Shelf:
    """A row per text: its terms (None while unknown) and its vector (not a number while unknown,
    or if it has none)."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        self.terms: list[bytes | None] = [None] * len(self.rows)
        self.vectors: Matrix | None = None
        self.embedded: NDArray[numpy.bool_] = numpy.zeros(len(self.rows), bool)
        self._block: _Block | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __contains__(self, text: str) -> bool:
        """Whether the text's vector is known."""
        return text in self.rows and self.is_embedded(text)

    def copy(self) -> "Shelf":
        """A shelf of the same texts that can be changed without changing this one."""
        other = Shelf(())
        other.rows = self.rows.copy()
        other.terms = self.terms.copy()
        other.embedded = self.embedded.copy()
        if self.vectors is not None:
            other._make_room(self.vectors.shape[1], slice(None))
            assert other.vectors is not None
            other.vectors[:] = self.vectors
        return other

    def grown(self, texts: Sequence[str]) -> "Shelf":
        """A shelf with these texts, too, behind the others. Rows that are here already are the same
        ones in memory: whoever grows a shelf changes only what is new."""
        other = Shelf(())
        other.rows = self.rows | {text: len(self) + n for n, text in enumerate(texts)}
        other.terms = [*self.terms, *([None] * len(texts))]
        other.embedded = numpy.append(self.embedded, numpy.zeros(len(texts), bool))
        if self.vectors is None or self._block is None:
            return other
        if self._block.take(len(self), len(other)):
            other._block = self._block
            other.vectors = self._block.room[: len(other)]
            other.vectors[len(self) :] = numpy.nan
        else:
            other._make_room(self.vectors.shape[1], slice(len(self)))
            assert other.vectors is not None
            other.vectors[: len(self)] = self.vectors
        return other

    def take_over(self, other: "Shelf") -> None:
        """Takes what another shelf knows of the same texts."""
        shared = [
            (self.rows[text], other.rows[text])
            for text in self.lacking(vectors=True)
            if text in other.rows
        ]
        for row, source in shared:
            if self.terms[row] is None:
                self.terms[row] = other.terms[source]
        pairs = [(row, source) for row, source in shared if other.embedded[source]]
        if other.vectors is None or not pairs:
            return
        rows, sources = numpy.array(pairs).T
        self._place(rows, other.vectors[sources])

    def put(self, made: Mapping[str, Made]) -> None:
        """Takes what was made of texts, or kept of them."""
        rows, terms = self.rows, self.terms
        vectors: list[tuple[int, bytes]] = []
        for text, (vector, packed) in made.items():
            row = rows[text]
            if packed is not None:
                terms[row] = packed
            if vector:
                vectors.append((row, vector))
        if not vectors:
            return
        # All of one model; a row of another length is as good as none.
        width = len(vectors[0][1]) if self.vectors is None else self.vectors.shape[1] * 2
        fitting = [each for each in vectors if len(each[1]) == width]
        if not fitting or width % 2:
            return
        if self.vectors is None:
            self._make_room(width // 2, [row for row, _ in fitting])
        # In pieces: what is on its way from bytes to numbers is in memory twice.
        for start in range(0, len(fitting), PIECE):
            piece = fitting[start : start + PIECE]
            places = numpy.array([row for row, _ in piece])
            self._place(places, unpack_vectors([vector for _, vector in piece]))

    def _make_room(self, width: int, coming: Sequence[int] | slice) -> None:
        """Room for vectors; rows other than those `coming` are not a number."""
        self._block = _Block(len(self), width)
        self.vectors = self._block.room[: len(self)]
        empty = numpy.ones(len(self), bool)
        empty[coming] = False
        self.vectors[empty] = numpy.nan

    def _place(self, rows: NDArray[numpy.int64], vectors: Matrix) -> None:
        if self.vectors is None:
            self._make_room(vectors.shape[1], rows.tolist())
        assert self.vectors is not None
        if self.vectors.shape[1] == vectors.shape[1]:
            self.vectors[rows] = vectors
            self.embedded[rows] = True

    def lacking(self, *, vectors: bool) -> list[str]:
        """The texts of which something is unknown. What is blank has no vector to be had."""
        if None not in self.terms and (not vectors or self.embedded.all()):
            return []
        wanting = {row for row, terms in enumerate(self.terms) if terms is None}
        bare = set(numpy.flatnonzero(~self.embedded).tolist()) if vectors else set()
        # Rows are numbered in the order of their texts.
        texts = list(self.rows)
        return [
            texts[row] for row in sorted(wanting | bare) if row in wanting or texts[row].strip()
        ]

    def terms_of(self, text: str) -> bytes | None:
        return self.terms[self.rows[text]]

    def is_embedded(self, text: str) -> bool:
        return bool(self.embedded[self.rows[text]])


def pack_vectors(rows: Matrix, count: int) -> list[bytes | None]:
    """Vectors as they are kept, or None for a row that is no vector.

    Raises:
        ValueError: there are not as many rows as were asked for.
    """
    if rows.ndim != 2 or len(rows) != count:
        raise ValueError(f"{count} texts gave numbers of the shape {rows.shape}")
    lengths = numpy.linalg.norm(rows, axis=1)
    sound = (lengths > SHORTEST) & (lengths < LONGEST)
    packed = rows.astype("<f2")
    return [row.tobytes() if good else None for row, good in zip(packed, sound, strict=True)]


def unpack_vectors(packed: Sequence[bytes]) -> Matrix:
    """Vectors to calculate with, of rows that were kept and are of one length."""
    matrix = numpy.frombuffer(b"".join(packed), "<f2").reshape(len(packed), -1)
    return matrix.astype(numpy.float32)
