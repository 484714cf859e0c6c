"""Keeps texts' terms and vectors in memory, ready for arithmetic, and maps documents to their rows.

Laws: a text is identified by its digest, whether a document contains the text or the digest, and
has one row however often it occurs, so that equal texts have equal scores to the last bit. Vectors
are always rounded to float16, so new ones equal those read from disk. A row never changes once it
has been read. Documents that hardly differ from loaded ones share their table, and only their new
texts are looked up.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from threading import Lock

import numpy
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from lamina.adapters.embed.index.chunk_file import ChunkData
from lamina.core.selection.lexicon import NO_POSTINGS, PART, Postings
from lamina.core.selection.scores import ChunkLayout, Indices, Matrix, lay_out_chunks
from lamina.core.values.selection import Document
from lamina.errors import UsageError

# Rounding barely changes a row of length 1; a row with a very different length is not a vector.
SHORTEST, LONGEST = 0.9, 1.1
PIECE = 4096
# Spare room for more texts: an eighth of the rows, and a few.
SPARE, FREE = 8, 64


class _Block:
    """Memory shared by tables: each sees the rows up to its own length, and only the longest may
    append. Space never written to costs nothing."""

    def __init__(self, rows: int, taken_rows: int = 0) -> None:
        self.capacity = rows + rows // SPARE + FREE
        self.rows: dict[bytes, int] = {}
        # Flags for rows that have a vector, or belong to blank texts, which have none.
        self.is_embedded = numpy.zeros(self.capacity, bool)
        self.is_blank = numpy.zeros(self.capacity, bool)
        self.vectors: Matrix | None = None
        self._taken_rows = taken_rows
        self._lock = Lock()

    def take(self, known_rows: int, rows: int) -> bool:
        """Reserve the rows from `known_rows` up to `rows` for the caller; return whether this
        succeeded."""
        with self._lock:
            if self._taken_rows != known_rows or rows > self.capacity:
                return False
            self._taken_rows = rows
            return True

    def copy_rows(self, length: int, rows: int) -> "_Block":
        """Copy the first `length` rows to memory with room for `rows`."""
        other = _Block(rows, length)
        # Copied at once, because another table may reserve rows at the same time.
        rows_by_digest = self.rows.copy()
        other.rows = {digest: row for digest, row in rows_by_digest.items() if row < length}
        other.is_embedded[:length] = self.is_embedded[:length]
        other.is_blank[:length] = self.is_blank[:length]
        if self.vectors is not None:
            other.vectors = numpy.empty((other.capacity, self.vectors.shape[1]), numpy.float32)
            other.vectors[:length] = self.vectors[:length]
        return other


class ChunkTable:
    """A table with a row per text, in order of arrival: its terms, and its vector (NaN if it has
    none). It has room for the expected number of `rows`."""

    def __init__(self, rows: int = 0) -> None:
        self._block = _Block(rows)
        self._length = 0
        # Rows from here on belong only to this table, and may still receive a vector.
        self._own = 0
        self._postings = NO_POSTINGS
        # Terms not merged yet.
        self._packed_terms: list[bytes] = []
        # Whether anything was added.
        self.has_changed = False

    def __len__(self) -> int:
        return self._length

    def extended(self) -> "ChunkTable":
        """Return a table that starts with this table's rows and shares their memory."""
        other = ChunkTable()
        other._block, other._length, other._own = self._block, self._length, self._length
        other._postings = self.postings
        return other

    @property
    def memory(self) -> int:
        """Return an id common to all live tables that share memory."""
        return id(self._block)

    @property
    def postings(self) -> Postings:
        """Return the terms of all rows."""
        if self._packed_terms:
            self._gather()
        return self._postings

    @property
    def vectors(self) -> Matrix | None:
        """Return the vectors; None while no text has one."""
        vectors = self._block.vectors
        has_any = vectors is not None and bool(self.is_embedded.any())
        return vectors[: self._length] if vectors is not None and has_any else None

    @property
    def is_embedded(self) -> NDArray[numpy.bool_]:
        return self._block.is_embedded[: self._length]

    @property
    def is_settled(self) -> NDArray[numpy.bool_]:
        """Return flags for rows that have their vector or cannot have one."""
        return self.is_embedded | self._block.is_blank[: self._length]

    def row(self, digest: bytes) -> int:
        """Return a text's row; -1 if it has none."""
        row = self._block.rows.get(digest, -1)
        # Rows beyond the length belong to a table that grew from this one.
        return row if row < self._length else -1

    def find(self, digests: Collection[bytes]) -> NDArray[numpy.int64]:
        """Return the rows of texts; -1 for those that have none."""
        rows = self._block.rows
        rows_found = numpy.fromiter(
            (rows.get(digest, -1) for digest in digests), numpy.int64, len(digests)
        )
        rows_found[rows_found >= self._length] = -1
        return rows_found

    def digests(self) -> list[bytes]:
        """Return the digests of all rows, in order."""
        # Rows are only ever added at the end; those beyond the length are another table's.
        return list(self._block.rows.copy())[: self._length]

    def put(self, chunks: Mapping[bytes, ChunkData], *, settled: bool) -> list[bytes]:
        """Add data for texts with known terms. If they are `settled`, those without a vector never
        get one. Return the texts whose vector is unusable because its length differs from the
        others'."""
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
        """Append rows for new texts."""
        length = self._length + len(terms)
        # If another table grew from this one, adding a row requires copying everything.
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
        """Move to separate memory, with room for `rows`."""
        self._block, self._own = self._block.copy_rows(self._length, rows), 0

    def _place(self, vectors: Mapping[int, bytes], begin: int) -> None:
        """Fill in row vectors; rows from `begin` on are new."""
        block = self._block
        if vectors and block.vectors is None:
            width = len(next(iter(vectors.values()))) // 2
            block.vectors = numpy.empty((block.capacity, width), numpy.float32)
            begin = 0
        if block.vectors is None:
            return
        rows = list(vectors)
        # In pieces, because converting bytes to numbers holds both in memory.
        for start in range(0, len(rows), PIECE):
            piece = rows[start : start + PIECE]
            block.vectors[piece] = unpack_vectors([vectors[row] for row in piece])
        block.is_embedded[rows] = True
        bare = begin + numpy.flatnonzero(~block.is_embedded[begin : self._length])
        block.vectors[bare] = numpy.nan

    def _width(self, chunks: Iterable[ChunkData]) -> int:
        """Return the size of a vector in bytes; all come from one model."""
        if self._block.vectors is not None:
            return int(self._block.vectors.shape[1]) * 2
        first = next((len(chunk.vector) for chunk in chunks if chunk.vector), 0)
        return first if first % 2 == 0 else 0


