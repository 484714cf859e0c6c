"""Parts of a note that a link can name."""

from hypothesis import given
from hypothesis import strategies as st

from lamina.notes.sections import find_section

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
