"""Defines parsed queries over notes: the columns and notes to show, and the steps applied to them.

Law: these values alone define the meaning of a query; nothing in them comes from a note or a clock.
"""

from typing import Any, Literal, TypeAlias

from msgspec import Struct

Shape = Literal["list", "table", "task", "calendar"]


class Value(Struct, frozen=True):
    """A literal value in the query."""

    value: Any


class ClockWord(Struct, frozen=True):
    """A date relative to the clock, such as `today`."""

    name: str


class LinkLiteral(Struct, frozen=True):
    """A link in the query, with its brackets."""

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
    """Operators of one rank, evaluated from the left: `first`, then each operator with its
    operand."""

    first: "Expression"
    rest: "tuple[tuple[str, Expression], ...]"


class Lambda(Struct, frozen=True):
    """A function in the query: `(x) => x + 1`."""

    names: tuple[str, ...]
    body: "Expression"


class QueryCall(Struct, frozen=True):
    """A call of a built-in function."""

    function: str
    arguments: "tuple[Expression, ...]"


class Index(Struct, frozen=True):
    """`.name`, or the expression in brackets after a value."""

    by: "Expression"


class Arguments(Struct, frozen=True):
    """The arguments for a function that is itself a value."""

    values: "tuple[Expression, ...]"


class Access(Struct, frozen=True):
    """A value, and the parts accessed in it step by step."""

    base: "Expression"
    steps: tuple[Index | Arguments, ...]


Expression: TypeAlias = (
    Value | ClockWord | LinkLiteral | Variable | ListLiteral | ObjectLiteral | Negation | Operations
    | Lambda | QueryCall | Access
)  # fmt: skip


# -- sources ---------------------------------------------------------------------------------------


class TagSource(Struct, frozen=True):
    tag: str


class FolderSource(Struct, frozen=True):
    """A folder, or one note by its path."""

    folder: str


class LinkSource(Struct, frozen=True):
    """Notes that link to this one or, if `is_outgoing`, that it links to. Empty: the note that
    contains the query."""

    name: str
    is_outgoing: bool = False


class CsvSource(Struct, frozen=True):
    """The rows of a table in the workspace."""

    path: str


class SourceNegation(Struct, frozen=True):
    part: "QuerySource"


class SourceOperations(Struct, frozen=True):
    """Sources joined by `and` and `or`, evaluated from the left."""

    first: "QuerySource"
    rest: "tuple[tuple[str, QuerySource], ...]"


QuerySource: TypeAlias = (
    TagSource | FolderSource | LinkSource | CsvSource | SourceNegation | SourceOperations
)


# -- whole query -----------------------------------------------------------------------------------


class Column(Struct, frozen=True):
    """A column to show, and its name: given by AS, or as spelled."""

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
    """A whole query. `with_id`: a row's name comes before its columns."""

    shape: Shape
    with_id: bool = True
    columns: tuple[Column, ...] = ()
    source: QuerySource | None = None
    steps: tuple[QueryStep, ...] = ()
