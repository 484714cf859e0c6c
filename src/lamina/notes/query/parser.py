"""The text of a query to what it means, from the top down.

Laws: any text either is a query or raises `QueryError`, which says where and what was expected; no
other error comes out, however long or deep the text is. The time is that of the length.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeVar, cast, get_args

from lamina.notes.query.scanner import Scanner, Token, shorten
from lamina.notes.query.syntax import (
    ARGUMENT_COUNTS,
    Column,
    Comparison,
    Conjunction,
    Disjunction,
    Expression,
    FileField,
    FileProperty,
    FolderSource,
    LinkSource,
    ListLiteral,
    Negation,
    Operator,
    ParsedQuery,
    Property,
    QueryCall,
    QuerySource,
    SortKey,
    SourceConjunction,
    SourceDisjunction,
    SourceNegation,
    TagSource,
    Value,
)
from lamina.notes.query.value_order import read_moment

# Each level costs some frames of Python's stack, here and where the query is run.
MOST_DEEP = 30
# A query is asked of every note: one with ten thousand conditions would take minutes.
MOST_CHARACTERS = 10_000
MOST_DIGITS = 15
MOST_LIMIT = 10_000
_CLAUSES = ("FROM", "WHERE", "GROUP BY", "SORT", "LIMIT")
_OPERATORS = get_args(Operator)
_FIELDS = get_args(FileField)
_DIRECTIONS = {"asc": False, "ascending": False, "desc": True, "descending": True}
_CONSTANTS = {"true": True, "false": False, "null": None}
# What people know from elsewhere, and why it is not here.
_ELSEWHERE = {
    "flatten": "FLATTEN is not offered",
    "task": "TASK is not offered: a query is LIST or TABLE",
    "calendar": "CALENDAR is not offered: a query is LIST or TABLE",
}
_MOVING = {"today", "now", "tomorrow", "yesterday", "sow", "eow", "som", "eom", "soy", "eoy"}
_Part = TypeVar("_Part")


def parse_query(text: str) -> ParsedQuery:
    """What a query means.

    Raises:
        QueryError: it is none; with line and column, and what was expected there.
    """
    return _Parser(text).read_query()


class _Parser:
    """Each method reads one thing of the grammar, from where the scanner stands."""

    def __init__(self, text: str) -> None:
        self._words = Scanner(text)
        self._deep = 0

    # -- the whole -------------------------------------------------------------------------------

    def read_query(self) -> ParsedQuery:
        if len(self._words.text) > MOST_CHARACTERS:
            problem = f"a query has at most {MOST_CHARACTERS:,} characters"
            raise self._words.problem(problem, MOST_CHARACTERS)
        shape = self._read_shape()
        with_id = not self._words.take_words("without", "id")
        columns = [] if self._at_clause_or_end() else self._read_columns(shape)
        if not with_id and not columns:
            raise self._words.unexpected(
                "something to show: WITHOUT ID leaves the note's path out", self._words.look()
            )
        clauses: dict[str, Any] = {}
        while (token := self._words.look()).kind != "end":
            name = self._take_clause(token)
            if name in clauses:
                hint = "; join the two by and" if name in ("FROM", "WHERE") else ""
                raise self._words.problem(f"{name} stands here a second time{hint}", token.start)
            clauses[name] = self._read_clause(name)
        return ParsedQuery(
            shape=shape,
            with_id=with_id,
            columns=tuple(columns),
            source=clauses.get("FROM"),
            where=clauses.get("WHERE"),
            group=clauses.get("GROUP BY"),
            sort=tuple(clauses.get("SORT", ())),
            limit=clauses.get("LIMIT"),
        )

    def _read_shape(self) -> Literal["list", "table"]:
        token = self._words.take()
        if token.kind == "word" and token.value in ("list", "table"):
            return cast(Literal["list", "table"], token.value)
        if token.kind == "word" and token.value in _ELSEWHERE:
            raise self._words.problem(_ELSEWHERE[token.value], token.start)
        raise self._words.unexpected("LIST or TABLE", token)

    def _read_columns(self, shape: Literal["list", "table"]) -> list[Column]:
        if shape == "table":
            return self._read_list(self._read_column)
        column = self._read_column()
        if self._words.next_is(","):
            token = self._words.look()
            raise self._words.problem("LIST shows one value; TABLE shows several", token.start)
        return [column]

    def _take_clause(self, token: Token) -> str:
        for name in _CLAUSES:
            if self._words.take_words(*name.lower().split()):
                return name
        if token.kind == "word" and token.value in _ELSEWHERE:
            raise self._words.problem(_ELSEWHERE[token.value], token.start)
        clauses = ", ".join(_CLAUSES)
        raise self._words.unexpected(f"an operator, {clauses} or the end", token)

    def _read_clause(self, name: str) -> Any:
        match name:
            case "FROM":
                source = self._read_source()
                token = self._words.look(in_source=True)
                if token.kind in ("tag", "link", "text") or token.value == ",":
                    raise self._words.unexpected("and, or, another clause or the end", token)
                return source
            case "WHERE":
                return self._read_expression()
            case "GROUP BY":
                return self._read_column()
            case "SORT":
                return self._read_list(self._read_sort_key)
        return self._read_limit()

    def _read_column(self) -> Column:
        shown = self._read_expression()
        if not self._words.take_words("as"):
            return Column(shown)
        token = self._words.take()
        if token.kind not in ("text", "word"):
            raise self._words.unexpected('a name behind AS, as in AS "Due date"', token)
        return Column(shown, token.value if token.kind == "text" else token.spelled)

    def _read_sort_key(self) -> SortKey:
        by = self._read_expression()
        token = self._words.look()
        if token.kind != "word" or token.value not in _DIRECTIONS:
            return SortKey(by)
        self._words.take()
        return SortKey(by, _DIRECTIONS[token.value])

    def _read_limit(self) -> int:
        token = self._words.take()
        digits = token.spelled.lstrip("0")
        if token.kind != "number" or not digits.isdecimal() or len(digits) > MOST_DIGITS:
            raise self._words.unexpected(f"a whole number from 1 to {MOST_LIMIT:,}", token)
        if int(digits) > MOST_LIMIT:
            problem = f"LIMIT is at most {MOST_LIMIT:,}, found {digits}"
            raise self._words.problem(problem, token.start)
        return int(digits)

    def _read_list(self, read: Callable[[], _Part]) -> list[_Part]:
        parts = [read()]
        while self._words.take_sign(","):
            parts.append(read())
        return parts

    # -- where notes come from -------------------------------------------------------------------

    def _read_source(self) -> QuerySource:
        parts = [self._read_every_source()]
        while self._words.take_words("or", in_source=True):
            parts.append(self._read_every_source())
        return SourceDisjunction(tuple(parts)) if len(parts) > 1 else parts[0]

    def _read_every_source(self) -> QuerySource:
        parts = [self._read_one_source()]
        while self._words.take_words("and", in_source=True):
            parts.append(self._read_one_source())
        return SourceConjunction(tuple(parts)) if len(parts) > 1 else parts[0]

    def _read_one_source(self) -> QuerySource:
        token = self._words.take(in_source=True)
        match token.kind, token.value:
            case "tag", tag:
                return TagSource(tag)
            case "text", folder:
                return FolderSource(folder)
            case "link", name:
                return LinkSource(name)
            case ("word", "not") | ("sign", "!" | "-"):
                with self._deeper(token):
                    return SourceNegation(self._read_one_source())
            case "sign", "(":
                with self._deeper(token):
                    source = self._read_source()
                    self._words.require(")", in_source=True)
                    return source
        raise self._words.unexpected('#tag, "folder", [[note]], not or (', token)

    # -- expressions -----------------------------------------------------------------------------

    def _read_expression(self) -> Expression:
        parts = [self._read_every()]
        while self._words.take_words("or"):
            parts.append(self._read_every())
        return Disjunction(tuple(parts)) if len(parts) > 1 else parts[0]

    def _read_every(self) -> Expression:
        parts = [self._read_negation()]
        while self._words.take_words("and"):
            parts.append(self._read_negation())
        return Conjunction(tuple(parts)) if len(parts) > 1 else parts[0]

    def _read_negation(self) -> Expression:
        token = self._words.look()
        if (token.kind, token.value) not in (("word", "not"), ("sign", "!")):
            return self._read_comparison()
        self._words.take()
        with self._deeper(token):
            return Negation(self._read_negation())

    def _read_comparison(self) -> Expression:
        left = self._read_operand()
        token = self._words.look()
        if self._words.take_words("not", "in"):
            raise self._words.problem("write not in front: not status in [...]", token.start)
        operator = self._take_operator()
        if operator is None:
            return left
        compared = Comparison(operator, left, self._read_operand())
        token = self._words.look()
        if self._take_operator() is not None:
            problem = "comparisons do not follow one another; join them by and"
            raise self._words.problem(problem, token.start)
        return compared

    def _take_operator(self) -> Operator | None:
        token = self._words.look()
        if token.kind in ("sign", "word") and token.value in _OPERATORS:
            self._words.take()
            return cast(Operator, token.value)
        return None

    def _read_operand(self) -> Expression:
        token = self._words.take()
        match token.kind:
            case "text":
                return Value(token.value)
            case "number":
                return Value(self._number(token))
            case "word":
                return self._read_word(token)
            case "sign" if token.value == "(":
                with self._deeper(token):
                    inner = self._read_expression()
                    is_list = self._words.next_is(",")
                    self._words.require(")", expected=") (a list is [1, 2])" if is_list else ")")
                    return inner
            case "sign" if token.value == "[":
                with self._deeper(token):
                    return ListLiteral(self._read_until("]"))
        raise self._words.unexpected("a property, a value or a function", token)

    def _number(self, token: Token) -> int | float:
        if sum(map(str.isdigit, token.spelled)) > MOST_DIGITS:
            problem = f"a number has at most {MOST_DIGITS} digits"
            raise self._words.problem(problem, token.start)
        return float(token.spelled) if "." in token.spelled else int(token.spelled)

    def _read_word(self, token: Token) -> Expression:
        word = token.value
        if word in _CONSTANTS:
            return Value(_CONSTANTS[word])
        if self._words.next_is("("):
            return self._read_date(token) if word == "date" else self._read_call(token)
        match word:
            case "from" | "where" | "sort" | "limit" | "and" | "or" | "in" | "not":
                raise self._words.unexpected(
                    f"a property, a value or a function (a property of this name is row.{word})",
                    token,
                )
            case "file":
                return self._read_file_field(of_this=False)
            case "row":
                return Property(self._read_steps(token))
            case "this":
                return self._read_this(token)
        if word == "group" and self._words.look().value == "by":
            raise self._words.unexpected("something in front of GROUP BY", token)
        return Property((token.spelled, *self._read_steps()))

    def _read_this(self, token: Token) -> Expression:
        before = self._words.at
        if self._words.take_sign("."):
            if self._words.take_words("file"):
                return self._read_file_field(of_this=True)
            self._words.at = before
        return Property(self._read_steps(token), of_this=True)

    def _read_file_field(self, *, of_this: bool) -> FileProperty:
        self._words.require(
            ".", expected="a field, as in file.name (a property of this name is row.file)"
        )
        token = self._words.take()
        if token.kind != "word" or token.value not in _FIELDS:
            raise self._words.unexpected(f"one of file's fields ({', '.join(_FIELDS)})", token)
        if self._words.next_is(".") or self._words.next_is("["):
            odd = self._words.look()
            raise self._words.problem(f"file.{token.value} has no parts", odd.start)
        return FileProperty(cast(FileField, token.value), of_this)

    def _read_steps(self, needed_by: Token | None = None) -> tuple[str, ...]:
        """Names behind one another: `.name` or `["name"]`."""
        names: list[str] = []
        while True:
            if self._words.take_sign("."):
                token = self._words.take()
                if token.kind != "word":
                    raise self._words.unexpected('a name behind the dot, or ["name"]', token)
                names.append(token.spelled)
            elif self._words.take_sign("["):
                token = self._words.take()
                if token.kind != "text":
                    raise self._words.unexpected('a name in quotes, as in row["due date"]', token)
                names.append(token.value)
                self._words.require("]")
            elif names or needed_by is None:
                return tuple(names)
            else:
                word = needed_by.value
                raise self._words.unexpected(
                    f'a name: {word}.due or {word}["due date"]', self._words.look()
                )

    def _read_call(self, token: Token) -> QueryCall:
        if token.value not in ARGUMENT_COUNTS:
            known = ", ".join(ARGUMENT_COUNTS)
            name = shorten(token.spelled)
            problem = f"there is no function {name!r}; there are {known} and date"
            raise self._words.problem(problem, token.start)
        function = token.value
        self._words.require("(")
        with self._deeper(token):
            arguments = self._read_until(")")
        if len(arguments) != ARGUMENT_COUNTS[function]:
            problem = (
                f"{function}() takes {ARGUMENT_COUNTS[function]} values, found {len(arguments)}"
            )
            raise self._words.problem(problem, token.start)
        return QueryCall(function, arguments)

    def _read_until(self, closing: str) -> tuple[Expression, ...]:
        parts = [] if self._words.next_is(closing) else self._read_list(self._read_expression)
        self._words.require(closing, expected=f", or {closing}")
        return tuple(parts)

    def _read_date(self, token: Token) -> Value:
        self._words.require("(")
        text, start = self._words.text, self._words.at
        end = text.find(")", start, start + 60)
        written = text[start:end].strip() if end >= 0 else ""
        moment = read_moment(written)
        if moment is None:
            raise self._words.problem(_say_no_date(written), token.start)
        self._words.at = end + 1
        return Value(moment)

    # -- steps -----------------------------------------------------------------------------------

    def _at_clause_or_end(self) -> bool:
        before = self._words.at
        token = self._words.look()
        found = token.kind == "end" or any(
            self._words.take_words(*clause.lower().split()) for clause in _CLAUSES
        )
        self._words.at = before
        return found

    @contextmanager
    def _deeper(self, token: Token) -> Iterator[None]:
        self._deep += 1
        if self._deep > MOST_DEEP:
            problem = f"this is nested more than {MOST_DEEP} deep"
            raise self._words.problem(problem, token.start)
        yield
        self._deep -= 1


def _say_no_date(written: str) -> str:
    if written.lower() in _MOVING:
        return (
            f"date({written}) is not offered: the same query would give another result every day, "
            f"and what was sent would have to be sent again. Write the day: date(2026-01-31)"
        )
    return (
        f"{shorten(written)!r} is no date; write date(2026-01-31) or date(2026-01-31T12:30). "
        f"A property that is spelled like that is a date already"
    )
