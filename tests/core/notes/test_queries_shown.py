"""Results as Markdown that values cannot break, and results that are kept."""

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from markdown_it import MarkdownIt
from msgspec.structs import replace
from tests.strategies import json_values, texts, thorough

from lamina.core.notes.query.query_markdown import MAX_IN_CELL
from lamina.core.notes.query.rendered_query import QueryCache, digest_notes, render_query
from lamina.core.values.note import Note, NoteQuery
from lamina.errors import QueryError


def note(path: str, **properties: Any) -> Note:
    return Note(path=path, title=path, digest=path, properties=properties)


def cells(table: str) -> list[list[str]]:
    """The cells of a table, row by row, as a reader of Markdown finds them."""
    rows: list[list[str]] = []
    for token in MarkdownIt("zero").enable("table").parse(table):
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and rows:
            rows[-1].append(token.content)
    return rows


# -- text ----------------------------------------------------------------------------------------


def test_values_are_shown_as_a_person_would_write_them() -> None:
    one = note(
        "a.md", no=None, yes=True, part=0.1, date="2026-01-31", text="a  b\tc",
        many=["a", ["b"], {"c": None}], object={"a": 1, "b": [2]},
    )  # fmt: skip
    query = "TABLE no, yes, part, date, text, many, object, date(2026-01-31T12:30) AS d"
    assert render_query(query, (one,), "") == snapshot(
        """\
| file | no | yes | part | date | text | many | object | d |
|---|---|---|---|---|---|---|---|---|
| a.md |  | true | 0.1 | 2026-01-31 | a b c | a, [b], {c: } | a: 1, b: [2] | 2026-01-31 12:30:00 |\
"""
    )


def test_a_grouped_table_has_the_group_in_front() -> None:
    notes = (note("a.md", s="x|y"), note("b.md"), note("c.md", s="x|y"))
    query = 'TABLE length(key) AS "a|b", rows.file.link AS notes GROUP BY s'
    assert render_query(query, notes, "") == snapshot(
        """\
| s | a\\|b | notes |
|---|---|---|
|  | 0 | [[b.md]] |
| x\\|y | 3 | [[a.md]], [[c.md]] |\
"""
    )


def test_a_list_has_no_line_for_a_value_that_is_not_there() -> None:
    notes = (note("a.md", x="1\n2"), note("b.md"))
    assert render_query("LIST x", notes, "") == "- a.md: 1 2\n- b.md"
    assert render_query("LIST WITHOUT ID x", notes, "") == "- 1 2\n- (none)"


def test_nothing_is_said_to_be_nothing() -> None:
    assert render_query("TABLE x WHERE y", (note("a.md"),), "") == "No notes fit this query."
    assert render_query("LIST", (), "") == "No notes fit this query."


def test_without_a_limit_200_notes_are_shown_and_the_rest_is_counted() -> None:
    notes = [note(f"{at:04}.md") for at in range(1_300)]
    lines = render_query("LIST", notes, "").splitlines()
    assert lines[199:] == [
        "- 0199.md",
        "",
        "(1,100 more notes fit this query; LIMIT says how many are shown.)",
    ]
    assert len(render_query("TABLE x LIMIT 1300", notes, "").splitlines()) == 1_302


def test_a_long_value_is_cut_and_says_so() -> None:
    notes = (note("a.md", x="y" * 1_000_000, many=list(range(1_000_000)), texts=["z" * 500] * 3),)
    row = render_query("TABLE x, many, texts, many.a", notes, "").splitlines()[-1]
    _, _, text, many, long_texts, *_ = row.split("|")
    assert text.strip() == "y" * MAX_IN_CELL + "…"
    assert many.strip().startswith("0, 1, 2, 3")
    assert many.strip().endswith("more")
    assert long_texts.strip() == "z" * (MAX_IN_CELL - 40) + "… and 2 more"


HOSTILE = st.lists(
    st.sampled_from(["|", "\\", "\\|", "\n", "\r", "\u2028", "\x85", "\x0b", "`", "```", "---",
                     "- ", "<br>", "</content>", "  ", "\x00", "\x1b[2J", "#", "[[", "a"]) | texts,
    max_size=8,
).map("".join)  # fmt: skip


@thorough
@given(
    HOSTILE, HOSTILE, st.lists(HOSTILE, max_size=3), HOSTILE.filter(lambda text: '"' not in text)
)
def test_a_value_stays_in_its_cell(path: str, text: str, many: list[str], name: str) -> None:
    quoted = name.replace("\\", "\\\\")
    notes = (note(f"{path}.md", x=text, many=many, deep={text: many}), note("z", x="plain"))
    table = render_query(f'TABLE x AS "{quoted}", many, deep, "end"', notes, "")
    assert len(table.splitlines()) == 4
    rows = cells(table)
    assert [len(row) for row in rows] == [5, 5, 5]
    assert [row[-1] for row in rows[1:]] == ["end", "end"]
    listed = render_query("LIST GROUP BY x", notes, "")
    assert len(listed.splitlines()) == 4


