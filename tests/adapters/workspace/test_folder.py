"""A folder as a workspace: what is inside is read or reported, what is outside is never opened."""

import asyncio
import base64
import hashlib
import os
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from lamina.adapters.files.root import MAX_FILE_BYTES
from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.adapters.workspace.picture_files import MAX_PICTURE_BYTES, MAX_PICTURES
from lamina.core.values.item import LoadedItem, Shape
from lamina.core.values.request import LeftOut
from lamina.errors import UsageError

PNG = b"\x89PNG\r\n\x1a\n"
SECRET = b"outside"


def png(width: int, height: int = 1, tail: bytes = b"") -> bytes:
    return PNG + b"\0\0\0\rIHDR" + struct.pack(">II", width, height) + tail


class Folder:
    """A workspace in the making, with a secret beside it."""

    def __init__(self, base: Path) -> None:
        self.root = base / "workspace"
        self.outside = base / "outside"
        self.root.mkdir()
        self.outside.mkdir()
        for name in ("secret.md", "secret.png"):
            (self.outside / name).write_bytes(SECRET)

    def put(self, path: str, data: bytes | str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)

    def read(self, reference: str, shape: Shape = "attached") -> LoadedItem | LeftOut:
        return anyio.run(FolderWorkspace(self.root).read, reference, shape)

    def active(self, content: str, path: str = "n.md") -> LoadedItem:
        self.put(path, content)
        reading = self.read(path, "active")
        assert isinstance(reading, LoadedItem)
        return reading


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Folder]:
    """A workspace; whatever a test does in it, nothing outside may have been opened."""
    folder = Folder(tmp_path)
    opened: set[tuple[int, int]] = set()
    real_open: Callable[..., int] = os.open

    def recording_open(*args: Any, **kwargs: Any) -> int:
        handle = real_open(*args, **kwargs)
        status = os.fstat(handle)
        opened.add((status.st_dev, status.st_ino))
        return handle

    monkeypatch.setattr(os, "open", recording_open)
    monkeypatch.setattr(os, "supports_dir_fd", {*os.supports_dir_fd, recording_open})
    yield folder
    outside = [folder.outside, *folder.outside.iterdir(), tmp_path]
    assert not opened & {(path.stat().st_dev, path.stat().st_ino) for path in outside}


def left_out(result: LoadedItem | LeftOut) -> LeftOut:
    assert isinstance(result, LeftOut)
    return result


def test_a_note_is_read_as_it_is(folder: Folder) -> None:
    folder.put("deep/er/My note.md", "a\r\nb \n")
    reading = folder.read("deep/er/My note.md")
    assert isinstance(reading, LoadedItem)
    assert reading.item.id == "note:deep/er/My note.md"
    assert reading.item.title == "My note"
    assert reading.item.content == "a\r\nb \n"
    assert reading.item.mtime.endswith("Z")


def test_what_is_no_note_is_a_file_without_a_title(folder: Folder) -> None:
    folder.put("a.py", "x = 1\n")
    reading = folder.read("a.py", "active")
    assert isinstance(reading, LoadedItem)
    assert (reading.item.id, reading.item.title) == ("file:a.py", "")


def test_a_picture_is_an_item_with_its_bytes(folder: Folder) -> None:
    folder.put("x.PNG", png(7, 5))
    reading = folder.read("x.PNG")
    assert isinstance(reading, LoadedItem)
    (picture,) = reading.item.pictures
    assert (picture.media_type, picture.width, picture.height) == ("image/png", 7, 5)
    assert reading.blobs == (png(7, 5),)
    assert picture.digest == hashlib.sha256(png(7, 5)).hexdigest()


@pytest.mark.parametrize(
    "reference",
    [
        "../outside/secret.md", "a/../../outside/secret.md", "..", "/etc/passwd", "", ".", "/",
        "a\0.md", "..\\outside\\secret.md", "C:\\a.md", "\ud800.md",
    ],
)  # fmt: skip
def test_what_is_no_path_inside_is_refused(folder: Folder, reference: str) -> None:
    refused = left_out(folder.read(reference))
    assert refused.reason == "refused"
    assert "workspace" in refused.detail
    assert refused.what.encode().startswith(b"note:")


def test_a_link_to_outside_is_refused(folder: Folder) -> None:
    (folder.root / "link.md").symlink_to(folder.outside / "secret.md")
    assert left_out(folder.read("link.md")).reason == "refused"


def test_a_link_that_stays_inside_is_refused_as_well(folder: Folder) -> None:
    folder.put("a.md", "a")
    (folder.root / "link.md").symlink_to("a.md")
    assert left_out(folder.read("link.md")).reason == "refused"


def test_a_folder_that_is_a_link_is_not_entered(folder: Folder) -> None:
    (folder.root / "link").symlink_to(folder.outside, target_is_directory=True)
    assert left_out(folder.read("link/secret.md")).reason in ("refused", "missing")


def test_a_pipe_is_refused_and_does_not_block(folder: Folder) -> None:
    os.mkfifo(folder.root / "pipe.md")
    refused = left_out(folder.read("pipe.md"))
    assert (refused.reason, refused.detail) == ("refused", "pipe.md is not a regular file")


