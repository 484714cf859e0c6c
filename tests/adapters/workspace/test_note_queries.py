"""The queries of notes as items of a workspace: blocks, searches, code within text, and scripts."""

import functools
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import anyio
import pytest

from lamina.adapters.files.root import Root
from lamina.adapters.workspace.file_secrets import FileSecrets
from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.adapters.workspace.query_results import QueryResults
from lamina.core.notes.note_reader import read_note
from lamina.core.values.item import query_id
from lamina.core.values.note import Catalogue, NoteQuery
from lamina.core.values.request import GatheredItems

KEY = "sk-ant-api03-" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hJ3kL5mN7pQ9rS1tU3vW5xY7zA9"


class Folder:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.time = datetime(2026, 1, 31, 12, 30).timestamp()
        self.workspace = FolderWorkspace(
            root, cache=root.parent / "notes.sqlite", watch=False, now=lambda: self.time
        )

    def put(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")

    def gather(self, reference: str) -> GatheredItems:
        gather = functools.partial(self.workspace.gather, embed_depth=1)
        return anyio.run(gather, reference, "attached")

    def result(self, reference: str) -> str:
        """The text of the one query that a note has."""
        gathered = self.gather(reference)
        assert gathered.left_out == ()
        return gathered.readings[1].item.content


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    (tmp_path / "vault").mkdir()
    folder = Folder(tmp_path / "vault")
    yield folder
    anyio.run(folder.workspace.aclose)


def block(kind: str, text: str) -> str:
    return f"```{kind}\n{text}\n```\n"


def test_a_dataview_block_is_run_over_fields_and_tasks(folder: Folder) -> None:
    folder.put("a.md", block("dataview", "TASK FROM #x WHERE due < date(today)"))
    folder.put("b.md", "#x\n- [ ] one [due:: 2026-01-30]\n- [ ] two [due:: 2026-02-01]\n")
    assert folder.result("a.md") == "- b.md\n  - [ ] one [due:: 2026-01-30]"


def test_a_block_in_a_callout_is_run(folder: Folder) -> None:
    folder.put("a.md", "topics:: x\n\n> [!help]\n> ```dataview\n> LIST\n> WHERE topics\n> ```\n")
    assert folder.result("a.md") == "- a.md"


def test_the_result_of_today_is_another_one_tomorrow(folder: Folder) -> None:
    folder.put("a.md", block("dataview", "LIST FROM #x WHERE day = date(today)"))
    folder.put("b.md", "#x\nday:: 2026-02-01\n")
    assert folder.result("a.md") == "No notes fit this query."
    folder.time += 86_400
    assert folder.result("a.md") == "- b.md"


def test_queries_within_the_text_are_one_item(folder: Folder) -> None:
    folder.put(
        "a.md", "cost:: 3\n\nTwice is `= this.cost * 2`, and `= length(this.file.inlinks)`.\n"
    )
    gathered = folder.gather("a.md")
    (_, result) = gathered.readings
    assert result.item.id == query_id("a.md", "= this.cost * 2\n= length(this.file.inlinks)")
    assert result.item.content == (
        "- `= this.cost * 2`: 6\n- `= length(this.file.inlinks)`: 0"
    )  # fmt: skip
    assert folder.gather(result.item.id).readings[0].item == result.item


def test_scripts_are_left_out_by_name_and_never_run(folder: Folder) -> None:
    folder.put("a.md", block("dataviewjs", "dv.pages()") + "`$= dv.current()`\n")
    gathered = folder.gather("a.md")
    assert len(gathered.readings) == 1
    assert [(left.reason, left.detail) for left in gathered.left_out] == [
        ("refused", "dataviewjs of a.md is not run: it is a script"),
        ("refused", "$= dv.current() of a.md is not run: it is a script"),
    ]
    assert folder.gather(gathered.left_out[0].what).left_out[0].reason == "refused"


def test_a_search_block_lists_notes_and_lines(folder: Folder) -> None:
    folder.put("a.md", block("query", 'pilot -path:old tag:#sea OR "no such thing"'))
    folder.put("b.md", "#sea\n\nCall the Pilot.\n\nAgain: pilot\n")
    folder.put("old/c.md", "#sea pilot\n")
    assert folder.result("a.md") == (
        "- b.md\n  - line 3: Call the Pilot.\n  - line 5: Again: pilot"
    )  # fmt: skip
    folder.put("d.md", "#sea pilot too\n")
    assert folder.result("a.md").endswith("- d.md\n  - line 1: #sea pilot too")


def test_a_search_that_is_not_understood_is_named(folder: Folder) -> None:
    folder.put("a.md", block("query", "sort:name"))
    (left,) = folder.gather("a.md").left_out
    assert left.reason == "unreadable"
    assert "there is no place 'sort:'" in left.detail


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("LIST key FROM #x", f"#x\nkey:: {KEY}\n"),
        ("TASK FROM #x", f"#x\n- [ ] use {KEY}\n"),
        ("LIST file.lists.text FROM #x", f"#x\n- use {KEY}\n"),
        ("LIST upper(key) FROM #x", f"#x\nkey:: {KEY}\n"),
        ("LIST password FROM #x", "#x\npassword:: hunter2-Zk4nQ9xw\n"),
    ],
)
@pytest.mark.parametrize("saved", [False, True])
def test_secrets_are_replaced_in_results(
    folder: Folder, query: str, text: str, saved: bool
) -> None:
    folder.put("a.md", block("dataview", query))
    folder.put("b.md", text)
    if saved:
        anyio.run(folder.workspace.catalogue)
        anyio.run(folder.workspace.aclose)
        folder.workspace = Folder(folder.root).workspace
    excerpt = folder.gather("a.md").readings[1].excerpt
    assert excerpt is not None
    assert excerpt.secrets
    assert KEY.lower() not in excerpt.safe.lower()
    assert "hunter2" not in excerpt.safe
    assert excerpt.safe


