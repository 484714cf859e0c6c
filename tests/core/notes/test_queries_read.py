"""The text of a query to what it means, and what is wrong with it."""

import sys
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from tests.strategies import thorough

from lamina.core.notes.query.parser import MAX_DEEP, parse_expression, parse_query
from lamina.core.notes.query.syntax import (
    Access,
    Arguments,
    ClockWord,
    Column,
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
    Sort,
    SortKey,
    SourceNegation,
    SourceOperations,
    TagSource,
    Value,
    Variable,
    Where,
)
from lamina.core.notes.query.values import TimeSpan
from lamina.errors import QueryError, UsageError


def read(text: str) -> Expression:
    return parse_expression(text)


def source(text: str) -> QuerySource | None:
    return parse_query(f"LIST FROM {text}").source


def problem(text: str) -> str:
    with pytest.raises(QueryError) as caught:
        parse_query(text)
    return str(caught.value)


# -- what a query means --------------------------------------------------------------------------


def test_a_query_is_read_clause_by_clause_and_keeps_their_order() -> None:
    text = """
        // What is open.
        TABLE WITHOUT ID status, due AS "Due"
        FROM #project and "work"
        FLATTEN file.tasks AS t
        WHERE !t.completed
        GROUP BY status AS state
        SORT due DESC, file.name
        WHERE state
        LIMIT 5
    """
    assert parse_query(text) == ParsedQuery(
        shape="table",
        with_id=False,
        columns=(Column(Variable("status"), "status"), Column(Variable("due"), "Due")),
        source=SourceOperations(TagSource("project"), (("and", FolderSource("work")),)),
        steps=(
            Flatten(Column(Access(Variable("file"), (Index(Value("tasks")),)), "t")),
            Where(Negation(Access(Variable("t"), (Index(Value("completed")),)))),
            GroupBy(Column(Variable("status"), "state")),
            Sort((
                SortKey(Variable("due"), True),
                SortKey(Access(Variable("file"), (Index(Value("name")),))),
            )),
            Where(Variable("state")),
            Limit(Value(5)),
        ),
    )  # fmt: skip


def test_words_of_the_language_have_no_case_and_names_keep_theirs() -> None:
    assert parse_query("list Due from #A where X") == parse_query("LIST Due FROM #A WHERE X")
    assert parse_query("LIST Due").columns == (Column(Variable("Due"), "Due"),)


@pytest.mark.parametrize("shape", ["LIST", "TABLE", "TASK", "CALENDAR due"])
def test_a_query_is_of_one_of_four_shapes(shape: str) -> None:
    assert parse_query(shape).shape == shape.split()[0].lower()


def test_a_column_is_called_what_it_is_spelled() -> None:
    query = parse_query('TABLE  a +\n b, choice(x, "y", 1)   AS Z')
    assert [column.name for column in query.columns] == ["a +b", "Z"]


