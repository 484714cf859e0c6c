"""The catalogue of a real folder: what it knows is what is there, and only what changed is read."""

import hashlib
import os
import shutil
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from lamina.adapters.files.root import PathStatus, Root
from lamina.adapters.workspace.catalogue import WALK_INTERVAL_NS, NoteCatalogue
from lamina.adapters.workspace.folder_watcher import FolderWatcher
from lamina.core.values.note import Catalogue, Note

LONG_AGO = time.time() - 3600


class CountingRoot(Root):
    """A root that remembers what was read, and how often it was walked."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.opened: list[str] = []
        self.walks = 0

    def read(self, path, limit=20_000_000, *, hidden=False):  # type: ignore[no-untyped-def]
        self.opened.append(str(path))
        return super().read(path, limit, hidden=hidden)

    def walk(self, folder="", unread=None):  # type: ignore[no-untyped-def]
        self.walks += 1
        return super().walk(folder, unread)

    def news(self) -> list[str]:
        opened, self.opened = self.opened, []
        return opened


def later() -> int:
    """A clock at which all that was written is settled."""
    return time.time_ns() + 10_000_000_000


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    place = tmp_path / "vault"
    (place / "work").mkdir(parents=True)
    (place / "home.md").write_text(
        "---\naliases: [Start]\n---\n# Home\n\nWelcome to [[plan]] #hub\n"
    )
    (place / "work" / "plan.md").write_text("# Plan\n\nDo it.\n\n# Later\n\nRest. #work/now\n")
    (place / "work" / "picture.png").write_bytes(b"\x89PNG")
    (place / ".obsidian").mkdir()
    (place / ".obsidian" / "hidden.md").write_text("not a note")
    return place


@pytest.fixture
def root(vault: Path) -> CountingRoot:
    return CountingRoot(vault)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "data" / "catalogue.sqlite"


def paths(catalogue: Catalogue) -> list[str]:
    return [note.path for note in catalogue.notes]


def by_path(catalogue: Catalogue) -> dict[str, Note]:
    return {note.path: note for note in catalogue.notes}


def test_notes_are_listed_by_path_and_nothing_else_is(root: CountingRoot) -> None:
    found = NoteCatalogue(root).refresh()
    assert paths(found) == ["home.md", "work/plan.md"]
    assert found.unreadable == ()
    home = found.notes[0]
    assert (home.title, home.aliases, home.tags) == ("home", ("Start",), ("hub",))
    status = os.stat(root.path / "home.md")
    assert (home.mtime, home.ctime, home.size) == (
        status.st_mtime,
        status.st_ctime,
        status.st_size,
    )


def test_the_same_catalogue_is_given_while_nothing_changes(root: CountingRoot) -> None:
    notes = NoteCatalogue(root, now=later)
    first = notes.refresh()
    assert root.news() == ["home.md", "work/plan.md"]
    assert notes.refresh() is first
    assert root.news() == []


def test_only_what_changed_is_read_and_the_rest_is_the_same_value(
    root: CountingRoot, vault: Path
) -> None:
    notes = NoteCatalogue(root, now=later)
    first = by_path(notes.refresh())
    root.news()
    (vault / "home.md").write_text("Other words\n")
    (vault / "work" / "new.md").write_text("New words\n")
    second = by_path(notes.refresh())
    assert root.news() == ["home.md", "work/new.md"]
    assert list(second) == ["home.md", "work/new.md", "work/plan.md"]
    assert second["work/plan.md"] is first["work/plan.md"]
    assert second["home.md"].passages != first["home.md"].passages


def test_a_touched_note_is_the_same_but_for_its_times(root: CountingRoot, vault: Path) -> None:
    notes = NoteCatalogue(root, now=later)
    first = by_path(notes.refresh())["home.md"]
    os.utime(vault / "home.md", (LONG_AGO, LONG_AGO))
    second = by_path(notes.refresh())["home.md"]
    assert second.mtime == os.stat(vault / "home.md").st_mtime
    assert second.passages is first.passages
    assert replace(second, mtime=first.mtime, ctime=first.ctime) == first


def test_deleted_and_moved_notes_are_followed(root: CountingRoot, vault: Path) -> None:
    notes = NoteCatalogue(root, now=later)
    first = by_path(notes.refresh())
    (vault / "work" / "plan.md").rename(vault / "plans.md")
    (vault / "home.md").unlink()
    second = by_path(notes.refresh())
    assert list(second) == ["plans.md"]
    assert second["plans.md"].digest == first["work/plan.md"].digest


def test_an_edit_that_leaves_size_and_time_is_seen(root: CountingRoot, vault: Path) -> None:
    """As git does: what was written within the clock's tick before a look is read again."""
    notes = NoteCatalogue(root)
    status = os.stat(vault / "home.md")
    for word in ("aaaa", "bbbb", "cccc", "dddd"):
        with (vault / "home.md").open("r+") as file:
            file.write(word)
        os.utime(vault / "home.md", ns=(status.st_atime_ns, status.st_mtime_ns))
        home = by_path(notes.refresh())["home.md"]
        assert home.digest == _digest(vault / "home.md")


