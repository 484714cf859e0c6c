"""`lamina memory`: what every chat is told of a person."""

import stat
from pathlib import Path

import pytest
from tests.apps.cli.inside import error, lamina, output

TEA = "I drink tea."


@pytest.fixture
def memory(notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the file is; it is not there."""
    assert notes.is_dir()
    path = tmp_path / "kept" / "memory.md"
    monkeypatch.setenv("LAMINA_MEMORY", str(path))
    return path


def test_nothing_is_remembered_at_first(notes: Path, memory: Path) -> None:
    told = f"no memories yet; add one with `lamina memory add TEXT`, or edit {memory}\n"
    assert output("memory", cwd=notes) == told
    assert not memory.exists()


def test_what_is_added_is_shown_with_its_number(notes: Path, memory: Path) -> None:
    assert output("memory", "add", "I", "drink", "tea.", cwd=notes) == "remembered\n"
    assert output("memory", "add", "I write British English.", cwd=notes) == "remembered\n"
    assert output("memory", "add", TEA, cwd=notes) == "already remembered\n"
    assert output("memory", cwd=notes) == (
        f"  1  I drink tea.\n  2  I write British English.\n\n{memory}\n"
    )
    assert memory.read_text("utf-8") == "- I drink tea.\n- I write British English.\n"


@pytest.mark.parametrize("said", ["- tea", "* tea", "tea", " tea\n"])
def test_one_thing_is_remembered_once_however_its_line_begins(
    notes: Path, memory: Path, said: str
) -> None:
    output("memory", "add", "tea", cwd=notes)
    assert output("memory", "add", "--", said, cwd=notes) == "already remembered\n"
    assert memory.read_text("utf-8") == "- tea\n"


def test_a_line_is_forgotten_by_its_number(notes: Path, memory: Path) -> None:
    memory.parent.mkdir()
    memory.write_text("# Me\n\n- tea\n- coffee\n", "utf-8")
    assert output("memory", "forget", "2", cwd=notes) == "forgotten: tea\n"
    assert memory.read_text("utf-8") == "# Me\n\n- coffee\n"
    assert error("memory", "forget", "3", cwd=notes) == (
        "error: there is no line 3 in the memory file memory.md: it holds 2\n"
    )
    assert error("memory", "forget", "0", cwd=notes).startswith("error: there is no line 0")


def test_nothing_can_be_forgotten_where_nothing_is_remembered(notes: Path, memory: Path) -> None:
    assert error("memory", "forget", "1", cwd=notes) == (
        "error: there is no line 1 in the memory file memory.md: nothing is remembered\n"
    )
    assert not memory.exists()


def test_the_path_is_the_one_that_is_set_or_one_in_the_data_folder(
    notes: Path, memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert output("memory", "path", cwd=notes) == f"{memory}\n"
    monkeypatch.delenv("LAMINA_MEMORY")
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    assert output("memory", "path", cwd=notes) == f"{tmp_path / 'data' / 'memory.md'}\n"


def test_what_cannot_be_remembered_is_refused(notes: Path, memory: Path) -> None:
    assert error("memory", "add", " ", cwd=notes) == (
        "error: there is nothing to remember: say what\n"
    )
    assert "Missing argument" in error("memory", "add", cwd=notes, code=2)
    assert "valid integer" in error("memory", "forget", "x", cwd=notes, code=2)
    assert not memory.exists()


def test_a_file_that_cannot_be_read_is_said_and_stays_as_it_is(notes: Path, memory: Path) -> None:
    memory.parent.mkdir()
    memory.write_bytes(b"caf\xe9\n")
    for command in (("memory",), ("memory", "add", "tea"), ("memory", "forget", "1")):
        assert error(*command, cwd=notes) == f"error: {memory} is not UTF-8 at byte 3\n"
    assert memory.read_bytes() == b"caf\xe9\n"


def test_a_folder_in_its_place_is_said(notes: Path, memory: Path) -> None:
    memory.mkdir(parents=True)
    problem = "is not a regular file and is not read"
    assert error("memory", cwd=notes) == f"error: {str(memory)!r} {problem}\n"


def test_nothing_else_of_the_file_is_rewritten(notes: Path, memory: Path) -> None:
    memory.parent.mkdir()
    before = "\ufeff# Me\r\n\r\n* tea  \r\n".encode()
    memory.write_bytes(before)
    memory.chmod(0o640)
    output("memory", "add", "coffee", cwd=notes)
    assert memory.read_bytes() == before + b"- coffee\r\n"
    assert output("memory", cwd=notes).startswith("  1  # Me\n  2  tea\n  3  coffee\n")
    assert output("memory", "forget", "3", cwd=notes) == "forgotten: coffee\n"
    assert memory.read_bytes() == before
    assert stat.S_IMODE(memory.stat().st_mode) == 0o640


def test_a_memory_cannot_steer_the_terminal(notes: Path, memory: Path) -> None:
    memory.parent.mkdir()
    memory.write_text("- evil \x1b[2J\n", "utf-8")
    assert "\x1b" not in output("memory", cwd=notes)
    assert "\x1b" not in output("memory", "forget", "1", cwd=notes)


def test_there_is_help(notes: Path) -> None:
    code, out, err = lamina("memory", "--help", cwd=notes)
    assert (code, err) == (0, "")
    for command in ("add", "forget", "path"):
        assert command in out
