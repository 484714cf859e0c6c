"""The text of a query to what it means, and what is wrong with it."""

import re
import sys
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from tests.strategies import thorough

from lamina.errors import QueryError, UsageError
from lamina.notes.query.expression_parser import MOST_DEEP
from lamina.notes.query.parser import parse_query
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
    SortKey,
    TagSource,
    Value,
    spell,
)


def where(text: str) -> Expression:
    parsed = parse_query(f"LIST WHERE {text}").where
    assert parsed is not None
    return parsed


def spell_query(query: ParsedQuery) -> str:
    """A query in one line, as it would be read again."""
    source = "" if query.source is None else f"FROM {spell(query.source)}"
    condition = "" if query.where is None else f"WHERE {spell(query.where)}"
    group = "" if query.group is None else f"GROUP BY {spell_column(query.group)}"
    keys = ", ".join(spell(key.by) + " DESC" * key.descending for key in query.sort)
    words = (
        query.shape.upper(),
        "" if query.with_id else "WITHOUT ID",
        ", ".join(map(spell_column, query.columns)),
        *(source, condition, group),
        f"SORT {keys}" if keys else "",
        "" if query.limit is None else f"LIMIT {query.limit}",
    )
    return " ".join(filter(None, words))


def spell_column(column: Column) -> str:
    name = "" if column.name is None else f" AS {spell(Value(column.name))}"
    return spell(column.shown) + name


def problem(text: str) -> str:
    with pytest.raises(QueryError) as caught:
        parse_query(text)
    return str(caught.value)


# -- what a query means --------------------------------------------------------------------------


def test_a_query_is_read_clause_by_clause() -> None:
    text = """
        TABLE WITHOUT ID status, due AS "Due"
        FROM #project and "work" or [[Tides]]
        WHERE status != "done"
        GROUP BY lower(status)
        SORT due DESC, file.name
        LIMIT 20
    """
    assert parse_query(text) == ParsedQuery(
        shape="table",
        with_id=False,
        columns=(Column(Property(("status",))), Column(Property(("due",)), "Due")),
        source=Disjunction(
            (Conjunction((TagSource("project"), FolderSource("work"))), LinkSource("Tides"))
        ),
        where=Comparison("!=", Property(("status",)), Value("done")),
        group=Column(QueryCall("lower", (Property(("status",)),))),
        sort=(SortKey(Property(("due",)), True), SortKey(FileProperty("name"))),
        limit=20,
    )


def test_words_of_the_language_have_no_case_and_names_keep_theirs() -> None:
    query = parse_query("list Status From #A Where Not X")
    assert query == parse_query("LIST Status FROM #A WHERE not X")
    assert query.columns[0].head == "Status"


def test_clauses_come_in_any_order() -> None:
    parts = ["FROM #a", "WHERE x", "GROUP BY y", "SORT z", "LIMIT 3"]
    one = parse_query(" ".join(["LIST", *parts]))
    assert parse_query(" ".join(["LIST", *reversed(parts)])) == one


def test_not_binds_closer_than_and_and_and_closer_than_or() -> None:
    a, b, c = (Property((name,)) for name in "abc")
    assert where("a or b and not c") == Disjunction((a, Conjunction((b, Negation(c)))))
    assert where("(a or b) and c") == Conjunction((Disjunction((a, b)), c))
    assert where("not a = b") == Negation(Comparison("=", a, b))
    assert where("!a and !b") == Conjunction((Negation(a), Negation(b)))


def test_places_are_combined_as_conditions_are() -> None:
    source = parse_query('LIST FROM -#a and !"b" or not (#c or [[]])').source
    assert source == Disjunction(
        (
            Conjunction((Negation(TagSource("a")), Negation(FolderSource("b")))),
            Negation(Disjunction((TagSource("c"), LinkSource("")))),
        )
    )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("status", ("status",)),
        ("due-date", ("due-date",)),
        ("größe", ("größe",)),
        ("हिन्दी", ("हिन्दी",)),
        ("⏳", ("⏳",)),
        ("a.b.c", ("a", "b", "c")),
        ('a["b c"].d', ("a", "b c", "d")),
        ('row["due date"]', ("due date",)),
        ("row.limit", ("limit",)),
        ("a.from", ("a", "from")),
        ("row.file.name", ("file", "name")),
        ("date", ("date",)),
        ("lower", ("lower",)),
        ("group", ("group",)),
        ("id", ("id",)),
        ("as", ("as",)),
        ("desc", ("desc",)),
        ("list", ("list",)),
    ],
)
def test_a_property_goes_by_its_name(text: str, names: tuple[str, ...]) -> None:
    assert where(text) == Property(names)
    assert parse_query(f"TABLE {text}, {text} AS x SORT {text} DESC, {text}").sort == (
        SortKey(Property(names), True),
        SortKey(Property(names)),
    )


