"""Results of the queries in notes, and what they are without secrets.

Law: a value is judged in the note that it comes from, not in the result, where nobody would know
what it is.
"""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from lamina.values.item import Excerpt
from lamina.values.note import Catalogue, Note

if TYPE_CHECKING:
    from lamina.notes.query.cache import QueryCache


class QueryResults:
    """Keeps results for as long as no note changes. For one thread at a time."""

    def __init__(self) -> None:
        self._whole: QueryCache | None = None
        self._safe: QueryCache | None = None
        self._safe_notes: tuple[Catalogue, tuple[Note, ...]] = (Catalogue(), ())

    def find(self, query: str, catalogue: Catalogue, path: str) -> Excerpt:
        """The result of a query in the note at `path`.

        Raises:
            QueryError: it is not a valid query; with line and column.
        """
        from lamina.notes.query.cache import QueryCache

        self._whole = self._whole or QueryCache()
        text = self._whole.text(query, catalogue.notes, path)
        notes = self._without_secrets(catalogue)
        if notes is catalogue.notes:
            return Excerpt(text=text)
        self._safe = self._safe or QueryCache()
        safe = self._safe.text(query, notes, path)
        return Excerpt(text=text, safe=safe, secrets=("secret",) if safe != text else ())

    def _without_secrets(self, catalogue: Catalogue) -> tuple[Note, ...]:
        """The notes with nothing secret in what a query can show; the same if nothing is."""
        if self._safe_notes[0] is not catalogue:
            notes = catalogue.notes
            if any(note.safe for note in notes):
                notes = tuple(replace(note, **note.safe) if note.safe else note for note in notes)
            self._safe_notes = (catalogue, notes)
        return self._safe_notes[1]
