"""Many files read with the help of a second process, and texts that are not read twice."""

import random
from collections import Counter
from pathlib import Path

import anyio
import pytest

from lamina.embed.index.sqlite_index import SqliteIndex
from lamina.files.root import Root
from lamina.sources.note_search import WorkspaceSearch
from lamina.values.note import Catalogue
from lamina.workspace import note_files
from lamina.workspace.catalogue import NoteCatalogue
from lamina.workspace.folder import FolderWorkspace
from lamina.workspace.fresh_texts import LONGEST_HELD_NS, FreshTexts

WORDS = (
    "lamp",
    "river",
    "stone",
    "Übung",
    "漢字",
    "kernel",
    "cache-line",
    "readFile",
    "naïve",
    "٣",
)


class CountingRoot(Root):
    """A root that remembers what was read."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.opened: list[str] = []

    def read(self, path, limit=20_000_000, *, hidden=False):  # type: ignore[no-untyped-def]
        self.opened.append(str(path))
        return super().read(path, limit, hidden=hidden)


def write_vault(folder: Path, notes: int) -> None:
    draw = random.Random(5)
    for number in range(notes):
        lines = [f"# {draw.choice(WORDS)} {number}", ""]
        if number % 3 == 0:
            lines = ["---", f"tags: [{draw.choice(WORDS)}]", "---", *lines]
        for _ in range(draw.randrange(1, 6)):
            lines += [f"## {draw.choice(WORDS)}", "", " ".join(draw.choices(WORDS, k=90)), ""]
        if number % 17 == 0:
            lines += ["- password: hunter2hunter2", f"- [ ] {draw.choice(WORDS)} [[{number + 1}]]"]
        (folder / f"{number}.md").write_text("\n".join(lines), "utf-8")
    (folder / "no-text.md").write_bytes(b"\0" * 10)
    (folder / "odd.md").write_bytes(b"\xef\xbb\xbf# T\xff\r\n\r\nW\xc3\xb6rter\r\n")


def read_vault(folder: Path) -> Catalogue:
    return NoteCatalogue(Root(folder)).refresh(for_search=True)


def test_a_catalogue_is_the_same_however_many_processes_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_vault(tmp_path, 900)
    shared = read_vault(tmp_path)
    assert sum(note.size for note in shared.notes) > note_files.SHARED_BYTES
    monkeypatch.setattr(note_files, "SHARED_BYTES", 1 << 60)
    alone = read_vault(tmp_path)
    assert shared == alone
    assert len(shared.notes) == 901
    assert len(shared.unreadable) == 1


def test_a_search_opens_every_note_once(tmp_path: Path) -> None:
    write_vault(tmp_path, 60)
    folder = FolderWorkspace(tmp_path)
    folder.root = root = CountingRoot(tmp_path)
    index = SqliteIndex(tmp_path / ".index", None)

    async def search() -> int:
        result = await WorkspaceSearch(folder, index).search("river kernel")
        await folder.aclose()
        return len({hit.path for hit in result.hits})

    found = anyio.run(search)
    index.close()
    counts = Counter(root.opened)
    assert len(counts) == 62
    assert found
    # What is found is shown as the note holds it then, so these are opened again.
    assert sum(counts.values()) - len(counts) <= 8 * 3
    assert max(counts.values()) == 2


def test_texts_are_the_same_whether_they_were_just_read_or_not(tmp_path: Path) -> None:
    write_vault(tmp_path, 40)
    fresh, other = NoteCatalogue(Root(tmp_path)), NoteCatalogue(Root(tmp_path))
    notes = fresh.refresh(for_search=True).notes
    other.refresh()
    wanted = [(note.path, passage) for note in notes for passage in note.passages]
    texts = fresh.texts(wanted)
    assert None not in texts
    assert texts == other.texts(wanted)
    # They were taken; now they are read.
    assert texts == fresh.texts(wanted)


def test_texts_that_nobody_takes_are_dropped_and_there_is_a_limit() -> None:
    texts = FreshTexts(most=10)
    texts.add({b"a": "12345"}, now=5)
    texts.add({b"b": "123456"}, now=5)
    assert texts.take(b"b") is None
    texts.drop_old(5 + LONGEST_HELD_NS - 1)
    assert texts.take(b"a") == "12345"
    assert texts.take(b"a") is None
    texts.add({b"c": "1234567890"}, now=7)
    texts.drop_old(7 + LONGEST_HELD_NS)
    assert texts.take(b"c") is None
    texts.add({b"d": "1234567890"}, now=8)
    assert texts.take(b"d") is not None
