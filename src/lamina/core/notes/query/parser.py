"""Parses queries, their clauses and their expressions, by recursive descent."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar, cast, get_args

from lamina.core.notes.query.dates import SHORTHANDS, read_date, read_span
from lamina.core.notes.query.query_functions import FUNCTIONS
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
    Column,
    CsvSource,
    Expression,
    Flatten,
    FolderSource,
    GroupBy,
    Index,
    Lambda,
    Limit,
    LinkLiteral,
    LinkSource,
    ListLiteral,
    Negation,
    ObjectLiteral,
    Operations,
    ParsedQuery,
    QueryCall,
    QuerySource,
    QueryStep,
    Shape,
    Sort,
    SortKey,
    SourceNegation,
    SourceOperations,
    TagSource,
    Value,
    Variable,
    Where,
)

# Every level uses several Python stack frames, here and when the query runs.
MAX_DEEP = 30
MAX_DIGITS = 15
_CONSTANTS = {"true": True, "false": False, "null": None}
# From the loosest to the tightest; words are operators wherever an operator can occur.
_RANKS: tuple[dict[str, str], ...] = (
    {"and": "and", "or": "or", "&": "and", "|": "or"},
    {sign: sign for sign in ("=", "!=", "<", "<=", ">", ">=")} | {"in": "in"},
    {"+": "+", "-": "-"},
    {"*": "*", "/": "/", "%": "%"},
)
_IN_PARENTHESES = re.compile(r"\(\s*([^()\n]{1,200}?)\s*\)")
_Part = TypeVar("_Part")


class ExpressionParser:
    """A parser for expressions; each method reads one grammar rule at the scanner's position."""

    def __init__(self, words: Scanner) -> None:
        self._words = words
        self._depth = 0

    def read_expression(self) -> Expression:
        return self._read_rank(0)

    def _read_rank(self, rank: int) -> Expression:
        """Read operands joined by operators of the same rank, from the left."""
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
        """Read an operand with all its accesses: `.name`, `[place]`, `(values)`."""
        base = self._read_operand()
        steps: list[Index | Arguments] = []
        while True:
            token = self._words.look()
            # After a space, it starts something else.
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
        if sum(map(str.isdigit, token.spelling)) > MAX_DIGITS:
            problem = f"a number has at most {MAX_DIGITS} digits"
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
        """Read an unquoted date or span."""
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
        if self._depth > MAX_DEEP:
            problem = f"this is nested more than {MAX_DEEP} deep"
            raise self._words.problem(problem, token.start)
        yield
        self._depth -= 1


def _say_wrong(word: str, spelling: str) -> str:
    if word == "date":
        form = "date(2026-01-31), date(2026-01-31T12:30) or date(today)"
        return f"{shorten(spelling)!r} is no date; write {form}"
    return f"{shorten(spelling)!r} is no span of time; write dur(3 days) or dur(2h 30m)"


# A query runs over every note: one with ten thousand conditions would take minutes.
MAX_CHARACTERS = 10_000
_CLAUSES = ("FROM", "WHERE", "GROUP BY", "SORT", "FLATTEN", "LIMIT")
_DIRECTIONS = {"asc": False, "ascending": False, "desc": True, "descending": True}
_SHAPES = get_args(Shape)
_JOINTS = {"and": "and", "or": "or", "&": "and", "|": "or"}


def parse_query(text: str) -> ParsedQuery:
    """Parse a query.

    Raises:
        QueryError: it is not a query; with line and column, and what was expected there.
    """
    return _Parser(text).read_query()


def parse_expression(text: str) -> Expression:
    """Parse an inline query: a single expression, with or without a leading `=`.

    Raises:
        QueryError: it is not an expression; with line and column, and what was expected there.
    """
    return _Parser(text).read_alone()


