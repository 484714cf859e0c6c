"""What a name means in a workspace."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import modest

from lamina.core.notes.note_names import NoteNames, is_in_folder, split_link, tag_matches

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
    resolved = NoteNames(PATHS).resolve(name)
    assert (resolved.path, resolved.how) == (path, how)


def test_a_stem_that_several_have_means_none_and_the_warning_lists_them() -> None:
    resolved = NoteNames(PATHS).resolve("b")
    assert (resolved.path, resolved.how, resolved.matches) == (
        None,
        "ambiguous",
        ("x/b.md", "y/b.md"),
    )
    assert resolved.warning == (
        "'b' may mean any of 'x/b.md', 'y/b.md'; it is left out: give its path"
    )


def test_exact_spelling_comes_before_overlooking_case() -> None:
    assert NoteNames(("b.md", "q/B.md")).resolve("B").path == "q/B.md"
    assert NoteNames(("b.md", "B.md")).resolve("b.MD").how == "ambiguous"


def test_what_is_not_there_or_not_there_any_more_is_said() -> None:
    missing = NoteNames(PATHS).resolve("gone.md")
    assert (missing.path, missing.how) == (None, "missing")
    assert missing.warning == "'gone.md' is not in the workspace; it is left out"
    moved = NoteNames(PATHS).resolve("old/C.md")
    assert moved.warning == "'old/C.md' is not there under that path; 'x/C.md' is taken for it"
    assert NoteNames(PATHS).resolve("C").warning == ""
    assert NoteNames(PATHS).resolve("").how == "missing"
    assert NoteNames(PATHS).resolve("/").how == "missing"


def test_lists_are_split_by_what_is_known() -> None:
    shelf = NoteNames(PATHS)
    assert shelf.split("a.md, z/d, e.md, e") == ("a.md", "z/d, e.md", "e")
    assert shelf.split("d, e, q, r") == ("d, e", "q", "r")
    assert NoteNames(()).split("d, e.md, ") == ("d", "e.md")
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
        assert NoteNames(paths).resolve(path).path == path


# -- links, aliases, and names as seen from a note -----------------------------------------------

VAULT = (
    "Home.md",
    "daily/2024-03-01.md",
    "projects/lamina/design.md",
    "projects/lamina/v1.2 notes.md",
    "projects/other/design.md",
    "people/R&D, Ops]team.md",
    "people/\U0001f98a Fox.md",
    "files/report.pdf",
    "files/board.canvas",
    "C# notes.md",
    "C.md",
)
ALIASES = {
    "people/\U0001f98a Fox.md": ("The Fox", "Reynard"),
    "daily/2024-03-01.md": ("Today", "Home"),
    "C.md": ("Sea",),
    "projects/lamina/design.md": ("sea", "Plan"),
    "projects/other/design.md": ("Plan",),
    "gone.md": ("Ghost",),
}


@pytest.mark.parametrize(
    ("text", "name", "anchor", "label"),
    [
        ("[[api]]", "api", "", ""),
        ("[[api#Errors|see]]", "api", "Errors", "see"),
        ("[[api#Errors#Codes]]", "api", "Errors#Codes", ""),
        ("[[api#^b1]]", "api", "^b1", ""),
        ("[[api^b1]]", "api", "^b1", ""),
        ("[[#Errors]]", "", "Errors", ""),
        ("![[report.pdf#page=3]]", "report.pdf", "page=3", ""),
        ("[[api\\|in a table]]", "api", "", "in a table"),
        (" [[ api ]] ", "api", "", ""),
        ("[[a]b]]", "a]b", "", ""),
        ("notes/api.md#Errors", "notes/api.md", "Errors", ""),
        ("x^2", "x^2", "", ""),
        ("[[^b1]]", "^b1", "", ""),
        ("", "", "", ""),
    ],
)
def test_a_link_is_split_into_its_parts(text: str, name: str, anchor: str, label: str) -> None:
    link = split_link(text)
    assert (link.name, link.anchor, link.label) == (name, anchor, label)


@pytest.mark.parametrize(
    ("name", "path", "how", "anchor"),
    [
        ("[[Home]]", "Home.md", "path", ""),
        ("/Home.md", "Home.md", "path", ""),
        ("[[2024-03-01#Log]]", "daily/2024-03-01.md", "stem", "Log"),
        ("[[v1.2 notes|notes]]", "projects/lamina/v1.2 notes.md", "stem", ""),
        ("[[lamina/design]]", "projects/lamina/design.md", "stem", ""),
        ("R&D, Ops]team", "people/R&D, Ops]team.md", "stem", ""),
        ("\U0001f98a Fox", "people/\U0001f98a Fox.md", "stem", ""),
        ("report.pdf", "files/report.pdf", "stem", ""),
        ("![[report.pdf#page=3]]", "files/report.pdf", "stem", "page=3"),
        ("[[files/board.canvas]]", "files/board.canvas", "path", ""),
        ("board.canvas", "files/board.canvas", "stem", ""),
        ("C# notes", "C# notes.md", "path", ""),
        ("[[C#Scales]]", "C.md", "path", "Scales"),
        ("[[The Fox]]", "people/\U0001f98a Fox.md", "alias", ""),
        ("the fox", "people/\U0001f98a Fox.md", "alias", ""),
        ("Sea", "C.md", "alias", ""),
        ("Home", "Home.md", "path", ""),
        ("report", None, "missing", ""),
        ("Ghost", None, "missing", ""),
        ("[[nobody#x]]", None, "missing", "x"),
        ("[[#x]]", None, "missing", "x"),
    ],
)
def test_links_and_aliases_mean_a_path(name: str, path: str | None, how: str, anchor: str) -> None:
    resolved = NoteNames(VAULT, ALIASES).resolve(name)
    assert (resolved.path, resolved.how, resolved.anchor) == (path, how, anchor)


@pytest.mark.parametrize(
    ("name", "path", "how"),
    [
        ("design", "projects/lamina/design.md", "relative"),
        ("design.md", "projects/lamina/design.md", "relative"),
        ("./design.md#L2", "projects/lamina/design.md", "relative"),
        ("../other/design.md", "projects/other/design.md", "relative"),
        ("../../Home.md", "Home.md", "relative"),
        ("../../../files/Home.md", "Home.md", "stem"),
        ("projects/other/design", "projects/other/design.md", "path"),
        ("#Below", "projects/lamina/v1.2 notes.md", "path"),
    ],
)
def test_a_link_is_seen_from_its_note(name: str, path: str, how: str) -> None:
    resolved = NoteNames(VAULT).resolve(name, beside="projects/lamina/v1.2 notes.md")
    assert (resolved.path, resolved.how) == (path, how)


def test_a_bare_name_means_the_note_beside_the_one_that_links_and_a_path_begins_at_the_root() -> (
    None
):
    shelf = NoteNames(("sub.md", "x/Sub.md", "x/b.md", "x/y/c.md", "y/c.md", "b.md"))
    beside = shelf.resolve("[[sub]]", beside="x/b.md")
    assert (beside.path, beside.how, beside.nearness) == ("x/Sub.md", "relative", "same folder")
    assert beside.matches == ("sub.md", "x/Sub.md")
    assert shelf.resolve("[[b]]", beside="x/y/c.md").path == "b.md"
    assert shelf.resolve("[[sub]]", beside="b.md").path == "sub.md"
    assert shelf.resolve("[[/sub]]", beside="x/b.md").path == "sub.md"
    assert shelf.resolve("y/c", beside="x/b.md").path == "y/c.md"
    assert shelf.resolve("./y/c", beside="x/b.md").path == "x/y/c.md"
    assert shelf.resolve("[[sub]]").path == "sub.md"


def test_an_alias_that_several_notes_have_means_none_and_lists_them() -> None:
    resolved = NoteNames(VAULT, ALIASES).resolve("[[Plan]]")
    assert (resolved.path, resolved.how) == (None, "ambiguous")
    assert resolved.matches == ("projects/lamina/design.md", "projects/other/design.md")
    assert resolved.warning == (
        "'[[Plan]]' may mean any of 'projects/lamina/design.md', 'projects/other/design.md'; "
        "it is left out: give its path"
    )
    assert NoteNames(VAULT, ALIASES).resolve("SEA").how == "ambiguous"


def test_a_warning_lists_no_more_than_a_person_reads() -> None:
    resolved = NoteNames([f"{number}/index.md" for number in range(1_000)]).resolve("index")
    assert len(resolved.matches) == 1_000
    assert resolved.warning.endswith("'9/index.md' and 990 more; it is left out: give its path")


def test_a_nested_tag_matches_what_it_is_nested_in() -> None:
    assert tag_matches("Project/X", "project")
    assert tag_matches("#project", "#PROJECT/")
    assert not tag_matches("projects", "project")
    assert not tag_matches("project", "project/x")
    assert not tag_matches("project", "")


def test_a_path_is_in_its_folders_and_in_the_root() -> None:
    assert is_in_folder("a/b/c.md", "a")
    assert is_in_folder("a/b/c.md", "/a/b/")
    assert is_in_folder("c.md", "")
    assert is_in_folder("c.md", "/")
    assert is_in_folder("a/c.md", "./a")
    assert not is_in_folder("ab/c.md", "a")
    assert not is_in_folder("a.md", "a.md")


@modest
@given(
    st.lists(st.text(st.sampled_from("ab/. #|[]^"), min_size=1, max_size=6), unique=True),
    st.text(st.sampled_from("ab/. #|[]^"), max_size=8),
    st.text(st.sampled_from("ab/."), max_size=6) | st.none(),
)
def test_any_name_means_one_known_path_or_says_why_not(
    paths: list[str], name: str, beside: str | None
) -> None:
    resolved = NoteNames(paths, dict.fromkeys(paths, ("a b", "b"))).resolve(name, beside)
    assert resolved.path is None or resolved.path in paths
    assert (resolved.path is None) == (resolved.how in ("missing", "ambiguous"))
    assert resolved.path is not None or resolved.warning
    assert set(resolved.matches) <= set(paths)


# -- the nearest of several ----------------------------------------------------------------------

HELP = (
    "en/Home.md",
    "en/Plugins/Graph view.md",
    "en/Plugins/Deep/Search.md",
    "en/Obsidian/Links.md",
    "en/Obsidian/Files/Search.md",
    "fr/Plugins/Graph view.md",
    "fr/Obsidian/Links.md",
    "ja/Plugins/Graph view.md",
    "Sandbox/Formatting/Links.md",
    "Sandbox/Start.md",
    "Attachments/x.png",
    "en/Attachments/x.png",
    "fr/Attachments/x.png",
    "en/Attachments/fr/x.png",
    "Read me.md",
)


@pytest.mark.parametrize(
    ("name", "beside", "path", "nearness"),
    [
        # The same folder, and the root, which is the full path of a name.
        ("Graph view", "en/Plugins/Backlinks.md", "en/Plugins/Graph view.md", "same folder"),
        ("Graph view", "fr/Plugins/Backlinks.md", "fr/Plugins/Graph view.md", "same folder"),
        ("Read me", "en/Plugins/Backlinks.md", "Read me.md", ""),
        # Below the note's folder.
        ("Graph view", "en/Home.md", "en/Plugins/Graph view.md", "below"),
        ("Search", "en/Obsidian/Links.md", "en/Obsidian/Files/Search.md", "below"),
        # The same top folder.
        ("Graph view", "fr/Obsidian/Links.md", "fr/Plugins/Graph view.md", "same top folder"),
        ("Links", "en/Plugins/Graph view.md", "en/Obsidian/Links.md", "same top folder"),
        ("x.png", "fr/Plugins/Graph view.md", "fr/Attachments/x.png", "same top folder"),
        # Of several there, the one in the fewest folders.
        ("x.png", "en/Plugins/Graph view.md", "en/Attachments/x.png", "same top folder"),
        ("x.png", "ja/Plugins/Graph view.md", "Attachments/x.png", "fewest folders"),
        ("x.png", "Read me.md", "Attachments/x.png", "fewest folders"),
        # However it is spelled, as a link or by the end of its path.
        ("[[graph VIEW#Filters|g]]", "fr/Obsidian/Links.md", "fr/Plugins/Graph view.md",
         "same top folder"),
        ("Graph view.md", "fr/Obsidian/Links.md", "fr/Plugins/Graph view.md", "same top folder"),
        ("Plugins/Graph view", "fr/Obsidian/Links.md", "fr/Plugins/Graph view.md",
         "same top folder"),
        ("plugins/graph view.MD", "ja/Obsidian/x.md", "ja/Plugins/Graph view.md",
         "same top folder"),
    ],
)  # fmt: skip
def test_of_several_the_nearest_to_the_note_is_meant(
    name: str, beside: str, path: str, nearness: str
) -> None:
    resolved = NoteNames(HELP).resolve(name, beside=beside)
    assert (resolved.path, resolved.nearness, resolved.warning) == (path, nearness, "")
    assert (len(resolved.matches) > 1) is bool(nearness)


def test_what_is_as_near_as_another_stays_ambiguous_and_only_those_are_listed() -> None:
    resolved = NoteNames((*HELP, "en/A/B/C/Graph view.md")).resolve("Graph view", "de/a/b.md")
    assert (resolved.path, resolved.how) == (None, "ambiguous")
    assert resolved.matches == (
        "en/Plugins/Graph view.md", "fr/Plugins/Graph view.md", "ja/Plugins/Graph view.md",
    )  # fmt: skip
    # Names of folders may be long or short: that says nothing.
    assert NoteNames(("land/log.md", "sea/log.md")).resolve("log", "b.md").how == "ambiguous"


def test_a_person_who_is_in_no_note_has_no_nearest() -> None:
    names = NoteNames(HELP)
    for name in ("Graph view", "[[Search]]", "x.png"):
        assert names.resolve(name).how == names.resolve(name, "").how == "ambiguous"


def test_of_two_spellings_as_near_the_exact_one_is_meant() -> None:
    names = NoteNames(("a/Note.md", "b/note.md", "b/x.md"))
    assert names.resolve("Note", "c/d.md").path == "a/Note.md"
    assert names.resolve("NOTE", "c/d.md").how == "ambiguous"
    assert names.resolve("Note", "b/x.md").path == "b/note.md"


def test_a_folder_that_is_not_there_is_not_guessed_from_the_note() -> None:
    names = NoteNames(("a/n.md", "b/n.md", "b/x.md"))
    resolved = names.resolve("old/n", "b/y.md")
    assert (resolved.path, resolved.how, resolved.matches) == (
        None, "missing", ("a/n.md", "b/n.md"),
    )  # fmt: skip
    assert resolved.warning == "'old/n' is not there; it is left out: there are 'a/n.md', 'b/n.md'"
    assert names.resolve("../n.md", "b/c/y.md").path == "b/n.md"
    assert names.resolve("./n", "c/y.md").how == "missing"


def test_a_file_of_the_very_name_comes_before_a_note_that_is_called_after_it() -> None:
    names = NoteNames(("a/x.png", "b/x.png.md"))
    assert names.resolve("x.png", "c/y.md").path == names.resolve("x.png").path == "a/x.png"


def test_a_name_of_a_file_comes_before_an_alias_however_it_is_spelled() -> None:
    names = NoteNames(("q/b.md", "api.md"), {"q/b.md": ("API",)})
    assert names.resolve("API").path == names.resolve("API", "q/c.md").path == "api.md"


def test_a_name_that_every_folder_has_is_looked_up_without_looking_at_all_of_them() -> None:
    folders = [f"{top}/{sub}" for top in range(100) for sub in range(100)]
    names = NoteNames([f"{folder}/a/index.md" for folder in folders])
    looked_at = 0

    class Counted(str):
        def count(self, *arguments: Any) -> int:
            nonlocal looked_at
            looked_at += 1
            return super().count(*arguments)

    names = NoteNames([Counted(f"{folder}/a/index.md") for folder in folders])
    for folder in folders:
        for note in ("x", "y", "z"):
            resolved = names.resolve("index", f"{folder}/{note}.md")
            assert resolved.path == f"{folder}/a/index.md"
    # Each in its own folder, and no more.
    assert looked_at <= 2 * len(folders)
