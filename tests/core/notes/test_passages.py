"""Passages: what is searched of a note, and where it stands."""

import hashlib
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from tests.core.text.test_pictures import growth
from tests.strategies import modest

from lamina.core.notes.frontmatter import split_frontmatter
from lamina.core.notes.note_outline import read_outline
from lamina.core.notes.note_passages import (
    LONGEST_PASSAGE,
    cut_passages,
    searched_text,
    stored_text,
)
from lamina.core.values.note import Passage

SENTENCE = "The engine keeps its bytes stable so that caches hit. "


def find_passages(title: str, text: str) -> tuple[Passage, ...]:
    head, body, first_line = split_frontmatter(text)
    lines = body.split("\n")
    outline = read_outline(lines)
    return cut_passages(title, head, lines, first_line, outline.headings, outline.blocks)


def shown(title: str, text: str) -> list[tuple[int, int, str, str]]:
    lines = text.split("\n")
    return [
        (passage.start, passage.end, passage.heading, searched_text(title, passage, lines))
        for passage in find_passages(title, text)
    ]


def test_a_passage_is_searched_under_the_title_and_its_headings() -> None:
    text = "Intro.\n\n# Setup\n\nDo this.\n\n## Linux\n\napt install\n\n# Use\nRun it."
    assert shown("Guide", text) == snapshot(
        [
            (1, 1, "", "Guide\nIntro."),
            (3, 5, "Setup", "Guide > Setup\nDo this."),
            (7, 9, "Setup > Linux", "Guide > Setup > Linux\napt install"),
            (11, 12, "Use", "Guide > Use\nRun it."),
        ]
    )


def test_a_heading_that_says_more_than_its_words_stays_in_the_text() -> None:
    text = "# [Install](https://example.org/install) the `tool`\n\nText."
    passage = find_passages("Guide", text)[0]
    assert passage.heading == "Install the tool"
    assert passage.anchor == "[Install](https://example.org/install) the `tool`"
    assert searched_text("Guide", passage, text.split("\n")) == (
        "Guide > Install the tool\n# [Install](https://example.org/install) the `tool`\n\nText."
    )


def test_a_heading_that_is_the_title_is_not_said_twice() -> None:
    assert shown("Guide", "# Guide\n\nText.")[0][3] == "Guide\nText."


def test_headings_with_nothing_under_them_go_with_what_follows() -> None:
    text = "# A\n\n## B\n\nText.\n\n## C\n\n# D\n"
    assert [passage[:3] for passage in shown("N", text)] == [(1, 5, "A > B"), (7, 9, "D")]


def test_a_note_of_headings_alone_has_a_passage() -> None:
    assert shown("N", "# A\n## B\n") == [(1, 2, "A > B", "N > A > B")]


def test_the_first_passage_carries_what_the_note_calls_itself() -> None:
    text = (
        "---\naliases:\n  - K8s\n  - Kube\nauthor: me\ntags: [ops]\n---\n\n"
        "Runs containers.\n\n# More\n\nText."
    )
    assert [passage[3] for passage in shown("Kubernetes", text)] == [
        "Kubernetes\naliases:\n- K8s\n- Kube\ntags: [ops]\nRuns containers.",
        "Kubernetes > More\nText.",
    ]
    assert [passage.start for passage in find_passages("Kubernetes", text)] == [9, 11]


def test_only_the_first_part_of_a_long_line_carries_it() -> None:
    text = f"---\ntags: [ops]\n---\n{SENTENCE * 40}"
    lines = text.split("\n")
    searched = [searched_text("N", passage, lines) for passage in find_passages("N", text)]
    assert ["ops" in passage for passage in searched] == [True, False, False, False]


def test_frontmatter_is_no_passage() -> None:
    assert find_passages("N", "---\ntags: a\n---\n") == ()
    assert find_passages("N", "") == ()
    assert find_passages("N", " \n\t\n\r\n") == ()


def test_paragraphs_go_together_while_they_fit_and_are_not_cut_otherwise() -> None:
    paragraph = SENTENCE * 5
    text = "\n\n".join([paragraph] * 5)
    assert [passage[:2] for passage in shown("N", text)] == [(1, 3), (5, 7), (9, 9)]


def test_code_that_fits_stays_together_with_what_introduces_it() -> None:
    code = "```python\n" + "call(1)\n\n" * 40 + "```"
    text = f"{SENTENCE * 9}\n\nRun this:\n\n{code}\n\n{SENTENCE * 9}"
    passages = find_passages("N", text)
    lines = text.split("\n")
    assert [stored_text(passage, lines) for passage in passages] == [
        (SENTENCE * 9),
        f"Run this:\n\n{code}",
        (SENTENCE * 9),
    ]


def test_a_long_list_is_cut_between_its_items() -> None:
    item = f"- {SENTENCE}\n  - {SENTENCE}\n"
    text = item * 20
    starts = [passage.start for passage in find_passages("N", text)]
    assert len(starts) > 2
    assert all(text.split("\n")[start - 1].startswith("- ") for start in starts)


def test_a_short_rest_goes_with_what_is_before_it() -> None:
    text = f"{SENTENCE * 12}\n\nThat is all."
    assert [passage[:2] for passage in shown("N", text)] == [(1, 3)]


