"""What becomes of a file that is only a cache, whatever is in it."""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lamina.adapters.files.cache_file import (
    CacheFile,
    CacheFileKind,
    ForeignDatabase,
    is_busy,
    transaction,
)

SHELF = CacheFileKind(
    name="shelf",
    with_article="a shelf",
    application=0x53484C46,
    version=3,
    schema="""
CREATE TABLE IF NOT EXISTS things (name TEXT);
CREATE TABLE IF NOT EXISTS places (number);
""",
    answers=("SELECT name FROM things LIMIT 1", "SELECT number FROM places LIMIT 1"),
    faults=("SELECT 1 FROM places WHERE typeof(number) <> 'integer' LIMIT 1",),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "shelf.sqlite"


def shelf_at(path: Path, kind: CacheFileKind = SHELF) -> CacheFile:
    return CacheFile(path, kind, patience=0.0)


def put(file: sqlite3.Connection) -> None:
    with transaction(file):
        file.execute("INSERT INTO things VALUES ('lamp')")


def count(file: sqlite3.Connection) -> int:
    (number,) = file.execute("SELECT count(*) FROM things").fetchone()
    return int(number)


def count_with_places(file: sqlite3.Connection) -> int:
    """As an owner reads who finds out that a row is impossible."""
    if any(not isinstance(number, int) for (number,) in file.execute("SELECT * FROM places")):
        raise sqlite3.DatabaseError("a place has no number")
    return count(file)


def test_what_failed_halfway_is_not_there(path: Path) -> None:
    shelf = shelf_at(path)
    said: list[str] = []
    shelf.attempt(put, said.append)

    def put_and_fail(file: sqlite3.Connection) -> None:
        with transaction(file):
            file.execute("INSERT INTO things VALUES ('chair')")
            raise KeyError("chair")

    with pytest.raises(KeyError):
        shelf.attempt(put_and_fail, said.append)
    assert shelf.attempt(count, said.append) == 1
    shelf.attempt(put, said.append)
    shelf.close()
    assert shelf_at(path).attempt(count, said.append) == 2
    assert said == []


def test_a_file_with_a_fault_of_its_kind_is_put_aside(path: Path) -> None:
    forgotten: list[str] = []
    shelf = CacheFile(path, SHELF, patience=0.0, on_close=lambda: forgotten.append("all"))
    said: list[str] = []
    shelf.attempt(put, said.append)
    shelf.open().execute("INSERT INTO places VALUES ('nowhere')")
    assert shelf.attempt(count_with_places, said.append) == 0
    aside = path.with_name("shelf.sqlite.damaged-1")
    assert said == [
        f"the shelf {path} was damaged (a place has no number); it is now shelf.sqlite.damaged-1, "
        "and was started again from scratch: nothing is lost but time"
    ]
    assert shelf.damaged_files() == [aside]
    assert forgotten == ["all"]
    shelf.close()


def test_a_sound_file_stays_where_it_is_whatever_is_asked_of_it(path: Path) -> None:
    shelf = shelf_at(path)
    said: list[str] = []
    shelf.attempt(put, said.append)
    with pytest.raises(sqlite3.OperationalError, match="no such table: rooms"):
        shelf.attempt(lambda file: file.execute("SELECT * FROM rooms"), said.append)
    assert shelf.attempt(count, said.append) == 1
    assert (said, shelf.damaged_files()) == ([], [])
    shelf.close()


@pytest.mark.parametrize(
    "other", [replace(SHELF, version=4), replace(SHELF, application=1)], ids=["version", "program"]
)
def test_a_file_of_another_kind_is_left_alone(path: Path, other: CacheFileKind) -> None:
    theirs = shelf_at(path, other)
    theirs.attempt(put, print)
    theirs.close()
    before = path.read_bytes()
    with pytest.raises(ForeignDatabase) as refused:
        shelf_at(path).attempt(count, print)
    assert str(refused.value) == (
        f"it is a database of another program, or version {other.version} of a shelf instead of 3, "
        "and is left as it is; move it away to have one here"
    )
    assert path.read_bytes() == before


def test_a_file_that_another_process_is_just_making_is_not_taken_for_a_strangers(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect
    overtaken: list[str] = []

    def overtake(statement: str) -> None:
        """Between two looks at the header of a file that is still empty."""
        if statement == "PRAGMA user_version":
            monkeypatch.undo()
            overtaken.append(statement)
            with suppress(sqlite3.OperationalError):
                shelf_at(path).attempt(put, print)

    def connect_watched(*args: Any, **options: Any) -> sqlite3.Connection:
        file: sqlite3.Connection = connect(*args, **options)
        file.set_trace_callback(overtake)
        return file

    monkeypatch.setattr(sqlite3, "connect", connect_watched)
    shelf = shelf_at(path)
    assert shelf.attempt(count, print) in (0, 1)
    assert overtaken
    shelf.close()


def test_a_file_that_another_process_holds_is_busy_and_not_damaged(path: Path) -> None:
    shelf = shelf_at(path)
    shelf.attempt(put, print)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError) as refused:
            shelf.attempt(put, print)
    assert is_busy(refused.value)
    assert not is_busy(OSError(sqlite3.SQLITE_BUSY, "a number of something else"))
    assert shelf.damaged_files() == []
    shelf.close()


def test_a_file_that_nobody_uses_any_more_is_closed(path: Path) -> None:
    shelf = shelf_at(path)
    shelf.attempt(put, print)
    connection = shelf.open()
    del shelf
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


def modes_below(folder: Path) -> dict[str, str]:
    return {path.name: f"{path.stat().st_mode & 0o777:o}" for path in folder.rglob("*")}


def test_nobody_else_can_read_a_file_or_the_folders_made_for_it(tmp_path: Path) -> None:
    shelf = shelf_at(tmp_path / "data" / "room" / "shelf.sqlite")
    shelf.attempt(put, print)
    assert modes_below(tmp_path) == {
        "data": "700", "room": "700",
        "shelf.sqlite": "600", "shelf.sqlite-wal": "600", "shelf.sqlite-shm": "600",
    }  # fmt: skip
    shelf.close()


def test_a_file_that_others_could_read_is_narrowed_when_it_is_opened(path: Path) -> None:
    shelf = shelf_at(path)
    shelf.attempt(put, print)
    path.parent.chmod(0o755)
    for file in path.parent.iterdir():
        file.chmod(0o664)
    other = shelf_at(path)
    assert other.attempt(count, print) == 1
    assert set(modes_below(path.parent).values()) == {"600"}
    # A folder that is there already is its owner's affair.
    assert path.parent.stat().st_mode & 0o777 == 0o755
    shelf.close()
    other.close()


def test_a_file_of_an_unusual_mode_stays_as_its_owner_set_it(path: Path) -> None:
    shelf = shelf_at(path)
    shelf.attempt(put, print)
    shelf.close()
    path.chmod(0o400)
    other = shelf_at(path)
    assert other.attempt(count, print) == 1
    other.close()
    assert path.stat().st_mode & 0o777 == 0o400


def test_a_database_of_something_else_stays_readable_to_whom_it_was(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE theirs (name)")
    path.chmod(0o644)
    with pytest.raises(ForeignDatabase):
        shelf_at(path).attempt(count, print)
    assert path.stat().st_mode & 0o777 == 0o644
