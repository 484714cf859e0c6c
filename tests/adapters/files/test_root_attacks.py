"""Paths that try to leave the root: none is opened, whoever asks, and however it is spelt."""

import contextlib
import itertools
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.adapters.files.witness import audited, strays, watched

from lamina.adapters.files.paths import PathRefused
from lamina.adapters.files.root import Root
from lamina.adapters.workspace.file_actions.actions import FileActions
from lamina.errors import UsageError

SECRET = "the secret outside"

UPWARD = [
    "..", "../..", "./..", "a/../..", "a/./../..", "notes/../..", "notes/deep/../../..", "..//",
    "../.", "...", ".. ", "..;", "..\\", ".\\..", "%2e%2e", "%252e%252e", "%c0%ae%c0%ae", "．．",
    "‥", "․․", "..\u200b", "\u202e..", "\udc2e\udc2e", "..\0", "~", "~root", "$HOME", "{..}",
]  # fmt: skip
SEPARATORS = ["/", "//", "/./", "\\", "%2f", "%5c", "／", "∕", "⁄", "\u29f8"]
TARGETS = ["outside/secret.md", "secret.md"]
LINKS = [
    "link.md", "link", "link/", "link/secret.md", "link/.", "link/..", "link/../outside/secret.md",
    "link/new.md", "link/new/new.md", "chain/secret.md", "notes/up/outside/secret.md", "notes/up",
    "round/round/a.md", "round", "dangling.md", "dangling/new.md", "zero.md", "environ.md",
    "handles/0", "all/etc/passwd", "all", "absolute.md", "link.md/x", "LINK.MD", "here/../../x",
    "here/link/secret.md", "notes/beside.md",
]  # fmt: skip
SPECIAL = [
    "pipe.md", "notes/pipe.md", "socket.md", "device.md", "notes", "pipe.md/", "pipe.md/x",
    "notes/", ".", "./", "", "/", "//", "///", " ", "\n", "\t", "\0", "a\0.md", "\0/etc/passwd",
    "notes/a.md\0.png", "notes/a.md/", "notes/a.md/.", "notes/a.md/..", "notes/a.md/../../..",
    "notes\\..\\..\\outside\\secret.md", "foo/..\\bar", "con", "NUL", "aux.md", "a.md::$DATA",
    "a" * 255, "a" * 256, "é" * 128, "a/" * 3000 + "b", "../" * 1000, "x" * 100_000,
    ".git/config", ".lamina/trash/changes.jsonl", "notes/.hidden", "\u200c.git/config", ".obsidian",
    "..md", "...md", "-rf", "--", "*", "?", "notes/*", "[a]", "a:b.md", "|cat", "`id`", "$(id)",
    "\ud800", "\udfff/a.md", "a\udcff.md", "\ufeff", "\u2028", "CON:", "file:///etc/passwd",
    "https://example.com/x", "data:text/plain,x",
]  # fmt: skip
PREFIXES = ["", "./", "notes/", "notes/deep/", "/", "//", "C:/", "C:\\", "\\\\?\\", "file://"]


def attacks(root: Path, outside: Path) -> list[str]:
    spelt = [
        f"{'notes/' * (number % 2)}{up}{separator}{TARGETS[number % 2]}"
        for number, (up, separator) in enumerate(itertools.product(UPWARD, SEPARATORS))
    ]
    absolute = [
        "/etc/passwd", "/proc/self/environ", "/proc/self/fd/0", "/proc/self/task/1/environ",
        "/proc/self/cwd/secret.md", "/dev/zero", "/dev/stdin", "/dev/fd/0", f"{outside}/secret.md",
        f"{root}/../outside/secret.md", f"{root}/notes/a.md", f"{root}", f"{root}/link.md",
        os.path.relpath(outside / "secret.md", root), os.path.relpath("/etc/passwd", root),
    ]  # fmt: skip
    bare = [*LINKS, *SPECIAL, *absolute]
    placed = [
        f"{PREFIXES[(number + turn) % len(PREFIXES)]}{path}"
        for turn in range(3)
        for number, path in enumerate(bare)
    ]
    return list(dict.fromkeys([*spelt, *bare, *placed]))


