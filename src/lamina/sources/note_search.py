"""Searching the notes of a workspace: a question in, passages with their texts out.

Laws: what is found is shown as its note holds it now; one that changed meanwhile is searched again.
Passages that follow one another under one heading are one hit. What goes wrong in a search is said
with what it found, and never stops a question.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import anyio
from msgspec import Struct

from lamina.notes.names import is_in_folder, tag_matches
from lamina.ports import Corpus, Index, NoteSource, Progress
from lamina.sources.note_hits import join_neighbours, make_hit, take_distinct
from lamina.values.item import note_id
from lamina.values.note import Catalogue, Note, NoteSearchResult, Passage, Scope
from lamina.values.selection import Document, SearchSettings

if TYPE_CHECKING:
    from lamina.selection.passages import AllowedDocuments, ChosenPassage

# How many passages a search gives, and how many of them one note may give.
TOP = 8
PER_NOTE = 3
FLOOR = SearchSettings().floor
EVERYWHERE = Scope()
# How many times as many are looked at first: some say the same.
AHEAD = 3
# How long a search waits for passages to be embedded; the first one of a large folder would take
# minutes.
PATIENCE = 10.0
# Of files that could not be read, so many are named.
NAMED = 3


class WorkspaceSearch:
    """Searches one workspace on an index that it may share with others. What it knows of the notes
    is kept from one search to the next, so that only what changed costs anything. A search waits
    `patience` seconds for what is new to be embedded; None waits for all of it."""

    def __init__(
        self, source: NoteSource, index: Index, *, patience: float | None = PATIENCE
    ) -> None:
        self.patience = patience
        self._source = source
        self._index = index
        self._shelf = _Shelf(Catalogue())
        # One search at a time: the second finds what the first one made.
        self._lock = anyio.Lock()
        # What was said once is not news with every search.
        self._said: set[str] = set()
        self._told_late = False
        # Told how far it is with reading notes, and with making what is searched of them.
        self.reading: Progress | None = None
        self.indexing: Progress | None = None

    async def search(
        self,
        question: str,
        *,
        scope: Scope = EVERYWHERE,
        top: int = TOP,
        per_note: int = PER_NOTE,
        floor: float = FLOOR,
        recent: Sequence[str] = (),
    ) -> NoteSearchResult:
        """What the notes in `scope` say of a question, the best first: up to `top` passages, not
        more than `per_note` of one note, none at or below the `floor`. `recent` are the questions
        before this one, the latest first; they count if it leans on them and finds nothing itself.
        """
        wanted = _Wanted(
            question=question, scope=scope, top=top, per_note=per_note, floor=floor, recent=recent
        )
        try:
            async with self._lock:
                found = await self._search(wanted)
                # A note changed between being listed and being read: once more, as it is now.
                return found or await self._search(wanted, last=True) or NoteSearchResult()
        # Whatever goes wrong in a search, a question can be asked without its finds.
        except Exception as error:  # noqa: BLE001
            said = f"{type(error).__name__}: {error}"
            return NoteSearchResult(warnings=(f"the notes were not searched: {said}",))

    async def prepare(self, patience: float | None = None) -> NoteSearchResult:
        """Makes what searches need, now, or for so many seconds; says how many notes there are and
        how much is left to do, and finds nothing."""
        async with self._lock:
            shelf = await self._take_up()
            corpus = await self._load(shelf, patience)
            warnings = self._news((*self._source.take_warnings(), *_unreadable(shelf.catalogue)))
            warnings += self._news_of(corpus)
            return NoteSearchResult(
                searched=len(shelf.catalogue.notes), warnings=warnings, late=corpus.late
            )

    # -- inside ----------------------------------------------------------------------------------

    async def _search(self, wanted: "_Wanted", *, last: bool = False) -> NoteSearchResult | None:
        """What was found; None if a note changed meanwhile and this is not the `last` try."""
        from lamina.selection.passages import choose_passages
        from lamina.selection.question import split_question

        shelf = await self._take_up()
        notes = shelf.catalogue.notes
        warnings = self._news((*self._source.take_warnings(), *_unreadable(shelf.catalogue)))
        allowed, searched = _mask(notes, wanted.scope)
        if not searched:
            told = f"no note is {_say_scope(wanted.scope)}" if notes else "there are no notes here"
            return NoteSearchResult(warnings=(*warnings, f"{told}, so nothing was searched"))
        query = split_question(wanted.question, recent=wanted.recent)
        if not query.parts:
            return NoteSearchResult(searched=searched, warnings=warnings)
        among = _digests_in(notes, allowed)
        corpus = await self._load(shelf, self.patience, among)
        scores = await corpus.score([part.text for part in query.parts])
        chosen = choose_passages(
            shelf.documents, scores, query,
            top=wanted.top * AHEAD, per_document=wanted.per_note, floor=wanted.floor,
            allowed=allowed,
        )  # fmt: skip
        texts = await self._read(chosen, notes)
        changed = dict.fromkeys(
            notes[passage.document].path for passage in chosen if passage not in texts
        )
        if changed and not last:
            return None
        kept = take_distinct(chosen, texts)[: wanted.top]
        hits = tuple(make_hit(neighbour, texts) for neighbour in join_neighbours(kept, notes))
        warnings += self._news_of(corpus)
        if changed:
            warnings += (f"changed while it was searched, and left out: {', '.join(changed)}",)
        return NoteSearchResult(hits=hits, searched=searched, warnings=warnings, late=corpus.late)

    async def _take_up(self) -> "_Shelf":
        catalogue = await self._source.catalogue(self.reading)
        if catalogue is not self._shelf.catalogue:
            self._shelf = _Shelf(catalogue, self._shelf)
        return self._shelf

    async def _load(
        self, shelf: "_Shelf", patience: float | None, among: Collection[bytes] | None = None
    ) -> Corpus:
        try:
            return await self._index.load(
                shelf.documents, self.indexing, self._texts, patience, among
            )
        finally:
            shelf.rest()

    async def _texts(self, digests: Sequence[bytes]) -> Mapping[bytes, str]:
        """The texts that an index has not met yet, as they are searched."""
        places = self._shelf.find(digests)
        texts = await self._source.texts(list(places.values()), searched=True)
        pairs = zip(places, texts, strict=True)
        return {digest: text for digest, text in pairs if text is not None}

    async def _read(
        self, chosen: Sequence["ChosenPassage"], notes: Sequence[Note]
    ) -> "dict[ChosenPassage, str]":
        """The texts of passages, but for those of notes that are not as they were."""
        places = [
            (note := notes[passage.document], note.passages[passage.place]) for passage in chosen
        ]
        wanted = [(note.path, passage) for note, passage in places]
        texts = await self._source.texts(wanted) if wanted else ()
        pairs = zip(chosen, texts, strict=True)
        return {passage: text for passage, text in pairs if text is not None}

    def _news(self, said: Iterable[str]) -> tuple[str, ...]:
        fresh = tuple(fromkey for fromkey in dict.fromkeys(said) if fromkey not in self._said)
        self._said.update(fresh)
        return fresh

    def _news_of(self, corpus: Corpus) -> tuple[str, ...]:
        """What a corpus says of itself. That it is not done is said once, and not again with every
        number."""
        told = corpus_warnings(corpus)
        if corpus.late and self._told_late:
            told = told[1:]
        self._told_late = self._told_late or bool(corpus.late)
        return self._news(told)


class _Wanted(Struct, frozen=True, kw_only=True):
    question: str
    scope: Scope
    top: int
    per_note: int
    floor: float
    recent: Sequence[str]


class _Shelf:
    """The notes of one catalogue as they are searched. A note that did not change since the shelf
    before is the same document, and the same catalogue the same tuple: an index knows by that."""

    def __init__(self, catalogue: Catalogue, before: "_Shelf | None" = None) -> None:
        self.catalogue = catalogue
        known: dict[str, tuple[Note, Document]] = before.known if before else {}
        self.known: dict[str, tuple[Note, Document]] = {}
        self._fresh: list[Note] = []
        for note in catalogue.notes:
            pair = known.get(note.path)
            if pair is None or not _same_passages(pair[0], note):
                digests = tuple(passage.digest for passage in note.passages)
                pair = (note, Document(note_id(note.path), digests=digests))
                self._fresh.append(note)
            self.known[note.path] = (note, pair[1])
        self.documents = tuple(document for _, document in self.known.values())
        # Of the fresh notes first; of all once an index wants more.
        self._places: dict[bytes, tuple[str, Passage]] | None = None
        self._knows_all = False

    def find(self, digests: Sequence[bytes]) -> dict[bytes, tuple[str, Passage]]:
        """Where the texts of these digests are. Most often an index asks for those of notes that
        are new, so that the rest need not be gone through."""
        if self._places is None:
            self._places = _places_of(self._fresh)
        if not self._knows_all and any(digest not in self._places for digest in digests):
            self._knows_all = True
            self._places = _places_of(self.catalogue.notes)
        places = self._places
        return {digest: places[digest] for digest in digests if digest in places}

    def rest(self) -> None:
        """Nothing is asked for any more: where texts are is worked out again if it is."""
        self._places, self._knows_all = None, False
        self._fresh = []


def _same_passages(before: Note, now: Note) -> bool:
    """Whether a note is searched as before; one that was only touched is."""
    return before is now or before.passages == now.passages


def _places_of(notes: Iterable[Note]) -> dict[bytes, tuple[str, Passage]]:
    return {passage.digest: (note.path, passage) for note in notes for passage in note.passages}


def is_in_scope(note: Note, scope: Scope) -> bool:
    """Whether a note is searched: in a folder, under a tag, and changed in time, as far as any of
    these is asked for."""
    if scope.since is not None and note.mtime < scope.since:
        return False
    if scope.until is not None and note.mtime >= scope.until:
        return False
    if scope.folders and not any(is_in_folder(note.path, folder) for folder in scope.folders):
        return False
    return not scope.tags or any(
        tag_matches(tag, wanted) for wanted in scope.tags for tag in note.tags
    )


def _say_scope(scope: Scope) -> str:
    """Where is searched, in words."""
    said = [f"in {' or '.join(scope.folders)}"] if scope.folders else []
    said += [f"tagged {' or '.join(f'#{tag}' for tag in scope.tags)}"] if scope.tags else []
    if scope.since is not None or scope.until is not None:
        said.append("changed in that time")
    return " and ".join(said)


def _mask(notes: Sequence[Note], scope: Scope) -> tuple["AllowedDocuments | None", int]:
    """Which notes may be searched, None for all of them; and how many those are."""
    if scope == EVERYWHERE:
        return None, len(notes)
    import numpy

    mask = numpy.fromiter((is_in_scope(note, scope) for note in notes), bool, len(notes))
    return mask, int(mask.sum())


def _digests_in(
    notes: Sequence[Note], allowed: "AllowedDocuments | None"
) -> frozenset[bytes] | None:
    """The passages of the notes that may be searched; None for all there are."""
    if allowed is None:
        return None
    pairs = zip(notes, allowed.tolist(), strict=True)
    return frozenset(passage.digest for note, ok in pairs if ok for passage in note.passages)


def corpus_warnings(corpus: Corpus) -> list[str]:
    """What a corpus says of itself, once it was searched."""
    told = []
    rest = "; `lamina notes index` does that, once"
    if corpus.lexical:
        why = f"{corpus.lexical}{rest if corpus.late else ''}"
        told.append(f"notes are searched by their words alone: {why}")
    elif corpus.late:
        told.append(f"{corpus.late:,} passages are searched by their words, not embedded yet{rest}")
    told += [f"not embedded: {each}" for each in corpus.failed]
    return told + [f"index: {warning}" for warning in corpus.warnings]


def _unreadable(catalogue: Catalogue) -> list[str]:
    files = catalogue.unreadable
    if not files:
        return []
    more = f" and {len(files) - NAMED:,} more" if len(files) > NAMED else ""
    return [f"not searched, because they could not be read: {'; '.join(files[:NAMED])}{more}"]
