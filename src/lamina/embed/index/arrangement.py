"""Where the chunks of documents stand in a table.

Laws: a chunk is known by the digest of its text, whether a document brings the text or the digest.
Documents that hardly differ from others that were loaded share its table, and only what is new of
them is looked for.
"""

import hashlib
from collections.abc import Iterable, Sequence

import numpy
from msgspec import Struct
from numpy.typing import NDArray

from lamina.embed.index.chunk_table import FREE, SPARE, ChunkTable
from lamina.errors import UsageError
from lamina.selection.scores import ChunkLayout, Indices, lay_out_chunks
from lamina.values.selection import Document

# Of sha256.
DIGEST = 32


class Arrangement(Struct, frozen=True, kw_only=True):
    """Documents in a table. By chunk, in order: `columns`, its row; -1 while it has none. `texts`
    is how many rows that are."""

    documents: tuple[Document, ...]
    layout: ChunkLayout
    table: ChunkTable
    columns: Indices
    texts: int


class MissingTexts(Struct, frozen=True, kw_only=True):
    """Different texts of which something is to be made, in order, and the words of those that came
    with them."""

    digests: tuple[bytes, ...]
    at_hand: dict[bytes, str]


def digest_text(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def chunk_digests(document: Document) -> Sequence[bytes]:
    """The digests of a document's chunks.

    Raises:
        UsageError: it holds texts and digests, or something that is no digest.
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
    """The documents in a table extended from that of another arrangement, if there is one
    that holds most of them and not much else; otherwise in a new one."""
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
    """The same, once more of it is in the table."""
    columns, table = arrangement.columns, arrangement.table
    missing = numpy.flatnonzero(columns < 0)
    if len(missing):
        columns = columns.copy()
        columns[missing] = table.find(_digests_at(arrangement, missing))
    return Arrangement(
        documents=arrangement.documents,
        layout=arrangement.layout,
        table=table,
        columns=columns,
        texts=int(numpy.count_nonzero(count_row_uses(columns, len(table)))),
    )


def count_row_uses(columns: Indices, rows: int) -> Indices:
    """How often each row of a table occurs in the documents."""
    # What has no row is counted in front of the others.
    return numpy.bincount(columns + 1, minlength=rows + 1)[1:]


def find_missing_texts(arrangement: Arrangement, *, vectors: bool) -> MissingTexts:
    """The texts that have no row, or no vector although there is one to be had."""
    columns = arrangement.columns
    lacks = columns < 0
    if vectors:
        # What has no row (-1) is looked up in the last place.
        lacks |= ~numpy.append(arrangement.table.is_settled, False)[columns]
    places = numpy.flatnonzero(lacks)
    owners = arrangement.layout.owner[places]
    within = places - arrangement.layout.starts[owners]
    digests = _digests_at(arrangement, places)
    at_hand = {
        digest: document.chunks[place]
        for digest, owner, place in zip(digests, owners.tolist(), within.tolist(), strict=True)
        if (document := arrangement.documents[owner]).chunks
    }
    return MissingTexts(digests=tuple(dict.fromkeys(digests)), at_hand=at_hand)


def _digests_at(arrangement: Arrangement, places: Indices) -> list[bytes]:
    """The digests of some chunks."""
    layout, documents = arrangement.layout, arrangement.documents
    owners = layout.owner[places]
    within = (places - layout.starts[owners]).tolist()
    digests = {owner: chunk_digests(documents[owner]) for owner in numpy.unique(owners).tolist()}
    return [digests[owner][place] for owner, place in zip(owners.tolist(), within, strict=True)]


def _extend_other(
    documents: tuple[Document, ...], layout: ChunkLayout, other: Arrangement
) -> Arrangement | None:
    """The documents in the table of others, as far as they are there; None if too many
    of its rows would be unused."""
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
    return Arrangement(
        documents=documents,
        layout=layout,
        table=other.table.extended(),
        columns=arrangement.columns,
        texts=arrangement.texts,
    )


def _match(documents: tuple[Document, ...], others: tuple[Document, ...]) -> NDArray[numpy.int64]:
    """For each document its place among the others; -1 if it is not there as it is."""
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