class CoarseRoot(Root):
    """On a disk whose times are whole seconds."""

    def walk(self, folder="", unread=None):  # type: ignore[no-untyped-def]
        for path, status in super().walk(folder, unread):
            mtime, ctime = (int(seconds) * 10**9 for seconds in status[8:10])
            coarse = {"st_mtime_ns": mtime, "st_ctime_ns": ctime}
            yield PathStatus(path, os.stat_result(status[:10], coarse))


def test_edits_within_one_tick_of_a_coarse_clock_are_seen(vault: Path) -> None:
    notes = NoteCatalogue(CoarseRoot(vault))
    for word in ("aaaa", "bbbb", "cccc", "dddd", "eeee"):
        with (vault / "home.md").open("r+") as file:
            file.write(word)
        assert by_path(notes.refresh())["home.md"].digest == _digest(vault / "home.md")


def test_a_young_file_is_read_until_it_is_settled(root: CountingRoot, vault: Path) -> None:
    clock = [time.time_ns()]
    notes = NoteCatalogue(root, now=lambda: clock[0])
    first = notes.refresh()
    root.news()
    assert notes.refresh() is first
    assert root.news() == ["home.md", "work/plan.md"]
    clock[0] = later()
    assert notes.refresh() is first
    assert root.news() == ["home.md", "work/plan.md"]
    assert notes.refresh() is first
    assert root.news() == []


def test_a_time_in_the_future_does_not_have_a_file_read_for_ever(
    root: CountingRoot, vault: Path
) -> None:
    os.utime(vault / "home.md", (time.time() + 1e6, time.time() + 1e6))
    notes = NoteCatalogue(root, now=later)
    notes.refresh()
    root.news()
    notes.refresh()
    assert root.news() == []


def test_a_marked_note_is_read_again_once(root: CountingRoot) -> None:
    notes = NoteCatalogue(root, now=later)
    first = notes.refresh()
    root.news()
    notes.mark("home.md")
    notes.mark("nowhere.md")
    assert notes.refresh() is first
    assert root.news() == ["home.md"]
    assert notes.refresh() is first
    assert root.news() == []


def test_what_cannot_be_read_is_named_and_nothing_of_it_is_kept(
    root: CountingRoot, vault: Path
) -> None:
    notes = NoteCatalogue(root, now=later)
    notes.refresh()
    (vault / "home.md").write_bytes(b"\x00binary")
    found = notes.refresh()
    assert paths(found) == ["work/plan.md"]
    assert found.unreadable == ("home.md is not text",)
    assert notes.refresh() is found
    (vault / "home.md").write_text("text again\n")
    assert (paths(healed := notes.refresh()), healed.unreadable) == (
        ["home.md", "work/plan.md"],
        (),
    )
    (vault / "home.md").write_bytes(b"\x00binary")
    assert notes.refresh().unreadable == ("home.md is not text",)
    (vault / "home.md").unlink()
    assert notes.refresh().unreadable == ()


def test_a_file_beyond_the_limit_is_named(root: CountingRoot, vault: Path) -> None:
    with (vault / "huge.md").open("wb") as file:
        file.truncate(30 * 1024 * 1024)
    found = NoteCatalogue(root).refresh()
    assert paths(found) == ["home.md", "work/plan.md"]
    assert found.unreadable == ("huge.md has 31,457,280 bytes; the limit is 20,971,520",)


def test_a_name_that_nobody_can_say_is_named(root: CountingRoot, vault: Path) -> None:
    (vault / "back\\slash.md").write_text("x")
    found = NoteCatalogue(root).refresh()
    assert paths(found) == ["home.md", "work/plan.md"]
    assert len(found.unreadable) == 1
    assert "slash.md" in found.unreadable[0]


