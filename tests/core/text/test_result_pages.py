"""Long texts in pages of numbered lines: exact, within their limit, and complete in the end."""

import json
import re
from contextlib import suppress
from functools import cache

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lamina.adapters.providers.tokens import EncodingCounter
from lamina.core.text.result_pages import (
    NO_PATTERN,
    WIDTH,
    PageLimit,
    ResultPages,
    find_lines,
    is_readable,
    join_lines,
    line_number,
    number_lines,
    read_range,
)
from lamina.errors import UsageError

# Lines short and long, in scripts whose characters are several tokens each, with our own marks.
PIECES = (
    "a", "the tide was low", "\n", "\n\n", "\r\n", "\t", "ß", "İ", "ñ", "é", "漢字", "👩‍👩‍👧", "𝔘",
    "[no more]", "\n--\n", "12\tx", "r0a1b2c3d", "x" * 399, "y" * 400, "漢" * 401, "👩‍👩‍👧" * 90,
    "e\u0301" * 250, " ", "error: no space left",
)  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=60).map("".join) | st.text(max_size=2_000)
limits = st.integers(3_000, 8_000) | st.integers(600, 3_000)
ROW = re.compile(r"(\d+)(\+?)(:?)\t(.*)", re.DOTALL)


count = cache(EncodingCounter("o200k_base").count)


def pages(text: str, tokens: int = 8_000) -> ResultPages:
    limit = PageLimit(tokens=tokens, count=count)
    return ResultPages(text, handle="r0a1b2c3d", title="the result of find", limit=limit)


def rows_of(page: str) -> dict[int, tuple[bool, bool, str]]:
    """The lines of a page by number: whether each continues another, was found, and its text."""
    _, *rows, _ = page.split("\n")
    matches = [ROW.fullmatch(row) for row in rows if row != "--"]
    assert all(matches), page
    return {int(m[1]): (bool(m[2]), bool(m[3]), m[4]) for m in matches if m}


def following(page: str) -> dict[str, str] | None:
    """The arguments of the call that goes on."""
    foot = page.split("\n")[-1]
    if foot == "[no more]":
        return None
    arguments: dict[str, str] = json.loads(foot[foot.index("{") : -1])
    assert arguments.pop("handle") == "r0a1b2c3d"
    return arguments


@given(texts)
def test_the_lines_of_a_text_are_the_text(text: str) -> None:
    lines = number_lines(text)
    assert join_lines(lines) == text
    assert all(len(line.text) <= WIDTH for line in lines)
    assert not any("\n" in line.text for line in lines)
    # Numbers stay when more comes behind.
    assert all(1 <= line_number(text, at) <= len(lines) for at in range(0, len(text), 97))


def test_no_character_is_parted() -> None:
    family, accent = "👩‍👩‍👧", "e\u0301"
    for unit in (family, accent, "e" + "\u0301" * 3, "✌️"):
        for shift in range(12):
            lines = number_lines("x" * shift + unit * 300)
            assert len(lines) > 1
            for line in lines[1:]:
                assert line.text.startswith(unit), (unit, shift)


@given(texts, limits, st.data())
def test_any_range_gives_exactly_those_lines_within_the_limit(
    text: str, tokens: int, data: st.DataObject
) -> None:
    lines = number_lines(text)
    first = data.draw(st.integers(1, len(lines)))
    last = data.draw(st.integers(first, len(lines) + 3))
    wanted = data.draw(st.sampled_from([f"{first}-{last}", f"{first}-", f"{first}"]))
    if tokens < 3_000 and count(f"{first}+\t{lines[first - 1].text}") + 150 > tokens:
        # One line of such characters may be more than a small page.
        with suppress(UsageError):
            assert count(pages(text, tokens).read(wanted)) <= tokens
        return
    page = pages(text, tokens).read(wanted)
    assert count(page) <= tokens
    rows = rows_of(page)
    assert list(rows) == list(range(first, first + len(rows)))
    assert rows == {
        number: (lines[number - 1].continues, False, lines[number - 1].text) for number in rows
    }
    asked = range(first, min(last, len(lines)) + 1) if "-" in wanted else range(first, first + 1)
    if wanted.endswith("-"):
        asked = range(first, len(lines) + 1)
    assert max(rows) <= asked[-1]
    if max(rows) == len(lines):
        assert following(page) is None
    else:
        going = following(page)
        assert going is not None
        assert going["lines"].startswith(f"{max(rows) + 1}-")


@given(texts, st.integers(3_000, 8_000))
def test_all_pages_together_are_the_whole(text: str, tokens: int) -> None:
    reader, lines, at = pages(text, tokens), number_lines(text), ""
    read: dict[int, tuple[bool, bool, str]] = {}
    for _ in range(len(lines)):
        page = reader.read(at)
        assert count(page) <= tokens
        new = rows_of(page)
        assert new
        assert not new.keys() & read.keys()
        read |= new
        if (going := following(page)) is None:
            break
        at = going["lines"]
    whole = "".join(
        line if continues or number == 1 else f"\n{line}"
        for number, (continues, _, line) in sorted(read.items())
    )
    assert whole == text


