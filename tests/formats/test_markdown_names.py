"""What a name in a chat file means in a workspace."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import modest

from lamina.formats.markdown_chat import resolve_note
from lamina.formats.markdown_names import Shelf

PATHS = (
    "a.md",
    "x/b.md",
    "y/b.md",
    "x/C.md",
    "docs/caf\u00e9.md",
    "y/pic.png",
    "z/d, e.md",
    "z/e.md",
)


@pytest.mark.parametrize(
    ("name", "path", "how"),
    [
        ("a.md", "a.md", "path"),
        ("a", "a.md", "path"),
        ("x/b.md", "x/b.md", "path"),
        ("x/b", "x/b.md", "path"),
        ("C", "x/C.md", "stem"),
        ("old/C.md", "x/C.md", "stem"),
        ("c", "x/C.md", "stem"),
        ("X/B.MD", "x/b.md", "stem"),
        ("cafe\u0301.md", "docs/caf\u00e9.md", "stem"),
        ("CAF\u00c9", "docs/caf\u00e9.md", "stem"),
        ("pic.png", "y/pic.png", "stem"),
        ("d, e", "z/d, e.md", "stem"),
    ],
)
def test_a_name_is_found_by_path_or_by_a_stem_of_its_own(name: str, path: str, how: str) -> None:
    resolved = resolve_note(name, PATHS)
    assert (resolved.path, resolved.how) == (path, how)


def test_a_stem_that_several_have_means_none_and_the_warning_lists_them() -> None:
    resolved = resolve_note("b", PATHS)
    assert (resolved.path, resolved.how, resolved.matches) == (
        None,
        "ambiguous",
        ("x/b.md", "y/b.md"),
    )
    assert resolved.warning == (
        "'b' may mean any of 'x/b.md', 'y/b.md'; it is left out: give its path"
    )


def test_exact_spelling_comes_before_overlooking_case() -> None:
    assert resolve_note("B", ("b.md", "q/B.md")).path == "q/B.md"
    assert resolve_note("b.MD", ("b.md", "B.md")).how == "ambiguous"


def test_what_is_not_there_or_not_there_any_more_is_said() -> None:
    missing = resolve_note("gone.md", PATHS)
    assert (missing.path, missing.how) == (None, "missing")
    assert missing.warning == "'gone.md' is not in the workspace; it is left out"
    moved = resolve_note("old/C.md", PATHS)
    assert moved.warning == "'old/C.md' is not there under that path; 'x/C.md' is taken for it"
    assert resolve_note("C", PATHS).warning == ""
    assert resolve_note("", PATHS).how == "missing"
    assert resolve_note("/", PATHS).how == "missing"


def test_lists_are_split_by_what_is_known() -> None:
    shelf = Shelf(PATHS)
    assert shelf.split("a.md, z/d, e.md, e") == ("a.md", "z/d, e.md", "e")
    assert shelf.split("d, e, q, r") == ("d, e", "q", "r")
    assert Shelf(()).split("d, e.md, ") == ("d", "e.md")
    assert shelf.split("") == ()


@modest
@given(
    st.lists(
        st.lists(st.sampled_from(["a", ", ", "/", ".md", "A"]), min_size=1).map("".join),
        unique=True,
        min_size=1,
        max_size=6,
    )
)
def test_every_known_path_means_itself(paths: list[str]) -> None:
    for path in paths:
        assert resolve_note(path, paths).path == path
