"""Paths against the globs of rule files."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.selection.globs import MAX_CHOICES, first_match


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*.md", "a.md"),
        ("*.md", "deep/down/a.md"),
        ("*", ".env"),
        ("**", "a/b/c"),
        ("src/*.py", "src/a.py"),
        ("/src/*.py", "src/a.py"),
        ("./src/*.py", "src/a.py"),
        ("src/", "src/a/b.py"),
        ("src/**", "src/a/b.py"),
        ("src/**/*.py", "src/a.py"),
        ("src/**/*.py", "src/a/b/c.py"),
        ("src/**/**/*.py", "src/c.py"),
        ("**/test_*.py", "test_a.py"),
        ("**/node_modules/**", "a/node_modules/b/c.js"),
        ("**.ts", "a/b.ts"),
        ("src/**.ts", "src/a/b.ts"),
        ("*.{ts,tsx}", "a/b.tsx"),
        ("{src,lib}/**/*.{js, jsx}", "lib/x/y.jsx"),
        ("*.{a,{b,c}}", "x.c"),
        ("{x}.{a,b}", "{x}.b"),
        ("*.{py}", "a.{py}"),
        ("a?c.md", "abc.md"),
        ("[ab].md", "b.md"),
        ("[!ab].md", "c.md"),
        ("[^ab].md", "c.md"),
        ("[a-c]x.md", "bx.md"),
        ("[]x].md", "].md"),
        ("[[].md", "[.md"),
        ("[z-a].md", "[z-a].md"),
        ("[a.md", "[a.md"),
        ("[\\d].md", "d.md"),
        ("caf\u00e9.md", "caf\u00e9.md"),
        ("(a|b)+$.md", "(a|b)+$.md"),
        ("a\nb*", "a\nb\nc"),
    ],
)
def test_a_glob_matches(glob: str, path: str) -> None:
    assert first_match([glob], [path]) == path


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*.md", "a.mdx"),
        ("*.MD", "a.md"),
        ("src/*.py", "src/a/b.py"),
        ("src/*.py", "lib/src/a.py"),
        ("src/**/b.py", "src/ab.py"),
        ("a/**/b", "a/xb"),
        ("src", "src/a.py"),
        ("a?c", "a/c"),
        ("a[!b]c", "a/c"),
        ("a[+-0]c", "a/c"),
        ("[\\d].md", "5.md"),
        ("*.{ts,tsx}", "a.js"),
        ("*.{py}", "a.py"),
        ("", "a"),
        ("  ", "a"),
        ("/", "a"),
    ],
)
def test_a_glob_does_not_match(glob: str, path: str) -> None:
    assert first_match([glob], [path]) == ""


def test_the_first_path_that_any_of_the_globs_matches_is_given() -> None:
    assert first_match(["*.py", "*.md"], ["a.txt", "b.md", "c.py"]) == "b.md"
    assert first_match([], ["a"]) == first_match(["*"], []) == ""


def test_too_many_choices_are_taken_as_they_are_written() -> None:
    glob = "{a,b}" * 9
    assert MAX_CHOICES < 2**9
    assert first_match([glob], ["a" * 9]) == ""
    assert first_match([glob], [glob]) == glob
    assert first_match(["{a,b}" * 8], ["ab" * 4]) == "ab" * 4


@pytest.mark.parametrize("piece", ["*a", "**a", "**/a/", "a*/", "?*", "[a-b]*", "{*,a}*", "*?*"])
def test_no_pattern_keeps_anybody_waiting(piece: str) -> None:
    # Backtracking would take longer than anybody lives.
    assert first_match([piece * 40 + "b"], ["a/" * 50 + "a" * 100 + "cb"]) in (
        "", "a/" * 50 + "a" * 100 + "cb",
    )  # fmt: skip


names = st.text("abc", min_size=1, max_size=4)
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
pieces = st.sampled_from(["a", "b", "c", "*", "?", "[ab]", "[!a]"])
segments = st.one_of(st.just("**"), st.lists(pieces, min_size=1, max_size=4).map("".join))


@given(st.lists(segments, min_size=2, max_size=5), paths)
def test_it_agrees_with_a_plain_reading_of_the_pattern(parts: list[str], path: str) -> None:
    parts = [re.sub(r"\*+", "*", part) if part != "**" else part for part in parts]
    assert (first_match(["/".join(parts)], [path]) == path) == _fits(parts, path.split("/"))


def _fits(parts: list[str], names: list[str]) -> bool:
    """Segment by segment, as a person would go about it."""
    if not parts:
        return not names
    head, *rest = parts
    if head == "**":
        # At the end it stands for whatever is below, which is something.
        least = 0 if rest else 1
        return any(_fits(rest, names[at:]) for at in range(least, len(names) + 1))
    return bool(names) and _fits_name(head, names[0]) and _fits(rest, names[1:])


def _fits_name(part: str, name: str) -> bool:
    pattern = part.replace("*", ".*").replace("?", ".").replace("[!", "[^")
    return re.fullmatch(pattern, name) is not None


@given(st.text(max_size=30), st.text(max_size=30))
def test_whatever_is_written_is_no_error(glob: str, path: str) -> None:
    assert first_match([glob], [path]) in ("", path)
