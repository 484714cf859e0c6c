"""Runs a query over notes, from FROM to LIMIT.

Laws: the same query over the same notes at the same time returns the same result. FROM selects
among the notes in the workspace; it opens nothing. Steps run in the order in which they are
written. A row for which an expression has no value is omitted, and the result counts these rows; if
that applies to all rows, the query is wrong.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Literal, assert_never

from msgspec import Struct

from lamina.core.notes.note_names import NOTE_SUFFIX, is_in_folder, split_link, tag_matches
from lamina.core.notes.query.compiler import Ask, Compiler, Row
from lamina.core.notes.query.note_index import QueryNotes
from lamina.core.notes.query.operators import ValueKey, fold_case, is_truthy, key_of
from lamina.core.notes.query.rows import OverlaidRow, Page, QueryResult, QueryRow, item_of
from lamina.core.notes.query.syntax import (
    CsvSource,
    Expression,
    Flatten,
    FolderSource,
    GroupBy,
    Limit,
    LinkSource,
    ParsedQuery,
    QuerySource,
    QueryStep,
    Sort,
    SourceNegation,
    SourceOperations,
    TagSource,
    Where,
)
from lamina.core.notes.query.work_limit import RowError, WorkLimit
from lamina.core.values.note import Note
from lamina.errors import QueryError

_Test = Callable[[Page], bool]


class SourceFilter:
    """A selector of notes for a query in the note `at`; `warnings` lists what was unclear."""

    def __init__(self, notes: QueryNotes, at: str) -> None:
        self._notes, self._at = notes, at
        self.warnings: list[str] = []

    def choose(self, source: QuerySource | None) -> list[Page]:
        """Return the notes in a source, ordered by path; all notes if there is no source."""
        if source is None:
            return self._notes.pages
        return list(filter(self._test(source), self._notes.pages))

    def _test(self, source: QuerySource) -> _Test:
        match source:
            case TagSource(tag):
                return lambda page: any(tag_matches(own, tag) for own in page.note.tags)
            case FolderSource(folder):
                paths = (folder, folder + NOTE_SUFFIX)
                return lambda page: is_in_folder(page.path, folder) or page.path in paths
            case LinkSource(name, is_outgoing):
                return self._outgoing(name) if is_outgoing else self._incoming(name)
            case CsvSource(path):
                raise QueryError(1, 1, f"csv({path!r}) is not offered; attach the table itself")
            case SourceNegation(part):
                test_part = self._test(part)
                return lambda page: not test_part(page)
            case SourceOperations(first, rest):
                return self._join(self._test(first), [(sign, self._test(p)) for sign, p in rest])
            case _:
                assert_never(source)

    def _join(self, first: _Test, rest: list[tuple[str, _Test]]) -> _Test:
        def test(page: Page) -> bool:
            is_chosen = first(page)
            for sign, test_part in rest:
                is_chosen = (
                    (is_chosen and test_part(page))
                    if sign == "and"
                    else (is_chosen or test_part(page))
                )
            return is_chosen

        return test

    def _find_path(self, name: str) -> str | None:
        """Return the note that a link in FROM resolves to."""
        link = split_link(name)
        if not link.name:
            return self._at
        resolution = self._notes.resolve(link.name, self._at)
        if resolution.path is None and resolution.how == "ambiguous":
            dots = ("…",) if len(resolution.matches) > 5 else ()
            listing = ", ".join((*resolution.matches[:5], *dots))
            self.warnings.append(
                f"[[{name}]] may mean any of {listing}; links spelled like it were taken"
            )
        return resolution.path

    def _incoming(self, name: str) -> _Test:
        """Return a test for notes that link to `name`. A name that resolves to no note is compared
        as spelled."""
        path = self._find_path(name)
        if path is None:
            stems = _stems(name)
            return lambda page: any(
                not stems.isdisjoint(_stems(link)) for link in _links_near(page.note, stems)
            )
        sources = {link.path for link in self._notes.links_to(path)}
        return lambda page: page.path in sources

    def _outgoing(self, name: str) -> _Test:
        path = self._find_path(name)
        page = None if path is None else self._notes.page(path)
        targets = set() if page is None else {link.path for link in page.file["outlinks"]}
        return lambda other: other.path in targets


def _links_near(note: Note, names: set[str]) -> Iterable[str]:
    """Yield targets of links and embeds that contain one of the names, except links within the
    note."""
    for link in note.links + note.embeds:
        spelling = fold_case(link)
        if not spelling.startswith("#") and any(name in spelling for name in names):
            yield link


def _stems(link: str) -> set[str]:
    """Return the last part of a link's target, both with `#` as part of the name and without."""
    return {
        fold_case(spelling).rsplit("/", 1)[-1].removesuffix(NOTE_SUFFIX).strip()
        for spelling in (link, split_link(link).name)
    }


