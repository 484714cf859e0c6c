"""A query over notes: which rows it comes to.

Laws: the same query over the same notes at the same time gives the same result. Its steps are taken
in the order in which they are written. A row for which an expression has no value is left out, and
the result says how many were; if that goes for all of them, the query is wrong.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal, assert_never

from msgspec import Struct

from lamina.core.notes.query.compiler import Ask, Compiler, Row
from lamina.core.notes.query.note_index import QueryNotes
from lamina.core.notes.query.pages import item_of
from lamina.core.notes.query.result import QueryResult, QueryRow
from lamina.core.notes.query.rows import OverlaidRow
from lamina.core.notes.query.sources import SourceFilter
from lamina.core.notes.query.syntax import (
    Expression,
    Flatten,
    GroupBy,
    Limit,
    ParsedQuery,
    QueryStep,
    Sort,
    Where,
)
from lamina.core.notes.query.value_order import ValueKey, is_truthy, key_of
from lamina.core.notes.query.work_limit import RowError, WorkLimit
from lamina.errors import QueryError

# How many rows are shown if the query does not say.
MOST_SHOWN = 200
MOST_LIMIT = 10_000
# At which time a query is asked, if nobody says.
NO_TIME = datetime(1970, 1, 1)


class _Entry(Struct, frozen=True):
    """A row on its way through a query: what it is called, its fields, and the entries of a
    group."""

    id: Any
    row: Row
    members: "tuple[_Entry, ...] | None" = None


def run_query(
    query: ParsedQuery, notes: QueryNotes, *, at: str, now: datetime = NO_TIME
) -> QueryResult:
    """The result of the query in the note `at`.

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
    shown = MOST_LIMIT if run.has_limit else MOST_SHOWN
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
    """The value of an expression in the note that a compiler is for.

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
        # How many rows the last LIMIT took away, if nothing came behind it.
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
                    # A reversed sort also keeps the order of equal ones.
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
        return max(0, int(min(value, MOST_LIMIT)))

    def _group(self, name: str, ask: Ask, entries: list[_Entry]) -> list[_Entry]:
        """Entries by their common value, spelled as in the first of them."""
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
        """The value for every entry that has one."""
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

    # -- what is shown -----------------------------------------------------------------------------

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
