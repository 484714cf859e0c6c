"""The expressions of a query: what follows WHERE, what is shown, what is sorted by.

Law: any text either is an expression or raises `QueryError`, however deeply it is nested.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from lamina.core.notes.query.dates import SHORTHANDS, read_date, read_span
from lamina.core.notes.query.functions.table import FUNCTIONS
from lamina.core.notes.query.scanner import (
    LAMBDA,
    LINK,
    RESERVED_WORDS,
    TAG,
    Scanner,
    Token,
    shorten,
)
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

# Every level takes some frames of Python's stack, here and when the query runs.
MOST_DEEP = 30
MOST_DIGITS = 15
_CONSTANTS = {"true": True, "false": False, "null": None}
# From the loosest to the tightest; words are operators where an operator can stand.
_RANKS: tuple[dict[str, str], ...] = (
    {"and": "and", "or": "or", "&": "and", "|": "or"},
    {sign: sign for sign in ("=", "!=", "<", "<=", ">", ">=")} | {"in": "in"},
    {"+": "+", "-": "-"},
    {"*": "*", "/": "/", "%": "%"},
)
_IN_PARENTHESES = re.compile(r"\(\s*([^()\n]{1,200}?)\s*\)")
_Part = TypeVar("_Part")


class ExpressionParser:
    """Every method reads one rule of the grammar, from the scanner's position."""

    def __init__(self, words: Scanner) -> None:
        self._words = words
        self._depth = 0

    def read_expression(self) -> Expression:
        return self._read_rank(0)

    def _read_rank(self, rank: int) -> Expression:
        """Operands joined by the operators of a rank, from the left."""
        if rank == len(_RANKS):
            return self._read_access()
        if rank <= 1 and (token := self._words.look()).kind == "word" and token.value == "not":
            self._words.take()
            with self.deeper(token):
                first: Expression = Negation(self._read_rank(1))
        else:
            first = self._read_rank(rank + 1)
        rest: list[tuple[str, Expression]] = []
        while (operator := self._take_operator(rank)) is not None:
            rest.append((operator, self._read_rank(min(rank + 1, len(_RANKS)))))
        return Operations(first, tuple(rest)) if rest else first

    def _take_operator(self, rank: int) -> str | None:
        token = self._words.look()
        if token.kind not in ("sign", "word") or token.value not in _RANKS[rank]:
            return None
        self._words.take()
        return _RANKS[rank][token.value]

    # -- operands --------------------------------------------------------------------------------

    def _read_access(self) -> Expression:
        """An operand with all that is taken out of it: `.name`, `[place]`, `(values)`."""
        base = self._read_operand()
        steps: list[Index | Arguments] = []
        while True:
            token = self._words.look()
            # With a blank in front it begins something else.
            is_step = token.kind == "sign" and token.value in (".", "[", "(")
            if not is_step or token.start != self._words.at:
                break
            with self.deeper(token):
                self._words.take()
                if token.value == ".":
                    steps.append(Index(Value(self._take_name())))
                elif token.value == "[":
                    steps.append(Index(self.read_expression()))
                    self._words.require("]")
                else:
                    steps.append(Arguments(self.read_until(")")))
        return Access(base, tuple(steps)) if steps else base

    def _take_name(self) -> str:
        token = self._words.take()
        if token.kind != "word":
            raise self._words.unexpected('a name behind the dot, or ["name"]', token)
        return token.spelling

    def _read_operand(self) -> Expression:
        words = self._words
        if (link := words.take_match(LINK)) is not None:
            return LinkLiteral(link[0])
        if (tag := words.take_match(TAG)) is not None:
            return Value(tag[0])
        if (names := words.take_match(LAMBDA)) is not None:
            return self._read_lambda(names)
        token = words.take()
        match token.kind, token.value:
            case "text", text:
                return Value(text)
            case "number", _:
                return Value(self._number(token, ""))
            case "word", _:
                return self._read_word(token)
            case "sign", "!":
                with self.deeper(token):
                    return Negation(self._read_access())
            case "sign", "-" if words.look().kind == "number" and words.look().start == token.end:
                return Value(self._number(words.take(), "-"))
            case "sign", "(":
                with self.deeper(token):
                    inner = self.read_expression()
                    is_list = words.next_is(",")
                    words.require(")", expected=") (a list is [1, 2])" if is_list else ")")
                    return inner
            case "sign", "[":
                with self.deeper(token):
                    return ListLiteral(self.read_until("]"))
            case "sign", "{":
                with self.deeper(token):
                    return self._read_object()
        raise words.unexpected("a field, a value or a function", token)

    def _number(self, token: Token, sign: str) -> float:
        if sum(map(str.isdigit, token.spelling)) > MOST_DIGITS:
            problem = f"a number has at most {MOST_DIGITS} digits"
            raise self._words.problem(problem, token.start)
        spelling = sign + token.spelling
        return float(spelling) if "." in spelling else int(spelling)

    def _read_lambda(self, match: re.Match[str]) -> Lambda:
        names = tuple(name.strip() for name in match[1].split(",") if name.strip())
        with self.deeper(Token("sign", "(", "(", match.start())):
            return Lambda(names, self.read_expression())

    def _read_object(self) -> ObjectLiteral:
        names: list[str] = []
        members: list[Expression] = []
        while not self._words.take_sign("}"):
            if names:
                self._words.require(",", expected=", or }")
            token = self._words.take()
            if token.kind not in ("word", "text"):
                raise self._words.unexpected("a name, as in { a: 1 }", token)
            names.append(token.value if token.kind == "text" else token.spelling)
            self._words.require(":")
            members.append(self.read_expression())
        return ObjectLiteral(tuple(names), tuple(members))

    def _read_word(self, token: Token) -> Expression:
        word = token.value
        is_call = self._words.next_is("(") and (word not in RESERVED_WORDS or word == "sort")
        if is_call and (word in FUNCTIONS or self._words.look().start == token.end):
            return self._read_special(token) or self._read_call(token)
        if word in _CONSTANTS:
            return Value(_CONSTANTS[word])
        if word in RESERVED_WORDS and word != "row":
            raise self._words.unexpected(
                f"a field, a value or a function (a field of this name is row.{word})", token
            )
        if word == "group" and self._words.look().value == "by":
            raise self._words.unexpected("something in front of GROUP BY", token)
        return Variable(token.spelling)

    def _read_special(self, token: Token) -> Expression | None:
        """A date or a span that is written without quotes."""
        if token.value not in ("date", "dur"):
            return None
        before = self._words.at
        match = self._words.take_match(_IN_PARENTHESES)
        if match is not None and token.value == "date":
            if match[1].lower() in SHORTHANDS:
                return ClockWord(match[1].lower())
            if (date := read_date(match[1])) is not None:
                return Value(date)
        elif match is not None and (span := read_span(match[1])) is not None:
            return Value(span)
        self._words.at = before
        if match is not None and match[1][0].isdigit():
            raise self._words.problem(_say_wrong(token.value, match[1]), token.start)
        return None

    def _read_call(self, token: Token) -> QueryCall:
        function = FUNCTIONS.get(token.value)
        if function is None:
            name = shorten(token.spelling)
            raise self._words.problem(f"there is no function {name!r}", token.start)
        self._words.require("(")
        with self.deeper(token):
            arguments = self.read_until(")")
        if not function.least <= len(arguments) <= function.most:
            span = (
                str(function.least)
                if function.least == function.most
                else f"{function.least} to {function.most}"
            )
            problem = f"{token.value}() takes {span} values, found {len(arguments)}"
            raise self._words.problem(problem, token.start)
        return QueryCall(token.value, arguments)

    def read_until(self, closing: str) -> tuple[Expression, ...]:
        parts = [] if self._words.next_is(closing) else self.read_list(self.read_expression)
        self._words.require(closing, expected=f", or {closing}")
        return tuple(parts)

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


def _say_wrong(word: str, spelling: str) -> str:
    if word == "date":
        form = "date(2026-01-31), date(2026-01-31T12:30) or date(today)"
        return f"{shorten(spelling)!r} is no date; write {form}"
    return f"{shorten(spelling)!r} is no span of time; write dur(3 days) or dur(2h 30m)"
