"""Compiles expressions into functions of a row.

Laws: an expression is compiled once, and the resulting functions are called for each row. A missing
field is null. An operation without a value raises `RowError`; nothing else is raised, except that a
query doing too much is refused.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from typing import Any, Literal, assert_never

from lamina.core.notes.query.dates import UNITS, convert, find_shorthand
from lamina.core.notes.query.note_index import QueryNotes
from lamina.core.notes.query.operators import COMPARISONS, calculate, is_truthy, key_of
from lamina.core.notes.query.query_functions import FUNCTIONS, call_function
from lamina.core.notes.query.rows import OverlaidRow, find_field
from lamina.core.notes.query.syntax import (
    Access,
    Arguments,
    ClockWord,
    Expression,
    Index,
    Lambda,
    LinkLiteral,
    ListLiteral,
    Negation,
    ObjectLiteral,
    Operations,
    QueryCall,
    Value,
    Variable,
)
from lamina.core.notes.query.values import PageLink, TimeSpan, type_of
from lamina.core.notes.query.work_limit import RowError, WorkLimit

Row = Mapping[str, Any]
Ask = Callable[[Row], Any]
_DATE_PARTS: dict[str, Callable[[datetime], int]] = {
    "year": lambda date: date.year,
    "month": lambda date: date.month,
    "weekyear": lambda date: date.isocalendar().week,
    "week": lambda date: date.day // 7 + 1,
    "weekday": lambda date: date.isoweekday(),
    "day": lambda date: date.day,
    "hour": lambda date: date.hour,
    "minute": lambda date: date.minute,
    "second": lambda date: date.second,
    "millisecond": lambda date: date.microsecond // 1_000,
}
_SPAN_PARTS = {name: unit for unit in UNITS for name in (unit, unit.removesuffix("s"))}


class Compiler:
    """A compiler bound to the note that contains a query, the notes it queries, and the time."""

    def __init__(self, notes: QueryNotes, at: str, now: datetime, limit: WorkLimit) -> None:
        self.notes, self.at, self.now, self.limit = notes, at, now, limit
        page = notes.page(at)
        self.this: Row = {} if page is None else page.row
        # How long its results stay valid.
        self.clock: Literal["any", "day", "minute"] = "any"

    # -- lookups for functions ---------------------------------------------------------------------

    @property
    def zone(self) -> tzinfo | None:
        return self.notes.zone

    def make_link(self, spelling: str) -> PageLink:
        return self.notes.make_link(spelling, self.at)

    def page_of(self, link: PageLink) -> Row | None:
        return self.notes.row_of(link)

    def day_of(self, link: PageLink) -> datetime | None:
        row = self.notes.row_of(link)
        day = None if row is None else row["file"]["day"]
        return day if isinstance(day, datetime) else None

    # -- expressions -------------------------------------------------------------------------------

    def compile(self, expression: Expression) -> Ask:
        """Return a function that computes the expression's value for a row."""
        match expression:
            case Value(value):
                return lambda _: value
            case ClockWord(name):
                if self.clock != "minute":
                    self.clock = "minute" if name == "now" else "day"
                date = find_shorthand(name, self.now)
                return lambda _: date
            case LinkLiteral(spelling):
                link = self.make_link(spelling)
                return lambda _: link
            case Variable(name):
                return self._ask_variable(name)
            case ListLiteral(members):
                asks = tuple(map(self.compile, members))
                return lambda row: tuple(ask(row) for ask in asks)
            case ObjectLiteral(names, members):
                pairs = tuple(zip(names, map(self.compile, members), strict=True))
                return lambda row: {name: ask(row) for name, ask in pairs}
            case Negation(part):
                ask_part = self.compile(part)
                return lambda row: not is_truthy(ask_part(row))
            case Operations():
                return self._ask_operations(expression)
            case Lambda(names, body):
                return self._ask_lambda(names, self.compile(body))
            case QueryCall(name, arguments):
                return self._ask_call(name, tuple(map(self.compile, arguments)))
            case Access():
                return self._ask_access(expression)
            case _:
                assert_never(expression)

    def _ask_variable(self, name: str) -> Ask:
        this = self.this
        if name == "row":
            return lambda row: row
        if name == "this":
            return lambda row: row.get("this", this)
        return lambda row: find_field(row, name)

    def _ask_operations(self, operations: Operations) -> Ask:
        first = self.compile(operations.first)
        rest = tuple((_OPERATORS[sign], self.compile(part)) for sign, part in operations.rest)
        limit = self.limit

        def ask(row: Row) -> Any:
            value = first(row)
            for operate, ask_next in rest:
                value = operate(value, ask_next(row))
            limit.spend(len(rest))
            return value

        return ask

    def _ask_lambda(self, names: tuple[str, ...], body: Ask) -> Ask:
        limit = self.limit

        def make(row: Row) -> Any:
            def call(*values: Any) -> Any:
                limit.spend(1)
                return body(OverlaidRow(dict(zip(names, values, strict=False)), row))

            return call

        return make

    def _ask_call(self, name: str, asks: tuple[Ask, ...]) -> Ask:
        function = FUNCTIONS[name]

        def ask(row: Row) -> Any:
            self.limit.spend(1)
            return call_function(name, function, self, [ask(row) for ask in asks])

        return ask

    def _ask_access(self, access: Access) -> Ask:
        base = self.compile(access.base)
        steps: list[tuple[bool, tuple[Ask, ...]]] = []
        for step in access.steps:
            match step:
                case Index(by):
                    steps.append((False, (self._ask_place(by),)))
                case Arguments(values):
                    steps.append((True, tuple(map(self.compile, values))))

        def ask(row: Row) -> Any:
            value = base(row)
            for is_call, asks in steps:
                if not is_call:
                    value = self._index(value, asks[0](row))
                elif callable(value):
                    value = value(*(ask(row) for ask in asks))
                else:
                    raise RowError(f"{type_of(value)} cannot be called")
            return value

        return ask

    def _ask_place(self, by: Expression) -> Ask:
        """Return the value in brackets; a name without a value stands for itself there."""
        ask = self.compile(by)
        if not isinstance(by, Variable):
            return ask
        name = by.name
        return lambda row: place if isinstance(place := ask(row), str | int | float) else name

    def _index(self, value: Any, place: Any) -> Any:
        """Return a part of a value; for a list, the parts of the members that have it."""
        match value, place:
            case (Mapping(), str()):
                return find_field(value, place)
            case (PageLink(), str()):
                row = self.notes.row_of(value)
                return None if row is None else find_field(row, place)
            case (list() | tuple(), str()):
                self.limit.spend(len(value))
                return tuple(self._members(value, place))
            case (str() | list() | tuple(), int() | float()):
                is_there = 0 <= place < len(value) and place % 1 == 0
                return value[int(place)] if is_there else None
            case (datetime(), str()):
                return _DATE_PARTS[place](value) if place in _DATE_PARTS else None
            case (TimeSpan(), str()):
                return convert(value, _SPAN_PARTS[place]) if place in _SPAN_PARTS else None
            case (None | bool() | int() | float(), _):
                return None
        raise RowError(f"{type_of(value)} has no part {place!r}")

    def _members(self, values: Any, place: str) -> Any:
        for member in values:
            try:
                yield self._index(member, place)
            except RowError:
                continue


def _contains(part: Any, whole: Any) -> bool:
    """Return `x in y`: a list member, a substring, or a name in an object."""
    match whole:
        case str():
            return isinstance(part, str) and part in whole
        case list() | tuple():
            key = key_of(part)
            return any(key_of(member) == key for member in whole)
        case Mapping():
            return part in whole
    return False


def _calculator(sign: str) -> Callable[[Any, Any], Any]:
    return lambda first, second: calculate(sign, first, second)


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    **COMPARISONS,
    **{sign: _calculator(sign) for sign in "+-*/%"},
    "and": lambda first, second: is_truthy(first) and is_truthy(second),
    "or": lambda first, second: is_truthy(first) or is_truthy(second),
    "in": _contains,
}
