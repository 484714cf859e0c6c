"""The file behind the index: whatever happens to it, searching goes on and nothing is overwritten
that could not be read."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.embedder import FakeEmbedder

from lamina.adapters.embed.index.chunk_file import DAY, KEPT_DAYS, ChunkData, ChunkFile
from lamina.adapters.embed.index.corpus import IndexedCorpus, LoadCounts
from lamina.adapters.embed.index.sqlite_index import SqliteIndex
from lamina.core.values.item import ItemId
from lamina.core.values.selection import Document

PIER = Document(ItemId("note:pier"), ("pier: where boats land", "the pier opens in may"))
BEES = Document(ItemId("note:bees"), ("bees: about the hives", "bees swarm in june"))
MANY = [Document(ItemId(f"note:{n}"), (f"text number {n}",)) for n in range(300)]


def index_at(path: Path) -> SqliteIndex:
    return SqliteIndex(path, FakeEmbedder())


def load(index: SqliteIndex, documents: Sequence[Document]) -> IndexedCorpus:
    return anyio.run(index.load, documents)


def made_at(path: Path, *documents: Document) -> bytes:
    """An index that was written and closed; its bytes."""
    index = index_at(path)
    assert (load(index, documents or MANY)).warnings == ()
    index.close()
    return path.read_bytes()


# -- damage --------------------------------------------------------------------------------------


def test_a_file_that_is_no_database_is_set_aside_and_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    path.write_bytes(b"not a database at all, but somebody's\n" * 100)
    corpus = load(index_at(path), [PIER])
    aside = tmp_path / "index.sqlite.damaged-1"
    assert corpus.warnings == (
        f"the index {path} was damaged (file is not a database); it is now {aside.name}, and was "
        "started again from scratch: nothing is lost but time",
    )
    assert aside.read_bytes().startswith(b"not a database")
    assert (load(index_at(path), [PIER])).counts == LoadCounts(reused=2)


def test_every_damaged_file_gets_a_name_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    for number in (1, 2, 3):
        path.write_bytes(b"damage %d " % number * 100)
        for suffix in ("-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        index = index_at(path)
        load(index, [PIER])
        index.close()
        aside = Path(f"{path}.damaged-{number}")
        assert aside.read_bytes().startswith(b"damage %d" % number)


def test_pages_that_were_overwritten_are_found_and_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    whole = made_at(path)
    # All but the page with the schema.
    path.write_bytes(whole[:4096] + b"\xa5" * (len(whole) - 4096))
    corpus = load(index_at(path), MANY)
    assert corpus.counts == LoadCounts(new=300)
    assert "was damaged" in corpus.warnings[0]
    assert (load(index_at(path), MANY)).counts == LoadCounts(reused=300)


def test_damage_that_shows_while_the_file_is_open_is_survived(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    made_at(path)
    index = index_at(path)
    load(index, [PIER])
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    path.write_bytes(b"\x00" * 5000)
    corpus = load(index, [PIER, BEES])
    assert corpus.counts == LoadCounts(new=2, reused=2)
    assert len(corpus.warnings) <= 1


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_file_that_was_cut_off_gives_what_it_can(tmp_path: Path, share: float) -> None:
    path = tmp_path / "index.sqlite"
    whole = made_at(path)
    path.write_bytes(whole[: int(len(whole) * share)])
    corpus = load(index_at(path), MANY)
    assert corpus.failed == ()
    assert corpus.counts.new + corpus.counts.reused == 300
    again = load(index_at(path), MANY)
    assert again.counts == LoadCounts(reused=300)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_no_flipped_byte_ever_changes_a_row(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("flips") / "index.sqlite"
    rows = {bytes([n]) * 32: ChunkData(bytes([n]) * 128, b"terms %d" % n) for n in range(40)}
    file = ChunkFile(path)
    file.keep("m", rows)
    file.close()
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 40))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    damaged = ChunkFile(path)
    found = damaged.fetch("m", rows)
    assert all(rows[digest] == made for digest, made in found.items())
    damaged.keep("m", rows)
    assert damaged.fetch("m", rows).items() <= rows.items()
    damaged.close()


def test_a_row_that_does_not_prove_itself_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    made_at(path, PIER)
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE chunks SET vector = zeroblob(length(vector)) WHERE rowid = 1")
        file.commit()
    assert (load(index_at(path), [PIER])).counts == LoadCounts(new=1, reused=1)
    assert (load(index_at(path), [PIER])).counts == LoadCounts(reused=2)


def test_a_table_that_is_gone_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    made_at(path, PIER)
    with closing(sqlite3.connect(path)) as file:
        file.execute("DROP TABLE chunks")
        file.commit()
    corpus = load(index_at(path), [PIER])
    assert "was damaged (no such table: chunks)" in corpus.warnings[0]
    assert (load(index_at(path), [PIER])).counts == LoadCounts(reused=2)


# -- files of others -----------------------------------------------------------------------------


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE accounts (name)")
        file.commit()
    before = path.read_bytes()
    corpus = load(index_at(path), [PIER])
    assert "it is a database of another program" in corpus.warnings[0]
    assert corpus.counts == LoadCounts(new=2)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["index.sqlite"]


def test_an_index_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    made_at(path, PIER)
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    index = index_at(path)
    corpus = load(index, [PIER])
    assert "version 99 of an index instead of 1" in corpus.warnings[0]
    assert not index.clear()
    assert path.read_bytes() == before


# -- disks that take nothing ---------------------------------------------------------------------


def test_a_folder_in_the_place_of_the_file_leaves_memory(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    path.mkdir()
    index = index_at(path)
    corpus = load(index, [PIER])
    assert "kept in memory only" in corpus.warnings[0]
    # Said once, and nothing is embedded again in this process.
    more = load(index, [PIER, BEES])
    assert (more.warnings, more.counts) == ((), LoadCounts(new=2, reused=2))


def test_a_place_that_cannot_be_leaves_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    corpus = load(index_at(tmp_path / "file" / "index.sqlite"), [PIER])
    assert "cannot be read" in corpus.warnings[0]
    assert corpus.counts == LoadCounts(new=2)


def test_what_a_locked_file_does_not_take_is_written_once_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamina.adapters.embed.index.chunk_file.PATIENCE", 0.0)
    path = tmp_path / "index.sqlite"
    made_at(path, PIER)
    index = index_at(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        corpus = load(index, [PIER, BEES])
        assert corpus.counts == LoadCounts(new=2, reused=2)
        assert "cannot be written (database is locked)" in corpus.warnings[0]
        assert index.stats().unwritten == 2
        other.execute("ROLLBACK")
    more = load(index, [PIER, BEES, MANY[0]])
    assert (more.warnings, more.counts) == ((), LoadCounts(new=1, reused=4))
    assert index.stats().unwritten == 0
    assert (load(index_at(path), [PIER, BEES, MANY[0]])).counts == LoadCounts(reused=5)


FULL = """
import resource, sys
from pathlib import Path
import anyio
from tests.adapters.embed.test_index_file import MANY, index_at
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
async def main():
    index = index_at(Path(sys.argv[1]))
    corpus = await index.load(MANY)
    print(corpus.counts, len((await corpus.score(["number 7"])).lexical[0]))
    print(*corpus.warnings, sep="\\n")