def test_a_folder_that_went_away_is_said_and_not_forgotten(
    root: CountingRoot, vault: Path, kept: Path
) -> None:
    notes = NoteCatalogue(root, kept, now=later)
    first = notes.refresh()
    root.news()
    vault.rename(vault.with_name("away"))
    gone = notes.refresh()
    assert gone.notes == ()
    assert len(gone.unreadable) == 1
    assert str(vault) in gone.unreadable[0]
    assert notes.refresh() is gone
    vault.with_name("away").rename(vault)
    assert notes.refresh() == first
    assert root.news() == []
    notes.close()


def test_progress_tells_of_what_has_to_be_read(root: CountingRoot, vault: Path) -> None:
    for number in range(120):
        (vault / f"{number}.md").write_text("x")
    told: list[tuple[int, int]] = []
    notes = NoteCatalogue(root, now=later)
    notes.refresh(lambda done, total: told.append((done, total)))
    assert told == [(0, 122), (50, 122), (100, 122), (122, 122)]
    notes.refresh(lambda done, total: told.append((done, total)))
    assert len(told) == 4


def test_who_stops_it_half_way_gets_all_of_it_the_next_time(
    root: CountingRoot, vault: Path
) -> None:
    for number in range(120):
        (vault / f"{number}.md").write_text("x")
    notes = NoteCatalogue(root, now=later)

    def stop(done: int, total: int) -> None:
        if done == 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        notes.refresh(stop)
    root.news()
    assert len(notes.refresh().notes) == 122
    assert len(root.news()) == 72


# -- texts and names -------------------------------------------------------------------------------


def test_texts_of_passages_are_those_of_the_note(root: CountingRoot, vault: Path) -> None:
    notes = NoteCatalogue(root)
    plan = by_path(notes.refresh())["work/plan.md"]
    wanted = [("work/plan.md", passage) for passage in plan.passages]
    stored = [excerpt.text for excerpt in notes.excerpts(wanted) if excerpt]
    assert "".join(stored).count("Do it.") == 1
    searched = notes.texts(wanted)
    for passage, text in zip(plan.passages, searched, strict=True):
        assert text is not None
        assert text.startswith("plan")
        assert _sha(text.encode()) == passage.digest


def test_a_note_is_opened_once_for_all_of_its_passages(root: CountingRoot) -> None:
    notes = NoteCatalogue(root)
    plan, home = (by_path(notes.refresh())[path] for path in ("work/plan.md", "home.md"))
    root.news()
    wanted = [(note.path, passage) for note in (plan, home, plan) for passage in note.passages]
    assert None not in notes.excerpts(wanted)
    assert root.news() == ["work/plan.md", "home.md"]


def test_text_of_a_note_that_is_not_as_it_was_is_none(root: CountingRoot, vault: Path) -> None:
    notes = NoteCatalogue(root)
    plan = by_path(notes.refresh())["work/plan.md"]
    first, last = plan.passages[0], plan.passages[-1]
    wanted = [("work/plan.md", first), ("work/plan.md", last), ("home.md", first)]
    (vault / "work" / "plan.md").write_text("# Plan\n\nDo it.\n\n# Later\n\nOther.\n")
    assert [text is None for text in notes.texts(wanted)] == [False, True, True]
    (vault / "work" / "plan.md").write_text("")
    assert notes.texts(wanted) == (None, None, None)
    (vault / "work" / "plan.md").unlink()
    assert notes.texts(wanted) == (None, None, None)
    assert notes.texts([]) == ()


def test_texts_of_notes_with_a_mark_of_order_and_bad_bytes(vault: Path) -> None:
    (vault / "odd.md").write_bytes(
        b"\xef\xbb\xbf---\ntags: x\n---\r\n# T\xff\r\n\r\nW\xc3\xb6rter\r\n"
    )
    notes = NoteCatalogue(Root(vault))
    odd = by_path(notes.refresh())["odd.md"]
    assert odd.passages
    wanted = [("odd.md", passage) for passage in odd.passages]
    assert None not in notes.texts(wanted)
    assert None not in notes.excerpts(wanted)


def test_names_are_made_once_for_a_catalogue(root: CountingRoot, vault: Path) -> None:
    notes = NoteCatalogue(root, now=later)
    first = notes.refresh()
    names = notes.names(first)
    assert names.resolve("plan").path == "work/plan.md"
    assert names.resolve("Start").path == "home.md"
    assert notes.names(notes.refresh()) is names
    (vault / "home.md").unlink()
    assert notes.names(notes.refresh()).resolve("Start").path is None


# -- watched ---------------------------------------------------------------------------------------