def test_a_long_line_is_cut_behind_sentences_and_each_part_is_a_passage() -> None:
    text = f"# Head\n\n{SENTENCE * 40}\n\nEnd."
    passages = find_passages("N", text)
    parts = [passage for passage in passages if passage.part]
    assert len(parts) == 4
    assert {(part.start, part.end) for part in parts} == {(3, 3)}
    stored = [stored_text(part, text.split("\n")) for part in parts]
    assert "".join(stored) == SENTENCE * 40
    assert all(passage.endswith(". ") for passage in stored)


def test_a_script_whose_characters_are_tokens_is_cut_shorter() -> None:
    parts = [passage.part for passage in find_passages("N", "\u6587\u5b57\u3002" * 400)]
    assert all(part and part[1] - part[0] <= 300 for part in parts)
    assert len(parts) > 4


def test_carriage_returns_make_no_difference_to_what_is_searched() -> None:
    text = "# A\n\nOne.\nTwo.\n\n# B\n\nThree."
    plain, windows = find_passages("N", text), find_passages("N", text.replace("\n", "\r\n"))
    assert plain == windows


def test_long_titles_and_headings_are_shortened() -> None:
    text = f"# {'x' * 5_000}\n\nText."
    passage = find_passages("y" * 5_000, text)[0]
    assert len(passage.heading) == 80
    assert len(searched_text("y" * 5_000, passage, text.split("\n")).split("\n")[0]) < 200


FRAGMENTS = st.sampled_from(
    [
        *(
            "\n",
            "\n",
            "\n\n",
            "\r\n",
            "\u2028",
            "\x0c",
            "\x85",
            " ",
            "\t",
            "a",
            "A word. ",
            "\u4e2d",
        ),
        *("# H\n", "## H2\n", "H\n---\n", "H\n===\n", "---\n", "a: b\n", "tags: x\n", "---\n"),
        *("```\n", "~~~\n", "  ```\n", "> ", "- ", "  - ", "1. ", "| a | b |\n", "`", "#", ":\n"),
        *(SENTENCE, SENTENCE * 6, SENTENCE * 30, "x" * 900, " " * 900, "- item\n" * 90),
        *("```\ncode\n\ncode\n```\n", "\n# E\n\n", "\0", "\u4e2d", "\U0001f98a", "Say:\n\n"),
    ]
)
NOTES = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "---\ntags: [a]\n---\n", "---\n\n---\n", "---\nalias: x\n--- \n\n"]),
        st.lists(FRAGMENTS, max_size=40).map("".join),
    ),
)


@modest
@given(NOTES)
def test_every_line_of_the_body_is_in_a_passage_and_in_its_order(text: str) -> None:
    passages, lines = find_passages("N", text), text.split("\n")
    _, _, first = split_frontmatter(text)
    covered = {line for passage in passages for line in range(passage.start, passage.end + 1)}
    filled = {at for at, line in enumerate(lines, 1) if at >= first and line.strip()}
    assert filled <= covered
    assert not covered & set(range(1, first))
    for one, two in pairwise(passages):
        if one.part and two.part and one.start == two.start:
            assert one.part[1] <= two.part[0]
        else:
            assert one.end < two.start


@modest
@given(NOTES)
def test_no_word_of_a_long_line_is_lost(text: str) -> None:
    lines = text.split("\n")
    passages = find_passages("N", text)
    for number in {passage.start for passage in passages if passage.part}:
        parts = [stored_text(passage, lines) for passage in passages if passage.start == number]
        assert "".join("".join(parts).split()) == "".join(lines[number - 1].split())


@modest
@given(NOTES, st.text(max_size=120))
def test_the_digest_is_that_of_the_searched_text(text: str, title: str) -> None:
    lines = text.split("\n")
    for passage in find_passages(title, text):
        searched = searched_text(title, passage, lines)
        assert hashlib.sha256(searched.encode()).digest() == passage.digest
        assert stored_text(passage, lines).strip()
        assert len(searched.encode()) < 2 * LONGEST_PASSAGE + 1_500


@modest
@given(NOTES)
def test_what_is_stored_is_what_the_lines_say(text: str) -> None:
    lines = text.split("\n")
    for passage in find_passages("N", text):
        whole = "\n".join(lines[passage.start - 1 : passage.end])
        assert stored_text(passage, lines) in whole
        if not passage.part:
            assert lines[passage.start - 1].strip()
            assert lines[passage.end - 1].strip()
            assert len(stored_text(passage, lines).encode()) <= 2 * LONGEST_PASSAGE


def test_a_passage_is_a_small_value_that_survives_its_keeping() -> None:
    passages = find_passages("N", SENTENCE * 40)
    kept = msgspec.msgpack.encode(passages)
    assert msgspec.msgpack.decode(kept, type=tuple[Passage, ...]) == passages


@pytest.mark.parametrize(
    "hostile",
    [
        *(
            "# a\n",
            "# a\n\n",
            "- a\n",
            "```\n",
            "x ",
            "a. ",
            "\n",
            " ",
            "---\n",
            "a\n---\n",
            "a:\n\n",
        ),
        *("    ```\n", "> ```\n", "| a ", "\u3002", "#\n", "a:\n\n```\nx\n\n```\n", "[a](", "[[a|"),
    ],
)
def test_time_grows_with_the_length_of_the_note(hostile: str) -> None:
    def find_and_search(times: int) -> None:
        text = hostile * times
        lines = text.split("\n")
        for passage in find_passages("N", text):
            searched_text("N", passage, lines)

    assert growth(find_and_search, 8_000 // len(hostile)) < 24  # quadratic: 64