anyio.run(main)
"""


def test_a_disk_that_is_full_leaves_memory_and_what_it_took(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    first, *warnings = done.stdout.splitlines()
    assert first == "LoadCounts(new=300, reused=0, failed=0, missing=0, late=0) 300"
    assert "cannot be written" in "".join(warnings)


@contextmanager
def nobody() -> Iterator[None]:
    """Without the rights of root, who may write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def read_only() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_file_that_cannot_be_written_is_still_read(read_only: Path) -> None:
    path = read_only / "index.sqlite"
    before = made_at(path, PIER)
    path.chmod(0o444)
    read_only.chmod(0o555)
    with nobody():
        index = index_at(path)
        corpus = load(index, [PIER, BEES])
        index.close()
    assert corpus.counts == LoadCounts(new=2, reused=2)
    assert "cannot be written" in corpus.warnings[0]
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_written_leaves_memory(read_only: Path) -> None:
    read_only.chmod(0o555)
    with nobody():
        corpus = load(index_at(read_only / "more" / "index.sqlite"), [PIER])
    assert corpus.counts == LoadCounts(new=2)
    assert len(corpus.warnings) == 1


def test_a_file_that_was_deleted_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    index = index_at(path)
    load(index, [PIER])
    for each in tmp_path.iterdir():
        each.unlink()
    assert (load(index, [PIER, BEES])).warnings == ()
    assert (load(index_at(path), [BEES])).counts == LoadCounts(reused=2)


# -- several processes ---------------------------------------------------------------------------

AT_ONCE = """
import sys
from pathlib import Path
import anyio
from tests.adapters.embed.test_index_file import MANY, index_at
async def main():
    corpus = await index_at(Path(sys.argv[1])).load(MANY)
    print(corpus.counts.new + corpus.counts.reused, *corpus.warnings)
anyio.run(main)
"""


def test_processes_that_begin_the_same_file_at_once_agree(tmp_path: Path) -> None:
    path = tmp_path / "new" / "index.sqlite"
    command = [sys.executable, "-c", AT_ONCE, str(path)]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    said = [each.communicate() for each in running]
    assert said == [("300\n", "")] * 4
    index = index_at(path)
    assert index.stats().chunks == {"fake/1": 300}
    assert (load(index, MANY)).counts == LoadCounts(reused=300)


# -- age, size, clearing -------------------------------------------------------------------------


def test_what_nobody_asked_for_in_a_long_time_goes(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    days = [20_000.0]

    def now() -> float:
        return days[0] * DAY

    def asked(*documents: Document) -> LoadCounts:
        index = SqliteIndex(path, FakeEmbedder(), now=now)
        counts = load(index, documents).counts
        index.close()
        return counts

    assert asked(PIER, BEES) == LoadCounts(new=4)
    days[0] += KEPT_DAYS - 10
    assert asked(PIER) == LoadCounts(reused=2)
    days[0] += 20
    # Something is written: the moment at which the file is looked through.
    assert asked(MANY[0]) == LoadCounts(new=1)
    assert asked(PIER) == LoadCounts(reused=2)
    assert asked(BEES) == LoadCounts(new=2)


def test_clearing_forgets_all_and_gives_the_room_back(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    index = index_at(path)
    load(index, MANY)
    full = index.stats()
    assert full.chunks == {"fake/1": 300}
    assert full.bytes > 60_000
    assert index.clear()
    empty = index.stats()
    assert empty.chunks == {}
    assert empty.bytes < full.bytes / 2
    assert (load(index, MANY)).counts == LoadCounts(new=300)


def test_no_text_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    assert b"swarm" not in made_at(path, BEES)
