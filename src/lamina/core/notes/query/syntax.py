"""The meaning of a query over notes: what to show of which notes, and what is done to them in turn.

Law: these values alone say what a query means; what a note or a clock has to say about it is not in
them.
"""

from typing import Any, Literal, TypeAlias

from msgspec import Struct

Shape = Literal["list", "table", "task", "calendar"]


class Value(Struct, frozen=True):
    """A value in the query itself."""

    value: Any


class ClockWord(Struct, frozen=True):
    """A date by the clock, as `today`."""

    name: str


class LinkLiteral(Struct, frozen=True):
    """A link in the query itself, with its brackets."""

    spelling: str


class Variable(Struct, frozen=True):
    """A field by its name."""

    name: str


class ListLiteral(Struct, frozen=True):
    members: "tuple[Expression, ...]"


class ObjectLiteral(Struct, frozen=True):
    names: tuple[str, ...]
    members: "tuple[Expression, ...]"


class Negation(Struct, frozen=True):
    part: "Expression"


class Operations(Struct, frozen=True):
    """Operators of one rank, taken from the left: `first`, then each operator with what follows."""

    first: "Expression"
    rest: "tuple[tuple[str, Expression], ...]"


class Lambda(Struct, frozen=True):
    """A function in the query itself: `(x) => x + 1`."""

    names: tuple[str, ...]
    body: "Expression"


class QueryCall(Struct, frozen=True):
    """A call of one of the language's functions."""

    function: str
    arguments: "tuple[Expression, ...]"


class Index(Struct, frozen=True):
    """`.name`, or what stands in brackets behind a value."""

    by: "Expression"


class Arguments(Struct, frozen=True):
    """What a function that is itself a value is called with."""

    values: "tuple[Expression, ...]"


class Access(Struct, frozen=True):
    """A value, and what is taken out of it step by step."""

    base: "Expression"
    steps: tuple[Index | Arguments, ...]


Expression: TypeAlias = (
    Value | ClockWord | LinkLiteral | Variable | ListLiteral | ObjectLiteral | Negation | Operations
    | Lambda | QueryCall | Access
)  # fmt: skip


# -- where notes come from -------------------------------------------------------------------------


class TagSource(Struct, frozen=True):
    tag: str


class FolderSource(Struct, frozen=True):
    """A folder, or one note by its path."""

    folder: str


class LinkSource(Struct, frozen=True):
    """Notes that link to this one or, if `is_outgoing`, that it links to. Empty: the note that
    holds the query."""

    name: str
    is_outgoing: bool = False


class CsvSource(Struct, frozen=True):
    """The rows of a table in the workspace."""

    path: str


class SourceNegation(Struct, frozen=True):
    part: "QuerySource"


class SourceOperations(Struct, frozen=True):
    """Sources joined by `and` and `or`, taken from the left."""

    first: "QuerySource"
    rest: "tuple[tuple[str, QuerySource], ...]"


QuerySource: TypeAlias = (
    TagSource | FolderSource | LinkSource | CsvSource | SourceNegation | SourceOperations
)


# -- the whole -------------------------------------------------------------------------------------


class Column(Struct, frozen=True):
    """What is shown, and what it is called: as AS says, or as it is spelled."""

    shown: Expression
    name: str


class SortKey(Struct, frozen=True):
    by: Expression
    is_descending: bool = False


class Where(Struct, frozen=True):
    condition: Expression


class Sort(Struct, frozen=True):
    keys: tuple[SortKey, ...]


class Limit(Struct, frozen=True):
    amount: Expression


class GroupBy(Struct, frozen=True):
    column: Column


class Flatten(Struct, frozen=True):
    column: Column


QueryStep: TypeAlias = Where | Sort | Limit | GroupBy | Flatten


class ParsedQuery(Struct, frozen=True, kw_only=True):
    """A whole query. `with_id`: what a row is called comes before its columns."""

    shape: Shape
    with_id: bool = True
    columns: tuple[Column, ...] = ()
    source: QuerySource | None = None
    steps: tuple[QueryStep, ...] = ()
