"""Parts of a note that a link can name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.notes.sections import find_section, heading_names, is_heading_anchor

NOTE = """\
# Guide

Intro.

## Setup

Do this.

### Linux

apt it.

```sh
# Setup
## Linux
```

## Use *it*: now

Use.

Under
-----
Text of a paragraph
that ends here. ^mark

"""


def lines(anchor: str) -> str | None:
    found = find_section(NOTE, anchor)
    return None if found is None else "\n".join(NOTE.split("\n")[found[0] - 1 : found[1]])


def test_a_section_goes_up_to_the_next_heading_of_its_rank() -> None:
    section = lines("Setup")
    assert section is not None
    assert section.startswith("## Setup")
    assert section.endswith("```")


def test_a_heading_below_another_one_is_named_with_both() -> None:
    assert lines("Setup#Linux") == lines("linux")
    assert lines("Use it now#Linux") is None


def test_marks_and_case_of_a_heading_do_not_matter() -> None:
    assert lines("use it now") == "## Use *it*: now\n\nUse."


def test_an_underlined_heading_is_one() -> None:
    section = lines("Under")
    assert section is not None
    assert section.startswith("Under\n-----")


def test_what_stands_in_code_is_no_heading() -> None:
    section = lines("Linux")
    assert section is not None
    assert section.startswith("### Linux")


def test_a_block_is_the_paragraph_with_its_mark() -> None:
    # The line under a heading belongs to the paragraph that touches it.
    section = lines("^mark")
    assert section is not None
    assert section.endswith("that ends here. ^mark")


def test_what_is_not_there_is_none() -> None:
    assert lines("Nowhere") is None
    assert lines("^nothing") is None
    assert lines("") is None


@given(st.text(alphabet="#-= \n`~^aB", max_size=200), st.text(alphabet="#^aB ", max_size=10))
def test_a_section_is_always_within_the_note(text: str, anchor: str) -> None:
    found = find_section(text, anchor)
    if found is not None:
        assert 1 <= found[0] <= found[1] <= text.count("\n") + 1


# -- anchors and ranges of Dendron -----------------------------------------------------------------

DENDRON = """\
---
id: x
title: Sample
---

Opening.

## Header 1

One.

### Header 1.1

Deeper. ^deep

## Header 2

Two. ^two

## Header 1

Again.
"""


def cut(anchor: str) -> str | None:
    found = find_section(DENDRON, anchor)
    return None if found is None else "\n".join(DENDRON.split("\n")[found[0] - 1 : found[1]])


@pytest.mark.parametrize(
    ("anchor", "section"),
    [
        ("header-1", "## Header 1\n\nOne.\n\n### Header 1.1\n\nDeeper. ^deep"),
        ("header-1,1", "One.\n\n### Header 1.1\n\nDeeper. ^deep"),
        ("header-1,1:#*", "One."),
        ("header-1:#*", "## Header 1\n\nOne."),
        ("Header 1,4:#header-2", "### Header 1.1\n\nDeeper. ^deep"),
        ("header-1-1", "## Header 1\n\nAgain."),
        ("header-2,1:#*", "Two. ^two"),
        ("header-2:#header-1-1", "## Header 2\n\nTwo. ^two"),
        ("header-2:#header-1", "## Header 2\n\nTwo. ^two"),
        ("header-11:#*", "### Header 1.1\n\nDeeper. ^deep"),
        ("^deep", "Deeper. ^deep"),
        ("^deep:#*", "Deeper. ^deep"),
        ("^deep:#^two", "Deeper. ^deep\n\n## Header 2\n\nTwo. ^two"),
        ("^begin:#header-1", "Opening."),
        ("^begin:#*", "Opening."),
        ("header-2:#^end", "## Header 2\n\nTwo. ^two\n\n## Header 1\n\nAgain."),
        ("header-1-1,1:#*", "Again."),
        ("none,1:#*", None),
        ("header-1:#none", None),
        ("header-2,900", None),
        ("^none:#*", None),
    ],
)
def test_a_range_is_cut_as_dendron_cuts_it(anchor: str, section: str | None) -> None:
    assert cut(anchor) == section


def test_a_heading_that_looks_like_a_range_is_a_heading() -> None:
    text = "# Read,1\n\nHere.\n\n# Read\n"
    assert find_section(text, "Read,1") == (1, 3)


def test_anchors_of_ranges_name_headings_or_do_not() -> None:
    names = heading_names(["Header 1", "Header 2", "Header 1"])
    for anchor in ("header-1,1:#*", "Header 1:#header-2", "header-1-1", "^a:#^b", "header-2,3"):
        assert is_heading_anchor(anchor, names)
    for anchor in ("none,1:#*", "header-1:#none", "header-1-2"):
        assert not is_heading_anchor(anchor, names)
