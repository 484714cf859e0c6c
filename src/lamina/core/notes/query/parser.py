"""From the text of a query to its meaning, by recursive descent.

Laws: any text either is a query or raises `QueryError`, which says where and what was expected; no
other error comes out, however long or deep the text is. Time is in proportion to the length.
"""

import re
from typing import cast, get_args

from lamina.core.notes.query.expression_parser import ExpressionParser
from lamina.core.notes.query.scanner import LINK, TAG, Scanner, Token
from lamina.core.notes.query.syntax import (
    Column,
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
    Shape,
    Sort,
    SortKey,
    SourceNegation,
    SourceOperations,
    TagSource,
    Where,
)

# A query runs over every note: one with ten thousand conditions would take minutes.
MOST_CHARACTERS = 10_000
_CLAUSES = ("FROM", "WHERE", "GROUP BY", "SORT", "FLATTEN", "LIMIT")
_DIRECTIONS = {"asc": False, "ascending": False, "desc": True, "descending": True}
_SHAPES = get_args(Shape)
_JOINTS = {"and": "and", "or": "or", "&": "and", "|": "or"}


def parse_query(text: str) -> ParsedQuery:
    """What a query means.

    Raises:
        QueryError: it is not a query; with line and column, and what was expected there.
    """
    return _Parser(text).read_query()


def parse_expression(text: str) -> Expression:
    """What a query within a sentence means: an expression on its own, behind a `=` or not.

    Raises:
        QueryError: it is not an expression; with line and column, and what was expected there.
    """
    return _Parser(text).read_alone()


class _Parser:
    """Every method reads one rule of the grammar, from the scanner's position."""

    def __init__(self, text: str) -> None:
        self._words = Scanner(text)
        # On the same scanner; it also counts the depth of sources.
        self._expressions = ExpressionParser(self._words)
        if len(text) > MOST_CHARACTERS:
            problem = f"a query has at most {MOST_CHARACTERS:,} characters"
            raise self._words.problem(problem, MOST_CHARACTERS)

    # -- the whole -------------------------------------------------------------------------------

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

    # -- where notes come from -------------------------------------------------------------------

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
        """What follows FROM has to be a clause: two tags in a row are a mistake."""
        start = self._words.find_next()
        if self._words.take_match(TAG) or self._words.take_match(LINK):
            raise self._words.problem("expected and, or, another clause or the end", start)
        token = self._words.look()
        if token.kind == "text" or token.value == ",":
            raise self._words.unexpected("and, or, another clause or the end", token)
