"""The expressions of a query: what follows WHERE, what is shown, what is sorted by.

Law: any text either is an expression or raises `QueryError`, however deeply it is nested.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar, cast, get_args

from lamina.notes.query.scanner import Scanner, Token, shorten
from lamina.notes.query.syntax import (
    ARGUMENT_COUNTS,
    Comparison,
    Conjunction,
    Disjunction,
    Expression,
    FileField,
    FileProperty,
    ListLiteral,
    Negation,
    Operator,
    Property,
    QueryCall,
    Value,
)
from lamina.notes.query.value_order import read_moment

# Every level takes some frames of Python's stack, here and when the query runs.
MOST_DEEP = 30
MOST_DIGITS = 15
_OPERATORS = get_args(Operator)
_FIELDS = get_args(FileField)
_CONSTANTS = {"true": True, "false": False, "null": None}
_MOVING = {"today", "now", "tomorrow", "yesterday", "sow", "eow", "som", "eom", "soy", "eoy"}
_Part = TypeVar("_Part")


class ExpressionParser:
    """Every method reads one rule of the grammar, from the scanner's position."""

    def __init__(self, words: Scanner) -> None:
        self._words = words
        self._depth = 0

    def read_expression(self) -> Expression:
        return self.read_joined(self._read_negation)

    def read_joined(
        self, read_part: Callable[[], Expression], *, in_source: bool = False
    ) -> Expression:
        """Parts joined by `and`, which binds closer, and by `or`."""
        alternatives: list[Expression] = []
        while not alternatives or self._words.take_words("or", in_source=in_source):
            parts = [read_part()]
            while self._words.take_words("and", in_source=in_source):
                parts.append(read_part())
            alternatives.append(Conjunction(tuple(parts)) if len(parts) > 1 else parts[0])
        return Disjunction(tuple(alternatives)) if len(alternatives) > 1 else alternatives[0]

    def _read_negation(self) -> Expression:
        token = self._words.look()
        if (token.kind, token.value) not in (("word", "not"), ("sign", "!")):
            return self._read_comparison()
        self._words.take()
        with self.deeper(token):
            return Negation(self._read_negation())

    def _read_comparison(self) -> Expression:
        left = self._read_operand()
        token = self._words.look()
        if self._words.take_words("not", "in"):
            raise self._words.problem("write not in front: not status in [...]", token.start)
        operator = self._take_operator()
        if operator is None:
            return left
        comparison = Comparison(operator, left, self._read_operand())
        token = self._words.look()
        if self._take_operator() is not None:
            problem = "comparisons do not follow one another; join them by and"
            raise self._words.problem(problem, token.start)
        return comparison

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
                with self.deeper(token):
                    inner = self.read_expression()
                    is_list = self._words.next_is(",")
                    self._words.require(")", expected=") (a list is [1, 2])" if is_list else ")")
                    return inner
            case "sign" if token.value == "[":
                with self.deeper(token):
                    return ListLiteral(self._read_until("]"))
        raise self._words.unexpected("a property, a value or a function", token)

    def _number(self, token: Token) -> int | float:
        if sum(map(str.isdigit, token.spelling)) > MOST_DIGITS:
            problem = f"a number has at most {MOST_DIGITS} digits"
            raise self._words.problem(problem, token.start)
        return float(token.spelling) if "." in token.spelling else int(token.spelling)

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
        return Property((token.spelling, *self._read_steps()))

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
        """A chain of names: `.name` or `["name"]`."""
        names: list[str] = []
        while True:
            if self._words.take_sign("."):
                token = self._words.take()
                if token.kind != "word":
                    raise self._words.unexpected('a name behind the dot, or ["name"]', token)
                names.append(token.spelling)
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
            names = ", ".join(ARGUMENT_COUNTS)
            name = shorten(token.spelling)
            problem = f"there is no function {name!r}; there are {names} and date"
            raise self._words.problem(problem, token.start)
        function = token.value
        self._words.require("(")
        with self.deeper(token):
            arguments = self._read_until(")")
        if len(arguments) != ARGUMENT_COUNTS[function]:
            problem = (
                f"{function}() takes {ARGUMENT_COUNTS[function]} values, found {len(arguments)}"
            )
            raise self._words.problem(problem, token.start)
        return QueryCall(function, arguments)

    def _read_until(self, closing: str) -> tuple[Expression, ...]:
        parts = [] if self._words.next_is(closing) else self.read_list(self.read_expression)
        self._words.require(closing, expected=f", or {closing}")
        return tuple(parts)

    def _read_date(self, token: Token) -> Value:
        self._words.require("(")
        text, start = self._words.text, self._words.at
        end = text.find(")", start, start + 60)
        spelling = text[start:end].strip() if end >= 0 else ""
        moment = read_moment(spelling)
        if moment is None:
            raise self._words.problem(_say_no_date(spelling), token.start)
        self._words.at = end + 1
        return Value(moment)

    def read_list(self, read: Callable[[], _Part]) -> list[_Part]:
        parts = [read()]
        while self._words.take_sign(","):
            parts.append(read())
        return parts

    @contextmanager
    def deeper(self, token: Token) -> Iterator[None]:
        self._depth += 1
        if self._depth > MOST_DEEP:
            problem = f"this is nested more than {MOST_DEEP} deep"
            raise self._words.problem(problem, token.start)
        yield
        self._depth -= 1


def _say_no_date(spelling: str) -> str:
    if spelling.lower() in _MOVING:
        return (
            f"date({spelling}) is not offered: the same query would give another result every day, "
            f"and what was sent would have to be sent again. Write the day: date(2026-01-31)"
        )
    return (
        f"{shorten(spelling)!r} is no date; write date(2026-01-31) or date(2026-01-31T12:30). "
        f"A property that is spelled like that is a date already"
    )
