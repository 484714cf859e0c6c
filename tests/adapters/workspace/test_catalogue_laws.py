"""Whatever happens to a folder, refreshing a catalogue gives what reading it anew gives."""

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lamina.adapters.files.root import Root
from lamina.adapters.workspace.catalogue import NoteCatalogue
from lamina.adapters.workspace.folder_watcher import FolderWatcher
from lamina.core.values.note import Note

NAMES = st.sampled_from(("a.md", "b.md", "C.MD", "x/a.md", "x/y/b.md", "z/c.markdown", "t.txt"))
FOLDERS = st.sampled_from(("x", "x/y", "z", "new", "x/new", ".hidden"))
# Of one size, so that only a stamp or the bytes tell them apart.
CONTENTS = st.sampled_from(
    (b"# One\n\ntext #a\n", b"# Two\n\ntext #b\n", b"\0 not text ...\n", b"---\na: 1\n---\nxyz\n\n")
)


class Edits(RuleBasedStateMachine):
    """Somebody works in a folder, as fast as they can, and three catalogues keep up with it."""

    @initialize()
    def open(self) -> None:
        self.place = Path(tempfile.mkdtemp())
        self.folder = self.place / "vault"
        self.folder.mkdir()
        self.root = Root(self.folder)
        self.kept = self.place / "kept.sqlite"
        self.walked = NoteCatalogue(self.root)
        self.watched = NoteCatalogue(
            self.root, watcher=FolderWatcher(self.root.path), max_walked=-1
        )
        self.is_watched = False

    def teardown(self) -> None:
        if hasattr(self, "place"):
            self.walked.close()
            self.watched.close()
            shutil.rmtree(self.place)

    # -- what somebody does ------------------------------------------------------------------------

    @rule(name=NAMES, content=CONTENTS)
    def write(self, name: str, content: bytes) -> None:
        path = self.folder / name
        if path.is_symlink():
            path.unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    @rule(name=NAMES, content=CONTENTS)
    def write_and_set_its_time_back(self, name: str, content: bytes) -> None:
        path = self.folder / name
        if path.is_file():
            status = path.stat()
            path.write_bytes(content)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    @rule(name=NAMES, content=CONTENTS)
    def replace_by_another_file(self, name: str, content: bytes) -> None:
        path = self.folder / name
        if path.parent.is_dir():
            draft = path.with_name(".draft")
            draft.write_bytes(content)
            os.replace(draft, path)

    @rule(name=NAMES, other=NAMES)
    def move(self, name: str, other: str) -> None:
        source, new = self.folder / name, self.folder / other
        if source.is_file() and new.parent.is_dir():
            os.replace(source, new)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        path = self.folder / name
        if path.is_file():
            path.unlink()

    @rule(name=NAMES, seconds=st.integers(0, 2_000_000_000))
    def touch(self, name: str, seconds: int) -> None:
        if (self.folder / name).is_file():
            os.utime(self.folder / name, (seconds, seconds))

    @rule(name=FOLDERS, other=FOLDERS)
    def move_a_folder(self, name: str, other: str) -> None:
        source, new = self.folder / name, self.folder / other
        is_inside = new == source or source in new.parents
        if source.is_dir() and new.parent.is_dir() and not new.exists() and not is_inside:
            source.rename(new)

    @rule(name=FOLDERS)
    def delete_a_folder(self, name: str) -> None:
        if (self.folder / name).is_dir():
            shutil.rmtree(self.folder / name)

    @rule(name=NAMES, folder=FOLDERS)
    def link(self, name: str, folder: str) -> None:
        path = self.folder / name
        if path.parent.is_dir() and not path.exists() and not path.is_symlink():
            path.symlink_to(self.folder / folder)

    # -- what has to be ----------------------------------------------------------------------------

    @precondition(lambda self: hasattr(self, "folder"))
    @invariant()
    def all_know_what_is_there(self) -> None:
        fresh = NoteCatalogue(self.root).refresh()
        known: dict[str, Note] = {note.path: note for note in self.walked.refresh().notes}
        assert self.walked.refresh() == fresh
        assert self.watched.refresh() == fresh
        again = NoteCatalogue(self.root, self.kept)
        assert again.refresh() == fresh
        assert again.take_warnings() == ()
        again.close()
        for note in fresh.notes:
            assert known[note.path] == note
            texts = self.walked.texts([(note.path, passage) for passage in note.passages])
            assert None not in texts


Edits.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
test_whatever_happens_a_catalogue_is_what_is_there = Edits.TestCase