def test_secrets_are_replaced_in_the_lines_that_a_search_shows(folder: Folder) -> None:
    folder.put("a.md", block("query", "deploy"))
    folder.put("b.md", f"deploy with {KEY}\n")
    excerpt = folder.gather("a.md").readings[1].excerpt
    assert excerpt is not None
    assert KEY in excerpt.text
    assert KEY not in excerpt.safe
    assert "deploy with" in excerpt.safe


def test_hidden_files_and_files_outside_are_in_no_result(folder: Folder) -> None:
    folder.put("a.md", block("query", "word") + block("dataview", "LIST WHERE word"))
    folder.put(".hidden/b.md", "word:: 1\n")
    outside = folder.root.parent / "outside.md"
    outside.write_text("word:: 1\n", "utf-8")
    (folder.root / "link.md").symlink_to(outside)
    texts = [reading.item.content for reading in folder.gather("a.md").readings[1:]]
    assert texts == ["No notes fit this search.", "No notes fit this query."]


def test_searches_read_each_file_once_while_it_does_not_change() -> None:
    texts = {"a.md": b"x y", "b.md": b"x"}
    reads: list[str] = []

    def read(path: str) -> bytes:
        reads.append(path)
        return texts[path]

    results = QueryResults(read, FileSecrets(), lambda: 0.0)
    catalogue = Catalogue(notes=tuple(read_note(path, data) for path, data in texts.items()))
    for search in ("x", "y", "x OR y", "x"):
        results.find(NoteQuery("search", search), catalogue, "other.md")
    assert reads == ["a.md", "b.md"]
    texts["b.md"] = b"y"
    changed = Catalogue(notes=(catalogue.notes[0], read_note("b.md", b"y")))
    assert "b.md" in results.find(NoteQuery("search", "y"), changed, "other.md").text
    assert reads == ["a.md", "b.md", "b.md"]


def test_many_queries_read_no_file_again(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.put("a.md", "".join(block("dataview", f"LIST a WHERE a > {at}") for at in range(20)))
    for at in range(30):
        folder.put(f"n{at}.md", f"a:: {at}\n- [ ] task\n")
    anyio.run(folder.workspace.catalogue)
    reads: list[str] = []
    own_read = Root.read

    def read(self: Root, path: str, *others: object, **options: object) -> object:
        reads.append(str(path))
        return own_read(self, path, *others, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Root, "read", read)
    assert len(folder.gather("a.md").readings) == 21
    # Files that were just written are looked at once more; none is read for a query.
    assert all(count == 1 for path, count in Counter(reads).items() if path.startswith("n"))
