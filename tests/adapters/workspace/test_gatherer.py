"""What a person can attach from a folder: the item that is meant, and what comes along with it."""

import functools
import os
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.adapters.workspace.test_folder import png
from tests.adapters.workspace.test_pdf_text import make_pdf

from lamina.adapters.workspace import gatherer
from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.core.values.item import Item, LoadedItem, Shape, key_of, query_id
from lamina.core.values.request import GatheredItems, LeftOut


class Vault:
    """A folder in the making, and a workspace over it that sees every change."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.root.mkdir()
        self.workspace = FolderWorkspace(root, watch=False)

    def put(self, path: str, data: bytes | str = "") -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)

    def gather(self, reference: str, depth: int = 1, shape: Shape = "attached") -> GatheredItems:
        gather = functools.partial(self.workspace.gather, embed_depth=depth)
        return anyio.run(gather, reference, shape)

    def ids(self, reference: str, depth: int = 1) -> list[str]:
        """The ids of what a reference brings, all of which can be had."""
        gathered = self.gather(reference, depth)
        assert gathered.left_out == ()
        return [reading.item.id for reading in gathered.readings]

    def one(self, reference: str) -> LoadedItem:
        gathered = self.gather(reference)
        assert gathered.left_out == ()
        (reading,) = gathered.readings
        return reading

    def refused(self, reference: str) -> LeftOut:
        gathered = self.gather(reference)
        assert gathered.readings == ()
        (left,) = gathered.left_out
        return left

    def moved(self, item: Item) -> str | None:
        return anyio.run(self.workspace.find_moved, item)


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Vault]:
    vault = Vault(tmp_path / "vault")
    yield vault
    anyio.run(vault.workspace.aclose)


def origins(gathered: GatheredItems) -> list[tuple[str, str, str]]:
    return [
        (reading.item.id, reading.provenance.origin, reading.provenance.source)
        for reading in gathered.readings
    ]


# -- the table of docs/workspaces.md -------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "meant"),
    [
        ("notes/api.md", "note:notes/api.md"),
        ("notes/api", "note:notes/api.md"),
        ("./notes//api.md", "note:notes/api.md"),
        ("api", "note:notes/api.md"),
        ("api.md", "note:notes/api.md"),
        ("[[api]]", "note:notes/api.md"),
        ("![[api|The API]]", "note:notes/api.md"),
        ("note:notes/api.md", "note:notes/api.md"),
        ("The interface", "note:notes/api.md"),
        ("[[the INTERFACE]]", "note:notes/api.md"),
        ("src/main.py", "file:src/main.py"),
        ("main.py", "file:src/main.py"),
        ("report.pdf", "pdf:report.pdf"),
        ("plan.png", "image:plan.png"),
        ("projects/", "folder:projects"),
        ("projects", "folder:projects"),
        ("folder:projects", "folder:projects"),
        ("#draft", "tag:draft"),
        ("tag:draft", "tag:draft"),
        ("api.md#L3-L4", "selection:notes/api.md#L3-L4"),
        ("notes/api.md#L3-L4", "selection:notes/api.md#L3-L4"),
        ("api#L3-4", "selection:notes/api.md#L3-L4"),
        ("main.py#L1", "selection:src/main.py#L1-L1"),
        ("[[api#Errors]]", "selection:notes/api.md#L6-L8"),
        ("api#Errors", "selection:notes/api.md#L6-L8"),
        ("[[api#^mark]]", "selection:notes/api.md#L8-L8"),
    ],
)
def test_a_reference_brings_the_item_it_says(vault: Vault, reference: str, meant: str) -> None:
    note = "---\naliases: [The interface]\n---\n# API\n\n# Errors\n\nIt fails. ^mark\n\n# End\n"
    vault.put("notes/api.md", note)
    vault.put("src/main.py", "x = 1\n")
    vault.put("report.pdf", make_pdf("Hello"))
    vault.put("plan.png", png(3))
    vault.put("projects/a.md", "A #draft\n")
    gathered = vault.gather(reference)
    assert gathered.left_out == ()
    assert gathered.readings[0].item.id == meant


def test_the_same_note_has_one_id_whatever_it_is_called(vault: Vault) -> None:
    vault.put("a/My note.md", "---\naliases: [mine]\n---\nText.\n")
    reference = (
        "a/My note.md",
        "a/My note",
        "My note",
        "my NOTE",
        "mine",
        "[[My note]]",
        "./a/My note",
    )
    found = {
        (vault.one(reference).item.id, vault.one(reference).item.version) for reference in reference
    }
    assert len(found) == 1


def test_an_item_says_which_workspace_it_is_of(vault: Vault) -> None:
    vault.put("a.md", "A")
    assert vault.one("a").item.workspace == vault.workspace.id


# -- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "R&D", "a] b", "[draft] x", "one, two", "a  b", "☕ café", "v1.2.3", "C# notes", "50%",
        "it's", "what? (no)", "a@b", "time: 9:30", "#5 list", "a|b", "-rf", "^x", "日本語",
    ],
)  # fmt: skip
def test_a_note_is_found_by_its_name_whatever_signs_are_in_it(vault: Vault, name: str) -> None:
    vault.put(f"deep/er/{name}.md", "Here.\n")
    for reference in (name, f"{name}.md", f"deep/er/{name}.md", f"note:deep/er/{name}.md"):
        assert vault.one(reference).item.id == f"note:deep/er/{name}.md"


def test_what_is_called_like_another_form_goes_first(vault: Vault) -> None:
    for name in ("#draft", "tag:x", "a.md#L1-L2", "[[api]]", "folder:projects"):
        vault.put(name, "This very file.\n")
        assert vault.one(name).item.content == "This very file.\n"


def test_case_and_normal_form_are_overlooked_only_where_nothing_fits_exactly(vault: Vault) -> None:
    composed = unicodedata.normalize("NFC", "Café")
    apart = unicodedata.normalize("NFD", "Café")
    vault.put(f"{apart}.md", "apart")
    assert vault.one(composed).item.id == f"note:{apart}.md"
    assert vault.one(composed.upper()).item.id == f"note:{apart}.md"
    vault.put(f"x/{composed}.md", "composed")
    assert vault.one(composed).item.content == "composed"
    assert vault.one(apart).item.content == "apart"


def test_a_name_that_fits_several_is_left_out_and_they_are_listed(vault: Vault) -> None:
    vault.put("a/plan.md", "A")
    vault.put("b/plan.md", "B")
    left = vault.refused("plan")
    assert (left.what, left.reason) == ("note:plan", "ambiguous")
    assert left.detail == "'plan' may mean any of 'a/plan.md', 'b/plan.md': give its path"
    assert vault.one("b/plan").item.content == "B"
    for reference in ("[[Plan]]", "[[plan#Aims]]", "plan#L3"):
        assert vault.refused(reference).reason == "ambiguous"


def test_a_path_at_which_nothing_is_is_missing_also_where_several_have_its_name(
    vault: Vault,
) -> None:
    for path in ("a/plan.md", "b/plan.md", "a/docs/x.md", "b/docs/x.md"):
        vault.put(path, "x")
    for reference in ("plan.md", "old/plan.md", "note:plan.md", "folder:docs"):
        left = vault.refused(reference)
        assert left.reason == "missing"
        assert "'a/" in left.detail


def test_a_folder_name_that_fits_several_is_left_out_and_they_are_listed(vault: Vault) -> None:
    for path in ("a/docs/x.md", "b/docs/x.md"):
        vault.put(path, "x")
    left = vault.refused("docs/")
    assert (left.what, left.reason) == ("folder:docs", "ambiguous")
    assert left.detail == "'docs' may mean any of 'a/docs', 'b/docs'"


def test_an_embedded_name_that_fits_several_says_so(vault: Vault) -> None:
    vault.put("home.md", "![[plan]]")
    vault.put("a/plan.md", "A")
    vault.put("b/plan.md", "B")
    (left,) = vault.gather("home.md").left_out
    assert (left.what, left.reason, left.source) == ("note:plan", "ambiguous", "note:home.md")


def test_only_so_many_of_those_that_fit_are_listed(vault: Vault) -> None:
    for number in range(12):
        vault.put(f"{number:02}/plan.md", "x")
    assert vault.refused("plan").detail.endswith("'07/plan.md' and 4 more: give its path")


def test_a_full_path_goes_before_a_name(vault: Vault) -> None:
    vault.put("plan.md", "root")
    vault.put("a/plan.md", "A")
    assert vault.one("plan").item.content == "root"
    assert vault.one("plan.md").item.content == "root"


def test_a_path_that_is_not_there_is_found_by_its_name_and_that_is_said(vault: Vault) -> None:
    vault.put("new/plan.md", "here")
    found = vault.one("old/plan.md")
    assert found.item.id == "note:new/plan.md"
    (told,) = found.warnings
    assert "'old/plan.md'" in told
    assert "'new/plan.md' is taken for it" in told


def test_what_is_nowhere_is_missing(vault: Vault) -> None:
    vault.put("a.md", "A")
    left = vault.refused("nope")
    assert (left.what, left.reason) == ("note:nope", "missing")
    assert left.detail == "nope does not exist in the workspace"


@pytest.mark.parametrize(
    "reference", ["[[api]]", "[[api#Errors]]", "api#Errors", "api.md", "api#L1"]
)
def test_a_link_means_the_note_also_where_a_folder_has_its_name(
    vault: Vault, reference: str
) -> None:
    vault.put("api.md", "# Errors\n\nThe note.\n")
    vault.put("api/other.md", "Another.\n")
    (reading,) = vault.gather(reference).readings
    assert key_of(reading.item.id).startswith("api.md")


def test_a_bare_path_means_the_folder_of_that_path_before_a_name(vault: Vault) -> None:
    vault.put("api.md", "The note.\n")
    vault.put("api/other.md", "Another.\n")
    assert vault.ids("api") == ["folder:api", "note:api/other.md"]


def test_a_link_to_a_folder_says_that_it_is_one(vault: Vault) -> None:
    vault.put("api/other.md", "Another.\n")
    for reference in ("[[api]]", "[[api#Errors]]", "api#L3"):
        left = vault.refused(reference)
        assert (left.reason, left.detail) == (
            "missing",
            "api is a folder, and no note has that name",
        )


# -- lines and sections --------------------------------------------------------------------------


def test_lines_are_what_stands_on_them(vault: Vault) -> None:
    vault.put("log.md", "one\r\ntwo\n\nfour\n")
    assert vault.one("log.md#L2-L4").item.content == "two\n\nfour"
    assert vault.one("log.md#L1").item.content == "one\r"
    assert vault.one("log.md#L1").item.title == "log"


def test_lines_behind_the_end_are_missing(vault: Vault) -> None:
    vault.put("log.md", "one\ntwo\n")
    left = vault.refused("log.md#L3")
    assert (left.reason, left.detail) == ("missing", "log.md has 2 lines; 3 is not there")
    assert vault.refused("log.md#L9-L12").reason == "missing"


def test_lines_that_reach_behind_the_end_are_cut_and_that_is_said(vault: Vault) -> None:
    vault.put("log.md", "one\ntwo\n")
    found = vault.one("log.md#L2-L9")
    assert (found.item.id, found.item.content) == ("selection:log.md#L2-L2", "two")
    assert found.warnings == ("log.md has 2 lines: it ends before 9",)


def test_what_has_no_lines_says_so(vault: Vault) -> None:
    vault.put("x.pdf", make_pdf("Hello"))
    vault.put("x.png", png(1))
    for name in ("x.pdf", "x.png"):
        left = vault.refused(f"{name}#L1-L2")
        assert (left.reason, left.detail) == ("unreadable", f"{name} has no lines")


def test_a_section_is_its_lines_up_to_the_next_heading_of_its_rank(vault: Vault) -> None:
    vault.put("a.md", "# One\n\n## Sub\n\ntext\n\n# Two\n\n## Sub\n\nother\n")
    assert vault.one("[[a#One]]").item.content == "# One\n\n## Sub\n\ntext"
    assert vault.one("[[a#Two#Sub]]").item.content == "## Sub\n\nother"


def test_a_section_and_its_lines_are_one_item(vault: Vault) -> None:
    vault.put("a.md", "# One\n\ntext\n\n# Two\n")
    assert vault.one("[[a#One]]").item == vault.one("a.md#L1-L3").item


def test_a_heading_that_is_not_there_is_missing(vault: Vault) -> None:
    vault.put("a.md", "# One\n")
    left = vault.refused("[[a#Two]]")
    assert (left.reason, left.detail) == ("missing", "a.md has no heading 'Two'")
    assert vault.refused("[[a#^mark]]").reason == "missing"


# -- folders -------------------------------------------------------------------------------------


def test_a_folder_brings_a_list_and_its_notes_and_texts(vault: Vault) -> None:
    vault.put("p/b.md", "B")
    vault.put("p/deep/a.txt", "A")
    vault.put("other.md", "no")
    gathered = vault.gather("p/")
    assert origins(gathered) == [
        ("folder:p", "", ""),
        ("note:p/b.md", "folder", "folder:p"),
        ("file:p/deep/a.txt", "folder", "folder:p"),
    ]
    assert gathered.readings[0].item.content == "- p/b.md\n- p/deep/a.txt"


def test_what_a_folder_cannot_bring_is_reported_with_its_reason(vault: Vault) -> None:
    vault.put("p/a.md", "A")
    vault.put("p/b.bin", b"\x7fELF\0\0")
    vault.put("p/c.png", png(1))
    vault.put("p/d.pdf", make_pdf("Hello"))
    gathered = vault.gather("p")
    assert [reading.item.id for reading in gathered.readings] == ["folder:p", "note:p/a.md"]
    (left,) = gathered.left_out
    assert (left.what, left.reason, left.source) == ("file:p/b.bin", "unreadable", "folder:p")
    assert left.detail == "p/b.bin of p: p/b.bin is not text"


def test_pictures_and_pdfs_of_a_folder_are_only_listed_and_that_is_said(vault: Vault) -> None:
    vault.put("p/a.md", "A")
    vault.put("p/c.png", png(1))
    gathered = vault.gather("p")
    assert gathered.readings[0].item.content == "- p/a.md\n- p/c.png"
    told = "p: 1 picture or PDF is only listed; attach them by their own path"
    assert (gathered.left_out, gathered.warnings) == ((), (told,))
    vault.put("p/d.pdf", make_pdf("Hello"))
    (told,) = vault.gather("p").warnings
    assert told.startswith("p: 2 pictures and PDFs are only listed")


def test_a_folder_does_not_bring_what_is_hidden_or_a_link(vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("outside", "utf-8")
    vault.put("p/a.md", "A")
    vault.put("p/.obsidian/x.md", "hidden")
    vault.put("p/.hidden.md", "hidden")
    (vault.root / "p" / "link.md").symlink_to(tmp_path / "outside.md")
    (vault.root / "p" / "linked").symlink_to(tmp_path, target_is_directory=True)
    assert vault.ids("p") == ["folder:p", "note:p/a.md"]


def test_an_empty_folder_says_so(vault: Vault) -> None:
    (vault.root / "p").mkdir()
    assert vault.one("p/").item.content == "(empty)"


def test_a_folder_is_found_by_its_last_name(vault: Vault) -> None:
    vault.put("a/b/deep/x.md", "X")
    assert vault.ids("folder:deep") == ["folder:a/b/deep", "note:a/b/deep/x.md"]
    assert vault.ids("deep/") == ["folder:a/b/deep", "note:a/b/deep/x.md"]


def test_a_folder_of_several_or_of_none_is_left_out(vault: Vault) -> None:
    vault.put("a/x/1.md", "1")
    vault.put("b/x/2.md", "2")
    vault.put("file.md", "f")
    assert vault.refused("x/").detail == "'x' may mean any of 'a/x', 'b/x'"
    assert vault.refused("none/").detail == "there is no folder none in the workspace"
    assert vault.refused("folder:file.md").detail == "file.md is no folder"


def test_a_folder_with_too_many_files_brings_the_first_and_says_so(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gatherer, "MAX_GATHERED", 3)
    for number in range(5):
        vault.put(f"p/{number}.md", str(number))
    gathered = vault.gather("p")
    assert [reading.item.content for reading in gathered.readings[1:]] == ["0", "1", "2"]
    assert gathered.warnings == ("p holds 5 texts; the first 3 are attached",)
    assert "- p/4.md" in gathered.readings[0].item.content


def test_notes_of_a_folder_do_not_bring_what_they_embed(vault: Vault) -> None:
    vault.put("p/a.md", "![[b]]\n")
    vault.put("b.md", "B")
    assert vault.ids("p", depth=2) == ["folder:p", "note:p/a.md"]


# -- tags ----------------------------------------------------------------------------------------


def test_a_tag_brings_the_notes_that_have_it_or_one_below(vault: Vault) -> None:
    vault.put("a.md", "Inline #draft here.\n")
    vault.put("b.md", "---\ntags: [x, Draft]\n---\n")
    vault.put("c.md", "---\ntags: draft/old\n---\n")
    vault.put("d.md", "`#draft` #drafts not#draft\n")
    vault.put("e.txt", "#draft")
    gathered = vault.gather("#draft")
    assert gathered.readings[0].item.content == "- a.md\n- b.md\n- c.md"
    assert origins(gathered)[1:] == [
        ("note:a.md", "tag", "tag:draft"),
        ("note:b.md", "tag", "tag:draft"),
        ("note:c.md", "tag", "tag:draft"),
    ]
    assert vault.ids("#draft/old") == ["tag:draft/old", "note:c.md"]


def test_a_tag_is_one_item_however_it_is_spelled(vault: Vault) -> None:
    vault.put("a.md", "#Draft\n")
    for reference in ("#draft", "#DRAFT", "tag:Draft", "tag:#draft", "#draft/"):
        assert vault.ids(reference) == ["tag:draft", "note:a.md"]


def test_a_tag_that_no_note_has_is_missing(vault: Vault) -> None:
    vault.put("a.md", "#other\n")
    left = vault.refused("#draft")
    assert (left.reason, left.detail) == ("missing", "no note has the tag #draft")


# -- what a note embeds --------------------------------------------------------------------------


def test_embeds_come_along_as_deep_as_is_wanted(vault: Vault) -> None:
    vault.put("a.md", "![[b]]\n")
    vault.put("b.md", "![[c]]\n")
    vault.put("c.md", "![[d]]\n")
    vault.put("d.md", "D\n")
    assert vault.ids("a", 0) == ["note:a.md"]
    assert vault.ids("a", 1) == ["note:a.md", "note:b.md"]
    assert vault.ids("a", 2) == ["note:a.md", "note:b.md", "note:c.md"]
    assert vault.ids("a", 9) == ["note:a.md", "note:b.md", "note:c.md", "note:d.md"]
    assert origins(vault.gather("a", 2))[1:] == [
        ("note:b.md", "embed", "note:a.md"),
        ("note:c.md", "embed", "note:b.md"),
    ]


def test_the_shortest_way_counts_for_how_deep_an_embed_is(vault: Vault) -> None:
    # By way of b, c is two deep and d three; but a embeds c itself.
    vault.put("a.md", "![[b]] ![[c]]\n")
    vault.put("b.md", "![[c]]\n")
    vault.put("c.md", "![[d]]\n")
    vault.put("d.md", "D\n")
    assert set(vault.ids("a", 2)) == {"note:a.md", "note:b.md", "note:c.md", "note:d.md"}


def test_notes_that_embed_each_other_come_once(vault: Vault) -> None:
    vault.put("a.md", "![[b]] ![[a]] ![[b]]\n")
    vault.put("b.md", "![[a]] ![[b]]\n")
    assert vault.ids("a", 9) == ["note:a.md", "note:b.md"]


def test_many_notes_that_embed_one_another_end(vault: Vault) -> None:
    everyone = " ".join(f"![[{number}]]" for number in range(40))
    for number in range(40):
        vault.put(f"{number}.md", everyone)
    assert len(vault.ids("0", 40)) == 40


def test_an_embed_that_is_not_there_is_reported_and_the_rest_comes(vault: Vault) -> None:
    vault.put("a.md", "![[gone]] ![[b#No]] ![[c]]\n")
    vault.put("b.md", "B")
    vault.put("c.md", "C")
    gathered = vault.gather("a")
    assert [reading.item.id for reading in gathered.readings] == ["note:a.md", "note:c.md"]
    assert [
        (omission.what, omission.reason, omission.source) for omission in gathered.left_out
    ] == [
        ("note:gone", "missing", "note:a.md"),
        ("note:b#No", "missing", "note:a.md"),
    ]
    assert gathered.left_out[0].detail.startswith("a.md embeds 'gone': ")


def test_an_embed_of_several_notes_is_reported(vault: Vault) -> None:
    vault.put("a.md", "![[x]]\n")
    vault.put("p/x.md", "1")
    vault.put("q/x.md", "2")
    (left,) = vault.gather("a").left_out
    assert "'p/x.md', 'q/x.md'" in left.detail


def test_a_section_that_is_embedded_is_its_lines(vault: Vault) -> None:
    vault.put("a.md", "![[b#Two]]\n")
    vault.put("b.md", "# One\n\n1\n\n# Two\n\n2\n")
    gathered = vault.gather("a")
    assert origins(gathered)[1] == ("selection:b.md#L5-L7", "embed", "note:a.md")
    assert gathered.readings[1].item.content == "# Two\n\n2"


def test_an_embed_is_looked_for_beside_its_note_first(vault: Vault) -> None:
    vault.put("p/a.md", "![[sub/x]] ![[../y]]\n")
    vault.put("p/sub/x.md", "beside")
    vault.put("q/sub/x.md", "elsewhere")
    vault.put("y.md", "above")
    assert vault.ids("p/a.md") == ["note:p/a.md", "note:p/sub/x.md", "note:y.md"]


def test_an_embedded_file_or_pdf_comes_along_and_a_picture_does_not(vault: Vault) -> None:
    vault.put("a.md", "![[x.pdf]] ![[y.csv]] ![[z.png]]\n")
    vault.put("x.pdf", make_pdf("Hello"))
    vault.put("y.csv", "1,2\n")
    vault.put("z.png", png(1))
    assert vault.ids("a") == ["note:a.md", "pdf:x.pdf", "table:y.csv"]


def test_an_embed_cannot_name_what_is_hidden_or_outside(vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("outside", "utf-8")
    vault.put(".secret/key.md", "hidden")
    vault.put("a.md", "![[.secret/key]] ![[../outside]] ![[.secret/key#x]]\n")
    gathered = vault.gather("a")
    assert [reading.item.id for reading in gathered.readings] == ["note:a.md"]
    assert len(gathered.left_out) == 3


def test_what_stands_in_code_is_not_embedded(vault: Vault) -> None:
    vault.put("a.md", "`![[b]]`\n\n```\n![[b]]\n```\n")
    vault.put("b.md", "B")
    assert vault.ids("a") == ["note:a.md"]


def test_a_file_that_is_no_note_embeds_nothing(vault: Vault) -> None:
    vault.put("a.txt", "![[b]]\n")
    vault.put("b.md", "B")
    assert vault.ids("a.txt") == ["file:a.txt"]


# -- queries -------------------------------------------------------------------------------------

QUERY = "LIST FROM #draft"


def asking(query: str) -> str:
    return f"Mine:\n\n```lamina-query\n{query}\n```\n"


def test_a_note_brings_the_results_of_its_queries(vault: Vault) -> None:
    vault.put("a.md", asking(QUERY))
    vault.put("b.md", "#draft\n")
    gathered = vault.gather("a", depth=0)
    item = query_id("a.md", QUERY)
    assert origins(gathered) == [("note:a.md", "", ""), (item, "query", "note:a.md")]
    result = gathered.readings[1].item
    assert result.title == QUERY
    assert "b.md" in result.content
    assert "a.md" not in result.content


def test_the_result_changes_when_another_note_does(vault: Vault) -> None:
    vault.put("a.md", asking(QUERY))
    vault.put("b.md", "#draft\n")
    before = vault.gather("a").readings[1].item
    assert vault.gather("a").readings[1].item == before
    vault.put("c.md", "#draft too\n")
    after = vault.gather("a").readings[1].item
    assert after.id == before.id
    assert after.version != before.version
    assert "c.md" in after.content


def test_a_query_that_is_wrong_is_reported_and_the_note_comes(vault: Vault) -> None:
    vault.put("a.md", asking("LIST FROM"))
    gathered = vault.gather("a")
    assert [reading.item.id for reading in gathered.readings] == ["note:a.md"]
    (left,) = gathered.left_out
    assert (left.what, left.reason) == (query_id("a.md", "LIST FROM"), "unreadable")
    assert left.detail.startswith("a query of a.md is wrong: ")


def test_a_result_is_had_by_its_id(vault: Vault) -> None:
    vault.put("a.md", asking(QUERY))
    vault.put("b.md", "#draft\n")
    item = query_id("a.md", QUERY)
    assert vault.one(item).item.id == item
    vault.put("a.md", asking("LIST FROM #other"))
    left = vault.refused(item)
    assert left.reason == "missing"
    assert "any more" in left.detail


def test_an_embedded_note_brings_the_results_of_its_queries(vault: Vault) -> None:
    vault.put("a.md", "![[b]]\n")
    vault.put("b.md", asking(QUERY))
    assert origins(vault.gather("a"))[2] == (query_id("b.md", QUERY), "query", "note:b.md")


# -- PDFs, pictures, what cannot be read ---------------------------------------------------------


def test_a_pdf_is_its_text_and_title(vault: Vault) -> None:
    vault.put("x.pdf", make_pdf("Hello\nworld", title="Greetings"))
    item = vault.one("x.pdf").item
    assert (item.title, item.content) == ("Greetings", "--- page 1 ---\nHello\nworld")


def test_a_pdf_that_is_none_is_unreadable(vault: Vault) -> None:
    vault.put("x.pdf", b"this is no PDF")
    assert vault.refused("x.pdf").reason == "unreadable"


def test_pictures_come_with_the_open_note_only(vault: Vault) -> None:
    vault.put("a.md", "![[x.png]] ![[b]]\n")
    vault.put("b.md", "![[x.png]]\n")
    vault.put("deep/x.png", png(2))
    for shape, blobs in (("attached", ()), ("web_tab", ()), ("active", (png(2),))):
        main, embedded = vault.gather("a", shape=shape).readings  # type: ignore[arg-type]
        assert (main.blobs, embedded.blobs) == (blobs, ())


def test_what_is_open_and_no_note_brings_no_pictures(vault: Vault) -> None:
    vault.put("p/a.md", "![[x.png]]\n")
    vault.put("p/x.png", png(2))
    assert all(not reading.blobs for reading in vault.gather("p", shape="active").readings)
    assert vault.gather("p/a.md#L1", shape="active").readings[0].blobs == ()


@pytest.mark.parametrize("path", [".env.md", ".notes/a.md", ".config"])
def test_what_is_hidden_is_read_only_by_its_full_path(vault: Vault, path: str) -> None:
    vault.put(path, "one\ntwo\n")
    assert vault.one(path).item.content == "one\ntwo\n"
    assert vault.one(f"{path}#L2").item.content == "two"
    assert vault.refused(Path(path).stem.lstrip(".")).reason == "missing"


def test_a_section_of_what_is_hidden_is_read_if_it_is_named_in_full(vault: Vault) -> None:
    vault.put(".notes/a.md", "# One\n\ntext\n")
    assert vault.one("[[.notes/a.md#One]]").item.content == "# One\n\ntext"


def test_a_file_without_leave_to_read_says_so(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.put("p/a.md", "A")
    vault.put("p/b.md", "B")
    real: Callable[..., int] = os.open

    def guarded(path: Any, *rest: Any, **named: Any) -> int:
        if path == "a.md":
            raise PermissionError
        return real(path, *rest, **named)

    monkeypatch.setattr(os, "open", guarded)
    monkeypatch.setattr(os, "supports_dir_fd", {*os.supports_dir_fd, guarded})
    left = vault.refused("p/a.md")
    assert (left.reason, left.detail) == ("unreadable", "p/a.md: permission denied")
    gathered = vault.gather("p")
    assert [reading.item.id for reading in gathered.readings] == ["folder:p", "note:p/b.md"]
    assert [omission.what for omission in gathered.left_out] == ["note:p/a.md"]


@pytest.mark.parametrize(
    "reference",
    ["../a.md", "/etc/passwd", "[[../a]]", "folder:..", "../", "a\\b.md", "..#L1", "\0", ""],
)
def test_what_leads_outside_is_refused(vault: Vault, reference: str) -> None:
    assert vault.refused(reference).reason == "refused"


def test_a_page_of_the_web_is_not_of_the_workspace(vault: Vault) -> None:
    assert vault.refused("https://example.org/a").reason == "refused"


# -- what was moved ------------------------------------------------------------------------------


def test_a_moved_note_is_found_by_its_content(vault: Vault) -> None:
    vault.put("a.md", "Words that only this note has.\n")
    item = vault.one("a").item
    (vault.root / "a.md").rename(vault.root / "another name.md")
    vault.put("x.md", "Others.\n")
    assert vault.moved(item) == "another name.md"


def test_a_moved_and_edited_note_is_found_by_its_name(vault: Vault) -> None:
    vault.put("old/a.md", "Before.\n")
    item = vault.one("a").item
    (vault.root / "old" / "a.md").unlink()
    vault.put("new/a.md", "After.\n")
    assert vault.moved(item) == "new/a.md"


def test_a_moved_note_is_found_also_if_it_was_open_and_has_pictures(vault: Vault) -> None:
    vault.put("a.md", "The map: ![[x.png]]\n")
    vault.put("x.png", png(1))
    item = vault.gather("a", shape="active").readings[0].item
    assert item.pictures
    (vault.root / "a.md").rename(vault.root / "b.md")
    assert vault.moved(item) == "b.md"


def test_a_moved_note_is_not_guessed(vault: Vault) -> None:
    vault.put("a.md", "Same.\n")
    item = vault.one("a").item
    (vault.root / "a.md").unlink()
    assert vault.moved(item) is None
    vault.put("x.md", "Same.\n")
    vault.put("y.md", "Same.\n")
    assert vault.moved(item) is None
    vault.put("p/a.md", "1\n")
    vault.put("q/a.md", "2\n")
    assert vault.moved(item) is None


# -- the nearest of several ----------------------------------------------------------------------


def test_a_note_embeds_the_nearest_of_several(vault: Vault) -> None:
    for top in ("de", "en"):
        vault.put(f"{top}/parts/legend.md", top)
    vault.put("en/deep/map.md", "![[legend]]\n")
    assert vault.ids("en/deep/map.md") == ["note:en/deep/map.md", "note:en/parts/legend.md"]


def test_what_is_as_near_as_another_is_not_embedded_and_both_are_named(vault: Vault) -> None:
    vault.put("de/legend.md", "de")
    vault.put("en/legend.md", "en")
    vault.put("map.md", "![[legend]]\n")
    (left,) = vault.gather("map").left_out
    assert (left.reason, left.detail) == (
        "ambiguous",
        "map.md embeds 'legend': 'legend' may mean any of 'de/legend.md', 'en/legend.md': "
        "give its path",
    )


def test_a_person_is_told_of_several_and_takes_none_of_them(vault: Vault) -> None:
    vault.put("de/parts/legend.md", "de")
    vault.put("en/legend.md", "en")
    left = vault.refused("legend")
    assert (left.reason, left.detail) == (
        "ambiguous",
        "'legend' may mean any of 'de/parts/legend.md', 'en/legend.md': give its path",
    )


def test_the_active_note_shows_the_nearest_of_several_pictures(vault: Vault) -> None:
    vault.put("de/files/x.png", png(1))
    vault.put("en/files/x.png", png(2))
    vault.put("en/deep/map.md", "![[x.png]] ![](FILES/x.png)\n")
    (reading,) = vault.gather("en/deep/map.md", shape="active").readings
    assert reading.blobs == (png(2),)
    assert reading.warnings == ()


def test_pictures_that_are_as_near_are_left_out_and_named(vault: Vault) -> None:
    vault.put("de/x.png", png(1))
    vault.put("en/x.png", png(2))
    vault.put("map.md", "![[x.png]] ![](none/x.png)\n")
    (reading,) = vault.gather("map.md", shape="active").readings
    assert reading.warnings == (
        "map.md: picture 'x.png' is left out: it may be any of 'de/x.png', 'en/x.png': "
        "give its path",
        "map.md: picture 'none/x.png' is left out: none/x.png does not exist in the workspace",
    )


def test_many_embeds_that_are_nowhere_are_looked_for_in_one_walk(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.put("map.md", "".join(f"![[gone {number}]]\n" for number in range(50)))
    walks = 0
    walk = vault.workspace.root.walk

    def count(*arguments: Any, **options: Any) -> Any:
        nonlocal walks
        walks += 1
        return walk(*arguments, **options)

    monkeypatch.setattr(vault.workspace.root, "walk", count)
    assert len(vault.gather("map.md").left_out) == 50
    # One for the notes and one for all other files.
    assert walks == 2


# -- Dendron -------------------------------------------------------------------------------------


def test_a_note_reference_of_dendron_embeds_just_that_range(vault: Vault) -> None:
    vault.put(
        "vault/pod.custom.md", "---\nid: x\n---\n\n## Summary\n\nShort.\n\n## More\n\nLong.\n"
    )
    vault.put("vault/a.md", "![[pod.custom#summary,1:#*]]\n")
    vault.put("vault/b.md", "![[dendron://my.vault/pod.custom#summary:#more]]\n")
    vault.put("vault/c.md", "![[Custom|pod.custom#more,1]]\n")
    assert vault.gather("vault/a.md").readings[1].item.content == "Short."
    assert vault.gather("vault/b.md").readings[1].item.content == "## Summary\n\nShort."
    assert vault.gather("vault/c.md").readings[1].item.id == "selection:vault/pod.custom.md#L11-L11"
    assert [reading.warnings for reading in vault.gather("vault/b.md").readings] == [(), ()]


def test_a_person_may_paste_a_link_with_its_label_first(vault: Vault) -> None:
    vault.put("vault/pod.custom.md", "# Pods\n")
    assert vault.one("[[Custom pods|pod.custom]]").item.id == "note:vault/pod.custom.md"
    assert vault.refused("[[Custom pods|none]]").reason == "missing"


def test_what_a_comment_embeds_does_not_come_along(vault: Vault) -> None:
    vault.put("a.md", "%% ![[b]] %%\n<!-- ![[b]] -->\n")
    vault.put("b.md", "B")
    assert vault.ids("a") == ["note:a.md"]
