"""Many notes read for a search: their terms are taken meanwhile, and they are saved afterwards."""

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


def digests_of(catalogue: Catalogue) -> list[bytes]:
    return [passage.digest for note in catalogue.notes for passage in note.passages]


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


def test_terms_that_a_search_does_not_take_are_dropped_by_the_next(tmp_path: Path) -> None:
    write_vault(tmp_path, 5)
    notes = NoteCatalogue(Root(tmp_path))
    digests = digests_of(notes.refresh(for_search=True))
    notes.refresh(for_search=True)
    assert notes.take_terms(digests) == {}


def test_there_is_a_limit_to_the_terms_that_are_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_vault(tmp_path, 5)
    monkeypatch.setattr(note_files, "PACKED_AT_ONCE", 1)
    monkeypatch.setattr(note_files, "MAX_FRESH_TERMS", 3)
    notes = NoteCatalogue(Root(tmp_path))
    digests = digests_of(notes.refresh(for_search=True))
    assert 3 <= len(notes.take_terms(digests)) < len(digests)


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
