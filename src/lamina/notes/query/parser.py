"""From the text of a query to its meaning, by recursive descent.

Laws: any text either is a query or raises `QueryError`, which says where and what was expected; no
other error comes out, however long or deep the text is. Time is in proportion to the length.
"""

from typing import Any, Literal, cast

from lamina.notes.query.expression_parser import MOST_DIGITS, ExpressionParser
from lamina.notes.query.scanner import Scanner, Token
from lamina.notes.query.syntax import (
    Column,
    Expression,
    FolderSource,
    LinkSource,
    Negation,
    ParsedQuery,
    SortKey,
    TagSource,
)

# A query runs over every note: one with ten thousand conditions would take minutes.
MOST_CHARACTERS = 10_000
MOST_LIMIT = 10_000
_CLAUSES = ("FROM", "WHERE", "GROUP BY", "SORT", "LIMIT")
_DIRECTIONS = {"asc": False, "ascending": False, "desc": True, "descending": True}
# What people know from other tools, and why it is not here.
_ELSEWHERE = {
    "flatten": "FLATTEN is not offered",
    "task": "TASK is not offered: a query is LIST or TABLE",
    "calendar": "CALENDAR is not offered: a query is LIST or TABLE",
}


def parse_query(text: str) -> ParsedQuery:
    """What a query means.

    Raises:
        QueryError: it is not a query; with line and column, and what was expected there.
    """
    return _Parser(text).read_query()


class _Parser:
    """Every method reads one rule of the grammar, from the scanner's position."""

    def __init__(self, text: str) -> None:
        self._words = Scanner(text)
        # On the same scanner; it also counts the depth of sources.
        self._expressions = ExpressionParser(self._words)

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
            return self._expressions.read_list(self._read_column)
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
                return self._expressions.read_expression()
            case "GROUP BY":
                return self._read_column()
            case "SORT":
                return self._expressions.read_list(self._read_sort_key)
        return self._read_limit()

    def _read_column(self) -> Column:
        expression = self._expressions.read_expression()
        if not self._words.take_words("as"):
            return Column(expression)
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

    def _read_limit(self) -> int:
        token = self._words.take()
        digits = token.spelling.lstrip("0")
        if token.kind != "number" or not digits.isdecimal() or len(digits) > MOST_DIGITS:
            raise self._words.unexpected(f"a whole number from 1 to {MOST_LIMIT:,}", token)
        if int(digits) > MOST_LIMIT:
            problem = f"LIMIT is at most {MOST_LIMIT:,}, found {digits}"
            raise self._words.problem(problem, token.start)
        return int(digits)

    # -- where notes come from -------------------------------------------------------------------

    def _read_source(self) -> Expression:
        return self._expressions.read_joined(self._read_one_source, in_source=True)

    def _read_one_source(self) -> Expression:
        token = self._words.take(in_source=True)
        match token.kind, token.value:
            case "tag", tag:
                return TagSource(tag)
            case "text", folder:
                return FolderSource(folder)
            case "link", name:
                return LinkSource(name)
            case ("word", "not") | ("sign", "!" | "-"):
                with self._expressions.deeper(token):
                    return Negation(self._read_one_source())
            case "sign", "(":
                with self._expressions.deeper(token):
                    source = self._read_source()
                    self._words.require(")", in_source=True)
                    return source
        raise self._words.unexpected('#tag, "folder", [[note]], not or (', token)

    def _at_clause_or_end(self) -> bool:
        before = self._words.at
        token = self._words.look()
        is_at_one = token.kind == "end" or any(
            self._words.take_words(*clause.lower().split()) for clause in _CLAUSES
        )
        self._words.at = before
        return is_at_one
