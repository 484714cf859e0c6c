"""Fields within the text of notes, the items of their lists, and the queries in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import thorough

from lamina.core.notes.note_reader import read_note
from lamina.core.notes.tags_and_fields import find_fields, find_shorthands
from lamina.core.values.note import Note, NoteQuery


def read(text: str) -> Note:
    return read_note("a.md", text.encode())


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("Basic Field:: Some random Value", [("Basic Field", "Some random Value")]),
        ("**Bold Field**:: Nice!", [("Bold Field", "Nice!")]),
        ("_a_:: b", [("a", "b")]),
        ("> quoted:: yes", [("quoted", "yes")]),
        ("due::", [("due", "")]),
        ("a [rating:: 9]! It was [mood:: fine].", [("rating", "9"), ("mood", "fine")]),
        ("hidden (key:: value) here", [("key", "value")]),
        ("[who:: [[Ann|A]], [[Bo]]] x", [("who", "[[Ann|A]], [[Bo]]")]),
        ("[a:: (b:: c)]", [("a", "(b:: c)"), ("b", "c")]),
        ("[🎅:: console]", [("🎅", "console")]),
        ("Noël:: x", [("Noël", "x")]),
        ("[a:: never closed", [("a", "never closed")]),
        ("see (this) and that:: x", []),
        ("a: b", []),
        (":: nothing", []),
        ("[:: nothing]", []),
    ],
)
def test_a_field_stands_on_its_line_or_in_brackets(
    line: str, fields: list[tuple[str, str]]
) -> None:
    assert find_fields(line) == fields


def test_tasks_have_shorthands_for_days() -> None:
    text = "pay 📅 2026-03-01 ⏳2026-02-01 🛫 2026-01-01 ➕2025-01-01 ✅ 2026-02-02 🗓️2026-04-01"
    assert dict(find_shorthands(text)) == {
        "due": "2026-03-01", "scheduled": "2026-02-01", "start": "2026-01-01",
        "created": "2025-01-01", "completion": "2026-02-02",
    }  # fmt: skip


@thorough
@given(st.text("[]():: a\\b*_\n", max_size=80))
def test_any_line_has_fields_or_none(line: str) -> None:
    for name, value in find_fields(line):
        assert name in line
        assert value in line


def test_a_hostile_line_is_read_in_no_time() -> None:
    for line in ("[a::" * 8_000, "[" * 30_000 + "::", "(a::[" * 6_000, "::" * 16_000):
        assert len(find_fields(line)) <= 200


def test_a_note_has_the_fields_of_its_text_but_not_those_of_code() -> None:
    note = read("---\nx: 1\n---\nA:: 1\n\n```cpp\nstd::cout\n```\n- item [b:: 2]\n# H [c:: 3]\n")
    assert note.fields == (("A", "1"), ("c", "3"))
    assert [item.text for item in note.items] == ["item [b:: 2]"]


def test_items_have_their_parents_their_tasks_and_their_headings() -> None:
    note = read(
        "---\nx: 1\n---\n# One\n- [ ] a\n  goes on\n    - [x] b ^block\n\t- c\n1. d\n\n"
        "## Two\n* [/] e\n\n> - [ ] quoted\n\n---\n\n    - code\n"
    )
    items = [
        (item.line, item.line_count, item.parent, item.status, item.text, item.heading, item.block)
        for item in note.items
    ]
    assert items[:6] == [
        (4, 2, -1, " ", "a\ngoes on", "One", ""),
        (6, 1, 4, "x", "b ^block", "One", "block"),
        (7, 1, 4, None, "c", "One", ""),
        (8, 1, -1, None, "d", "One", ""),
        (11, 1, -1, "/", "e", "Two", ""),
        (13, 1, -1, " ", "quoted", "Two", ""),
    ]


def test_a_list_that_is_nested_without_end_is_read() -> None:
    note = read("".join(f"{'  ' * depth}- [ ] {depth}\n" for depth in range(300)))
    assert len(note.items) == 300


def test_queries_are_found_in_blocks_in_quotes_and_within_sentences() -> None:
    note = read(
        "```dataview\nLIST\n```\n> [!help]\n> ```dataview\n> TABLE a\n> FROM #b\n> ```\n"
        "```query\ntag:#x\n```\n```dataviewjs\ndv.pages()\n```\n"
        "It is `= this.a` and `=date(today)`, not `== b` or `=> c` or `=`; `$= dv.x` neither.\n"
        "```\n`= in code`\n```\n"
    )
    assert note.queries == (
        NoteQuery("block", "LIST"),
        NoteQuery("block", "TABLE a\nFROM #b"),
        NoteQuery("search", "tag:#x"),
        NoteQuery("script", "dv.pages()"),
        NoteQuery("inline", "= this.a\n= date(today)"),
        NoteQuery("script", "$= dv.x"),
    )
