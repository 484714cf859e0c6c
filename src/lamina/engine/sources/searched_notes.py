"""The notes of a catalogue as documents that are searched, and where their texts are.

Law: a note that did not change is the same document from one catalogue to the next, and the same
catalogue the same tuple: an index knows by that.
"""

from collections.abc import Iterable, Mapping, Sequence

from lamina.core.ports import NoteSource, SearchedNoteSource
from lamina.core.values.item import note_id
from lamina.core.values.note import Catalogue, Note, Passage
from lamina.core.values.selection import Document


class SearchedNotes:
    """The notes of one catalogue as they are searched. A note that did not change since the shelf
    before is the same document, and the same catalogue the same tuple: an index knows by that."""

    def __init__(self, catalogue: Catalogue, before: "SearchedNotes | None" = None) -> None:
        self.catalogue = catalogue
        pairs: dict[str, tuple[Note, Document]] = before.pairs if before else {}
        self.pairs: dict[str, tuple[Note, Document]] = {}
        self._fresh: list[Note] = []
        for note in catalogue.notes:
            pair = pairs.get(note.path)
            if pair is None or not _same_passages(pair[0], note):
                digests = tuple(passage.digest for passage in note.passages)
                pair = (note, Document(note_id(note.path), digests=digests))
                self._fresh.append(note)
            self.pairs[note.path] = (note, pair[1])
        self.documents = tuple(document for _, document in self.pairs.values())
        # Of the fresh notes first; of all once an index wants more.
        self._places: dict[bytes, tuple[str, Passage]] | None = None
        self._knows_all = False

    def find(self, digests: Sequence[bytes]) -> dict[bytes, tuple[str, Passage]]:
        """Where the texts of these digests are. An index mostly asks for those of new notes, so
        these are looked through first."""
        if self._places is None:
            self._places = _places_of(self._fresh)
        if not self._knows_all and any(digest not in self._places for digest in digests):
            self._knows_all = True
            self._places = _places_of(self.catalogue.notes)
        places = self._places
        return {digest: places[digest] for digest in digests if digest in places}

    def rest(self) -> None:
        """Forgets where texts are; it is worked out again when it is needed."""
        self._places, self._knows_all = None, False
        self._fresh = []


class PassageTexts:
    """The texts that an index has not met yet, as they are searched; or their terms, where the
    source has just read them."""

    def __init__(self, notes: SearchedNotes, source: NoteSource) -> None:
        self._notes = notes
        self._source = source

    async def __call__(self, digests: Sequence[bytes]) -> Mapping[bytes, str]:
        places = self._notes.find(digests)
        texts = await self._source.texts(list(places.values()))
        pairs = zip(places, texts, strict=True)
        return {digest: text for digest, text in pairs if text is not None}

    def take_terms(self, digests: Sequence[bytes]) -> Mapping[bytes, bytes]:
        source = self._source
        return source.take_terms(digests) if isinstance(source, SearchedNoteSource) else {}


def _same_passages(before: Note, now: Note) -> bool:
    """Whether a note is searched as before; one that was only touched is."""
    return before is now or before.passages == now.passages


def _places_of(notes: Iterable[Note]) -> dict[bytes, tuple[str, Passage]]:
    return {passage.digest: (note.path, passage) for note in notes for passage in note.passages}