class Ground:
    """A workspace full of traps; beside it a secret, and a decoy in which the process stands: it
    holds the names of the workspace, so that a name looked up in the wrong place is noticed."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.root, self.outside, self.decoy = base / "root", base / "outside", base / "decoy"
        for path in (self.root, self.outside, self.decoy):
            (path / "notes" / "deep").mkdir(parents=True)
            (path / "notes" / "a.md").write_text("decoy" if path == self.decoy else "a note")
        (self.outside / "secret.md").write_text(SECRET)
        (self.decoy / "secret.md").write_text(SECRET)
        self._lay_traps()
        self.before = self.state()

    def _lay_traps(self) -> None:
        links = {
            "link.md": "../outside/secret.md", "link": "../outside", "chain": "link",
            "notes/up": "../..", "notes/beside.md": "a.md", "round": "round", "here": ".",
            "dangling.md": "../outside/new.md", "dangling": "../outside/new",
            "zero.md": "/dev/zero", "environ.md": "/proc/self/environ", "handles": "/proc/self/fd",
            "all": "/", "absolute.md": str(self.outside / "secret.md"),
        }  # fmt: skip
        for name, target in links.items():
            (self.root / name).symlink_to(target)
        os.mkfifo(self.root / "pipe.md")
        os.mkfifo(self.root / "notes" / "pipe.md")
        with contextlib.chdir(self.root), socket.socket(socket.AF_UNIX) as server:
            server.bind("socket.md")
        with contextlib.suppress(PermissionError):
            os.mknod(self.root / "device.md", 0o20644, os.makedev(1, 5))  # /dev/zero

    def state(self) -> dict[str, tuple[bytes, int, int]]:
        """Everything outside the root, with contents, times and modes."""
        files = [
            path
            for folder in (self.outside, self.decoy)
            for path in (folder, *folder.rglob("*"))
        ]  # fmt: skip
        found = {
            str(file): (
                b"" if file.is_dir() else file.read_bytes(),
                file.stat().st_mtime_ns,
                file.stat().st_mode,
            )
            for file in files
        }
        return found | {
            str(self.base): (b",".join(sorted(map(os.fsencode, os.listdir(self.base)))), 0, 0)
        }


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    ground = Ground(tmp_path)
    monkeypatch.chdir(ground.decoy)
    yield ground
    assert ground.state() == ground.before


def _edit(actions: FileActions, path: str) -> str:
    return actions.edit(path, SECRET, "changed")


def _mv_there(actions: FileActions, path: str) -> str:
    with contextlib.suppress(UsageError):
        actions.touch("moving.md")
    return actions.mv("moving.md", path)


OPERATIONS: dict[str, Callable[[Root, FileActions, str], object]] = {
    "Root.read": lambda root, _, path: root.read(path, 1000)[0],
    "Root.read hidden": lambda root, _, path: root.read(path, 1000, hidden=True)[0],
    "Root.stat": lambda root, _, path: root.stat(path, hidden=True) and "",
    "Root.list": lambda root, _, path: [entry.path for entry in root.list(path, hidden=True)],
    "Root.walk": lambda root, _, path: [entry.path for entry in root.walk(path)],
    "Root.make_folder": lambda root, _, path: root.make_folder(path),
    "Root.append": lambda root, _, path: root.append(path, b"x\n", hidden=True),
    "read": lambda _, actions, path: actions.read(path),
    "ls": lambda _, actions, path: actions.ls(path),
    "ls below": lambda _, actions, path: actions.ls(path, recursive=True),
    "grep": lambda _, actions, path: actions.grep("e", path),
    "write": lambda _, actions, path: actions.write(path, "written"),
    "write over": lambda _, actions, path: actions.write(path, "written over", overwrite=True),
    "edit": lambda _, actions, path: _edit(actions, path),
    "touch": lambda _, actions, path: actions.touch(path),
    "mv from": lambda _, actions, path: actions.mv(path, "moved.md"),
    "mv to": lambda _, actions, path: _mv_there(actions, path),
    "rm": lambda _, actions, path: actions.rm(path),
}


def test_there_are_more_than_five_hundred_attacks(ground: Ground) -> None:
    assert len(attacks(ground.root, ground.outside)) > 500


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_attack_leads_out_of_the_root(ground: Ground, operation: str) -> None:
    root = Root(ground.root)
    actions = FileActions(root)
    run = OPERATIONS[operation]
    folders = [ground.outside, ground.decoy, ground.decoy / "notes"]
    run(root, actions, "warm.md") if operation == "touch" else None
    with watched(*folders) as watch:
        for attack in attacks(ground.root, ground.outside):
            with audited() as heard:
                try:
                    answer = str(run(root, actions, attack))
                except (PathRefused, UsageError):
                    answer = ""
            assert strays(heard, root.path) == [], attack
            assert watch.seen() == [], attack
            assert "secret outside" not in answer, attack
            assert "root:x:" not in answer, attack


def test_the_witnesses_notice_an_opening_outside(ground: Ground) -> None:
    """They are no proof if they see nothing."""
    with watched(ground.outside) as watch:
        with audited() as heard:
            (ground.root / "link.md").read_text()
        assert any("secret.md" in found_path for found_path in watch.seen())
    assert strays(heard, ground.root) != []
    with watched(ground.decoy) as watch:
        with audited() as heard:
            os.close(os.open("secret.md", os.O_RDONLY))
        assert strays(heard, ground.root) == ["open 'secret.md' follows links"]
        assert watch.seen() != []


@pytest.mark.parametrize("path", ["pipe.md", "socket.md", "zero.md", "notes/pipe.md"])
def test_what_is_no_file_is_not_even_opened(ground: Ground, path: str) -> None:
    with audited() as heard, pytest.raises(PathRefused):
        Root(ground.root).read(path)
    names = [args[0] for event, args in heard if event == "open"]
    assert Path(path).name not in names


def test_names_that_only_look_like_attacks_are_names(ground: Ground) -> None:
    actions = FileActions(Root(ground.root))
    for name in ("%2e%2e", "．．", "~", "..;", "notes／a.md", "a：b", "-rf"):
        if not name.startswith("."):
            actions.write(f"plain/{name}.md", name)
    found = {path.name for path in (ground.root / "plain").iterdir()}
    assert found == {"%2e%2e.md", "．．.md", "~.md", "notes／a.md.md", "a：b.md", "-rf.md"}


def test_a_trash_that_is_a_link_is_not_used(ground: Ground) -> None:
    (ground.root / ".lamina").symlink_to(ground.outside)
    actions = FileActions(Root(ground.root))
    with pytest.raises(UsageError, match=r"cannot be kept .*nothing was changed"):
        actions.rm("notes/a.md")
    assert (ground.root / "notes" / "a.md").read_text() == "a note"


def test_a_list_of_changes_by_somebody_else_leads_nowhere(ground: Ground) -> None:
    kept = ground.root / ".lamina" / "trash" / "kept"
    kept.mkdir(parents=True)
    (kept / "00000000").write_text("planted")
    lines = [
        '{"id":"1","do":"rm","at":0,"path":"../outside/new.md","kept":"00000000"}',
        '{"id":"2","do":"rm","at":0,"path":".bashrc","kept":"00000000"}',
        '{"id":"3","do":"rm","at":0,"path":"new.md","kept":"../../../../outside/secret.md"}',
        '{"id":"4","do":"mv","at":0,"path":"new.md","target":"link/secret.md"}',
        '{"id":"5","do":"write","at":0,"path":"new.md","folders":["../outside/notes/deep"]}',
        '{"id":"6","do":"rm","at":0,"path":"link/new.md","kept":"00000000"}',
    ]
    (kept.parent / "changes.jsonl").write_text("\n".join(lines) + "\n")
    actions = FileActions(Root(ground.root))
    with watched(ground.outside) as watch:
        for number in range(1, 7):
            with audited() as heard, pytest.raises(UsageError):
                actions.undo(str(number))
            assert strays(heard, ground.root) == []
        assert watch.seen() == []
    assert not (ground.root / ".bashrc").exists()


@contextlib.contextmanager
def swapping(place: Path, outside: Path) -> Iterator[None]:
    """Somebody who swaps a folder or file for a link to `outside` and back, as fast as can be."""
    real, link = place.with_name("real-one"), place.with_name("link-one")
    link.symlink_to(outside)
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            os.rename(place, real)
            os.rename(link, place)
            os.rename(place, link)
            os.rename(real, place)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        link.unlink()


ROUNDS = 3000


@pytest.mark.parametrize("swapped", ["swap", "swap/secret.md"])
def test_a_swap_between_check_and_opening_does_not_lead_out(ground: Ground, swapped: str) -> None:
    (ground.root / "swap").mkdir()
    (ground.root / "swap" / "secret.md").write_text("inside")
    target = ground.outside if swapped == "swap" else ground.outside / "secret.md"
    root = Root(ground.root)
    read, refused = 0, 0
    with watched(ground.outside) as watch, swapping(ground.root / swapped, target):
        # Until the race was lost and won often enough to be one.
        while read < ROUNDS or refused < 50:
            try:
                assert root.read("swap/secret.md")[0] == b"inside"
                read += 1
            except PathRefused:
                refused += 1
        assert watch.seen() == []


SWAPPED: dict[str, Callable[[FileActions], str]] = {
    "read": lambda actions: actions.read("swap/secret.md"),
    "ls": lambda actions: actions.ls("", recursive=True),
    "grep": lambda actions: actions.grep("secret", "swap"),
    "write": lambda actions: actions.write("swap/new/new.md", "new"),
    "write over": lambda actions: actions.write("swap/secret.md", "new", overwrite=True),
    "edit": lambda actions: actions.edit("swap/secret.md", "inside", "changed"),
    "touch": lambda actions: actions.touch("swap/new.md"),
    "touch one": lambda actions: actions.touch("swap/secret.md"),
    "mv to": lambda actions: actions.mv("b.md", "swap/b.md"),
    "mv from": lambda actions: actions.mv("swap/secret.md", "c.md"),
    "mv folder": lambda actions: actions.mv("notes", "swap/notes"),
    "rm": lambda actions: actions.rm("swap/secret.md"),
    "rm folder": lambda actions: actions.rm("swap/empty"),
}


@pytest.mark.parametrize("operation", SWAPPED)
def test_a_swap_at_any_moment_does_not_lead_out(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """The quickest attacker there can be: the folder becomes a link in the moment before a call of
    the system, once for every call there is."""
    for at in itertools.count(1):
        ground = Ground(tmp_path_factory.mktemp("swap"))
        monkeypatch.chdir(ground.decoy)
        swap = ground.root / "swap"
        (swap / "empty").mkdir(parents=True)
        (swap / "secret.md").write_text("inside, no secret")
        (ground.root / "b.md").write_text("b")
        actions = FileActions(Root(ground.root))

        def become_a_link(swap: Path = swap, outside: Path = ground.outside) -> None:
            swap.rename(swap.with_name("real-one"))
            swap.symlink_to(outside)

        with watched(ground.outside, ground.outside / "notes") as watch:
            with audited(at, become_a_link) as heard, contextlib.suppress(UsageError):
                assert SECRET not in SWAPPED[operation](actions)
            assert watch.seen() == [], (at, heard[at - 1])
            assert strays(heard, ground.root) == []
        assert ground.state() == ground.before
        if len(heard) < at:
            assert at > 3
            return


def test_without_handles_of_folders_links_are_refused_as_well(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "supports_dir_fd", set())
    root = Root(ground.root)
    actions = FileActions(root)
    assert root.read("notes/a.md")[0] == b"a note"
    for attack in LINKS:
        for run in OPERATIONS.values():
            with contextlib.suppress(PathRefused, UsageError):
                assert SECRET not in str(run(root, actions, attack)), attack
    assert actions.write("new/x.md", "x").startswith("made new/x.md")
    assert actions.ls("new") == "x.md  1"
    actions.rm("new/x.md")
    actions.undo()
    assert (ground.root / "new" / "x.md").read_text() == "x"
