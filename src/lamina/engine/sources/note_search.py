"""Searches the notes of a workspace for a question, and returns passages with their texts.

Laws: results show the current text of their notes; a note that changed during the search is
searched again. Consecutive passages under one heading are one hit, and each text appears once. An
unchanged note is the same document from one catalogue to the next, and an unchanged catalogue the
same tuple: indexes rely on that. Errors in a search are reported with its hits, and never stop a
question; an invalid argument causes an error that names it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

import anyio
from msgspec import Struct
from msgspec.structs import replace

from lamina.core.notes.note_names import is_in_folder, tag_matches
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
from lamina.core.values.item import Excerpt, note_id
from lamina.core.values.note import (
    Catalogue,
    Hit,
    Note,
    NoteSearchResult,
    Passage,
    Scope,
    SearchTier,
)
from lamina.core.values.selection import Document, SearchSettings
from lamina.engine.sources.candidates import corpus_warnings, index_warnings
from lamina.errors import UsageError

if TYPE_CHECKING:
    from lamina.core.selection.chosen_passages import AllowedDocuments, ChosenPassage


def check_query(query: object, what: str) -> None:
    """Raises:
    UsageError: the query is not a text, or is empty."""
    if not isinstance(query, str):
        raise UsageError(f"the {what} is {query!r}: pass a text")
    if not query.strip():
        raise UsageError(f"the {what} is empty: pass a text")


def check_top(top: object, what: str) -> None:
    """Raises:
    UsageError: the value is not a whole number, or is below 1."""
    if not isinstance(top, int) or isinstance(top, bool):
        raise UsageError(f"top is {top!r}: pass a whole number, the most {what} to return")
    if top < 1:
        raise UsageError(f"top is {top!r}: ask for at least one {what.removesuffix('s')}")


class SearchedNotes:
    """The notes of one catalogue in search format. A note unchanged since the previous shelf is the
    same document, and an unchanged catalogue the same tuple: indexes rely on that.
    """

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
        # Of the new notes first; of all once an index asks for more.
        self._places: dict[bytes, tuple[str, Passage]] | None = None
        self._knows_all = False

    def find(self, digests: Sequence[bytes]) -> dict[bytes, tuple[str, Passage]]:
        """Return where the texts with these digests are. An index mostly asks for those of new
        notes, so these are searched first.
        """
        if self._places is None:
            self._places = _places_of(self._fresh)
        if not self._knows_all and any(digest not in self._places for digest in digests):
            self._knows_all = True
            self._places = _places_of(self.catalogue.notes)
        places = self._places
        return {digest: places[digest] for digest in digests if digest in places}

    def rest(self) -> None:
        """Forget where texts are; it is determined again when needed."""
        self._places, self._knows_all = None, False
        self._fresh = []


class PassageTexts:
    """The texts that an index has not seen yet, in search format; or their terms, if the source has
    just read them.
    """

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
    """Return whether a note is searched as before, as is one that was only touched."""
    return before is now or before.passages == now.passages


def _places_of(notes: Iterable[Note]) -> dict[bytes, tuple[str, Passage]]:
    return {passage.digest: (note.path, passage) for note in notes for passage in note.passages}


# Fewer characters at the end of one text and the beginning of another may match by chance.
_LEAST_OVERLAP = 16
# Several searches together are reported like the weakest of them.
_TIERS = ("words", "candidates", "meaning")


class Stretch(Struct, frozen=True, kw_only=True):
    """Consecutive passages of one note, in the order of its lines."""

    note: Note
    chosen: "tuple[ChosenPassage, ...]"

    @property
    def fit(self) -> float:
        return max(passage.fit for passage in self.chosen)

    @property
    def score(self) -> float | None:
        scores = (passage.score for passage in self.chosen)
        return max((score for score in scores if score is not None), default=None)

    @property
    def passages(self) -> tuple[Passage, ...]:
        return tuple(self.note.passages[passage.place] for passage in self.chosen)


def take_distinct(
    chosen: Sequence["ChosenPassage"], texts: "Mapping[ChosenPassage, Excerpt]"
) -> "list[ChosenPassage]":
    """Return the chosen passages that could be read, one for each text: otherwise notes that quote
    one another would fill a search with one passage.
    """
    by_text: dict[str, ChosenPassage] = {}
    for passage in chosen:
        if passage in texts:
            by_text.setdefault(" ".join(texts[passage].text.split()), passage)
    return list(by_text.values())


def join_neighbours(
    chosen: Sequence["ChosenPassage"], notes: Sequence[Note]
) -> tuple[Stretch, ...]:
    """Return the passages with consecutive ones under one heading joined into one stretch, in the
    position of the best of them.
    """
    runs: list[list[ChosenPassage]] = []
    for passage in sorted(chosen, key=lambda passage: (passage.document, passage.place)):
        last = runs[-1][-1] if runs else None
        if last and _follows(last, passage, notes[passage.document]):
            runs[-1].append(passage)
        else:
            runs.append([passage])
    rank = {passage: at for at, passage in enumerate(chosen)}
    runs.sort(key=lambda run: min(rank[passage] for passage in run))
    return tuple(Stretch(note=notes[run[0].document], chosen=tuple(run)) for run in runs)


def _follows(before: "ChosenPassage", after: "ChosenPassage", note: Note) -> bool:
    if (before.document, before.place + 1) != (after.document, after.place):
        return False
    return note.passages[before.place].heading == note.passages[after.place].heading


def make_hit(stretch: Stretch, texts: "Mapping[ChosenPassage, Excerpt]", question: str) -> Hit:
    """Return a stretch as a hit for a question."""
    from lamina.core.selection.terms import find_shared_words

    first = last = stretch.passages[0]
    whole = texts[stretch.chosen[0]]
    for passage, choice in zip(stretch.passages[1:], stretch.chosen[1:], strict=True):
        whole = _join(whole, _between(last, passage), texts[choice])
        last = passage
    note = stretch.note
    return Hit(
        item=note_id(note.path),
        path=note.path,
        title=note.title,
        text=whole.text,
        start=first.start,
        end=last.end,
        heading=first.heading,
        anchor=first.anchor,
        score=stretch.score,
        mtime=note.mtime,
        redacted=whole.safe,
        secrets=whole.secrets,
        words=find_shared_words(question, f"{note.title}\n{first.heading}\n{whole.text}"),
    )


def _join(before: Excerpt, joint: str, after: Excerpt) -> Excerpt:
    secrets = before.secrets + after.secrets
    return Excerpt(
        text=before.text + joint + after.text,
        safe=(before.safe or before.text) + joint + (after.safe or after.text) if secrets else "",
        secrets=secrets,
    )


def _between(before: Passage, after: Passage) -> str:
    """Return the text between two consecutive passages: blank lines, or white space if they are
    parts of one line.
    """
    if before.part and after.part and before.end == after.start:
        return " " * (after.part[0] - before.part[1])
    return "\n" * (after.start - before.end)


def merge_results(results: Sequence[NoteSearchResult]) -> NoteSearchResult:
    """Merge several results: the best hits, then the second best, and so on. A passage found by
    more than one search appears once; overlapping hits of one note are joined in the position of
    the better one.
    """
    if len(results) == 1:
        return results[0]
    times = dict.fromkeys(result.time_range for result in results)
    hits: list[Hit] = []
    for row in zip_longest(*(result.hits for result in results)):
        for hit in filter(None, row):
            _add_hit(hits, hit)
    return NoteSearchResult(
        hits=tuple(hits),
        searched=max((result.searched for result in results), default=0),
        warnings=tuple(dict.fromkeys(line for result in results for line in result.warnings)),
        late=max((result.late for result in results), default=0),
        time_range="; ".join(times) if all(times) else "",
        tier=min(
            (result.tier for result in results if result.tier),
            key=lambda tier: (_TIERS.index(tier.by), tier.indexed),
            default=None,
        ),
    )


def _add_hit(hits: list[Hit], hit: Hit) -> None:
    """Add a hit behind the others, unless its text is already there or can be joined to one of
    them; the joined hit may then extend to a third.
    """
    words = hit.text.split()
    for at, other in enumerate(hits):
        if other.text.split() == words:
            return
        if (whole := _unite(other, hit)) is not None:
            rest = [later for place, later in enumerate(hits) if place > at]
            del hits[at:]
            _add_hit(hits, whole)
            for later in rest:
                _add_hit(hits, later)
            return
    hits.append(hit)


def _unite(one: Hit, other: Hit) -> Hit | None:
    """Join two hits that share passages; return None if they do not."""
    if one.path != other.path or one.start > other.end or other.start > one.end:
        return None
    before, after = sorted((one, other), key=lambda hit: (hit.start, -hit.end))
    text = _overlay(before.text, after.text)
    if text is None and (before.start, before.end) == (after.start, after.end):
        # Parts of one line have no order of their own.
        before, after = after, before
        text = _overlay(before.text, after.text)
    secrets = tuple(dict.fromkeys((*one.secrets, *other.secrets)))
    redacted = _overlay(before.safe, after.safe) if secrets else ""
    if text is None or redacted is None:
        return None
    scores = [hit.score for hit in (one, other) if hit.score is not None]
    return replace(
        before,
        text=text,
        end=max(one.end, other.end),
        score=max(scores, default=None),
        redacted=redacted,
        secrets=secrets,
        words=tuple(dict.fromkeys((*one.words, *other.words))),
    )


def _overlay(before: str, after: str) -> str | None:
    """Join both texts, if the second begins within the first; return None if they have nothing in
    common.
    """
    if after in before:
        return before
    if after.startswith(before):
        return after
    for size in range(min(len(before), len(after)) - 1, _LEAST_OVERLAP - 1, -1):
        if before.endswith(after[:size]):
            return before + after[size:]
    return None


# How many passages a search returns, and how many of them one note may provide.
TOP = 8
PER_NOTE = 3
FLOOR = SearchSettings().floor
EVERYWHERE = Scope()
# How many times as many are examined first, because some repeat others.
AHEAD = 3
# How long a search waits for passages to be embedded; those of a large new folder would take
# minutes.
PATIENCE = 10.0
# How many unreadable files are named.
NAMED = 3


class WorkspaceSearch:
    """Searches one workspace on an index that it may share with others. It keeps the notes from one
    search to the next, so that only changes cost anything. A search waits `patience` seconds for
    new passages to be embedded; None waits for all of them.
    """

    def __init__(
        self, source: NoteSource, index: Index, *, patience: float | None = PATIENCE
    ) -> None:
        self.patience = patience
        self._source = source
        self._index = index
        self._shelf = SearchedNotes(Catalogue())
        # One search at a time: the second can use the work of the first one.
        self._lock = anyio.Lock()
        # A warning is not repeated with every search.
        self._reports: set[str] = set()
        self._reported_late = False
        # Set while there is something to embed; and how often each folder was searched.
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
        """Return the passages of notes in `scope` that fit a question, the best first: up to `top`
        passages, at most `per_note` of one note, none at or below the `floor`. `recent` are the
        questions before this one, the latest first; they count if this one depends on them and
        finds nothing itself.
        """
        search = _NoteSearch(
            question=question, scope=scope, top=top, per_note=per_note, floor=floor, recent=recent
        )
        try:
            async with self._lock:
                result = await self._search(search)
                # A note changed between being listed and being read: try once more, with its
                # current text.
                return result or await self._search(search, last=True) or NoteSearchResult()
        # Even if a search fails, a question can be asked without its results.
        except Exception as error:  # noqa: BLE001
            problem = f"the notes were not searched: {type(error).__name__}: {error}"
            return NoteSearchResult(
                warnings=(problem,), unsearched="the search failed, so nothing was searched"
            )
        finally:
            self._save()

    async def prepare(self, patience: float | None = None) -> NoteSearchResult:
        """Prepare what searches need, for at most `patience` seconds; report how many notes there
        are and how much is left to do or could not be stored, without finding anything.
        """
        async with self._lock:
            shelf = await self._take_up()
            corpus = await self._load(shelf, patience)
            warnings = self._source_warnings(shelf) + self._corpus_news(corpus)
            self._save()
            unkept = 0
            if isinstance(self._index, StoredIndex):
                unkept, problems = await self._index.write()
                warnings += self._new_warnings(index_warnings(problems))
            return NoteSearchResult(
                searched=len(shelf.catalogue.notes),
                warnings=warnings,
                late=corpus.late,
                unkept=unkept,
            )

    async def fill(self, progress: Progress | None = None, *, at_once: bool = False) -> None:
        """Embed passages that searches found missing, with low priority and the most searched
        folders first, until it is cancelled. With `at_once`, it does not wait for a search.
        """
        index = self._index
        if not isinstance(index, GradualIndex):
            return
        if at_once:
            self._gaps.set()
        while True:
            # After a cancellation, the next run finds it set.
            await self._gaps.wait()
            while await self._fill_some(index, progress):
                pass
            self._gaps = anyio.Event()

    # -- inside ----------------------------------------------------------------------------------

    async def _fill_some(self, index: GradualIndex, progress: Progress | None) -> int:
        """Embed a share of the missing passages of the current notes; return how many."""
        async with self._lock:
            shelf = await self._take_up()
            self._save()
        order = order_passages(shelf.catalogue.notes, self._looked_at)
        return await index.fill(order, PassageTexts(shelf, self._source), progress)

    async def _search(
        self, search: "_NoteSearch", *, last: bool = False
    ) -> NoteSearchResult | None:
        """Return the results; None if a note changed during the search and this is not the `last`
        try.
        """
        from lamina.core.selection.chosen_passages import choose_passages
        from lamina.core.selection.question import split_question

        shelf = await self._take_up()
        notes = shelf.catalogue.notes
        warnings = self._source_warnings(shelf)
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
        # Only at this point is it known whether the question could be read.
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
        """Return the notes for a question."""
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
        """Return the passages with their current text, without those of notes that changed."""
        found_in = [(notes[passage.document], passage.place) for passage in passages]
        places = [(note.path, note.passages[place]) for note, place in found_in]
        excerpts = await self._source.excerpts(places) if places else ()
        pairs = zip(passages, excerpts, strict=True)
        return {passage: excerpt for passage, excerpt in pairs if excerpt is not None}

    def _new_warnings(self, reports: Iterable[str]) -> tuple[str, ...]:
        warnings = tuple(report for report in dict.fromkeys(reports) if report not in self._reports)
        self._reports.update(warnings)
        return warnings

    def _source_warnings(self, shelf: SearchedNotes) -> tuple[str, ...]:
        return self._new_warnings((*self._source.take_warnings(), *_unreadable(shelf.catalogue)))

    def _corpus_news(self, corpus: Corpus, tier: SearchTier | None = None) -> tuple[str, ...]:
        """Return warnings about a corpus. That it is incomplete is reported once, not again with
        every count.
        """
        gaps = _describe_gaps(corpus, tier)
        if corpus.late and self._reported_late:
            gaps = []
        self._reported_late = self._reported_late or bool(corpus.late and gaps)
        return self._new_warnings((*gaps, *corpus_warnings(corpus)))


class _NoteSearch(Struct, frozen=True, kw_only=True):
    question: str
    scope: Scope
    top: int
    per_note: int
    floor: float
    recent: Sequence[str]


def order_passages(notes: Sequence[Note], looked_at: Mapping[str, int]) -> list[bytes]:
    """Return the passages of all notes, those of frequently searched folders first, and within them
    those of the most recently changed notes.
    """
    order = sorted(notes, key=lambda note: (-looked_at.get(_folder_of(note.path), 0), -note.mtime))
    return list(dict.fromkeys(passage.digest for note in order for passage in note.passages))


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def is_in_scope(note: Note, scope: Scope) -> bool:
    """Return whether a note is searched: by folder, tag and time, as far as the scope sets them."""
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
    """Return which notes may be searched, None for all of them; and their number."""
    if scope == EVERYWHERE:
        return None, len(notes)
    import numpy

    mask = numpy.fromiter((is_in_scope(note, scope) for note in notes), bool, len(notes))
    return mask, int(mask.sum())


def _digests_in(notes: Sequence[Note], mask: "AllowedDocuments | None") -> frozenset[bytes] | None:
    """Return the passages of the notes that may be searched; None for all of them."""
    if mask is None:
        return None
    pairs = zip(notes, mask.tolist(), strict=True)
    return frozenset(passage.digest for note, ok in pairs if ok for passage in note.passages)


def _tier_of(corpus: Corpus) -> SearchTier:
    """Return how a corpus was searched for the question that it was scored for."""
    if isinstance(corpus, GradualCorpus):
        return corpus.tier
    return SearchTier(by="words" if corpus.lexical else "meaning")


def _describe_gaps(corpus: Corpus, tier: SearchTier | None) -> list[str]:
    """Return why some or all passages are searched by their words alone; other methods need no
    warning.
    """
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