class _Parser:
    """A parser for queries; each method reads one grammar rule at the scanner's position."""

    def __init__(self, text: str) -> None:
        self._words = Scanner(text)
        # Uses the same scanner; also counts the nesting depth of sources.
        self._expressions = ExpressionParser(self._words)
        if len(text) > MAX_CHARACTERS:
            problem = f"a query has at most {MAX_CHARACTERS:,} characters"
            raise self._words.problem(problem, MAX_CHARACTERS)

    # -- whole query -----------------------------------------------------------------------------

    def read_alone(self) -> Expression:
        self._words.take_sign("=")
        expression = self._expressions.read_expression()
        if (token := self._words.look()).kind != "end":
            raise self._words.unexpected("an operator or the end", token)
        return expression

    def read_query(self) -> ParsedQuery:
        shape = self._read_shape()
        with_id = not (shape in ("list", "table") and self._words.take_words("without", "id"))
        columns = [] if self._at_clause_or_end() else self._read_columns(shape)
        if shape == "calendar" and not columns:
            raise self._words.unexpected("a date, as in CALENDAR due", self._words.look())
        source: QuerySource | None = None
        steps: list[QueryStep] = []
        while (token := self._words.look()).kind != "end":
            name = self._take_clause(token)
            if name != "FROM":
                steps.append(self._read_step(name))
            elif source is None:
                source = self._read_source()
                self._check_end_of_source()
            else:
                problem = "FROM stands here a second time; join the two by and"
                raise self._words.problem(problem, token.start)
        return ParsedQuery(
            shape=shape, with_id=with_id, columns=tuple(columns), source=source, steps=tuple(steps)
        )

    def _read_shape(self) -> Shape:
        token = self._words.take()
        if token.kind == "word" and token.value in _SHAPES:
            return cast(Shape, token.value)
        raise self._words.unexpected("LIST, TABLE, TASK or CALENDAR", token)

    def _read_columns(self, shape: Shape) -> list[Column]:
        if shape == "table":
            return self._expressions.read_list(self._read_column)
        if shape == "task":
            raise self._words.unexpected(f"{', '.join(_CLAUSES)} or the end", self._words.look())
        column = self._read_column()
        if self._words.next_is(","):
            token = self._words.look()
            word = shape.upper()
            raise self._words.problem(f"{word} shows one value; TABLE shows several", token.start)
        return [column]

    def _take_clause(self, token: Token) -> str:
        for name in _CLAUSES:
            if self._words.take_words(*name.lower().split()):
                return name
        clauses = ", ".join(_CLAUSES)
        raise self._words.unexpected(f"an operator, {clauses} or the end", token)

    def _read_step(self, name: str) -> QueryStep:
        match name:
            case "WHERE":
                return Where(self._expressions.read_expression())
            case "GROUP BY":
                return GroupBy(self._read_column())
            case "FLATTEN":
                return Flatten(self._read_column())
            case "SORT":
                return Sort(tuple(self._expressions.read_list(self._read_sort_key)))
        return Limit(self._expressions.read_expression())

    def _read_column(self) -> Column:
        start = self._words.find_next()
        expression = self._expressions.read_expression()
        spelling = self._words.text[start : self._words.at]
        if not self._words.take_words("as"):
            return Column(expression, re.sub(r"\s*\n\s*", "", spelling).strip())
        token = self._words.take()
        if token.kind not in ("text", "word"):
            raise self._words.unexpected('a name behind AS, as in AS "Due date"', token)
        return Column(expression, token.value if token.kind == "text" else token.spelling)

    def _read_sort_key(self) -> SortKey:
        by = self._expressions.read_expression()
        token = self._words.look()
        if token.kind != "word" or token.value not in _DIRECTIONS:
            return SortKey(by)
        self._words.take()
        return SortKey(by, _DIRECTIONS[token.value])

    def _at_clause_or_end(self) -> bool:
        before = self._words.at
        token = self._words.look()
        if token.value == "sort" and self._words.text.startswith("(", token.end):
            return False
        is_at_one = token.kind == "end" or any(
            self._words.take_words(*clause.lower().split()) for clause in _CLAUSES
        )
        self._words.at = before
        return is_at_one

    # -- sources ---------------------------------------------------------------------------------

    def _read_source(self) -> QuerySource:
        first = self._read_one_source()
        rest: list[tuple[str, QuerySource]] = []
        while (token := self._look_for_joint()) is not None:
            self._words.take()
            rest.append((_JOINTS[token.value], self._read_one_source()))
        return SourceOperations(first, tuple(rest)) if rest else first

    def _look_for_joint(self) -> Token | None:
        token = self._words.look()
        is_joint = token.kind in ("word", "sign") and token.value in _JOINTS
        return token if is_joint else None

    def _read_one_source(self) -> QuerySource:
        words = self._words
        if (tag := words.take_match(TAG)) is not None:
            return TagSource(tag[1])
        if (link := words.take_match(LINK)) is not None and not link[0].startswith("!"):
            return LinkSource(link[1])
        token = words.take()
        match token.kind, token.value:
            case "text", folder:
                return FolderSource(folder)
            case "word", "outgoing" | "incoming" | "csv":
                return self._read_special_source(token)
            case ("word", "not") | ("sign", "!" | "-"):
                with self._expressions.deeper(token):
                    return SourceNegation(self._read_one_source())
            case "sign", "(":
                with self._expressions.deeper(token):
                    source = self._read_source()
                    words.require(")")
                    return source
        if words.text.startswith("[[", token.start):
            raise words.problem("this link is not closed by ]] on its line", token.start)
        raise words.unexpected('#tag, "folder", [[note]], outgoing([[note]]), not or (', token)

    def _read_special_source(self, token: Token) -> QuerySource:
        self._words.require("(")
        source: QuerySource
        if token.value == "csv":
            path = self._words.take()
            if path.kind != "text":
                raise self._words.unexpected('a path, as in csv("costs.csv")', path)
            source = CsvSource(path.value)
        else:
            link = self._words.take_match(LINK)
            if link is None:
                raise self._words.unexpected("a link, as in outgoing([[note]])", self._words.look())
            source = LinkSource(link[1], is_outgoing=token.value == "outgoing")
        self._words.require(")")
        return source

    def _check_end_of_source(self) -> None:
        """Require a clause after FROM: two consecutive tags are a mistake."""
        start = self._words.find_next()
        if self._words.take_match(TAG) or self._words.take_match(LINK):
            raise self._words.problem("expected and, or, another clause or the end", start)
        token = self._words.look()
        if token.kind == "text" or token.value == ",":
            raise self._words.unexpected("and, or, another clause or the end", token)