def test_this_is_the_note_that_holds_the_query() -> None:
    assert where("this.status") == Property(("status",), True)
    assert where('this["file"].x') == Property(("file", "x"), True)
    assert where("this.file.mtime") == FileProperty("mtime", True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"a\\"b\\\\c\\nd"', 'a"b\\c\nd'),
        ("-12", -12),
        ("1.50", 1.5),
        ("TRUE", True),
        ("null", None),
        ("date(2026-01-31)", datetime(2026, 1, 31)),
        ("date( 2026-01-31T12:30 )", datetime(2026, 1, 31, 12, 30)),
        ("date(2026-01-31T12:30:15Z)", datetime(2026, 1, 31, 12, 30, 15)),
        ("date(2026-01-31T01:30+02:00)", datetime(2026, 1, 30, 23, 30)),
    ],
)
def test_a_value_is_what_is_written(text: str, value: object) -> None:
    read = where(text)
    assert read == Value(value)  # type: ignore[arg-type]
    assert isinstance(read, Value)
    assert type(read.value) is type(value)


def test_a_list_holds_any_values() -> None:
    assert where('x in ["a", 1, [], y]') == Comparison(
        "in",
        Property(("x",)),
        ListLiteral((Value("a"), Value(1), ListLiteral(()), Property(("y",)))),
    )


# -- what is wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: expected LIST or TABLE, found the end of the query"),
        ("TASK", "line 1, column 1: TASK is not offered"),
        ("LIST\nFROM x", 'line 2, column 6: expected #tag, "folder", [[note]], not or (, found'),
        ("LIST FROM #a #b", "column 14: expected and, or, another clause or the end, found '#b'"),
        ("LIST FROM #a, #b", "column 13: expected and, or, another clause or the end, found ','"),
        ("LIST FROM [[a", "column 11: this link is not closed by ]] on its line"),
        ("LIST FROM (#a", "column 14: expected ), found the end of the query"),
        ("LIST a, b", "column 7: LIST shows one value; TABLE shows several"),
        ("LIST a FLATTEN b", "column 8: FLATTEN is not offered"),
        ("LIST WITHOUT ID FROM #a", "column 17: expected something to show"),
        ("LIST WHERE a WHERE b", "column 14: WHERE stands here a second time; join the two by and"),
        ("LIST LIMIT 0", "column 12: expected a whole number from 1 to 10,000, found '0'"),
        ("LIST LIMIT 2.5", "column 12: expected a whole number"),
        ("LIST LIMIT -1", "column 12: expected a whole number"),
        ("LIST LIMIT 10001", "column 12: LIMIT is at most 10,000, found 10001"),
        ("LIST LIMIT " + "9" * 5000, "column 12: expected a whole number"),
        ("LIST WHERE 1234567890123456", "column 12: a number has at most 15 digits"),
        ("LIST WHERE a == 1", "column 14: == is written = here"),
        ("LIST WHERE a && b", "column 14: && is written and here"),
        ("LIST WHERE a = 'b'", 'a text stands in double quotes: "draft"'),
        ("LIST WHERE a = \u201cb\u201d", 'a text stands in straight quotes: "draft"'),
        ("LIST WHERE a\u200bb", "column 13: '\\u200b' (U+200B) means nothing here"),
        ('LIST WHERE "a\nb"', 'column 12: this text is not closed by " on its line'),
        ('LIST "a\\tb"', "column 8: '\\\\t' in a text is not known"),
        ("LIST WHERE #a", "a tag stands in FROM; elsewhere write contains(file.tags"),
        ("LIST WHERE a + 1", "there is no arithmetic"),
        ("LIST WHERE a < b < c", "column 18: comparisons do not follow one another"),
        ("LIST WHERE a in (1, 2)", "column 19: expected ) (a list is [1, 2]), found ','"),
        ("LIST WHERE a not in b", "column 14: write not in front"),
        ("LIST WHERE regextest(a, b)", "there is no function 'regextest'; there are contains,"),
        ("LIST WHERE contains(a)", "contains() takes 2 values, found 1"),
        ("LIST WHERE length(a b)", "expected , or ), found 'b'"),
        ("LIST file", "expected a field, as in file.name"),
        ("LIST file.inlinks", "expected one of file's fields (name, path,"),
        ("LIST file.name.x", "column 15: file.name has no parts"),
        ("LIST row", 'expected a name: row.due or row["due date"]'),
        ("LIST a[0]", 'column 8: expected a name in quotes, as in row["due date"]'),
        ("LIST WHERE sort", "(a property of this name is row.sort)"),
        ("LIST x AS 3", 'expected a name behind AS, as in AS "Due date"'),
        ("LIST WHERE due > 2026-01-31", "a date is written date(2026-01-31)"),
        ("LIST WHERE date(2026-02-30)", "'2026-02-30' is no date; write date(2026-01-31)"),
        ("LIST WHERE date(due) > 1", "A property that is spelled like that is a date already"),
    ],
)
def test_an_error_says_where_and_what_was_expected(text: str, message: str) -> None:
    assert message in problem(text)