def pack_vectors(rows: Matrix, count: int) -> list[bytes | None]:
    """Return vectors in stored format; None for a row that is not a vector.

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
    """Convert stored rows of equal length to vectors for calculation."""
    matrix = numpy.frombuffer(b"".join(packed_vectors), "<f2").reshape(len(packed_vectors), -1)
    return matrix.astype(numpy.float32)


# The length of a sha256 digest.
DIGEST = 32


class Arrangement(Struct, frozen=True, kw_only=True):
    """Documents in a table. `columns` has the row of each chunk in order, -1 while it has none;
    `texts` is the number of these rows."""

    documents: tuple[Document, ...]
    layout: ChunkLayout
    table: ChunkTable
    columns: Indices
    texts: int


class MissingTexts(Struct, frozen=True, kw_only=True):
    """The distinct texts still to be processed, in order, and the content of those included in
    their documents."""

    digests: tuple[bytes, ...]
    at_hand: dict[bytes, str]


def digest_text(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def chunk_digests(document: Document) -> Sequence[bytes]:
    """Return the digests of a document's chunks.

    Raises:
        UsageError: the document contains both texts and digests, or an invalid digest.
    """
    if not document.digests:
        return [digest_text(chunk) for chunk in document.chunks]
    if document.chunks:
        raise UsageError(
            f"document {document.id!r} has both chunks and digests: give either the texts or "
            f"their digests"
        )
    for digest in document.digests:
        if type(digest) is not bytes or len(digest) != DIGEST:
            raise UsageError(
                f"document {document.id!r} contains {digest!r}, which is not a digest: give the "
                f"{DIGEST} bytes of the sha256 of each chunk's text"
            )
    return document.digests


def arrange_documents(
    documents: tuple[Document, ...], others: Iterable[Arrangement]
) -> Arrangement:
    """Arrange documents in an extension of another arrangement's table, if one contains most of
    them and little else; otherwise in a new table."""
    layout = lay_out_chunks(documents)
    best: Arrangement | None = None
    for other in others:
        arrangement = _extend_other(documents, layout, other)
        if arrangement is not None and (best is None or arrangement.texts > best.texts):
            best = arrangement
            if arrangement.texts >= len(layout.owner) - len(layout.owner) // SPARE:
                break
    if best is not None and best.texts:
        return best
    table = ChunkTable(len(layout.owner))
    columns = numpy.full(len(layout.owner), -1)
    return Arrangement(documents=documents, layout=layout, table=table, columns=columns, texts=0)


def refresh_rows(arrangement: Arrangement) -> Arrangement:
    """Return the arrangement updated after more of its texts were added to the table."""
    columns, table = arrangement.columns, arrangement.table
    missing = numpy.flatnonzero(columns < 0)
    if len(missing):
        columns = columns.copy()
        columns[missing] = table.find(_digests_at(arrangement, missing))
    texts = int(numpy.count_nonzero(count_row_uses(columns, len(table))))
    return replace(arrangement, columns=columns, texts=texts)


def count_row_uses(columns: Indices, rows: int) -> Indices:
    """Count how often each row of a table occurs in the documents."""
    # Chunks without a row are counted before the others.
    return numpy.bincount(columns + 1, minlength=rows + 1)[1:]


def find_missing_texts(arrangement: Arrangement, *, vectors: bool) -> MissingTexts:
    """Return the texts that have no row, or lack a possible vector."""
    columns = arrangement.columns
    lacks = columns < 0
    if vectors:
        # Row -1 indexes the last element.
        lacks |= ~numpy.append(arrangement.table.is_settled, False)[columns]
    places = numpy.flatnonzero(lacks)
    digests = _digests_at(arrangement, places)
    at_hand: dict[bytes, str] = {}
    # Notes have none; searching them would take longer than everything else.
    if any(document.chunks for document in arrangement.documents):
        at_hand = {
            digest: document.chunks[place]
            for digest, (owner, place) in zip(digests, _owners_at(arrangement, places), strict=True)
            if (document := arrangement.documents[owner]).chunks
        }
    return MissingTexts(digests=tuple(dict.fromkeys(digests)), at_hand=at_hand)


def _digests_at(arrangement: Arrangement, places: Indices) -> list[bytes]:
    """Return the digests of the given chunks."""
    if len(places) == len(arrangement.layout.owner):
        return [digest for document in arrangement.documents for digest in chunk_digests(document)]
    chunks = _owners_at(arrangement, places)
    owners = {owner for owner, _ in chunks}
    digests = {owner: chunk_digests(arrangement.documents[owner]) for owner in owners}
    return [digests[owner][place] for owner, place in chunks]


def _owners_at(arrangement: Arrangement, places: Indices) -> list[tuple[int, int]]:
    """Return the numbers of the documents that contain the given chunks, and the chunks' positions
    there."""
    layout = arrangement.layout
    owners = layout.owner[places]
    within = places - layout.starts[owners]
    return list(zip(owners.tolist(), within.tolist(), strict=True))


def _extend_other(
    documents: tuple[Document, ...], layout: ChunkLayout, other: Arrangement
) -> Arrangement | None:
    """Arrange the documents in the table of `other`, reusing the rows it has; None if too many of
    its rows would be unused."""
    columns = numpy.full(len(layout.owner), -1)
    there = _match(documents, other.documents)
    same = numpy.flatnonzero(there[layout.owner] >= 0)
    if len(same):
        owners = layout.owner[same]
        offsets = other.layout.starts[there[owners]] - layout.starts[owners]
        columns[same] = other.columns[same + offsets]
    arrangement = refresh_rows(
        Arrangement(documents=documents, layout=layout, table=other.table, columns=columns, texts=0)
    )
    idle = len(other.table) - arrangement.texts
    if idle > max(FREE, len(columns) // SPARE):
        return None
    return replace(arrangement, table=other.table.extended())


def _match(documents: tuple[Document, ...], others: tuple[Document, ...]) -> NDArray[numpy.int64]:
    """Return each document's position among the others; -1 if missing or changed there."""
    if documents is others:
        return numpy.arange(len(documents))
    places = {document.id: place for place, document in enumerate(others)}
    matching_places = (
        place
        if (place := places.get(document.id, -1)) >= 0
        and ((other := others[place]) is document or other == document)
        else -1
        for document in documents
    )
    return numpy.fromiter(matching_places, numpy.int64, len(documents))