def test_operators_of_one_rank_are_taken_from_the_left_and_ranks_nest() -> None:
    assert read("a or b and c") == Operations(
        Variable("a"), (("or", Variable("b")), ("and", Variable("c")))
    )
    assert read("1 + 2 * 3 < 4") == Operations(
        Operations(
            Value(1), (("+", Operations(Value(2), (("*", Value(3)),))),)
        ),
        (("<", Value(4)),),
    )  # fmt: skip
    assert read("!a = b") == Operations(Negation(Variable("a")), (("=", Variable("b")),))
    assert read("not a = b") == Negation(Operations(Variable("a"), (("=", Variable("b")),)))


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ('"a \\"b\\" \\\\ \\d"', Value('a "b" \\ \\d')),
        ("-1.5", Value(-1.5)),
        ("a -1", Operations(Variable("a"), (("-", Value(1)),))),
        ("a-1", Variable("a-1")),
        ("true", Value(True)),
        ("null", Value(None)),
        ("#tag/x", Value("#tag/x")),
        ("[[Note#Part|name]]", LinkLiteral("[[Note#Part|name]]")),
        ("[[1, 2], 3]", ListLiteral((ListLiteral((Value(1), Value(2))), Value(3)))),
        ('{ a: 1, "b c": 2 }', ObjectLiteral(("a", "b c"), (Value(1), Value(2)))),
        ("date(2026-01-31)", Value(datetime(2026, 1, 31))),
        ("date(2026-01)", Value(datetime(2026, 1, 1))),
        ("date( today )", ClockWord("today")),
        ("date(due)", QueryCall("date", (Variable("due"),))),
        ("dur(2h 30m)", Value(TimeSpan((0, 0, 0, 0, 2, 30, 0, 0)))),
        ('dur("1 d")', QueryCall("dur", (Value("1 d"),))),
        ("(x, y) => x", Lambda(("x", "y"), Variable("x"))),
        ('row["due date"]', Access(Variable("row"), (Index(Value("due date")),))),
        ("rows.file[0].path", Access(
            Variable("rows"), (Index(Value("file")), Index(Value(0)), Index(Value("path")))
        )),
        ("((x) => x)(1)", Access(Lambda(("x",), Variable("x")), (Arguments((Value(1),)),))),
        ("größe", Variable("größe")),
        ("🎅", Variable("🎅")),
        ("sort(a)", QueryCall("sort", (Variable("a"),))),
    ],
)  # fmt: skip
def test_an_expression_is_what_is_written(text: str, meaning: Expression) -> None:
    assert read(text) == read(f"= {text}") == meaning


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("#a/b", TagSource("a/b")),
        ('"folder/note"', FolderSource("folder/note")),
        ("[[Tides]]", LinkSource("Tides")),
        ("[[]]", LinkSource("")),
        ("outgoing([[Tides]])", LinkSource("Tides", is_outgoing=True)),
        ("-#a", SourceNegation(TagSource("a"))),
        ("!#a", SourceNegation(TagSource("a"))),
        ("#a & (#b | #c)", SourceOperations(
            TagSource("a"), (("and", SourceOperations(TagSource("b"), (("or", TagSource("c")),))),)
        )),
    ],
)  # fmt: skip
def test_a_source_is_what_is_written(text: str, meaning: QuerySource) -> None:
    assert source(text) == meaning


# -- what is wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: expected LIST, TABLE, TASK or CALENDAR, found the end"),
        ("FIND x", "column 1: expected LIST, TABLE, TASK or CALENDAR, found 'FIND'"),
        ("LIST a, b", "LIST shows one value; TABLE shows several"),
        ("TASK a", "expected FROM, WHERE, GROUP BY, SORT, FLATTEN, LIMIT or the end, found 'a'"),
        ("CALENDAR", "expected a date, as in CALENDAR due, found the end"),
        ("LIST FROM", 'column 10: expected #tag, "folder", [[note]], outgoing([[note]]), not or'),
        ("LIST FROM #a #b", "column 14: expected and, or, another clause or the end"),
        ('LIST FROM #a, "b"', "expected and, or, another clause or the end, found ','"),
        ("LIST FROM #a FROM #b", "FROM stands here a second time; join the two by and"),
        ("LIST FROM [[a", "this link is not closed by ]] on its line"),
        ("LIST WHERE a ==  b", "write = in place of =="),
        ("LIST WHERE a && b", "write and in place of &&"),
        ("LIST WHERE 'a'", "a text stands in double quotes"),
        ('LIST WHERE "a', 'this text is not closed by "'),
        ("LIST WHERE a = “b”", "a text stands in straight quotes"),
        ("LIST WHERE (a, b)", "expected ) (a list is [1, 2]), found ','"),
        ("LIST WHERE foo(a)", "column 12: there is no function 'foo'"),
        ("LIST WHERE contains(a)", "contains() takes 2 values, found 1"),
        ("LIST WHERE round(1, 2, 3)", "round() takes 1 to 2 values, found 3"),
        ("LIST WHERE date(2026-02-30)", "'2026-02-30' is no date; write date(2026-01-31)"),
        ("LIST WHERE dur(3 moons)", "'3 moons' is no span of time; write dur(3 days)"),
        ("LIST WHERE a.3", 'expected a name behind the dot, or ["name"]'),
        ("LIST WHERE 1234567890123456", "a number has at most 15 digits"),
        ("LIST WHERE limit = 3", "a field of this name is row.limit"),
        ("LIST x AS 3", 'expected a name behind AS, as in AS "Due date"'),
        ("TABLE status due", "expected an operator, FROM, WHERE, GROUP BY, SORT, FLATTEN, LIMIT"),
    ],
)
def test_an_error_says_where_and_what_was_expected(text: str, message: str) -> None:
    assert message in problem(text)


