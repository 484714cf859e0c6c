"""A note's bytes to what is known of it."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from tests.core.notes.test_passages import NOTES, find_passages
from tests.core.text.test_pictures import growth
from tests.strategies import modest

from lamina.core.notes.note_reader import decode_note, read_note
from lamina.core.values.note import Note, NoteQuery

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"


def read(text: str, path: str = "folder/A note.md") -> Note:
    return read_note(path, text.encode())


def test_a_note_is_known_by_its_bytes_its_stem_and_its_times() -> None:
    data = b"# Heading\n\nText."
    note = read_note("folder/v1.2 notes.md", data, ctime=1.0, mtime=2.0)
    assert (note.title, note.ctime, note.mtime, note.size) == ("v1.2 notes", 1.0, 2.0, 16)
    assert note.digest == hashlib.sha256(data).hexdigest()
    assert note.headings == ("Heading",)


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("#tag at the start, #and/nested ones", ("tag", "and/nested")),
        ("#caf\u00e9 #\u6807\u7b7e\u3002 #\U0001f98a", ("caf\u00e9", "\u6807\u7b7e", "\U0001f98a")),
        (f"#{FAMILY} #x{FAMILY}", (FAMILY, f"x{FAMILY}")),
        ("#123 is a number, #1a and #y2024 are not", ("1a", "y2024")),
        ("# Heading\n##  Other\n#Tag\n### With #one", ("Tag", "one")),
        ("`#code` and ``#more``\n\n```\n#fenced\n```\n", ()),
        ("https://example.org/#part [x](#part) [y](a.md#part) a#b &#39;", ()),
        ("[[Note #1a]] and [[a|b #c]] but #d", ("d",)),
        ("#a, #b. #c! (#d) #e/ #f-g #h_i", ("a", "b", "c", "e", "f-g", "h_i")),
        ("#Same #same #SAME", ("Same",)),
        ("#- #/ #! ## #", ()),
        ("- #todo item\n\t#x", ("todo", "x")),
    ],
)
def test_tags_in_the_text(text: str, tags: tuple[str, ...]) -> None:
    assert read(text).tags == tags


@pytest.mark.parametrize(
    ("head", "tags"),
    [
        ("tags: [a, b/c]", ("a", "b/c")),
        ("tags: a, b c", ("a", "b", "c")),
        ("tags: '#a #b'", ("a", "b")),
        ("Tags:\n  - a\n  - '#b'\n  - 2024", ("a", "b", "2024")),
        ("tag: one\ntags: two", ("one", "two")),
        ("tags:", ()),
        ("tags: {a: b}", ()),
    ],
)
def test_tags_in_the_frontmatter(head: str, tags: tuple[str, ...]) -> None:
    assert read(f"---\n{head}\n---\ntext #last").tags == (*tags, "last")


@pytest.mark.parametrize(
    ("head", "aliases"),
    [
        ("aliases: [One name, Two]", ("One name", "Two")),
        ("alias: One name, Two", ("One name", "Two")),
        ("aliases:\n- One, with a comma\n- 5", ("One, with a comma", "5")),
        ("aliases: ''", ()),
    ],
)
def test_aliases(head: str, aliases: tuple[str, ...]) -> None:
    assert read(f"---\n{head}\n---\n").aliases == aliases


def test_links_and_embeds_in_the_order_of_the_note() -> None:
    note = read(
        "[[Target#Heading|label]], [[#Here]], [m](other%20note.md#some%20part), [[a\\|b]],\n"
        '[t](<with space.md> "title"), [p](x(1).md), [u](https://e.org/a.md), [f](a.pdf),\n'
        "![[Embedded#Part]] ![[photo.PNG]] ![[paper.pdf#page=2]] [[Target#Heading]] [[]]\n"
        "`[[code]]` [`c`](in_code.md#`x`)\n\n[ref]: ../up.md\n\n```\n[[fenced]]\n```\n"
    )
    assert note.links == snapshot(
        (
            "Target#Heading",
            "#Here",
            "other note.md#some part",
            "a",
            "with space.md",
            "x(1).md",
            "in_code.md#`x`",
            "../up.md",
        )
    )
    assert note.embeds == ("Embedded#Part", "paper.pdf#page=2")


def test_headings_of_both_forms_and_none_from_code() -> None:
    note = read(
        "# One #\n\n  ## Two ##  \n#nospace\n\nThree\n===\n\nFour\n---\n\nText\nof two\n---\n\n"
        "- item\n---\n\n| a |\n---\n\n    # indented\n\n```\n# code\n```\n\n####### seven\n#\n"
        "- list\n\n    ```\n    # still code\n\n# Five\n"
    )
    assert note.headings == ("One", "Two", "Three", "Four", "Five")


def test_query_blocks_as_they_are_spelled() -> None:
    note = read(
        "```lamina-query\nfrom: x\n\n  where\n```\n\n~~~ Lamina-Query\nb\n~~~\n\n"
        "```python\nquery\n```\n"
        "````lamina-query\n```\n````\n```query\nof others\n```\n```lamina-query\nwith no end"
    )
    assert note.queries == (
        NoteQuery("block", "from: x\n\n  where"),
        NoteQuery("block", "b"),
        NoteQuery("block", "```"),
        NoteQuery("search", "of others"),
        NoteQuery("block", "with no end"),
    )


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    note = read_note("a.md", b"\xef\xbb\xbf---\ntags: a\n---\n# B\n\nText.")
    assert (note.tags, note.headings, note.problems) == (("a",), ("B",), ())


def test_bytes_that_are_no_text_are_named_and_the_note_loads() -> None:
    note = read_note("a.md", b"# A\n\ncaf\xe9 #tag\n")
    assert (note.headings, note.tags) == (("A",), ("tag",))
    assert note.problems == ("line 3: the byte e9 is not UTF-8; it and others are shown as U+FFFD",)
    assert decode_note(b"caf\xe9")[0] == "caf\ufffd"


def test_frontmatter_without_an_end_is_told() -> None:
    note = read("---\ntags: a\n\nText.")
    assert note.problems == (
        "line 1: the frontmatter has no end; it is taken for a part of the text",
    )
    assert note.passages[0].start == 1
    assert read("---\n\nA rule at the top.").problems == ()


def test_broken_frontmatter_is_told_and_costs_only_what_is_broken() -> None:
    note = read("---\ntitle: a: b\ntags: [x]\n---\n# H\n")
    assert note.tags == ("x",)
    assert note.properties == {"title": "a: b", "tags": ["x"]}
    assert len(note.problems) == 1


def test_a_note_with_many_problems_tells_the_first_ones() -> None:
    note = read("---\n" + "a: 1\n" * 100 + "---\n")
    assert len(note.problems) == 11
    assert note.problems[-1] == "and 89 more problems"


def test_moving_a_note_to_another_folder_changes_no_passage() -> None:
    text = "# A\n\nText.\n\n# B\n\nMore."
    assert read(text, "x/n.md").passages == read(text, "y/z/n.md").passages
    assert read(text, "x/n.md").passages != read(text, "x/m.md").passages


@modest
@given(NOTES)
def test_passages_are_those_of_the_text(text: str) -> None:
    assert read(text, "N.md").passages == find_passages("N", text)


@modest
@given(st.binary() | NOTES.map(str.encode))
def test_any_bytes_are_a_note(data: bytes) -> None:
    note = read_note("a/b.md", data)
    assert json.loads(json.dumps(note.properties)) == note.properties
    assert all(tag and not tag.startswith("#") for tag in note.tags)
    assert "\0" not in "".join(note.links) or b"\0" in data


@pytest.mark.parametrize("opening", ["", "---\na: b\n---\n", "```\n", "[[", ".md ]("])
@pytest.mark.parametrize(
    "hostile",
    [
        *(
            "[[",
            "[[a",
            "]]",
            "](",
            "](a.md",
            '](a "',
            "](a '",
            "](<",
            "`",
            "``\n",
            "#a ",
            "#/",
            "[[",
        ),
        *("[[ #", "]: a.md ", "- `", "](%", "](&", "![[", "\\", "a: b\n", "\r\n", "1. ", "> "),
    ],
)
def test_time_grows_with_the_size_of_a_hostile_note(opening: str, hostile: str) -> None:
    def work(times: int) -> Note:
        return read(opening + hostile * times)

    assert growth(work, 8_000 // len(hostile)) < 24  # quadratic: 64