@pytest.mark.parametrize("word", ["today", "NOW", "yesterday", "sow"])
def test_there_is_no_clock_and_the_error_says_why(word: str) -> None:
    assert f"date({word}) is not offered: the same query would give another" in problem(
        f"LIST WHERE due < date({word})"
    )


def test_an_error_can_be_told_apart_by_a_program() -> None:
    with pytest.raises(UsageError) as caught:
        parse_query("LIST\n  WHERE =")
    error = caught.value
    assert isinstance(error, QueryError)
    assert (error.code, error.line, error.column) == ("query", 2, 9)
    assert error.problem == snapshot("expected a property, a value or a function, found '='")


@pytest.mark.parametrize(
    "text",
    [
        "LIST WHERE " + "(" * 9_000,
        "LIST WHERE " + "not " * 2_000 + "a",
        "LIST WHERE " + "!" * 9_000 + "a",
        "LIST WHERE " + "[" * 9_000,
        "LIST WHERE " + "lower(" * 1_500,
        "LIST FROM " + "(" * 9_000,
        "LIST FROM " + "-" * 9_000 + "#a",
    ],
)
def test_what_is_too_deep_is_an_error_and_no_overflow(text: str) -> None:
    assert f"nested more than {MOST_DEEP} deep" in problem(text)


def test_as_deep_as_is_said_works_where_the_stack_is_half_used() -> None:
    text = f"LIST WHERE {'(' * MOST_DEEP}a{')' * MOST_DEEP}"

    def deeper(frames: int) -> ParsedQuery:
        return deeper(frames - 1) if frames else parse_query(text)

    assert deeper(sys.getrecursionlimit() // 3).where == Property(("a",))


def test_many_conditions_are_not_deep() -> None:
    many = parse_query("LIST WHERE " + " and ".join(["a = 1"] * 900)).where
    assert isinstance(many, Conjunction)
    assert len(many.parts) == 900


def test_a_query_is_not_longer_than_can_be_asked_of_every_note() -> None:
    text = "LIST WHERE " + "(" * 10_000
    assert problem(text) == snapshot(
        "query, line 1, column 10001: a query has at most 10,000 characters"
    )


# -- laws ----------------------------------------------------------------------------------------

PIECES = (
    "LIST", "TABLE", "WITHOUT ID", "AS", "FROM", "WHERE", "SORT", "DESC", "LIMIT", "GROUP BY",
    "and", "or", "not", "in", "true", "null", "date(2026-01-31)", "date(", "(", ")", "[", "]", "[[",
    "]]", ",", ".", "=", "!=", "<", "!", "-", "#a", '"f"', '"', "[[n]]", "file", "file.name", "row",
    "this", "a", "b.c", "3", "-1.5", "contains(", "length(a)", " ", "\n", "\\", "\x00", "\u2028",
    "\ud800",
)  # fmt: skip


@thorough
@given(
    st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=12).map(" ".join)
    | st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
    | st.lists(st.sampled_from(PIECES), max_size=12).map(lambda all_: "LIST " + " ".join(all_))
    | st.text(st.characters())
)
def test_any_text_is_a_query_or_a_query_error(text: str) -> None:
    try:
        parsed = parse_query(text)
    except QueryError as error:
        require_a_place(error, text)
    else:
        assert parse_query(spell_query(parsed)) == parsed


