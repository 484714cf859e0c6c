"""What a catalogue keeps from one process to the next, and what becomes of its file."""

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.control import note as say
from msgspec.structs import replace
from tests.adapters.workspace.test_note_catalogue import CountingRoot, later

from lamina.adapters.workspace import catalogue_file
from lamina.adapters.workspace.catalogue import NoteCatalogue
from lamina.adapters.workspace.catalogue_file import CatalogueFile, KnownNote
from lamina.core.notes.note_reader import read_note

TEXT = b"---\naliases: [B]\nwhen: 2026-01-01\n---\n# Heading\n\nWords of [[other]] #tag\n"
NOTE = read_note("folder/a.md", TEXT, ctime=1.5, mtime=2.25)
KNOWN = KnownNote(b"s" * 32, True, NOTE)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "data" / "catalogue.sqlite"


@pytest.fixture
def root(tmp_path: Path) -> CountingRoot:
    place = tmp_path / "vault"
    place.mkdir()
    for name in "abc":
        (place / f"{name}.md").write_text(f"# {name}\n\nWords of {name}\n")
    return CountingRoot(place)


def fill(kept: Path) -> None:
    file = CatalogueFile(kept)
    file.keep(
        [(NOTE.path, KNOWN), ("b.md", KnownNote(b"t" * 32, False, replace(NOTE, path="b.md")))], ()
    )
    assert file.take_warnings() == ()
    file.close()


def test_the_next_process_reads_only_what_changed(root: CountingRoot, kept: Path) -> None:
    first = NoteCatalogue(root, kept, now=later)
    before = first.refresh()
    first.close()
    root.news()
    (root.path / "b.md").write_text("Changed\n")
    (root.path / "c.md").unlink()
    again = NoteCatalogue(root, kept, now=later)
    after = again.refresh()
    again.close()
    assert root.news() == ["b.md"]
    assert [note.path for note in after.notes] == ["a.md", "b.md"]
    assert after.notes[0] == before.notes[0]
    assert sorted(CatalogueFile(kept).load()) == ["a.md", "b.md"]


def test_a_young_note_is_read_again_by_the_next_process(root: CountingRoot, kept: Path) -> None:
    now = time.time_ns()
    first = NoteCatalogue(root, kept, now=lambda: now)
    before = first.refresh()
    first.close()
    root.news()
    again = NoteCatalogue(root, kept, now=later)
    assert again.refresh() == before
    again.close()
    assert root.news() == ["a.md", "b.md", "c.md"]
    third = NoteCatalogue(root, kept, now=later)
    assert third.refresh() == before
    third.close()
    assert root.news() == []


def test_what_is_kept_comes_back_as_it_was(kept: Path) -> None:
    fill(kept)
    file = CatalogueFile(kept)
    found = file.load()
    assert list(found) == [NOTE.path, "b.md"]
    assert found[NOTE.path] == KNOWN
    assert not found["b.md"].settled
    file.keep((), ["b.md", "nowhere.md"])
    assert list(file.load()) == [NOTE.path]
    file.close()


