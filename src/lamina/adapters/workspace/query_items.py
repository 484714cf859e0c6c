"""The results of the queries in a note as items of their own.

Law: a query that has no result is left out by its name, with the reason; so is every script.
"""

from collections.abc import Callable, Sequence

from lamina.adapters.files.root import Root
from lamina.adapters.workspace.file_secrets import FileSecrets
from lamina.adapters.workspace.query_results import QueryResults
from lamina.core.values.item import Item, LoadedItem, Provenance, item_id, query_id
from lamina.core.values.note import Catalogue, NoteQuery
from lamina.core.values.request import GatheredItems, LeftOut
from lamina.errors import QueryError

MOST_TITLE = 80


class QueryItems:
    """Asks the queries of one workspace's notes."""

    def __init__(self, root: Root, secrets: FileSecrets, now: Callable[[], float]) -> None:
        self._root = root
        self._results = QueryResults(lambda path: root.read(path)[0], secrets, now)

    def gather(
        self, path: str, queries: Sequence[NoteQuery], look: Callable[[], Catalogue]
    ) -> list[GatheredItems]:
        """The results of queries in the note at `path`, each as its own item. The notes are looked
        at once for all of them, and not for scripts."""
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
    return " ".join(text.strip().split("\n", 1)[0].split())[:MOST_TITLE]