@pytest.fixture
def watched(root: CountingRoot) -> NoteCatalogue:
    """Of a folder that counts as large."""
    return NoteCatalogue(root, now=later, watcher=FolderWatcher(root.path), max_walked=1)


def test_a_small_folder_is_walked_each_time(root: CountingRoot) -> None:
    notes = NoteCatalogue(root, now=later, watcher=FolderWatcher(root.path))
    for _ in range(3):
        notes.refresh()
    assert root.walks == 3
    notes.close()


def test_a_large_folder_is_walked_until_it_is_watched(
    root: CountingRoot, watched: NoteCatalogue, vault: Path
) -> None:
    first = watched.refresh()
    assert watched.refresh() is first
    assert root.walks == 2
    root.news()
    assert watched.refresh() is first
    (vault / "home.md").write_text("Edited\n")
    (vault / "work" / "new.md").write_text("New\n")
    (vault / "work" / "new.txt").write_text("No note\n")
    (vault / "work" / "plan.md").unlink()
    assert paths(watched.refresh()) == ["home.md", "work/new.md"]
    assert root.news() == ["home.md", "work/new.md"]
    assert root.walks == 2
    watched.close()


def test_a_new_folder_has_all_of_it_looked_at(
    root: CountingRoot, watched: NoteCatalogue, vault: Path
) -> None:
    watched.refresh()
    watched.refresh()
    shutil.copytree(vault / "work", vault / "copy")
    assert paths(watched.refresh()) == ["copy/plan.md", "home.md", "work/plan.md"]
    assert root.walks == 3
    (vault / "copy" / "plan.md").write_text("Other\n")
    assert by_path(watched.refresh())["copy/plan.md"].digest == _digest(vault / "copy/plan.md")
    assert root.walks == 3
    watched.close()


def test_a_watched_folder_is_walked_now_and_then(root: CountingRoot) -> None:
    clock = [later()]
    watcher = FolderWatcher(root.path)
    notes = NoteCatalogue(root, now=lambda: clock[0], watcher=watcher, max_walked=1)
    for _ in range(5):
        notes.refresh()
    assert root.walks == 2
    clock[0] += WALK_INTERVAL_NS
    for _ in range(3):
        notes.refresh()
    assert root.walks == 3
    # A clock that was set back says nothing.
    clock[0] -= 2 * WALK_INTERVAL_NS
    notes.refresh()
    assert root.walks == 4
    notes.close()


def test_what_is_unreadable_young_or_marked_is_tried_again_when_watched(
    root: CountingRoot, watched: NoteCatalogue, vault: Path
) -> None:
    (vault / "odd.md").write_bytes(b"\x00")
    watched.refresh()
    found = watched.refresh()
    root.news()
    watched.mark("home.md")
    assert watched.refresh() is found
    assert root.news() == ["home.md", "odd.md"]
    assert root.walks == 2
    watched.close()


def test_a_doubt_is_not_lost_on_who_stops_it_half_way(root: CountingRoot) -> None:
    notes = NoteCatalogue(root, now=later)
    notes.refresh()
    notes.mark("home.md")

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        notes.refresh(stop)
    root.news()
    notes.refresh()
    assert root.news() == ["home.md"]


def test_changes_are_not_lost_on_who_stops_it_half_way(
    root: CountingRoot, watched: NoteCatalogue, vault: Path
) -> None:
    watched.refresh()
    watched.refresh()
    for path in ("home.md", "work/plan.md"):
        (vault / path).write_text("Edited\n")

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watched.refresh(stop)
    assert {note.digest for note in watched.refresh().notes} == {_digest(vault / "home.md")}
    assert root.walks == 3
    watched.close()


def test_that_a_folder_cannot_be_watched_is_said_once(root: CountingRoot, tmp_path: Path) -> None:
    elsewhere = FolderWatcher(tmp_path / "nowhere")
    notes = NoteCatalogue(root, now=later, watcher=elsewhere, max_walked=1)
    first = notes.refresh()
    assert [notes.refresh() is first for _ in range(3)] == [True] * 3
    assert root.walks == 4
    (warning,) = notes.take_warnings()
    assert "is not watched" in warning
    notes.close()


def test_a_closed_catalogue_can_be_used_again(
    root: CountingRoot, watched: NoteCatalogue, vault: Path
) -> None:
    watched.refresh()
    watched.close()
    (vault / "home.md").unlink()
    assert paths(watched.refresh()) == ["work/plan.md"]
    watched.close()


def _sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _digest(path: Path) -> str:
    return _sha(path.read_bytes()).hex()
