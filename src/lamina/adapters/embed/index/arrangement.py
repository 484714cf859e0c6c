"""Where a table holds the chunks of documents.

Laws: a chunk is known by the digest of its text, whether a document holds the text or the digest.
Documents that hardly differ from others that were loaded share their table, and only what is new in
them is looked up.
"""

import hashlib
from collections.abc import Iterable, Sequence

import numpy
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from lamina.adapters.embed.index.chunk_table import FREE, SPARE, ChunkTable
from lamina.core.selection.scores import ChunkLayout, Indices, lay_out_chunks
from lamina.core.values.selection import Document
from lamina.errors import UsageError

# The length of a sha256 digest.
DIGEST = 32


class Arrangement(Struct, frozen=True, kw_only=True):
    """Documents in a table. `columns` gives the row of each chunk in order, -1 while it has none;
    `texts` is the number of these rows."""

    documents: tuple[Document, ...]
    layout: ChunkLayout
    table: ChunkTable
    columns: Indices
    texts: int


class MissingTexts(Struct, frozen=True, kw_only=True):
    """The distinct texts still to be processed, in order, and the content of those that came with
    their document."""

    digests: tuple[bytes, ...]
    at_hand: dict[bytes, str]


def digest_text(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def chunk_digests(document: Document) -> Sequence[bytes]:
    """The digests of a document's chunks.

    Raises:
        UsageError: it holds both texts and digests, or something that is not a digest.
    """
    if not document.digests:
        return [digest_text(chunk) for chunk in document.chunks]
    if document.chunks:
        raise UsageError(
            f"{document.id!r} holds chunks and digests: give either the texts or their digests"
        )
    for digest in document.digests:
        if type(digest) is not bytes or len(digest) != DIGEST:
            raise UsageError(
                f"{document.id!r} holds {digest!r}, which is no digest: give the {DIGEST} bytes of "
                "the sha256 of each chunk's text"
            )
    return document.digests


def arrange_documents(
    documents: tuple[Document, ...], others: Iterable[Arrangement]
) -> Arrangement:
    """The documents in a table extended from another arrangement's, if one holds most of them and
    not much else; otherwise in a new table."""
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
    """The same arrangement once more of it is in the table."""
    columns, table = arrangement.columns, arrangement.table
    missing = numpy.flatnonzero(columns < 0)
    if len(missing):
        columns = columns.copy()
        columns[missing] = table.find(_digests_at(arrangement, missing))
    texts = int(numpy.count_nonzero(count_row_uses(columns, len(table))))
    return replace(arrangement, columns=columns, texts=texts)


def count_row_uses(columns: Indices, rows: int) -> Indices:
    """How often each row of a table occurs in the documents."""
    # What has no row is counted before the others.
    return numpy.bincount(columns + 1, minlength=rows + 1)[1:]


def find_missing_texts(arrangement: Arrangement, *, vectors: bool) -> MissingTexts:
    """The texts that have no row, or lack a vector that they could have."""
    columns = arrangement.columns
    lacks = columns < 0
    if vectors:
        # The row -1 is looked up in the last place.
        lacks |= ~numpy.append(arrangement.table.is_settled, False)[columns]
    places = numpy.flatnonzero(lacks)
    digests = _digests_at(arrangement, places)
    at_hand: dict[bytes, str] = {}
    # Notes have none; looking for them there would take longer than all else.
    if any(document.chunks for document in arrangement.documents):
        at_hand = {
            digest: document.chunks[place]
            for digest, (owner, place) in zip(digests, _owners_at(arrangement, places), strict=True)
            if (document := arrangement.documents[owner]).chunks
        }
    return MissingTexts(digests=tuple(dict.fromkeys(digests)), at_hand=at_hand)


def _digests_at(arrangement: Arrangement, places: Indices) -> list[bytes]:
    """The digests of some chunks."""
    if len(places) == len(arrangement.layout.owner):
        return [digest for document in arrangement.documents for digest in chunk_digests(document)]
    chunks = _owners_at(arrangement, places)
    owners = {owner for owner, _ in chunks}
    digests = {owner: chunk_digests(arrangement.documents[owner]) for owner in owners}
    return [digests[owner][place] for owner, place in chunks]


def _owners_at(arrangement: Arrangement, places: Indices) -> list[tuple[int, int]]:
    """The documents that some chunks are in, by number, and their places there."""
    layout = arrangement.layout
    owners = layout.owner[places]
    within = places - layout.starts[owners]
    return list(zip(owners.tolist(), within.tolist(), strict=True))


def _extend_other(
    documents: tuple[Document, ...], layout: ChunkLayout, other: Arrangement
) -> Arrangement | None:
    """The documents in the table of `other`, as far as it holds them; None if too many of its rows
    would be unused."""
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
    """For each document its place among the others; -1 if it is not there unchanged."""
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