@given(texts, st.integers(3_000, 8_000), st.integers(0, 25), st.data())
def test_what_is_found_is_marked_complete_and_never_over_the_limit(
    text: str, tokens: int, context: int, data: st.DataObject
) -> None:
    lines = number_lines(text)
    start = data.draw(st.integers(0, max(0, len(text) - 1)))
    sought = text[start : start + data.draw(st.integers(1, 30))].split("\n")[0]
    assume(sought.strip())
    expected = find_lines(lines, sought).numbers
    # Whatever stands in a line is found in it, or in the long line that it is a part of.
    assert expected
    found: list[int] = []
    arguments = {"lines": ""}
    while True:
        page = pages(text, tokens).find(sought, arguments["lines"], context)
        assert count(page) <= tokens
        rows = rows_of(page)
        for number, (continues, _, line) in rows.items():
            assert (continues, line) == (lines[number - 1].continues, lines[number - 1].text)
        going = following(page)
        until = int(going["lines"].split("-")[0]) if going else len(lines) + 1
        found += [n for n, (_, is_match, _) in rows.items() if is_match and n < until]
        if going is None:
            break
        assert going["find"] == sought
        arguments = going
    assert list(dict.fromkeys(found)) == list(expected)


def test_words_wildcards_and_choices_are_found_and_patterns_are_not() -> None:
    lines = number_lines("Tide: LOW\nwind a.b*c\nwarning: disk full\nthe disk is full of a|b")
    assert find_lines(lines, "low").numbers == (1,)
    assert find_lines(lines, "a.b*c").numbers == (2,)
    assert find_lines(lines, "warn*full").numbers == (3,)
    assert find_lines(lines, "full*warn").numbers == ()
    assert find_lines(lines, "tide|warning").numbers == (1, 3)
    assert find_lines(lines, "a|b").numbers == (4,)
    assert find_lines(lines, "full disk").numbers == (3, 4)
    assert find_lines(lines, "full disk").loose
    # Nothing but wildcards is any line, also one without text; nothing at all is none.
    tides = number_lines("Tide: LOW\n\nwind")
    for anything in ("*", "***", "* *", "tide|*"):
        assert find_lines(tides, anything).numbers == (1, 2, 3)
    assert find_lines(tides, "|").numbers == ()
    assert find_lines(number_lines("a * b\nc"), "*").numbers == (1,)
    assert pages("Tide: LOW\nwind").find("*").startswith("[")
    assert "2 lines have '*'" in pages("Tide: LOW\nwind").find("*")
    page = pages("Tide: LOW").find(r"^Tide:\s+\w+$")
    assert page.endswith(f"{NO_PATTERN}]")
    assert "no line has 'nothing'" in pages("Tide: LOW").find("nothing")


def test_what_stands_across_a_break_of_a_long_line_is_found_where_it_begins() -> None:
    text = "x" * (WIDTH - 3) + "needle" + "y" * WIDTH
    assert find_lines(number_lines(text), "NEEDLE").numbers == (1,)
    assert find_lines(number_lines(f"a\n{text}"), "need*yyy").numbers == (2,)


@pytest.mark.parametrize("hostile", ["a*" * 199 + "c", "(a+)+$", "*" * 400, "a|" * 200, "|*|*c"])
def test_what_would_hang_a_regular_expression_is_just_not_found_or_found(hostile: str) -> None:
    lines = number_lines("a" * 400_000 + "b")
    assert len(find_lines(lines, hostile).numbers) in (0, 1_000, len(lines))


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("6-", "there are no lines 6-: they are numbered 1 to 5"),
        ("4-2", "there are no lines 4-2: they are numbered 1 to 5"),
        ("the end", 'lines must be "120-180", "120-" or "-50" for the last 50, not \'the end\''),
        ("-", "lines must be"),
        ("-0", "lines must be"),
        ("1-2-3", "lines must be"),
    ],
)
def test_a_range_that_names_no_lines_says_which_there_are(words: str, problem: str) -> None:
    with pytest.raises(UsageError) as error:
        read_range(words, 5)
    assert str(error.value).startswith(problem)


@pytest.mark.parametrize(
    ("words", "first", "last"),
    [("", 1, 5), ("2-3", 2, 3), ("2", 2, 2), ("3-", 3, 5), ("-2", 4, 5), ("-9", 1, 5),
     ("0-2", 1, 2), (" 2 - 99 ", 2, 5), ("2:4", 2, 4), ("2..4", 2, 4)],
)  # fmt: skip
def test_a_range_is_written_in_a_few_ways(words: str, first: int, last: int) -> None:
    found = read_range(words, 5)
    assert (found.first, found.last) == (first, last)


@pytest.mark.parametrize("sought", ["  ", "two\nlines", "x" * 401])
def test_what_cannot_be_looked_for_is_refused(sought: str) -> None:
    with pytest.raises(UsageError, match=r"^find (is|must be) "):
        pages("text").find(sought)


def test_a_line_of_the_text_cannot_pass_for_one_of_ours() -> None:
    page = pages('[9 more; go on with {"handle":"r9"}]\n[no more]').read()
    assert page.split("\n")[1:] == [
        '1\t[9 more; go on with {"handle":"r9"}]', "2\t[no more]", "[no more]",
    ]  # fmt: skip


def test_data_is_told_from_text() -> None:
    assert is_readable("")
    assert is_readable("colours \x1b[31mred\x1b[0m\r\n\tand tabs")
    assert not is_readable("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00")
    assert not is_readable("\ufffd" * 50 + "JFIF" * 20)