# The default number of rows shown.
MAX_SHOWN = 200
MAX_LIMIT = 10_000
# The default time of a query.
NO_TIME = datetime(1970, 1, 1)


class _Entry(Struct, frozen=True):
    """A row being processed by a query: its name, its fields, and the entries of a group."""

    id: Any
    row: Row
    members: "tuple[_Entry, ...] | None" = None


def run_query(
    query: ParsedQuery, notes: QueryNotes, *, at: str, now: datetime = NO_TIME
) -> QueryResult:
    """Return the result of the query in the note `at`.

    Raises:
        QueryError: it has no result, or takes too long to find.
    """
    compiler = Compiler(notes, at, now, WorkLimit())
    run = _Run(compiler)
    source = SourceFilter(notes, at)
    pages = source.choose(query.source)
    entries = [_Entry(page.path, page.row) for page in pages]
    if query.shape == "task":
        entries = [
            _Entry(page.path, OverlaidRow(item.row, page.row))
            for page in pages
            for item in page.items.values()
            if item.is_task
        ]
    for step in query.steps:
        entries = run.take(step, entries)
    shown = MAX_LIMIT if run.has_limit else MAX_SHOWN
    rows = run.show(query, entries, shown)
    return QueryResult(
        shape=query.shape,
        with_id=query.with_id or not query.columns,
        heads=tuple(column.name for column in query.columns),
        id_head=run.id_head,
        rows=rows,
        unit="task" if query.shape == "task" and run.unit != "group" else run.unit,
        fits=len(entries) + run.cut,
        failed=min(shown, len(entries)) - len(rows),
        clock=compiler.clock,
        warnings=tuple(dict.fromkeys((*source.warnings, *run.warnings))),
    )


def evaluate_expression(expression: Expression, compiler: Compiler) -> Any:
    """Return the value of an expression in the compiler's note.

    Raises:
        QueryError: it has none.
    """
    try:
        return compiler.compile(expression)(compiler.this)
    except RowError as error:
        raise QueryError(1, 1, str(error)) from None


