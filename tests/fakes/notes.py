"""A workspace of notes to be searched, and an index that goes by their words."""

from collections.abc import Callable, Collection, Mapping, Sequence

import anyio
import numpy

from lamina.core.notes.note_passages import searched_text, stored_text
from lamina.core.notes.note_reader import read_note
from lamina.core.ports import Progress, ReadTexts
from lamina.core.selection.expansion import SimilarityGraph
from lamina.core.selection.scores import Scores
from lamina.core.selection.terms import find_terms
from lamina.core.text.secrets import cut_excerpt, find_secrets
from lamina.core.values.item import Excerpt
from lamina.core.values.note import Catalogue, Note, Passage
from lamina.core.values.selection import Document


class NoteSourceFake:
    """`notes` maps paths to contents and `times` to when they changed; a test edits them as a
    person edits a folder. `before_texts` are edits that come in just before passages are read, one
    for each reading. A test sets `fails` to what goes wrong."""

    def __init__(self, notes: Mapping[str, str], times: Mapping[str, float] | None = None) -> None:
        self.notes = dict(notes)
        self.times = dict(times or {})
        self.unreadable: tuple[str, ...] = ()
        self.fails: Exception | None = None
        self.before_texts: list[dict[str, str]] = []
        self.listed = 0
        self._known: dict[str, tuple[str, float, Note]] = {}
        self._catalogue = Catalogue()

    async def catalogue(self, progress: Progress | None = None) -> Catalogue:
        await anyio.lowlevel.checkpoint()
        if self.fails is not None:
            raise self.fails
        self.listed += 1
        notes = tuple(self._note(path) for path in sorted(self.notes))
        now = Catalogue(notes=notes, unreadable=self.unreadable)
        if now != self._catalogue:
            self._catalogue = now
        return self._catalogue

    def _note(self, path: str) -> Note:
        text, time = self.notes[path], self.times.get(path, 0.0)
        known = self._known.get(path)
        if known is None or known[:2] != (text, time):
            known = (text, time, read_note(path, text.encode(), mtime=time))
            self._known[path] = known
        return known[2]

    async def texts(self, wanted: Sequence[tuple[str, Passage]]) -> Sequence[str | None]:
        await anyio.lowlevel.checkpoint()
        return [self._text(path, passage, searched_text) for path, passage in wanted]

    async def excerpts(self, wanted: Sequence[tuple[str, Passage]]) -> Sequence[Excerpt | None]:
        await anyio.lowlevel.checkpoint()
        if self.before_texts:
            self.notes.update(self.before_texts.pop(0))
        texts = [
            self._text(path, passage, lambda _, passage, lines: stored_text(passage, lines))
            for path, passage in wanted
        ]
        return [
            None if text is None else cut_excerpt(text, find_secrets(text), 0, len(text))
            for text in texts
        ]

    def take_warnings(self) -> Sequence[str]:
        return ()

    def _text(
        self, path: str, passage: Passage, cut: Callable[[str, Passage, list[str]], str]
    ) -> str | None:
        note = self._note(path) if path in self.notes else None
        if note is None or passage not in note.passages:
            return None
        return cut(note.title, passage, self.notes[path].split("\n"))


class WordIndexFake:
    """Knows texts by digest and compares words: the cosine is the share of a part's words that a
    chunk has, and there is none with `lexical`. `asked` are the digests whose texts were wanted."""

    def __init__(self) -> None:
        self.texts: dict[bytes, str] = {}
        self.asked: list[Sequence[bytes]] = []
        self.loaded: list[Sequence[Document]] = []
        self.queries: list[Sequence[str]] = []
        self.fails: Exception | None = None
        self.lexical = ""
        self.late = 0
        self.patience: list[float | None] = []

    async def load(
        self,
        documents: Sequence[Document],
        progress: Progress | None = None,
        texts: ReadTexts | None = None,
        patience: float | None = None,
        among: Collection[bytes] | None = None,
    ) -> "WordCorpusFake":
        await anyio.lowlevel.checkpoint()
        if self.fails is not None:
            raise self.fails
        self.loaded.append(documents)
        self.patience.append(patience)
        digests = dict.fromkeys(digest for document in documents for digest in document.digests)
        unknown = [digest for digest in digests if digest not in self.texts]
        if unknown and texts is not None:
            self.asked.append(unknown)
            self.texts.update(await texts(unknown))
        return WordCorpusFake(self, documents)


class WordCorpusFake:
    failed: Sequence[str] = ()
    warnings: Sequence[str] = ()

    def __init__(self, index: WordIndexFake, documents: Sequence[Document]) -> None:
        self._index = index
        self.documents = documents
        self.lexical = index.lexical
        self.late = index.late

    async def graph(self, threshold: float, top: int) -> SimilarityGraph:
        return {}

    async def score(self, parts: Sequence[str]) -> Scores:
        await anyio.lowlevel.checkpoint()
        self._index.queries.append(tuple(parts))
        chunks = [
            set(find_terms(self._index.texts.get(digest, "")))
            for document in self.documents
            for digest in document.digests
        ]
        shared = numpy.zeros((len(parts), len(chunks)), numpy.float32)
        for row, part in enumerate(parts):
            words = set(find_terms(part))
            for column, chunk in enumerate(chunks):
                shared[row, column] = len(words & chunk) / max(1, len(words))
        if self.lexical:
            return Scores(lexical=shared)
        return Scores(lexical=shared, cosine=shared)
