"""Runs the queries in notes, and returns their results as separate items without secrets.

Laws: whether a value is secret is decided in its note, not in the result, where its context is
lost. Scripts are never run. Every script and every failing query is reported as left out, with the
reason.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from msgspec import convert
from msgspec.structs import replace

from lamina.adapters.files.root import Root
from lamina.adapters.workspace.file_secrets import FileSecrets
from lamina.core.values.item import Excerpt, Item, LoadedItem, Provenance, item_id, query_id
from lamina.core.values.note import Catalogue, ListItem, Note, NoteQuery
from lamina.core.values.request import GatheredItems, LeftOut
from lamina.errors import QueryError

if TYPE_CHECKING:
    from lamina.adapters.workspace.search_blocks import SearchBlocks
    from lamina.core.notes.query.rendered_query import QueryCache


class QueryResults:
    """Query results, cached until a note changes. `now` returns the time in seconds; `zone` is the
    time zone, None for the machine's. For one thread at a time."""

    def __init__(
        self,
        read: Callable[[str], bytes],
        secrets: FileSecrets,
        now: Callable[[], float],
        zone: tzinfo | None = None,
    ) -> None:
        self._read, self._secrets = read, secrets
        self._now, self._zone = now, zone
        self._whole: QueryCache | None = None
        self._safe: QueryCache | None = None
        self._searches: SearchBlocks | None = None
        self._safe_notes: tuple[Catalogue, tuple[Note, ...]] = (Catalogue(), ())

    def find(self, query: NoteQuery, catalogue: Catalogue, path: str) -> Excerpt:
        """Return the result of a query in the note at `path`.

        Raises:
            QueryError: the query is invalid; the message gives the line and column.
        """
        if query.kind == "script":
            raise QueryError(1, 1, "it is a script, and scripts of notes are not run")
        if query.kind == "search":
            return self._find_searches().find(query.text, catalogue, path)
        from lamina.core.notes.query.rendered_query import QueryCache

        now = datetime.fromtimestamp(self._now() // 60 * 60, self._zone).replace(tzinfo=None)
        self._whole = self._whole or QueryCache(zone=self._zone)
        text = self._whole.text(query, catalogue.notes, path, now)
        notes = self._without_secrets(catalogue)
        if notes is catalogue.notes:
            return Excerpt(text=text)
        self._safe = self._safe or QueryCache(zone=self._zone)
        safe = self._safe.text(query, notes, path, now)
        return Excerpt(text=text, safe=safe, secrets=("secret",) if safe != text else ())

    def _find_searches(self) -> "SearchBlocks":
        from lamina.adapters.workspace.search_blocks import SearchBlocks

        self._searches = self._searches or SearchBlocks(self._read, self._secrets)
        return self._searches

    def _without_secrets(self, catalogue: Catalogue) -> tuple[Note, ...]:
        """Return the notes without secrets in anything a query can show; unchanged if there are
        none."""
        if self._safe_notes[0] is not catalogue:
            notes = catalogue.notes
            if any(note.safe for note in notes):
                notes = tuple(_hide_secrets(note) if note.safe else note for note in notes)
            self._safe_notes = (catalogue, notes)
        return self._safe_notes[1]


def _hide_secrets(note: Note) -> Note:
    # Saved values have no types.
    safe = {
        name: convert(value, tuple[ListItem, ...]) if name == "items" else value
        for name, value in note.safe.items()
    }
    return replace(note, **safe)


MAX_TITLE = 80


class QueryItems:
    """A runner for the queries in one workspace's notes."""

    def __init__(self, root: Root, secrets: FileSecrets, now: Callable[[], float]) -> None:
        self._root = root
        self._results = QueryResults(lambda path: root.read(path)[0], secrets, now)

    def gather(
        self, path: str, queries: Sequence[NoteQuery], look: Callable[[], Catalogue]
    ) -> list[GatheredItems]:
        """Return the results of the queries in the note at `path`, each as a separate item. The
        catalogue is read once for all queries, and not at all for scripts."""
        is_asked = any(query.kind != "script" for query in queries)
        catalogue = look() if is_asked else Catalogue()
        return [self._gather(path, query, catalogue) for query in queries]

    def _gather(self, path: str, query: NoteQuery, catalogue: Catalogue) -> GatheredItems:
        source = item_id("note", path)
        item = query_id(path, query.key)
        if query.kind == "script":
            name = query.text if query.text.startswith("$=") else "dataviewjs"
            detail = f"{_first_line(name)} of {path} is not run: it is a script"
            return _leave_out(LeftOut(what=item, reason="refused", detail=detail, source=source))
        try:
            excerpt = self._results.find(query, catalogue, path)
        except QueryError as error:
            detail = f"a query of {path} is wrong: {error}"
            return _leave_out(LeftOut(what=item, reason="unreadable", detail=detail, source=source))
        result = Item(id=item, title=_title(query), content=excerpt.text, workspace=self._root.id)
        provenance = Provenance(origin="query", source=source)
        reading = LoadedItem(item=result, excerpt=excerpt, provenance=provenance)
        return GatheredItems(readings=(reading,))


def _leave_out(omission: LeftOut) -> GatheredItems:
    return GatheredItems(left_out=(omission,))


def _title(query: NoteQuery) -> str:
    if query.kind == "inline":
        return "queries within the text"
    return _first_line(f"search: {query.text.strip()}" if query.kind == "search" else query.text)


def _first_line(text: str) -> str:
    return " ".join(text.strip().split("\n", 1)[0].split())[:MAX_TITLE]
