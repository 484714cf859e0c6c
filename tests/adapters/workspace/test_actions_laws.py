"""Actions against a dictionary: the folder is always what the dictionary says, and undoing
everything gives back what was there."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.strategies import modest

from lamina.adapters.files.root import Root
from lamina.adapters.workspace.file_actions.actions import FileActions
from lamina.errors import UsageError

NAMES = st.sampled_from(["a", "b.md", "c d", "é"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
TEXTS = st.text(st.sampled_from("ab\n\ré "), max_size=8)


class Workspace(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.actions = FileActions(Root(self.folder))
        self.files: dict[str, bytes] = {}
        # Before each change, what was there.
        self.past: list[dict[str, bytes]] = []

    def teardown(self) -> None:
        while self.past:
            self.take_back()
            self.is_what_the_dictionary_says()
        shutil.rmtree(self.folder)

    def is_folder(self, path: str) -> bool:
        return (self.folder / path).is_dir()

    def is_below_a_file(self, path: str) -> bool:
        return any(path.startswith(f"{file}/") for file in self.files)

    def attempt(self, may: bool, files: dict[str, bytes], act: str, *args: object) -> None:
        """Does what is allowed; what is not is refused and changes nothing."""
        try:
            getattr(self.actions, act)(*args)
        except UsageError:
            assert not may, (act, args)
            return
        assert may, (act, args)
        if files != self.files or act in ("mv", "rm"):
            self.past.append(self.files)
            self.files = files

    @rule(path=PATHS, text=TEXTS, overwrite=st.booleans())
    def write(self, path: str, text: str, overwrite: bool) -> None:
        may = not self.is_folder(path) and not self.is_below_a_file(path)
        may = may and (overwrite or path not in self.files)
        self.attempt(may, self.files | {path: text.encode()}, "write", path, text, overwrite)

    @rule(path=PATHS, old=TEXTS, new=TEXTS, replace_all=st.booleans())
    def edit(self, path: str, old: str, new: str, replace_all: bool) -> None:
        text = self.files.get(path, b"").decode()
        if "\r\n" in text and text.count("\r\n") == text.count("\n"):
            old, new = (text.replace("\r\n", "\n").replace("\n", "\r\n") for text in (old, new))
        count = sum(text.startswith(old, at) for at in range(len(text))) if old else 0
        may = old != new and (count == 1 or (count > 1 and replace_all))
        edited = text.replace(old, new).encode() if may else b""
        self.attempt(may, self.files | {path: edited}, "edit", path, old, new, replace_all)

    @rule(path=PATHS)
    def touch(self, path: str) -> None:
        may = not self.is_folder(path) and not self.is_below_a_file(path)
        self.attempt(may, {path: b""} | self.files, "touch", path)

    @rule(path=PATHS)
    def rm(self, path: str) -> None:
        is_empty = self.is_folder(path) and not any((self.folder / path).iterdir())
        left = {name: data for name, data in self.files.items() if name != path}
        self.attempt(path in self.files or is_empty, left, "rm", path)

    @rule(source=PATHS, to=PATHS)
    def mv(self, source: str, to: str) -> None:
        may = source in self.files or self.is_folder(source)
        may = may and not self.is_folder(to) and to not in self.files
        may = may and not f"{to}/".startswith(f"{source}/")
        may = may and not self.is_below_a_file(to)
        moved = {
            f"{to}{name[len(source) :]}" if f"{name}/".startswith(f"{source}/") else name: data
            for name, data in self.files.items()
        }
        self.attempt(may, moved, "mv", source, to)

    @precondition(lambda self: bool(self.past))
    @rule()
    def take_back(self) -> None:
        self.actions.undo()
        self.files = self.past.pop()

    @rule()
    def restart(self) -> None:
        self.actions = FileActions(Root(self.folder))

    @rule(path=PATHS, text=TEXTS)
    def a_person_writes_what_was_read(self, path: str, text: str) -> None:
        """What somebody else wrote since is never written over, nor is it undone."""
        if path not in self.files or self.files[path] == text.encode():
            return
        self.actions.read(path)
        (self.folder / path).write_bytes(text.encode())
        try:
            self.actions.write(path, "lost", overwrite=True)
            raise AssertionError("it was written over")
        except UsageError:
            pass
        (self.folder / path).write_bytes(self.files[path])

    @invariant()
    def is_what_the_dictionary_says(self) -> None:
        found = {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file() and ".lamina" not in path.parts
        }
        assert found == self.files


TestWorkspace = Workspace.TestCase
TestWorkspace.settings = modest