class _Run:
    """The steps of one query."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler, self._limit = compiler, compiler.limit
        self.id_head = "file"
        self.unit: Literal["note", "group", "row"] = "note"
        self.has_limit = False
        # The number of rows removed by the last LIMIT, if no step follows it.
        self.cut = 0
        self.warnings: list[str] = []

    def take(self, step: QueryStep, entries: list[_Entry]) -> list[_Entry]:
        self._limit.spend(len(entries))
        if not isinstance(step, Sort):
            self.cut = 0
        match step:
            case Where(condition):
                pairs = self._ask_all("WHERE", self._compiler.compile(condition), entries)
                return [entry for value, entry in pairs if is_truthy(value)]
            case Sort(keys):
                for key in reversed(keys):
                    pairs = self._ask_all("SORT", self._compiler.compile(key.by), entries)
                    keyed = [(key_of(value), entry) for value, entry in pairs]
                    # A reversed sort also keeps the order of equal rows.
                    keyed.sort(key=lambda pair: pair[0], reverse=key.is_descending)
                    entries = [entry for _, entry in keyed]
                return entries
            case Limit(amount):
                kept = entries[: self._find_limit(amount)]
                self.cut = len(entries) - len(kept)
                return kept
            case GroupBy(column):
                self.id_head, self.unit = column.name, "group"
                return self._group(column.name, self._compiler.compile(column.shown), entries)
            case Flatten(column):
                self.unit = "row"
                return self._flatten(column.name, self._compiler.compile(column.shown), entries)
            case _:
                assert_never(step)

    def _find_limit(self, amount: Expression) -> int:
        self.has_limit = True
        try:
            value = self._compiler.compile(amount)({})
        except RowError as error:
            raise QueryError(1, 1, f"LIMIT: {error}") from None
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            raise QueryError(1, 1, "LIMIT takes a number")
        return max(0, int(min(value, MAX_LIMIT)))

    def _group(self, name: str, ask: Ask, entries: list[_Entry]) -> list[_Entry]:
        """Group entries by a value, spelled as in the first of them."""
        groups: dict[ValueKey, tuple[Any, list[_Entry]]] = {}
        for value, entry in self._ask_all("GROUP BY", ask, entries):
            groups.setdefault(key_of(value), (value, []))[1].append(entry)
        return [
            _Entry(
                groups[key][0],
                {
                    name: groups[key][0],
                    "key": groups[key][0],
                    "rows": tuple(entry.row for entry in groups[key][1]),
                },
                tuple(groups[key][1]),
            )
            for key in sorted(groups)
        ]

    def _flatten(self, name: str, ask: Ask, entries: list[_Entry]) -> list[_Entry]:
        flat: list[_Entry] = []
        for value, entry in self._ask_all("FLATTEN", ask, entries):
            members = value if isinstance(value, list | tuple) else (value,)
            self._limit.spend(len(members))
            self._limit.check_rows(len(flat) + len(members))
            flat += [
                _Entry(entry.id, OverlaidRow({name: member}, entry.row), entry.members)
                for member in members
            ]
        return flat

    def _ask_all(self, what: str, ask: Ask, entries: list[_Entry]) -> Iterator[tuple[Any, _Entry]]:
        """Yield each entry that has a value, with that value."""
        failed, first = 0, ""
        for entry in entries:
            try:
                value = ask(entry.row)
            except RowError as error:
                failed, first = failed + 1, first or str(error)
            else:
                yield value, entry
        if failed and failed == len(entries):
            raise QueryError(1, 1, f"{what} has no value for any row: {first}")
        if failed:
            self._say_left_out(what, failed, first)

    def _say_left_out(self, what: str, failed: int, first: str) -> None:
        rows = "1 row was" if failed == 1 else f"{failed:,} rows were"
        self.warnings.append(f"{rows} left out at {what}: {first}")

    # -- output ------------------------------------------------------------------------------------

    def show(self, query: ParsedQuery, entries: list[_Entry], most: int) -> tuple[QueryRow, ...]:
        columns = tuple(self._compiler.compile(column.shown) for column in query.columns)

        def cells(row: Row) -> tuple[Any, ...]:
            return tuple(column(row) for column in columns)

        pairs = self._ask_all(query.shape.upper(), cells, entries[:most])
        return tuple(_show_entry(entry, values, most) for values, entry in pairs)


def _show_entry(entry: _Entry, cells: tuple[Any, ...], most: int) -> QueryRow:
    members, size = None, 0
    if entry.members is not None:
        size = len(entry.members)
        members = tuple(_show_entry(member, (), most) for member in entry.members[:most])
    row = entry.row
    while isinstance(row, OverlaidRow) and item_of(row.front) is None:
        row = row.base
    item = item_of(row.front) if isinstance(row, OverlaidRow) else None
    return QueryRow(entry.id, cells, members, item, size)