def require_a_place(error: QueryError, text: str) -> None:
    lines = text.split("\n")
    assert 1 <= error.line <= len(lines)
    assert 1 <= error.column <= len(lines[error.line - 1]) + 1
    assert "\n" not in str(error)


def _numbers() -> st.SearchStrategy[int | float]:
    return st.integers(-(10**14), 10**14) | st.decimals(
        -(10**6), 10**6, places=4, allow_nan=False
    ).map(float)


moments = st.datetimes(datetime(1000, 1, 1), datetime(9999, 12, 31))
constants = st.none() | st.booleans() | _numbers() | st.text() | moments
names = st.sampled_from(["a", "file", "row", "From", "group", "x y", "", "ß", '"', "3"]) | st.text()
leaves: st.SearchStrategy[Expression] = st.one_of(
    st.builds(Value, constants),
    st.builds(Property, st.lists(names, min_size=1, max_size=3).map(tuple), st.booleans()),
    st.builds(FileProperty, st.sampled_from(FileField.__args__), st.booleans()),  # type: ignore[attr-defined]
)


def _above(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    calls = st.sampled_from(list(ARGUMENT_COUNTS)).flatmap(
        lambda name: st.builds(
            QueryCall, st.just(name), st.tuples(*[inner] * ARGUMENT_COUNTS[name])
        )
    )
    operators = st.sampled_from(Operator.__args__)  # type: ignore[attr-defined]
    return st.one_of(
        calls,
        st.builds(ListLiteral, st.lists(inner, max_size=2).map(tuple)),
        st.builds(Comparison, operators, inner, inner),
        st.builds(Negation, inner),
        st.builds(Conjunction, several),
        st.builds(Disjunction, several),
    )


expressions = st.recursive(leaves, _above, max_leaves=8)
places: st.SearchStrategy[Expression] = st.recursive(
    st.builds(TagSource, st.from_regex(r"[^\s#\"()\[\],]+", fullmatch=True))
    | st.builds(FolderSource, st.text())
    | st.builds(LinkSource, st.text().filter(lambda text: not re.search(r"[\[\]\n]", text))),
    lambda inner: (
        st.builds(Negation, inner)
        | st.builds(Conjunction, st.lists(inner, min_size=2, max_size=3).map(tuple))
        | st.builds(Disjunction, st.lists(inner, min_size=2, max_size=3).map(tuple))
    ),
    max_leaves=5,
)
columns = st.builds(Column, expressions, st.none() | st.text())
queries = st.builds(
    ParsedQuery,
    shape=st.just("table"),
    columns=st.lists(columns, max_size=3).map(tuple),
    source=st.none() | places,
    where=st.none() | expressions,
    group=st.none() | columns,
    sort=st.lists(st.builds(SortKey, expressions, st.booleans()), max_size=2).map(tuple),
    limit=st.none() | st.integers(1, 10_000),
)


@thorough
@given(queries)
def test_a_query_that_is_spelled_out_is_read_as_the_same(query: ParsedQuery) -> None:
    assert parse_query(spell_query(query)) == query


def test_a_query_is_spelled_in_one_line_with_no_more_parentheses_than_it_needs() -> None:
    text = """table without id (due), ((a and b) or not (c))
      from (#x) and - "y" where (a = (b)) sort (due) desc, a asc limit 007"""
    assert spell_query(parse_query(text)) == snapshot(
        'TABLE WITHOUT ID due, a and b or not c FROM #x and not "y" WHERE a = b '
        "SORT due DESC, a LIMIT 7"
    )
