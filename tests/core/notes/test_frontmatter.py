"""The head of a note: where it ends, and what it says."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from tests.strategies import modest

from lamina.core.notes import frontmatter
from lamina.core.notes.frontmatter import read_properties, split_frontmatter


@pytest.mark.parametrize(
    ("text", "head", "body", "line"),
    [
        ("---\na: b\n---\nbody\n", "a: b", "body\n", 4),
        ("---\r\na: b\r\n---\r\nbody", "a: b\r", "body", 4),
        ("--- \na: b\n---\t", "a: b", "", 4),
        ("---\n---\nbody", "", "body", 3),
        ("---\n\n# only a comment\n---\nbody", "\n# only a comment", "body", 5),
        ("---\na: b\n----\n---x\n---\nbody", "a: b\n----\n---x", "body", 6),
        ("---\na:\n  ---\n---\nbody", "a:\n  ---", "body", 5),
    ],
)
def test_a_head_stands_between_two_rules_at_the_top(
    text: str, head: str, body: str, line: int
) -> None:
    assert split_frontmatter(text) == (head, body, line)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---",
        "a\n---\nb: c\n---\n",
        "\n---\na: b\n---\n",
        "---\na: b\n",
        "----\na: b\n---\n",
        "---\n\nA chapter that is ruled off.\n\n---\nThe next.",
        "---\n- a: b\n---\n",
        "---\na: b\n" + "c: d\n" * 20_000 + "---\n",
    ],
)
def test_what_has_no_entries_or_no_end_is_text(text: str) -> None:
    assert split_frontmatter(text) == (None, text, 1)


def test_values_are_json_and_keep_their_spelling_where_a_number_would_lose_it() -> None:
    read, problems = read_properties(
        """\
day: 2024-03-01
moment: 2024-03-01 10:30:00
time: 12:30
yes: yes
code: 007
big: 123456789012345678901234567890
huge: 1e999
none: .nan
truth: True
nothing: ~
empty:
count: -5
share: 0.25
quoted: "5"
explicit: !!str 5
some: !!set {a, b}
? [1, 2]
: odd
3: three
base: &base {x: 1}
again: *base
lines: |
  one
  two
"""
    )
    assert problems == ()
    assert json.loads(json.dumps(read)) == read
    assert read == snapshot(
        {
            "day": "2024-03-01",
            "moment": "2024-03-01T10:30:00",
            "time": "12:30",
            "yes": "yes",
            "code": "007",
            "big": "123456789012345678901234567890",
            "huge": "1e999",
            "none": ".nan",
            "truth": True,
            "nothing": None,
            "empty": None,
            "count": -5,
            "share": 0.25,
            "quoted": "5",
            "explicit": "5",
            "some": ["a", "b"],
            "[1,2]": "odd",
            "3": "three",
            "base": {"x": 1},
            "again": {"x": 1},
            "lines": """\
one
two
""",
        }
    )


def test_a_head_that_is_no_yaml_is_read_entry_by_entry() -> None:
    read, problems = read_properties("title: Lamina: a design\ntags: [a, b]\nlist: [x\nlast: 1")
    assert read == {"title": "Lamina: a design", "tags": ["a", "b"], "list": "[x", "last": 1}
    assert problems == (
        "line 2: the frontmatter is no YAML: mapping values are not allowed in this context; "
        "its entries were read one by one, 'title', 'list' as text",
    )


def test_the_problem_names_the_line_of_the_note() -> None:
    _, problems = read_properties("a: 1\nb: 2\nc: {")
    assert problems[0].startswith("line 4: ") or problems[0].startswith("line 5: ")
    _, problems = read_properties("a: 1\nb: \x07")
    assert problems[0].startswith("line 3: ")


def test_what_is_written_twice_is_told_and_the_last_counts() -> None:
    assert read_properties("a: 1\na: 2") == (
        {"a": 2},
        ("line 3: 'a' is written twice; this one counts",),
    )


def test_a_head_of_something_else_says_so() -> None:
    assert read_properties('"text"') == (
        {},
        ("line 2: the frontmatter has to be entries like 'tags: a, b', not a single value",),
    )


def bomb() -> str:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{', '.join(['*' + before] * 9)}]")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        (bomb(), "its aliases repeat them"),
        ("a: &a [*a]", "the alias *a names nothing"),
        ("a: " + "[" * 50_000, "nested more than 32 deep"),
        ("a: " + "{a: " * 15_000, "nested more than 32 deep"),
        ("a:\n" + "- " * 30_000, "nested more than 32 deep"),
        ("a: [" + "b, " * 20_000 + "]", "more than 5,000 values"),
    ],
)
def test_what_would_take_too_much_is_refused_and_the_note_goes_on(head: str, problem: str) -> None:
    read, problems = read_properties(head)
    assert problem in problems[0]
    assert len(json.dumps(read)) <= 2 * len(head)


PLAIN_WORDS = st.text(st.sampled_from("abZ01_ .,;:/-#'\"()[]{}!&*~|>%@é中~\\"), max_size=8)
PLAIN_LINES = st.one_of(
    st.builds(lambda name, value: f"{name}: {value}", PLAIN_WORDS, PLAIN_WORDS),
    st.builds(lambda name: f"{name}:", st.sampled_from("abc")),
    st.builds(lambda pad, item: f"{pad}- {item}", st.sampled_from(["", "  "]), PLAIN_WORDS),
    st.builds(
        lambda name, items: f"{name}: [{', '.join(items)}]",
        st.sampled_from("abc"),
        st.lists(PLAIN_WORDS, max_size=3),
    ),
    PLAIN_WORDS,
)


@modest
@given(st.lists(PLAIN_LINES, max_size=5).map("\n".join))
def test_what_is_read_without_a_parser_is_what_the_parser_reads(head: str) -> None:
    plain = frontmatter._read_plainly(head)
    if plain is not None:
        read, problems = frontmatter._read_yaml(head, 2)
        assert (read or {}, problems) == (plain, ())


@modest
@given(st.lists(PLAIN_LINES, max_size=5).map("\n".join))
def test_texts_and_lists_are_what_pyyaml_makes_of_them(head: str) -> None:
    try:
        expected = yaml.load(head, Loader=yaml.BaseLoader)
        nodes = yaml.compose(head, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, TypeError, ValueError):
        return
    read, problems = read_properties(head)
    if isinstance(expected, dict) and not problems and all(map(is_text, nodes.value)):
        assert list(read) == list(expected)


def is_text(entry: tuple[yaml.Node, yaml.Node]) -> bool:
    return isinstance(entry[0], yaml.ScalarNode)


@modest
@given(st.text() | st.lists(PLAIN_LINES).map("\n".join))
def test_any_head_is_read_as_json(head: str) -> None:
    read, _ = read_properties(head)
    assert json.loads(json.dumps(read)) == read


@modest
@given(st.lists(st.sampled_from(["---", "--- ", "a: b", "", "- x", "text", "\r"])).map("\n".join))
def test_head_and_body_are_all_of_the_text(text: str) -> None:
    head, body, line = split_frontmatter(text)
    assert text.endswith(body)
    assert (head is None) == (body == text)
    if head is not None and body:
        assert "\n".join(text.split("\n")[line - 1 :]) == body
