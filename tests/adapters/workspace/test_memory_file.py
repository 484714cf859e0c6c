"""A person's memory file."""

from pathlib import Path

import pytest

from lamina.adapters.workspace.memory_file import MAX_BYTES, MemoryFile, MemoryLine
from lamina.errors import UsageError

pytestmark = pytest.mark.anyio


@pytest.fixture
def memory(tmp_path: Path) -> MemoryFile:
    return MemoryFile(tmp_path / "kept" / "memory.md")


async def test_nothing_is_remembered_before_something_is_added(memory: MemoryFile) -> None:
    assert await memory.read() == ""
    assert await memory.lines() == ()
    assert not memory.path.exists()


async def test_what_is_added_is_a_line_and_the_rest_stays_as_it_is(memory: MemoryFile) -> None:
    memory.path.parent.mkdir()
    memory.path.write_text("# About me\n\nNo final newline", "utf-8")
    assert await memory.add("  I write\nBritish English. ")
    assert memory.path.read_text("utf-8") == (
        "# About me\n\nNo final newline\n- I write British English.\n"
    )


async def test_what_is_remembered_already_is_not_added_again(memory: MemoryFile) -> None:
    assert await memory.add("tea")
    assert not await memory.add("tea")
    assert await memory.lines() == (MemoryLine(1, "tea"),)


async def test_a_line_is_forgotten_by_its_number(memory: MemoryFile) -> None:
    for word in ("tea", "coffee", "water"):
        await memory.add(word)
    assert await memory.forget(2) == "coffee"
    assert [line.text for line in await memory.lines()] == ["tea", "water"]
    with pytest.raises(UsageError, match=r"no line 3 .* it holds 2"):
        await memory.forget(3)


async def test_a_file_that_cannot_be_read_is_not_written(memory: MemoryFile) -> None:
    memory.path.parent.mkdir()
    memory.path.write_bytes(b"caf\xe9")
    with pytest.raises(UsageError, match="not UTF-8 at byte 3"):
        await memory.add("tea")
    assert memory.path.read_bytes() == b"caf\xe9"


async def test_a_file_that_is_too_large_says_so(memory: MemoryFile) -> None:
    memory.path.parent.mkdir()
    memory.path.write_bytes(b"x" * (MAX_BYTES + 1))
    with pytest.raises(UsageError, match="the limit of 65,536: shorten it"):
        await memory.read()


async def test_nothing_cannot_be_remembered(memory: MemoryFile) -> None:
    with pytest.raises(UsageError, match="nothing to remember"):
        await memory.add(" \n ")


async def test_a_link_to_the_file_stays_a_link(memory: MemoryFile, tmp_path: Path) -> None:
    own = tmp_path / "own.md"
    own.write_text("- tea\n", "utf-8")
    memory.path.parent.mkdir()
    memory.path.symlink_to(own)
    await memory.add("coffee")
    assert memory.path.is_symlink()
    assert own.read_text("utf-8") == "- tea\n- coffee\n"