def test_a_folder_is_a_list_of_what_is_in_it(folder: Folder) -> None:
    folder.put("sub/b.md", "B")
    folder.put("sub/a.md", "A")
    reading = folder.read("sub")
    assert isinstance(reading, LoadedItem)
    assert reading.item.id == "folder:sub"
    assert reading.item.content == "- sub/a.md\n- sub/b.md"


@pytest.mark.parametrize("reference", ["no.md", "no/no.md", "a.md/b.md"])
def test_what_does_not_exist_is_missing(folder: Folder, reference: str) -> None:
    folder.put("a.md", "a")
    missing = left_out(folder.read(reference))
    assert (missing.what, missing.reason) == (f"note:{reference}", "missing")
    assert reference in missing.detail


def test_a_name_too_long_for_the_system_is_left_out(folder: Folder) -> None:
    assert left_out(folder.read("a" * 5000 + ".md")).reason == "refused"


def test_text_that_is_not_utf_8_is_read_with_a_warning(folder: Folder) -> None:
    folder.put("latin.md", "caf\xe9".encode("latin-1"))
    reading = folder.read("latin.md")
    assert isinstance(reading, LoadedItem)
    assert reading.item.content == "caf\ufffd"
    assert len(reading.warnings) == 1
    assert reading.warnings[0].startswith("latin.md is not UTF-8 at byte 3")


@pytest.mark.parametrize("data", [b"\x7fELF\0\xff\xfe", b"a\0b", "a note".encode("utf-16")])
def test_binary_data_is_not_text(folder: Folder, data: bytes) -> None:
    folder.put("a.md", data)
    unreadable = left_out(folder.read("a.md"))
    assert (unreadable.reason, unreadable.detail) == ("unreadable", "a.md is not text")


def test_a_file_at_the_limit_is_read_and_one_above_it_is_not(folder: Folder) -> None:
    folder.put("at.md", b"a" * MAX_FILE_BYTES)
    folder.put("above.md", b"a" * (MAX_FILE_BYTES + 1))
    assert isinstance(folder.read("at.md"), LoadedItem)
    above = left_out(folder.read("above.md"))
    assert (above.reason, above.detail) == (
        "unreadable",
        "above.md has 20,971,521 bytes; the limit is 20,971,520",
    )


def test_a_workspace_must_be_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        FolderWorkspace(tmp_path / "no")


def test_an_active_note_brings_its_pictures_in_order(folder: Folder) -> None:
    folder.put("sub/beside.png", png(1))
    folder.put("root.gif", b"GIF89a\x02\0\x03\0")
    folder.put("up (1).png", png(3))
    data = base64.b64encode(png(4)).decode()
    note = '![[beside.png|9]] ![](root.gif "t") ![](<../up (1).png>)'
    note += f" ![](data:image/png;base64,{data})"
    reading = folder.active(note, "sub/n.md")
    assert reading.warnings == ()
    assert [(p.media_type, p.width, p.height) for p in reading.item.pictures] == [
        ("image/png", 1, 1),
        ("image/gif", 2, 3),
        ("image/png", 3, 1),
        ("image/png", 4, 1),
    ]
    assert [p.digest for p in reading.item.pictures] == [
        hashlib.sha256(blob).hexdigest() for blob in reading.blobs
    ]
    assert reading.item.content == note


def test_pictures_are_part_of_the_version_of_a_note(folder: Folder) -> None:
    folder.put("x.png", png(1))
    first = folder.active("![[x.png]]").item.version
    assert folder.active("![[x.png]]").item.version == first
    folder.put("x.png", png(2))
    assert folder.active("![[x.png]]").item.version != first


@pytest.mark.parametrize("shape", ["attached", "web_tab"])
def test_a_note_that_is_not_active_brings_no_pictures(folder: Folder, shape: Shape) -> None:
    folder.put("x.png", png(1))
    folder.put("n.md", "![[x.png]] ![](missing.png)")
    reading = folder.read("n.md", shape)
    assert isinstance(reading, LoadedItem)
    assert (reading.item.pictures, reading.blobs, reading.warnings) == ((), (), ())


def test_a_picture_beside_the_note_stands_before_one_at_the_root(folder: Folder) -> None:
    folder.put("x.png", png(1))
    folder.put("sub/x.png", png(2))
    assert folder.active("![[x.png]]", "sub/n.md").blobs == (png(2),)


def test_the_same_bytes_are_one_picture(folder: Folder) -> None:
    folder.put("x.png", png(1))
    folder.put("y.png", png(1))
    assert folder.active("![[x.png]] ![[y.png]] ![](./x.png)").blobs == (png(1),)


def test_the_bytes_say_what_kind_of_picture_it_is(folder: Folder) -> None:
    folder.put("x.png", b"\xff\xd8\xff\xe0")
    folder.put("y.png", b"RIFF\0\0\0\0WEBP")
    kinds = [p.media_type for p in folder.active("![[x.png]] ![[y.png]]").item.pictures]
    assert kinds == ["image/jpeg", "image/webp"]


