"""A file is opened once for a question, however often the question comes to it."""

import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lamina.adapters.files.paths import PathRefused
from lamina.adapters.files.root import Root
from lamina.adapters.workspace.gatherer import Gatherer
from lamina.adapters.workspace.item_reader import MAX_READINGS, SETTLED_S, ItemReader
from lamina.core.notes.note_names import NoteNames
from lamina.core.values.note import Catalogue

_watched: list[Counter[str]] = []


def _count(event: str, details: tuple[object, ...]) -> None:
    if event == "open" and _watched:
        _watched[-1][Path(str(details[0])).name] += 1


# A hook cannot be taken away again, so there is one, which mostly does nothing.
sys.addaudithook(_count)


@contextmanager
def counted_opens() -> Iterator[Counter[str]]:
    _watched.append(Counter())
    try:
        yield _watched[-1]
    finally:
        _watched.pop()


def later() -> float:
    """A clock by which every change is some time ago."""
    return time.time() + 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "x.md").write_text("# Top\n\ntext\n\n## End\n\nmore\n", "utf-8")
    (tmp_path / "y.csv").write_text("a,b\n1,2\n", "utf-8")
    return tmp_path


@pytest.mark.parametrize("reference", ["x.md", "x.md#L1-L3", "[[x.md#End]]", "y.csv", "y.csv#L2"])
def test_whatever_of_a_file_is_attached_it_is_opened_once(folder: Path, reference: str) -> None:
    gatherer = Gatherer(Root(folder), Catalogue, lambda _: NoteNames(["x.md"]))
    with counted_opens() as opens:
        assert gatherer.gather(reference, embed_depth=1).readings
    name = "x.md" if "x" in reference else "y.csv"
    assert opens[name] == 1


def test_a_file_that_did_not_change_is_not_opened_again(folder: Path) -> None:
    reader = ItemReader(Root(folder), later)
    with counted_opens() as opens:
        first = reader.read("x.md")
        assert reader.read("x.md", hidden=True) is first
    assert opens["x.md"] == 1


def test_a_file_that_changed_is_read_again(folder: Path) -> None:
    reader = ItemReader(Root(folder), later)
    before = reader.read("x.md")
    (folder / "new.md").write_text("x" * len(before.item.content), "utf-8")
    (folder / "new.md").replace(folder / "x.md")
    assert reader.read("x.md").item.content == "x" * len(before.item.content)
    (folder / "x.md").unlink()
    with pytest.raises(PathRefused):
        reader.read("x.md")


def test_what_changed_just_now_is_not_trusted_to_stay(folder: Path) -> None:
    changed = (folder / "x.md").stat().st_ctime
    reader = ItemReader(Root(folder), lambda: changed + SETTLED_S / 2)
    with counted_opens() as opens:
        reader.read("x.md")
        reader.read("x.md")
    assert opens["x.md"] == 2


def test_a_hidden_file_that_was_read_for_a_person_stays_hidden_from_others(folder: Path) -> None:
    (folder / ".x.md").write_text("hidden", "utf-8")
    reader = ItemReader(Root(folder), later)
    reader.read(".x.md", hidden=True)
    with pytest.raises(PathRefused):
        reader.read(".x.md")


def test_a_link_in_place_of_a_file_that_was_read_is_refused(folder: Path, tmp_path: Path) -> None:
    reader = ItemReader(Root(folder), later)
    reader.read("x.md")
    (folder / "x.md").rename(folder / "z.md")
    (folder / "x.md").symlink_to(folder / "z.md")
    with pytest.raises(PathRefused):
        reader.read("x.md")


def test_only_a_few_files_are_remembered(folder: Path) -> None:
    reader = ItemReader(Root(folder), later)
    names = [f"{number}.md" for number in range(MAX_READINGS + 1)]
    for name in names:
        (folder / name).write_text(name, "utf-8")
        reader.read(name)
    with counted_opens() as opens:
        reader.read(names[-1])
        reader.read(names[0])
    assert (opens[names[-1]], opens[names[0]]) == (0, 1)