def test_an_error_can_be_told_apart_by_a_program() -> None:
    with pytest.raises(UsageError) as caught:
        parse_query("LIST\n  WHERE =")
    error = caught.value
    assert isinstance(error, QueryError)
    assert (error.code, error.line, error.column) == ("query", 2, 9)
    assert error.problem == snapshot("expected a field, a value or a function, found '='")


@pytest.mark.parametrize(
    "text",
    [
        "LIST WHERE " + "(" * 9_000,
        "LIST WHERE " + "not " * 2_000 + "a",
        "LIST WHERE " + "!" * 9_000 + "a",
        "LIST WHERE " + "[" * 9_000,
        "LIST WHERE " + "{a:" * 3_000,
        "LIST WHERE " + "(x) => " * 1_400,
        "LIST WHERE " + "lower(" * 1_500,
        "LIST WHERE " + "a[" * 4_000,
        "LIST FROM " + "(" * 9_000,
        "LIST FROM " + "-" * 9_000 + "#a",
    ],
)
def test_what_is_too_deep_is_an_error_and_no_overflow(text: str) -> None:
    assert f"nested more than {MAX_DEEP} deep" in problem(text)


def test_as_deep_as_is_said_works_where_the_stack_is_half_used() -> None:
    text = f"{'(' * MAX_DEEP}a{')' * MAX_DEEP}"

    def deeper(frames: int) -> Expression:
        return deeper(frames - 1) if frames else parse_expression(text)

    assert deeper(sys.getrecursionlimit() // 3) == Variable("a")


def test_many_conditions_and_many_steps_are_not_deep() -> None:
    many = parse_expression(" and ".join(["a = 1"] * 900))
    assert isinstance(many, Operations)
    assert len(many.rest) == 899
    long = parse_expression("a" + ".b" * 4_000)
    assert isinstance(long, Access)
    assert len(long.steps) == 4_000


def test_a_query_is_not_longer_than_can_be_asked_of_every_note() -> None:
    assert problem("LIST WHERE " + "(" * 10_000) == snapshot(
        "query, line 1, column 10001: a query has at most 10,000 characters"
    )


# -- laws ----------------------------------------------------------------------------------------

PIECES = (
    "LIST", "TABLE", "TASK", "CALENDAR", "WITHOUT ID", "AS", "FROM", "WHERE", "SORT", "DESC",
    "LIMIT", "GROUP BY", "FLATTEN", "and", "or", "not", "in", "true", "null", "date(2026-01-31)",
    "date(", "date(today)", "dur(1 d)", "(", ")", "[", "]", "[[", "]]", "{", "}", ":", ",", ".",
    "=", "!=", "<", "!", "-", "+", "*", "/", "//", "%", "=>", "(x) =>", "#a", '"f"', '"', "[[n]]",
    "file", "file.name", "row", "this", "a", "b.c", "3", "-1.5", "contains(", "length(a)",
    "outgoing(", " ", "\n", "\\", "\x00", "\u2028", "\ud800",
)  # fmt: skip


def require_a_place(error: QueryError, text: str) -> None:
    assert 1 <= error.line <= text.count("\n") + 1
    assert 1 <= error.column <= len(text) + 1


@thorough
@given(
    st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=12).map(" ".join)
    | st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
    | st.lists(st.sampled_from(PIECES), max_size=12).map(lambda all_: "LIST " + " ".join(all_))
    | st.text(st.characters())
)
def test_any_text_is_a_query_or_a_query_error(text: str) -> None:
    for parse in (parse_query, parse_expression):
        try:
            assert parse(text) == parse(text)
        except QueryError as error:
            require_a_place(error, text)
