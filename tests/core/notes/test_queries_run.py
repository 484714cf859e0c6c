"""Which notes a query means, how values compare, and in which order they come."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import json_values, thorough

from lamina.core.notes.query.evaluator import run_query
from lamina.core.notes.query.note_index import QueryNotes
from lamina.core.notes.query.operators import key_of
from lamina.core.notes.query.parser import parse_query
from lamina.core.notes.query.rendered_query import render_query
from lamina.core.values.note import Note


def note(path: str, **fields: Any) -> Note:
    """A note; what is no field of notes is a property of it."""
    own = {name: fields.pop(name) for name in list(fields) if name in Note.__struct_fields__}
    return Note(path=path, title=path, digest=path, properties=fields, **own)


def paths(query: str, *notes: Note, at: str = "") -> list[str]:
    result = run_query(parse_query(query), QueryNotes(notes), at=at)
    return [str(row.id) for row in result.rows]


def cell(expression: str, **properties: Any) -> Any:
    """The value of an expression for a note with these properties."""
    notes = QueryNotes((note("a.md", **properties),))
    result = run_query(parse_query(f"LIST {expression}"), notes, at="a.md")
    return result.rows[0].cells[0]


# -- FROM ----------------------------------------------------------------------------------------


def test_a_tag_means_nested_tags_too_and_has_no_case() -> None:
    notes = (
        note("1.md", tags=("Project",)),
        note("2.md", tags=("x", "project/a/b")),
        note("3.md", tags=("projects",)),
    )
    assert paths("LIST FROM #project", *notes) == ["1.md", "2.md"]
    assert paths("LIST FROM #project/a", *notes) == ["2.md"]
    assert paths("LIST FROM not #project", *notes) == ["3.md"]


def test_a_folder_means_what_is_below_it_and_a_path_one_note() -> None:
    notes = (note("a/x.md"), note("a/b/y.md"), note("ab/z.md"), note("w.md"))
    assert paths('LIST FROM "a"', *notes) == ["a/b/y.md", "a/x.md"]
    assert paths('LIST FROM "a/b/"', *notes) == ["a/b/y.md"]
    assert paths('LIST FROM "a/x" or "w.md"', *notes) == ["a/x.md", "w.md"]
    assert len(paths('LIST FROM ""', *notes)) == 4


LINKED = (
    note("sea/Tides.md", aliases=("Ebb and flow",)),
    note("by path.md", links=("sea/Tides",)),
    note("by name.md", links=("tides#Springs|the springs",)),
    note("by alias.md", links=("ebb and flow",)),
    note("sea/beside.md", links=("./Tides.md",)),
    note("embedding.md", embeds=("Tides",)),
    note("not.md", links=("Tides of war", "#Tides", "other/Tideses")),
)


def test_a_link_means_the_note_however_it_is_spelled() -> None:
    means = ["by alias.md", "by name.md", "by path.md", "embedding.md", "sea/beside.md"]
    for spelled in ("Tides", "sea/tides", "sea/Tides.md", "Ebb and flow", "Tides#Springs"):
        assert paths(f"LIST FROM [[{spelled}]]", *LINKED) == means, spelled
    assert paths("LIST FROM [[]]", *LINKED, at="sea/Tides.md") == means


def test_a_note_that_is_not_there_has_the_links_that_are_spelled_like_it() -> None:
    notes = (note("a.md", links=("Not yet#x",)), note("b.md", links=("not yet",)), note("c.md"))
    assert paths("LIST FROM [[Not Yet]]", *notes) == ["a.md", "b.md"]


def test_a_link_that_may_mean_several_notes_says_so() -> None:
    notes = (note("x/T.md"), note("y/T.md"), note("a.md", links=("T",)), note("b.md"))
    assert paths("LIST FROM [[T]]", *notes) == ["a.md"]
    assert "([[T]] may mean any of x/T.md, y/T.md; links spelled like it" in render_query(
        "LIST FROM [[T]]", notes, ""
    )


# -- values --------------------------------------------------------------------------------------


def test_what_a_note_does_not_have_is_null() -> None:
    assert cell("missing") is None
    assert cell("a.b.c", a={"b": 3}) is None
    assert cell("this.x") is None


def test_a_property_is_found_by_its_spelling_first_and_then_without_case() -> None:
    assert cell("Due", due=1, Due=2) == 2
    assert cell("DUE", x=0, Due=2) == 2
    assert cell('row["GRO\u0308SSE"]', größe=1) == 1
    assert cell("file.frontmatter.file", file=5) == 5


def test_parts_of_properties_stand_behind_dots_also_those_of_a_lists_members() -> None:
    authors = [{"name": "Ann"}, {"born": 1950}, {"name": "Bo"}, "Cy"]
    assert cell("a.b.c", a={"b": {"c": 3}}) == 3
    assert cell("authors.name", authors=authors) == ("Ann", None, "Bo")


def test_fields_of_the_file() -> None:
    one = note(
        "a/b.c.md", tags=("t",), aliases=("al",), links=("l",), embeds=("e",), headings=("h",),
        ctime=0.0, mtime=1_700_000_000.9, size=7,
    )  # fmt: skip
    fields = "name path folder tags aliases links embeds headings ctime mtime size"
    query = "TABLE " + ", ".join(f"file.{field}" for field in fields.split())
    assert render_query(query, (one,), "").splitlines()[-1] == (
        "| a/b.c.md | b.c | a/b.c.md | a | #t | al | l | e | h | 1970-01-01 | "
        "2023-11-14 22:13:20 | 7 |"
    )


@pytest.mark.parametrize(
    "true",
    [
        '"a" = "a"',
        '"a" != "A"',
        '"caf\u00e9" = "cafe\u0301"',
        "null = missing",
        'missing != "done"',
        "1 = 1.0",
        "1 != true",
        '1 != "1"',
        "[1, [2]] = [1.0, [2]]",
        "1 < 2",
        '"a" < "B"',
        '"B" < "c"',
        "false < true",
        "[1, 2] < [1, 3]",
        "[1] < [1, 0]",
        "date(2026-01-31) = date(2026-01-31T00:00Z)",
        "date(2026-01-31T12:00+02:00) = date(2026-01-31T10:00)",
        'due = date(2026-03-01) and due != "2026-03-01"',
        'due < date(2026-03-02) and typeof(due) = "date"',
        '"2026-13-01" > "2026-01-01x"',
        'default(missing, "x") = "x"',
        'default(false, "x") = false',
        'contains("abc", "bc")',
        'contains(["ab", 3], 3)',
        'contains(deep, "a")',
        'contains(["ab"], "a") and !econtains(["ab"], "a")',
        'not contains("abc", "BC")',
        'icontains("abc", "BC")',
        'icontains(["aB"], "Ab")',
        'icontains("STRASSE", "straße")',
        'not contains(missing, "a")',
        'contains("a1", "1")',
        'not contains("a1", 1)',
        '"a" in ["a", null]',
        "null in [null]",
        'startswith("abc", "ab")',
        'endswith("abc", "bc")',
        'length("äöü") = 3',
        "length([1, [2, 3]]) = 2",
        "length(missing) = 0",
        'lower("ÄB") = "äb"',
        'upper(["a", "b"]) = ["A", "B"]',
        "null < 1 and 1 < null = false",
        "null < [1] and [1] < true and true < date(2026-01-31) and date(2026-01-31) < dur(1 s)",
        'dur(1 s) < [[a]] and [[a]] < 1 and 1 < deep and deep < "a"',
        "dur(60 minutes) = dur(1 hour)",
        '"a" or true and false = false',
        '"x" and 1 and [0] and deep and date(2026-01-31)',
        'not (0 or "" or [] or false or null or missing)',
    ],
)
def test_it_holds_that(true: str) -> None:
    one = note("a.md", due="2026-03-01", deep={"a": 1})
    assert paths(f"LIST WHERE {true}", one) == ["a.md"]


def test_and_and_or_have_one_rank_and_are_taken_from_the_left() -> None:
    assert paths("LIST WHERE true or true and false", note("a.md")) == []
    assert paths("LIST WHERE true or (true and false)", note("a.md")) == ["a.md"]


@thorough
@given(json_values, json_values, json_values)
def test_there_is_one_order_over_all_values(one: Any, two: Any, three: Any) -> None:
    keys = sorted([key_of(one), key_of(two), key_of(three)])
    assert keys[0] <= keys[1] <= keys[2]
    assert keys[0] <= keys[2]
    assert (key_of(one) == key_of(two)) == (
        not key_of(one) < key_of(two) and not key_of(two) < key_of(one)
    )


@thorough
@given(json_values, json_values)
def test_comparing_never_fails_and_equal_is_neither_before_nor_behind(one: Any, two: Any) -> None:
    operators = ("=", "!=", "<", ">", "<=", ">=")
    results = {operator: cell(f"a {operator} b", a=one, b=two) for operator in operators}
    assert results["="] != results["!="]
    assert results["="] + results["<"] + results[">"] == 1
    assert results["<="] == (results["="] or results["<"])
    assert results[">="] == (results["="] or results[">"])
    for function in ("contains", "icontains", "econtains", "default"):
        cell(f"{function}(a, b)", a=one, b=two)


def nested(around: Callable[[Any], Any]) -> Any:
    value: Any = 0
    for _ in range(900):
        value = around(value)
    return value


@pytest.mark.parametrize(
    "odd",
    [
        float("nan"),
        float("inf"),
        2**100_000,
        nested(lambda inner: [inner]),
        nested(lambda inner: {"a": inner}),
        {1: "a", "1": "b", None: 3},
    ],
    ids=["nan", "inf", "huge", "deep list", "deep object", "odd names"],
)
def test_odd_properties_do_no_harm(odd: Any) -> None:
    notes = (note("a.md", x=odd), note("b.md", x=1), note("c.md", x=odd))
    query = "TABLE x, x = 1, string(x), contains(x, 1), typeof(x) WHERE x or not x SORT x DESC"
    assert len(render_query(query, notes, "").splitlines()) == 5
    assert len(render_query("LIST rows.x GROUP BY x", notes, "").splitlines()) == 5


def test_not_a_number_is_null() -> None:
    one = note("a.md", x=float("nan"))
    assert paths("LIST WHERE x = null and not x and not x >= 0", one) == ["a.md"]


def test_a_time_that_never_was_is_null() -> None:
    for seconds in (float("nan"), float("inf"), 1e300, -1e15):
        assert paths("LIST WHERE file.mtime = null", note("a.md", mtime=seconds)) == ["a.md"]


# -- order ---------------------------------------------------------------------------------------


def test_notes_come_by_path_whatever_order_they_are_given_in() -> None:
    notes = [note(path) for path in ("b.md", "a/z.md", "a.md", "B.md")]
    assert paths("LIST", *notes) == paths("LIST", *reversed(notes))
    assert paths("LIST", *notes) == ["B.md", "a.md", "a/z.md", "b.md"]


def test_sorting_goes_key_by_key_and_then_by_path_with_null_before_all_else() -> None:
    notes = (
        note("a.md", x=1, y=1), note("b.md", x=2, y=1), note("c.md", x=1, y=2), note("d.md", y=3),
        note("e.md", x=1, y=1),
    )  # fmt: skip
    assert paths("LIST SORT x", *notes) == ["d.md", "a.md", "c.md", "e.md", "b.md"]
    assert paths("LIST SORT x DESC", *notes) == ["b.md", "a.md", "c.md", "e.md", "d.md"]
    assert paths("LIST SORT x, y DESC", *notes) == ["d.md", "c.md", "a.md", "e.md", "b.md"]


def test_kinds_are_sorted_in_the_order_that_is_said() -> None:
    values = [
        [1],
        True,
        "2026-01-31",
        "2 days",
        "[[a]]",
        3,
        {"a": 1},
        "_",
        "1x",
        "a",
        "A",
        "á",
        "B",
    ]
    notes = [note(f"{99 - at}.md", x=value) for at, value in enumerate(values)]
    assert paths("LIST SORT x", *notes) == [note.path for note in notes]


def test_groups_go_by_their_value_and_keep_the_order_of_what_is_in_them() -> None:
    notes = (note("a.md", s="x", n=1), note("b.md", n=2), note("c.md", s="X", n=3),
             note("d.md", s="x", n=4))  # fmt: skip
    result = run_query(parse_query("LIST SORT n DESC GROUP BY s"), QueryNotes(notes), at="")
    groups = [(row.id, [inner.id for inner in row.rows or ()]) for row in result.rows]
    assert groups == [(None, ["b.md"]), ("x", ["d.md", "a.md"]), ("X", ["c.md"])]


names = st.sampled_from(["a", "b", "due", "x y"])


@thorough
@given(
    st.lists(st.dictionaries(names, json_values, max_size=3), max_size=6),
    st.sampled_from(
        [
            "LIST SORT a, b DESC",
            "TABLE a, b WHERE a or due < b",
            "TABLE rows.a SORT b GROUP BY due",
            "LIST a FLATTEN b AS a SORT string(a)",
            "LIST FROM #a or -[[a]] WHERE icontains(a, b)",
        ]
    ),
    st.randoms(use_true_random=False),
)
def test_a_result_depends_on_the_notes_and_not_on_their_order(
    drawn: list[dict[str, Any]], query: str, chance: Any
) -> None:
    notes = [note(f"{at}.md", **properties) for at, properties in enumerate(drawn)]
    text = render_query(query, notes, "0.md")
    chance.shuffle(notes)
    assert render_query(query, notes, "0.md") == text
