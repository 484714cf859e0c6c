"""Runs the search blocks in notes, and returns the matching notes with their matching lines.

Laws: a file is read only once until it changes, however many searches there are. Secrets are found
in the whole file and replaced in the lines shown.
"""

from collections.abc import Callable

from lamina.adapters.files.paths import PathRefused
from lamina.adapters.workspace.file_secrets import FileSecrets
from lamina.core.notes.obsidian_search import SearchHit, find_hit, parse_search
from lamina.core.notes.query.query_markdown import show_value
from lamina.core.notes.query.regular_expressions import PatternRefused
from lamina.core.values.item import Excerpt
from lamina.core.values.note import Catalogue, Note
from lamina.errors import QueryError

# The maximum number of notes listed, and of note characters cached.
MAX_HITS = 100
MAX_KEPT = 50_000_000
MAX_RESULTS = 200


class SearchBlocks:
    """A search over the notes in a catalogue. For one thread at a time."""

    def __init__(self, read: Callable[[str], bytes], secrets: FileSecrets) -> None:
        self._read = read
        self._secrets = secrets
        self._texts: dict[str, tuple[str, str]] = {}
        self._size = 0
        self._catalogue = Catalogue()
        self._results: dict[tuple[str, str], Excerpt] = {}

    def find(self, search: str, catalogue: Catalogue, at: str) -> Excerpt:
        """Return the result of a search block in the note `at`, which is not itself searched.

        Raises:
            QueryError: the search is invalid, or may take too long.
        """
        if catalogue is not self._catalogue:
            self._catalogue, self._results = catalogue, {}
        key = (search, at)
        if key not in self._results:
            if len(self._results) >= MAX_RESULTS:
                del self._results[next(iter(self._results))]
            self._results[key] = self._search(search, catalogue, at)
        return self._results[key]

    def _search(self, search: str, catalogue: Catalogue, at: str) -> Excerpt:
        term = parse_search(search)
        hits: list[tuple[SearchHit, str]] = []
        count = 0
        for note in catalogue.notes:
            text = self._text(note) if note.path != at else None
            if text is None:
                continue
            try:
                hit = find_hit(term, note, text)
            except PatternRefused as refusal:
                raise QueryError(1, 1, f"{note.path}: {refusal}") from None
            if hit is not None:
                count += 1
                if len(hits) < MAX_HITS:
                    hits.append((hit, text))
        return self._render(hits, count)

    def _render(self, hits: list[tuple[SearchHit, str]], count: int) -> Excerpt:
        if not hits:
            return Excerpt(text="No notes fit this search.")
        texts, safe_texts, kinds = list[str](), list[str](), dict[str, None]()
        for hit, text in hits:
            texts.append(f"- {hit.path}")
            safe_texts.append(f"- {hit.path}")
            for number in hit.lines:
                line = self._secrets.cut_lines(text, number, number)
                kinds.update(dict.fromkeys(line.secrets))
                texts.append(f"  - line {number}: {show_value(line.text)}")
                safe_texts.append(f"  - line {number}: {show_value(line.safe or line.text)}")
        if count > len(hits):
            more = f"\n({count - len(hits):,} more notes fit this search.)"
            texts.append(more)
            safe_texts.append(more)
        if not kinds:
            return Excerpt(text="\n".join(texts))
        return Excerpt(text="\n".join(texts), safe="\n".join(safe_texts), secrets=tuple(kinds))

    def _text(self, note: Note) -> str | None:
        """Return a note's text as in the catalogue; None if it can no longer be read."""
        known = self._texts.get(note.path)
        if known is not None and known[0] == note.digest:
            return known[1]
        try:
            text = self._read(note.path).decode("utf-8", "replace").removeprefix("\ufeff")
        except PathRefused:
            return None
        self._size += len(text) - (len(known[1]) if known else 0)
        self._texts[note.path] = (note.digest, text)
        while self._size > MAX_KEPT and len(self._texts) > 1:
            self._size -= len(self._texts.pop(next(iter(self._texts)))[1])
        return text