def test_a_note_of_another_reader_is_as_good_as_none(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(kept)
    monkeypatch.setattr(catalogue_file, "READER_VERSION", -1)
    file = CatalogueFile(kept)
    assert file.load() == {}
    file.keep([(NOTE.path, KNOWN)], ())
    assert list(file.load()) == [NOTE.path]
    file.close()


def test_what_cannot_be_written_down_is_left_out_and_the_rest_is_kept(kept: Path) -> None:
    odd = replace(NOTE, path="odd.md", properties={"number": 1 << 80})
    worse = replace(NOTE, path="wor\ud800se.md")
    file = CatalogueFile(kept)
    file.keep([(note.path, KnownNote(b"", True, note)) for note in (odd, worse, NOTE)], ["\udcff"])
    assert list(file.load()) == [NOTE.path]
    assert file.take_warnings() == ()
    file.close()


def test_a_damaged_file_is_put_aside_and_begun_anew(root: CountingRoot, kept: Path) -> None:
    fill(kept)
    kept.write_bytes(b"SQLite format 3\0" + b"\xff" * 8000)
    notes = NoteCatalogue(root, kept, now=later)
    assert len(notes.refresh().notes) == 3
    (warning,) = notes.take_warnings()
    assert "was damaged" in warning
    assert "catalogue.sqlite.damaged-1" in warning
    notes.close()
    assert Path(f"{kept}.damaged-1").exists()
    assert len(CatalogueFile(kept).load()) == 3


def test_a_file_of_something_else_is_left_alone(root: CountingRoot, kept: Path) -> None:
    kept.parent.mkdir()
    with closing(sqlite3.connect(kept)) as other:
        other.execute("CREATE TABLE mine (x)")
        other.commit()
    before = kept.read_bytes()
    notes = NoteCatalogue(root, kept, now=later)
    assert len(notes.refresh().notes) == 3
    (warning,) = notes.take_warnings()
    assert "is left as it is; move it away" in warning
    notes.close()
    assert kept.read_bytes() == before


def test_where_nothing_can_be_written_it_lives_in_memory(root: CountingRoot, kept: Path) -> None:
    kept.parent.write_text("a file where the folder should be")
    notes = NoteCatalogue(root, kept, now=later)
    first = notes.refresh()
    assert len(first.notes) == 3
    assert notes.refresh() is first
    (warning,) = notes.take_warnings()
    assert "notes are held in memory only" in warning
    assert notes.take_warnings() == ()
    notes.close()


def test_a_file_that_is_deleted_under_our_hands_is_made_anew(kept: Path) -> None:
    file = CatalogueFile(kept)
    file.keep([(NOTE.path, KNOWN)], ())
    for suffix in ("", "-wal", "-shm"):
        Path(f"{kept}{suffix}").unlink(missing_ok=True)
    file.keep([("b.md", replace_path(KNOWN, "b.md"))], ())
    assert list(file.load()) == ["b.md"]
    file.close()


def test_while_another_process_writes_nothing_is_lost_but_time(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(kept)
    monkeypatch.setattr(catalogue_file, "LOCK_SECONDS", 0.01)
    file = CatalogueFile(kept)
    with closing(sqlite3.connect(kept, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        file.keep([("c.md", replace_path(KNOWN, "c.md"))], ())
        (warning,) = file.take_warnings()
        assert "locked" in warning
        assert len(file.load()) == 2
    file.keep([("c.md", replace_path(KNOWN, "c.md"))], ())
    assert sorted(file.load()) == ["b.md", "c.md", NOTE.path]
    file.close()


def test_two_processes_at_once_do_not_break_it(root: CountingRoot, kept: Path) -> None:
    for number in range(300):
        (root.path / f"{number}.md").write_text(f"Words of {number}\n")
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from lamina.adapters.workspace.catalogue import NoteCatalogue\n"
        "from lamina.adapters.files.root import Root\n"
        "for _ in range(3):\n"
        "    notes = NoteCatalogue(Root(sys.argv[1]), Path(sys.argv[2]))\n"
        "    assert len(notes.refresh().notes) == 303\n"
        "    assert notes.take_warnings() == (), notes.take_warnings()\n"
        "    notes.close()\n"
    )
    command = [sys.executable, "-c", code, str(root.path), str(kept)]
    running = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    notes = NoteCatalogue(root, kept, now=later)
    assert notes.refresh() == NoteCatalogue(root).refresh()
    notes.close()


@settings(deadline=None)
@given(data=st.data())
def test_whatever_bytes_are_damaged_a_note_is_right_or_not_there(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    kept = tmp_path_factory.mktemp("kept") / "catalogue.sqlite"
    fill(kept)
    with closing(sqlite3.connect(kept)) as whole:
        whole.execute("PRAGMA journal_mode = DELETE")
    content = bytearray(kept.read_bytes())
    for _ in range(data.draw(st.integers(1, 20))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    kept.write_bytes(content)
    file = CatalogueFile(kept)
    for path, known in file.load().items():
        assert known.note == replace(NOTE, path=path)
    file.keep([("new.md", replace_path(KNOWN, "new.md"))], ())
    say(repr(file.take_warnings()))
    file.close()


def replace_path(known: KnownNote, path: str) -> KnownNote:
    return replace(known, note=replace(known.note, path=path))