@thorough
@given(st.text("\\|a", max_size=12))
def test_bars_and_backslashes_come_out_as_they_were(text: str) -> None:
    table = render_query('TABLE x, "end"', (note("a.md", x=text),), "")
    shown = cells(table)[1][1]
    # A reader takes the backslash off a bar; those before it were doubled for readers to whom an
    # escaped backslash escapes nothing.
    row = table.splitlines()[-1]
    assert all(len(run) % 2 for run in re.findall(r"(\\*)\|", row.replace(" |", "").strip("|")))
    assert shown.count("|") == text.count("|")
    assert shown.replace("\\", "") == text.replace("\\", "")


@thorough
@given(json_values)
def test_any_property_is_shown_on_one_line_of_bounded_length(value: Any) -> None:
    table = render_query("TABLE x", (note("a.md", x=value),), "").splitlines()
    assert len(table) == 3
    assert len(table[2]) <= 2 * (MAX_IN_CELL + 1) + len("| a.md |  |")


NOW = datetime(2026, 1, 31, 12, 30)


def ask(
    cache: QueryCache, query: str, notes: tuple[Note, ...], at: str, now: datetime = NOW
) -> str:
    return cache.text(NoteQuery("block", query), notes, at, now)


# -- keeping -------------------------------------------------------------------------------------


class Counted(tuple[Note, ...]):
    """Notes that count how often they are gone through."""

    looks = 0

    def __iter__(self) -> Any:
        self.looks += 1
        return super().__iter__()


def test_a_query_is_asked_once_as_long_as_the_notes_are_the_same() -> None:
    notes = Counted((note("a.md"), note("b.md")))
    cache = QueryCache()
    first = ask(cache, "LIST", notes, "a.md")
    looks = notes.looks
    assert ask(cache, "LIST", notes, "a.md") is first
    assert notes.looks == looks
    # Other values that say the same: looked at, not asked again.
    assert ask(cache, "LIST", tuple(replace(note) for note in notes), "a.md") is first


@pytest.mark.parametrize(
    "change",
    [{"mtime": 5.0}, {"ctime": 5.0}, {"digest": "new"}, {"path": "c.md"}],
    ids=lambda change: next(iter(change)),
)
def test_a_change_of_any_note_asks_again(change: dict[str, Any]) -> None:
    one, other = note("a.md"), note("b.md")
    changed = (one, replace(other, properties={"x": 1}, **change))
    cache = QueryCache()
    before = ask(cache, "TABLE x, file.mtime", (one, other), "a.md")
    after = ask(cache, "TABLE x, file.mtime", changed, "a.md")
    assert digest_notes((one, other)) != digest_notes(changed)
    assert after == render_query("TABLE x, file.mtime", changed, "a.md") != before
    # Undone, the result of before is still there.
    assert ask(cache, "TABLE x, file.mtime", (one, other), "a.md") is before


def test_the_same_query_in_another_note_is_another_query() -> None:
    notes = (note("a.md", x=1), note("b.md", x=2))
    cache = QueryCache()
    assert ask(cache, "LIST WHERE x = this.x", notes, "a.md") == "- a.md"
    assert ask(cache, "LIST WHERE x = this.x", notes, "b.md") == "- b.md"


def test_a_cache_keeps_what_was_used_last_and_no_more_than_it_may() -> None:
    notes = (note("a.md", **{name: name * 50 for name in "xyz"}),)
    cache = QueryCache(max_characters=150)
    x, y = (ask(cache, f"LIST {name}", notes, "a.md") for name in "xy")
    assert ask(cache, "LIST x", notes, "a.md") is x
    ask(cache, "LIST z", notes, "a.md")
    assert ask(cache, "LIST x", notes, "a.md") is x
    assert ask(cache, "LIST y", notes, "a.md") is not y
    # One that is larger than all of it is given and not kept.
    tiny = QueryCache(max_characters=1)
    assert ask(tiny, "LIST x", notes, "a.md") == x


def test_a_query_that_is_wrong_is_wrong_every_time() -> None:
    cache = QueryCache()
    for _ in range(2):
        with pytest.raises(QueryError):
            ask(cache, "LIST WHERE", (), "a.md")


def test_a_result_that_asks_for_the_day_holds_until_the_next_one() -> None:
    notes = Counted((note("a.md", due="2026-01-31"),))
    cache = QueryCache()
    query = "LIST due WHERE due = date(today)"
    assert ask(cache, query, notes, "a.md") == "- a.md: 2026-01-31"
    evening, morning = NOW + timedelta(hours=11), NOW + timedelta(hours=12)
    assert ask(cache, query, notes, "a.md", evening) is ask(cache, query, notes, "a.md")
    assert ask(cache, query, notes, "a.md", morning) == "No notes fit this query."


def test_a_result_that_asks_for_the_time_holds_for_a_minute() -> None:
    notes = (note("a.md"),)
    cache = QueryCache()
    first = ask(cache, "LIST date(now)", notes, "a.md")
    assert first == "- a.md: 2026-01-31 12:30:00"
    assert ask(cache, "LIST date(now)", notes, "a.md") is first
    later = NOW + timedelta(minutes=1)
    assert ask(cache, "LIST date(now)", notes, "a.md", later) == "- a.md: 2026-01-31 12:31:00"
    # One that does not ask for it holds for ever.
    plain = ask(cache, "LIST", notes, "a.md")
    assert ask(cache, "LIST", notes, "a.md", later + timedelta(days=400)) is plain
