"""Searching the notes of a workspace: a question in, passages with their texts out.

Laws: what is found is shown as its note holds it now; one that changed meanwhile is searched again.
Passages that follow one another under one heading are one hit. What goes wrong in a search is
reported with its hits, and never stops a question.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import anyio
from msgspec import Struct

from lamina.core.notes.names import is_in_folder, tag_matches
from lamina.core.notes.time_ranges import is_of_time
from lamina.core.ports import (
    Corpus,
    GradualCorpus,
    GradualIndex,
    Index,
    NoteSource,
    Progress,
    SearchedNoteSource,
    StoredIndex,
)
from lamina.core.values.item import Excerpt
from lamina.core.values.note import Catalogue, Note, NoteSearchResult, Scope, SearchTier
from lamina.core.values.selection import SearchSettings
from lamina.engine.sources.candidates import corpus_warnings, index_warnings
from lamina.engine.sources.note_hits import join_neighbours, make_hit, take_distinct
from lamina.engine.sources.searched_notes import PassageTexts, SearchedNotes

if TYPE_CHECKING:
    from lamina.core.selection.passages import AllowedDocuments, ChosenPassage

# How many passages a search gives, and how many of them one note may give.
TOP = 8
PER_NOTE = 3
FLOOR = SearchSettings().floor
EVERYWHERE = Scope()
# How many times as many are looked at first, since some repeat others.
AHEAD = 3
# How long a search waits for passages to be embedded; the first one of a large folder would take
# minutes.
PATIENCE = 10.0
# How many unreadable files are named.
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
        self._shelf = SearchedNotes(Catalogue())
        # One search at a time: the second finds what the first one made.
        self._lock = anyio.Lock()
        # What was reported once is not news with every search.
        self._reports: set[str] = set()
        self._reported_late = False
        # Set while there is something to fill in; and how often each folder was looked at.
        self._gaps = anyio.Event()
        self._looked_at: Counter[str] = Counter()
        # Called as notes are read, as they are indexed, and as some of them are compared with a
        # question.
        self.reading: Progress | None = None
        self.indexing: Progress | None = None
        self.comparing: Progress | None = None

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
        """What the notes in `scope` say about a question, the best first: up to `top` passages, not
        more than `per_note` of one note, none at or below the `floor`. `recent` are the questions
        before this one, the latest first; they count if it leans on them and finds nothing itself.
        """
        search = _NoteSearch(
            question=question, scope=scope, top=top, per_note=per_note, floor=floor, recent=recent
        )
        try:
            async with self._lock:
                result = await self._search(search)
                # A note changed between being listed and being read: once more, as it is now.
                return result or await self._search(search, last=True) or NoteSearchResult()
        # Whatever goes wrong in a search, a question can be asked without its finds.
        except Exception as error:  # noqa: BLE001
            problem = f"the notes were not searched: {type(error).__name__}: {error}"
            return NoteSearchResult(
                warnings=(problem,), unsearched="the search failed, so nothing was searched"
            )
        finally:
            self._save()

    async def prepare(self, patience: float | None = None) -> NoteSearchResult:
        """Makes what searches need, for at most `patience` seconds; says how many notes there are
        and how much is left to do or could not be kept, and finds nothing."""
        async with self._lock:
            shelf = await self._take_up()
            corpus = await self._load(shelf, patience)
            warnings = self._source_news(shelf) + self._corpus_news(corpus)
            self._save()
            unkept = 0
            if isinstance(self._index, StoredIndex):
                unkept, problems = await self._index.write()
                warnings += self._news(index_warnings(problems))
            return NoteSearchResult(
                searched=len(shelf.catalogue.notes),
                warnings=warnings,
                late=corpus.late,
                unkept=unkept,
            )

    async def fill(self, progress: Progress | None = None, *, at_once: bool = False) -> None:
        """Embeds what searches found missing, in nobody's way and the folders that were looked at
        most first; goes on until it is cancelled. With `at_once` it does not wait for a search."""
        index = self._index
        if not isinstance(index, GradualIndex):
            return
        if at_once:
            self._gaps.set()
        while True:
            # Whoever goes on after this was cancelled finds it set.
            await self._gaps.wait()
            while await self._fill_some(index, progress):
                pass
            self._gaps = anyio.Event()

    # -- inside ----------------------------------------------------------------------------------

    async def _fill_some(self, index: GradualIndex, progress: Progress | None) -> int:
        """A share of what is missing, of the notes as they are now; how much it was."""
        async with self._lock:
            shelf = await self._take_up()
            self._save()
        order = order_passages(shelf.catalogue.notes, self._looked_at)
        return await index.fill(order, PassageTexts(shelf, self._source), progress)

    async def _search(
        self, search: "_NoteSearch", *, last: bool = False
    ) -> NoteSearchResult | None:
        """What was found; None if a note changed meanwhile and this is not the `last` try."""
        from lamina.core.selection.passages import choose_passages
        from lamina.core.selection.question import split_question

        shelf = await self._take_up()
        notes = shelf.catalogue.notes
        warnings = self._source_news(shelf)
        mask, count = _mask(notes, search.scope)
        if not count:
            why = (
                f"no note is {_describe_scope(search.scope)}"
                if notes
                else "there are no notes here"
            )
            why += ", so nothing was searched"
            return NoteSearchResult(warnings=(*warnings, why), unsearched=why)
        query = split_question(search.question, recent=search.recent)
        if not query.parts:
            return NoteSearchResult(searched=count, warnings=warnings)
        parts = tuple(part.text for part in query.parts)
        corpus = await self._load_for(shelf, parts, _digests_in(notes, mask))
        scores = await corpus.score(parts)
        # Only then it is known whether the question could be read.
        tier = _tier_of(corpus)
        passages = choose_passages(
            shelf.documents, scores, query, allowed=mask,
            top=search.top * AHEAD, per_document=search.per_note, floor=search.floor,
        )  # fmt: skip
        texts = await self._read(passages, notes)
        stale = dict.fromkeys(notes[p.document].path for p in passages if p not in texts)
        if stale and not last:
            return None
        best = take_distinct(passages, texts)[: search.top]
        stretches = join_neighbours(best, notes)
        hits = tuple(make_hit(stretch, texts, search.question) for stretch in stretches)
        self._looked_at.update(_folder_of(hit.path) for hit in hits)
        warnings += self._corpus_news(corpus, tier)
        if stale:
            warnings += (f"changed while it was searched, and left out: {', '.join(stale)}",)
        return NoteSearchResult(
            hits=hits, searched=count, warnings=warnings, late=corpus.late, tier=tier
        )

    async def _take_up(self) -> SearchedNotes:
        source = self._source
        if isinstance(source, SearchedNoteSource):
            catalogue = await source.catalogue_to_search(self.reading)
        else:
            catalogue = await source.catalogue(self.reading)
        if catalogue is not self._shelf.catalogue:
            self._shelf = SearchedNotes(catalogue, self._shelf)
        return self._shelf

    def _save(self) -> None:
        if isinstance(self._source, SearchedNoteSource):
            self._source.save()

    async def _load(
        self, shelf: SearchedNotes, patience: float | None, among: Collection[bytes] | None = None
    ) -> Corpus:
        try:
            texts = PassageTexts(shelf, self._source)
            return await self._index.load(shelf.documents, self.indexing, texts, patience, among)
        finally:
            shelf.rest()

    async def _load_for(
        self, shelf: SearchedNotes, parts: tuple[str, ...], among: Collection[bytes] | None
    ) -> Corpus:
        """The notes for a question."""
        index = self._index
        if not isinstance(index, GradualIndex):
            return await self._load(shelf, self.patience, among)
        try:
            texts = PassageTexts(shelf, self._source)
            gradual_corpus = await index.load_for(
                parts, shelf.documents, self.indexing, texts, self.patience, among, self.comparing
            )
        finally:
            shelf.rest()
        if gradual_corpus.late:
            self._gaps.set()
        return gradual_corpus

    async def _read(
        self, passages: Sequence["ChosenPassage"], notes: Sequence[Note]
    ) -> "dict[ChosenPassage, Excerpt]":
        """The passages as their notes hold them, without those of notes that changed."""
        found_in = [(notes[passage.document], passage.place) for passage in passages]
        places = [(note.path, note.passages[place]) for note, place in found_in]
        excerpts = await self._source.excerpts(places) if places else ()
        pairs = zip(passages, excerpts, strict=True)
        return {passage: excerpt for passage, excerpt in pairs if excerpt is not None}

    def _news(self, reports: Iterable[str]) -> tuple[str, ...]:
        news = tuple(report for report in dict.fromkeys(reports) if report not in self._reports)
        self._reports.update(news)
        return news

    def _source_news(self, shelf: SearchedNotes) -> tuple[str, ...]:
        return self._news((*self._source.take_warnings(), *_unreadable(shelf.catalogue)))

    def _corpus_news(self, corpus: Corpus, tier: SearchTier | None = None) -> tuple[str, ...]:
        """Warnings about a corpus. That it is not complete is reported once, and not again with
        every number."""
        gaps = _describe_gaps(corpus, tier)
        if corpus.late and self._reported_late:
            gaps = []
        self._reported_late = self._reported_late or bool(corpus.late and gaps)
        return self._news((*gaps, *corpus_warnings(corpus)))


class _NoteSearch(Struct, frozen=True, kw_only=True):
    question: str
    scope: Scope
    top: int
    per_note: int
    floor: float
    recent: Sequence[str]


def order_passages(notes: Sequence[Note], looked_at: Mapping[str, int]) -> list[bytes]:
    """The passages of all notes: of folders that were looked at more often first, there and else
    of notes that changed last."""
    order = sorted(notes, key=lambda note: (-looked_at.get(_folder_of(note.path), 0), -note.mtime))
    return list(dict.fromkeys(passage.digest for note in order for passage in note.passages))


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def is_in_scope(note: Note, scope: Scope) -> bool:
    """Whether a note is searched: by folder, tag and time, as far as the scope sets them."""
    if scope.since is not None and note.mtime < scope.since:
        return False
    if scope.until is not None and note.mtime >= scope.until:
        return False
    if scope.time is not None and not is_of_time(note, scope.time):
        return False
    if scope.folders and not any(is_in_folder(note.path, folder) for folder in scope.folders):
        return False
    return not scope.tags or any(
        tag_matches(tag, wanted) for wanted in scope.tags for tag in note.tags
    )


def _describe_scope(scope: Scope) -> str:
    parts = [f"in {' or '.join(scope.folders)}"] if scope.folders else []
    parts += [f"tagged {' or '.join(f'#{tag}' for tag in scope.tags)}"] if scope.tags else []
    if scope.since is not None or scope.until is not None or scope.time is not None:
        parts.append(f"of that time ({scope.time.words})" if scope.time else "changed in that time")
    return " and ".join(parts)


def _mask(notes: Sequence[Note], scope: Scope) -> tuple["AllowedDocuments | None", int]:
    """Which notes may be searched, None for all of them; and how many those are."""
    if scope == EVERYWHERE:
        return None, len(notes)
    import numpy

    mask = numpy.fromiter((is_in_scope(note, scope) for note in notes), bool, len(notes))
    return mask, int(mask.sum())


def _digests_in(notes: Sequence[Note], mask: "AllowedDocuments | None") -> frozenset[bytes] | None:
    """The passages of the notes that may be searched; None for all of them."""
    if mask is None:
        return None
    pairs = zip(notes, mask.tolist(), strict=True)
    return frozenset(passage.digest for note, ok in pairs if ok for passage in note.passages)


def _tier_of(corpus: Corpus) -> SearchTier:
    """How a corpus was searched for the question that it was scored for."""
    if isinstance(corpus, GradualCorpus):
        return corpus.tier
    return SearchTier(by="words" if corpus.lexical else "meaning")


def _describe_gaps(corpus: Corpus, tier: SearchTier | None) -> list[str]:
    """What is searched by its words alone, if anything is; how the rest is has no need of a
    warning."""
    # A question that cannot be read is answered by words, whatever is embedded.
    is_unread = tier is not None and tier.by == "words" and not corpus.lexical
    if tier is not None and (tier.by == "candidates" or is_unread):
        return []
    hint = "; `lamina notes index` does that, once" if corpus.late else ""
    if corpus.lexical:
        return [f"notes are searched by their words alone: {corpus.lexical}{hint}"]
    if corpus.late:
        passages = "1 passage is" if corpus.late == 1 else f"{corpus.late:,} passages are"
        return [f"{passages} searched by their words, not embedded yet{hint}"]
    return []


def _unreadable(catalogue: Catalogue) -> list[str]:
    files = catalogue.unreadable
    if not files:
        return []
    more = f" and {len(files) - NAMED:,} more" if len(files) > NAMED else ""
    return [f"not searched, because they could not be read: {'; '.join(files[:NAMED])}{more}"]
