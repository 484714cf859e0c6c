"""Lines for people, as wide as their terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from lamina.apps.cli.terminal_text import wrap_line, wrap_text

WORDS = st.lists(
    st.text(st.sampled_from("ab日本é-/"), min_size=1, max_size=30), min_size=1, max_size=20
)
GAPS = st.sampled_from([" ", "  ", "    "])


@given(words=WORDS, gap=GAPS, indent=st.integers(0, 6), width=st.integers(20, 90))
def test_nothing_is_lost_and_lines_fit_but_for_words_that_do_not(
    words: list[str], gap: str, indent: int, width: int
) -> None:
    line = " " * indent + gap.join(words)
    lines = wrap_line(line, width)
    assert "".join("".join(lines).split()) == "".join(words)
    for wrapped in lines:
        longest = max(map(cell_len, wrapped.split()))
        assert cell_len(wrapped) <= width or longest + indent + 4 >= width
    if cell_len(line) <= width:
        assert lines == [line]


def test_a_text_goes_on_in_its_column() -> None:
    line = "000001  11-17 23:01:25  user       What does a berth cost, and who wants to know?"
    assert wrap_line(line, 60) == [
        "000001  11-17 23:01:25  user       What does a berth cost,",
        "                        and who wants to know?",
    ]
    assert wrap_line(line, 72) == [
        "000001  11-17 23:01:25  user       What does a berth cost, and who wants",
        "                                   to know?",
    ]


def test_a_sentence_goes_on_a_little_further_in_and_a_path_in_it_stays_whole() -> None:
    path = "/a/path/that/is/longer/than/the/whole/terminal/and/is/copied.jsonl"
    assert wrap_line(f"error: nothing is wrong with {path}: no copy was written", 40) == [
        "error: nothing is wrong with",
        f"  {path}:",
        "  no copy was written",
    ]


def test_what_is_too_long_for_a_column_is_broken_in_it() -> None:
    assert wrap_line(f"entry  {'x' * 30}", 20) == [
        "entry  xxxxxxxxxxxxx",
        "       xxxxxxxxxxxxx",
        "       xxxx",
    ]


@pytest.mark.parametrize("inner", ["one two three four five six", "  a    b    c    d    e    f"])
def test_what_others_wrote_stays_as_it_is_between_fences(inner: str) -> None:
    text = f"```\n{inner}\n```\none two three four"
    assert wrap_text(text, 12) == f"```\n{inner}\n```\none two\n  three four"