@pytest.mark.parametrize(
    ("target", "detail"),
    [
        ("missing.png", "missing.png does not exist in the workspace"),
        ("empty.png", "it is empty"),
        ("folder.png", "folder.png is a folder"),
        ("pipe.png", "pipe.png is not a regular file"),
        ("link.png", "link.png is not opened"),
        ("linked/secret.png", "linked/secret.png "),
        ("../outside/secret.png", "it is not a path inside the workspace"),
        ("%2e%2e/outside/secret.png", "it is not a path inside the workspace"),
        ("linked/../../outside/secret.png", "it is not a path inside the workspace"),
        ("/etc/secret.png", "it is not a path inside the workspace"),
        ("a%00b.png", "'a\\x00b.png' is not a workspace path"),
        ("..\\outside\\secret.png", "is not a workspace path"),
        ("https://example.com/x.png", "pictures are not fetched from the web"),
        ("file:///etc/x.png", "pictures are not fetched from the web"),
        ("data:image/svg+xml,x", "not a picture of a kind that is known"),
        ("data:image/png;base64", "not one of image/png"),
        ("data:image/png;base64,A", "its base64 is broken"),
        ("data:image/png;base64,!!!!", "its base64 is broken"),
        ("data:image/png;base64,", "it is empty"),
    ],
)
def test_a_picture_that_cannot_be_had_is_named(folder: Folder, target: str, detail: str) -> None:
    folder.put("empty.png", b"")
    (folder.root / "folder.png").mkdir()
    os.mkfifo(folder.root / "pipe.png")
    (folder.root / "link.png").symlink_to(folder.outside / "secret.png")
    (folder.root / "linked").symlink_to(folder.outside, target_is_directory=True)
    folder.put("good.png", png(1))
    reading = folder.active(f"![](<{target}>) ![[good.png]]")
    assert reading.blobs == (png(1),)
    (warning,) = reading.warnings
    assert warning.startswith("n.md: picture ")
    assert detail in warning


@pytest.mark.parametrize("encoded", ["iVBORw0KGgo=", "iVBORw0KGgo", "iVBO%52w0KGgo%3D"])
def test_data_is_decoded_with_and_without_padding(folder: Folder, encoded: str) -> None:
    assert folder.active(f"![](data:image/png;base64,{encoded})").blobs == (PNG,)


def test_the_pictures_of_a_note_have_a_limit_in_all(folder: Folder) -> None:
    for number in range(5):
        folder.put(f"{number}.png", png(number, tail=bytes(MAX_PICTURE_BYTES - 24)))
    folder.put("small.png", png(9))
    reading = folder.active("".join(f"![[{number}.png]]" for number in range(5)) + "![[small.png]]")
    assert [p.width for p in reading.item.pictures] == [0, 1, 2, 3]
    assert ["20 MB in all" in warning for warning in reading.warnings] == [True, True]


def test_a_note_brings_no_more_than_so_many_pictures(folder: Folder) -> None:
    for number in range(MAX_PICTURES + 1):
        folder.put(f"{number}.png", png(number))
    reading = folder.active("".join(f"![[{number}.png]]" for number in range(MAX_PICTURES + 1)))
    assert len(reading.blobs) == MAX_PICTURES
    (warning,) = reading.warnings
    assert "'20.png'" in warning


def test_pictures_in_the_code_of_a_note_are_not_read(folder: Folder) -> None:
    folder.put("x.png", png(1))
    reading = folder.active("`![[x.png]]`\n\n```\n![](x.png) ![](missing.png)\n```\n")
    assert (reading.blobs, reading.warnings) == ((), ())


# -- notes that are not waited for ---------------------------------------------------------------


@pytest.mark.parametrize("means", ["scope", "task"])
def test_reading_stops_when_nobody_waits_for_it_and_keeps_what_was_read(
    tmp_path: Path, means: str
) -> None:
    folder = Folder(tmp_path)
    for number in range(300):
        folder.put(f"{number}.md", f"Note {number}")
    told: list[int] = []

    async def body() -> None:
        workspace = FolderWorkspace(folder.root, cache=tmp_path / "notes.sqlite", watch=False)
        ended = anyio.Event()

        def cancel(task: "asyncio.Task[None]", scope: anyio.CancelScope) -> None:
            task.cancel() if means == "task" else scope.cancel()

        async def read() -> None:
            task = asyncio.current_task()
            assert task is not None

            def progress(done: int, total: int) -> None:
                told.append(done)
                if done == 100:
                    anyio.from_thread.run_sync(cancel, task, scope)
                    if means == "task":
                        anyio.from_thread.run(ended.wait)

            with anyio.CancelScope() as scope:
                try:
                    await workspace.catalogue(progress)
                finally:
                    ended.set()

        task = asyncio.create_task(read())
        await asyncio.wait([task])
        await workspace.aclose()

    anyio.run(body)
    assert told == [0, 50, 100]
    with closing(sqlite3.connect(tmp_path / "notes.sqlite")) as file:
        (count,) = file.execute("SELECT count(*) FROM notes").fetchone()
    assert 100 <= count <= 150
