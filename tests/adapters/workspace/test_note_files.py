"""Many files read with the help of a second process, and their terms taken meanwhile."""

import random
import threading
from collections import Counter
from pathlib import Path

import anyio
import pytest

from lamina.adapters.embed.index.sqlite_index import SqliteIndex
from lamina.adapters.files.root import Root
from lamina.adapters.workspace import catalogue as note_files
from lamina.adapters.workspace.catalogue import NoteCatalogue
from lamina.adapters.workspace.catalogue_file import CatalogueFile
from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.adapters.workspace.fresh_terms import LONGEST_HELD_NS, FreshTerms
from lamina.core.selection.lexicon import pack_texts
from lamina.core.values.note import Catalogue
from lamina.engine.sources.note_search import WorkspaceSearch

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


def read_vault(folder: Path) -> tuple[Catalogue, dict[bytes, bytes]]:
    notes = NoteCatalogue(Root(folder))
    catalogue = notes.refresh(for_search=True)
    return catalogue, notes.take_terms(digests_of(catalogue))


def digests_of(catalogue: Catalogue) -> list[bytes]:
    return [passage.digest for note in catalogue.notes for passage in note.passages]


def test_a_catalogue_is_the_same_however_many_processes_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_vault(tmp_path, 900)
    shared, shared_terms = read_vault(tmp_path)
    assert sum(note.size for note in shared.notes) > note_files.SHARED_BYTES
    monkeypatch.setattr(note_files, "SHARED_BYTES", 1 << 60)
    alone, terms = read_vault(tmp_path)
    assert shared == alone == NoteCatalogue(Root(tmp_path)).refresh()
    assert shared_terms == terms
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


def test_terms_are_those_of_the_texts_and_are_given_once(tmp_path: Path) -> None:
    write_vault(tmp_path, 40)
    notes = NoteCatalogue(Root(tmp_path))
    catalogue = notes.refresh(for_search=True)
    digests = digests_of(catalogue)
    terms = notes.take_terms(digests)
    passages = [(note.path, passage) for note in catalogue.notes for passage in note.passages]
    texts = notes.texts(passages)
    assert None not in texts
    packs = pack_texts([text or "" for text in texts])
    assert terms == dict(zip(digests, packs, strict=True))
    assert notes.take_terms(digests) == {}


def test_whoever_does_not_search_makes_no_terms(tmp_path: Path) -> None:
    write_vault(tmp_path, 5)
    notes = NoteCatalogue(Root(tmp_path))
    assert notes.take_terms(digests_of(notes.refresh())) == {}


def test_terms_that_nobody_takes_are_dropped_and_there_is_a_limit() -> None:
    terms = FreshTerms(most=10)
    terms.add([b"a"], [b"12345"], now=5)
    terms.add([b"b"], [b"123456"], now=5)
    assert terms.take([b"b"]) == {}
    terms.drop_old(5 + LONGEST_HELD_NS - 1)
    assert terms.take([b"a", b"b"]) == {b"a": b"12345"}
    assert terms.take([b"a"]) == {}
    terms.add([b"c"], [b"1234567890"], now=7)
    terms.drop_old(7 + LONGEST_HELD_NS)
    assert terms.take([b"c"]) == {}
    terms.add([b"d"], [b"1234567890"], now=8)
    assert terms.take([b"d"])


@pytest.mark.parametrize("searches", [True, False])
def test_what_was_read_is_saved_when_a_search_is_answered_and_at_once_otherwise(
    tmp_path: Path, searches: bool
) -> None:
    vault, kept = tmp_path / "vault", tmp_path / "catalogue.sqlite"
    vault.mkdir()
    write_vault(vault, 600)
    folder = FolderWorkspace(vault, cache=kept)
    index = SqliteIndex(tmp_path / "index.sqlite", None)

    async def act() -> None:
        if searches:
            await folder.catalogue_to_search()
            assert not saved_notes(kept)
            await WorkspaceSearch(folder, index).search("river kernel")
        else:
            await folder.catalogue()
        for thread in threading.enumerate():
            if thread.name.startswith("lamina-"):
                thread.join()
        assert saved_notes(kept) == 601
        await folder.aclose()

    anyio.run(act)
    index.close()


def saved_notes(path: Path) -> int:
    return len(CatalogueFile(path).load())
