"""The meaning of a query over notes: what to show of which notes, in which order.

Law: these values alone say what a query means. Two spellings of one query are equal here, and
`spell` writes an expression that reads as the same value again.
"""

from datetime import datetime
from decimal import Decimal
from typing import Literal, TypeAlias, assert_never

from msgspec import Struct

from lamina.notes.query.scanner import is_name, is_word

# Values in the query itself. Times are in UTC and carry no zone.
Constant: TypeAlias = bool | int | float | str | datetime | None
Operator = Literal["=", "!=", "<", "<=", ">", ">=", "in"]
FunctionName = Literal[
    "contains", "icontains", "startswith", "endswith", "length", "lower", "upper", "default",
]  # fmt: skip
FileField = Literal[
    "name", "path", "folder", "tags", "aliases", "links", "embeds", "headings",
    "ctime", "mtime", "size",
]  # fmt: skip
# How many arguments each function takes.
ARGUMENT_COUNTS: dict[FunctionName, int] = {
    "contains": 2, "icontains": 2, "startswith": 2, "endswith": 2,
    "length": 1, "lower": 1, "upper": 1, "default": 2,
}  # fmt: skip


class Value(Struct, frozen=True):
    value: Constant


class ListLiteral(Struct, frozen=True):
    """A list in the query itself: `["draft", "done"]`."""

    members: "tuple[Expression, ...]"


class Property(Struct, frozen=True):
    """A property by its names from the outside in; `of_this`: of the note that holds the query."""

    names: tuple[str, ...]
    of_this: bool = False


class FileProperty(Struct, frozen=True):
    field: FileField
    of_this: bool = False


class QueryCall(Struct, frozen=True):
    function: FunctionName
    arguments: "tuple[Expression, ...]"


class Comparison(Struct, frozen=True):
    operator: Operator
    left: "Expression"
    right: "Expression"


class TagSource(Struct, frozen=True):
    tag: str


class FolderSource(Struct, frozen=True):
    folder: str


class LinkSource(Struct, frozen=True):
    """Empty: to the note that holds the query."""

    name: str


class Negation(Struct, frozen=True):
    part: "Expression"


class Conjunction(Struct, frozen=True):
    """Parts with `and` between them."""

    parts: "tuple[Expression, ...]"


class Disjunction(Struct, frozen=True):
    """Parts with `or` between them."""

    parts: "tuple[Expression, ...]"


# What stands behind FROM, and what stands anywhere else; both are joined in the same way.
QuerySource: TypeAlias = TagSource | FolderSource | LinkSource
Expression: TypeAlias = (
    Value | ListLiteral | Property | FileProperty | QueryCall | Comparison | QuerySource
    | Negation | Conjunction | Disjunction
)  # fmt: skip


class Column(Struct, frozen=True):
    """What is shown, and its heading if the query gives one."""

    shown: Expression
    name: str | None = None

    @property
    def head(self) -> str:
        return spell(self.shown) if self.name is None else self.name


class SortKey(Struct, frozen=True):
    by: Expression
    descending: bool = False


class ParsedQuery(Struct, frozen=True, kw_only=True):
    """A whole query. `with_id`: the note's path comes before its columns."""

    shape: Literal["list", "table"]
    with_id: bool = True
    columns: tuple[Column, ...] = ()
    source: Expression | None = None
    where: Expression | None = None
    group: Column | None = None
    sort: tuple[SortKey, ...] = ()
    limit: int | None = None


# -- spelling ------------------------------------------------------------------------------------

# How tightly an expression binds: one looser than its surroundings needs parentheses.
_OR, _AND, _NOT, _COMPARED, _ALONE = range(5)


def spell(expression: Expression, inside: int = _OR) -> str:
    """An expression in one line; in parentheses if it binds looser than what is around it."""
    text, tightness = _spell_bare(expression)
    return text if tightness >= inside else f"({text})"


def _spell_bare(expression: Expression) -> tuple[str, int]:
    match expression:
        case Value():
            return _spell_constant(expression.value), _ALONE
        case ListLiteral():
            return f"[{_spell_all(expression.members)}]", _ALONE
        case Property():
            return _spell_property(expression), _ALONE
        case FileProperty():
            return f"{'this.' if expression.of_this else ''}file.{expression.field}", _ALONE
        case QueryCall():
            return f"{expression.function}({_spell_all(expression.arguments)})", _ALONE
        case Comparison():
            sides = (spell(side, _ALONE) for side in (expression.left, expression.right))
            return f" {expression.operator} ".join(sides), _COMPARED
        case TagSource():
            return f"#{expression.tag}", _ALONE
        case FolderSource():
            return _quote(expression.folder), _ALONE
        case LinkSource():
            return f"[[{expression.name}]]", _ALONE
        case Negation():
            return f"not {spell(expression.part, _NOT)}", _NOT
        case Conjunction():
            return " and ".join(spell(part, _NOT) for part in expression.parts), _AND
        case Disjunction():
            return " or ".join(spell(part, _AND) for part in expression.parts), _OR
        case _:
            assert_never(expression)


def _spell_all(expressions: tuple[Expression, ...]) -> str:
    return ", ".join(map(spell, expressions))


def _spell_constant(value: Constant) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return _quote(value)
        case datetime():
            return f"date({value.isoformat().removesuffix('T00:00:00')})"
        case float():
            # Never with an exponent, which queries do not have.
            return format(Decimal(repr(value)), "f")
        case _:
            return str(value)


def _quote(text: str) -> str:
    content = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{content}"'


def _spell_property(field: Property) -> str:
    first, *inner = field.names
    if field.of_this:
        # `this.file` means something else.
        spelling = "this" + _spell_step(first, plain=first.lower() != "file")
    else:
        spelling = first if is_name(first) else "row" + _spell_step(first)
    return spelling + "".join(map(_spell_step, inner))


def _spell_step(name: str, plain: bool = True) -> str:
    return f".{name}" if plain and is_word(name) else f"[{_quote(name)}]"
