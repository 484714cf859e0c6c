"""Attachments and workspaces as the original documents have them: behaviours 21 to 24."""

import os
from pathlib import Path

import pytest
from tests.fakes.sessions import World, note, placed, reported, run, words

import lamina
from lamina import attach
from lamina.adapters.files.root import Root
from lamina.adapters.workspace.file_actions.actions import FileActions
from lamina.core.values.settings import Settings
from lamina.engine.session.turn import Turn
from lamina.errors import BudgetError, UsageError

TEN = words(10)


def sent(turn: Turn) -> list[str]:
    return [label for label, place in placed(turn).items() if place != "left_out"]


async def size_of(*names: str) -> int:
    """The tokens that notes of ten words take as attachments."""
    session = await World().open()
    turn = await session.prepare("Q", attach=[note(f"{name}.md", TEN) for name in names])
    return sum(item.tokens for item in turn.context.items)


# -- 21: the limit --------------------------------------------------------------------------------


def test_21_attachments_have_no_limit_of_their_own_unless_one_is_set() -> None:
    async def body() -> None:
        assert Settings().attachment_limit is None
        session = await World().open()
        turn = await session.prepare("Q", attach=[note("big.md", words(5_000))])
        assert sent(turn) == ["big.md"]

    run(body())


def test_21_over_the_limit_the_highest_priority_number_goes_first_then_the_earliest_added() -> None:
    async def body() -> None:
        notes = {name: note(f"{name}.md", TEN) for name in "abcd"}
        limit = await size_of("a", "b")
        session = await World().open(attachment_limit=limit)
        given = [
            attach(notes["a"], priority=5),
            attach(notes["b"], priority=10),
            attach(notes["c"], priority=5),
            attach(notes["d"], essential=True),
        ]
        turn = await session.prepare("Q", attach=given)
        assert sorted(sent(turn)) == ["c.md", "d.md"]
        assert sorted(reported(turn)) == [
            ("note:a.md", "attachment_limit"), ("note:b.md", "attachment_limit"),
        ]  # fmt: skip

    run(body())


@pytest.mark.parametrize(("less", "taken"), [(0, ["a.md", "b.md"]), (1, ["b.md"])])
def test_21_exactly_at_the_limit_nothing_goes(less: int, taken: list[str]) -> None:
    async def body() -> None:
        session = await World().open(attachment_limit=await size_of("a", "b") - less)
        turn = await session.prepare("Q", attach=[note("a.md", TEN), note("b.md", TEN)])
        assert sent(turn) == taken

    run(body())


def test_21_adding_a_key_again_replaces_its_value_and_keeps_its_place() -> None:
    async def body() -> None:
        session = await World().open(attachment_limit=await size_of("a", "b"))
        notes = [note("a.md", TEN), note("b.md", TEN), note("a.md", words(10, "new"))]
        turn = await session.prepare("Q", attach=[*notes, note("c.md", TEN)])
        # a.md is still the earliest, though it was added again: it goes first.
        assert sorted(sent(turn)) == ["b.md", "c.md"]

    run(body())


# -- 22: essentials -------------------------------------------------------------------------------


def test_22_essentials_over_the_limit_are_an_error_with_sizes_before_anything_is_sent() -> None:
    async def body() -> None:
        session = await World().open(attachment_limit=12)
        before = session.entries
        with pytest.raises(BudgetError) as raised:
            await session.prepare("Q", attach=[attach(note("a.md", TEN), essential=True)])
        assert str(await size_of("a")) in str(raised.value)
        assert "12" in str(raised.value)
        assert session.entries == before

    run(body())


# -- 23: what is not of this workspace ------------------------------------------------------------


def test_23_files_of_elsewhere_missing_and_unreadable_ones_are_not_attached_and_reported(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        home, other = tmp_path / "home", tmp_path / "other"
        home.mkdir()
        other.mkdir()
        (other / "secret.md").write_text("not yours")
        (home / "binary.md").write_bytes(b"\0\xff\0\xfe")
        (home / "here.md").write_text("HERE")
        os.symlink(other / "secret.md", home / "link.md")
        session = await lamina.open_session(
            store=lamina.MemoryStore(), workspace=home, target="openai:gpt-5"
        )
        names = ["../other/secret.md", str(other / "secret.md"), "link.md", "gone.md", "binary.md"]
        turn = await session.prepare("Q", attach=[*names, "here.md"])
        assert sent(turn) == ["here.md"]
        assert len(turn.context.left_out) == len(names)
        assert "not yours" not in str(turn.request())

    run(body())


# -- 24: the file tools ---------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.md").write_text("one two two")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "b.md").write_text("B")
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [("four", "4", "not there"), ("two", "2", "2 times"), ("", "x", "empty")],
)
def test_24_an_edit_without_one_clear_place_is_an_error(
    folder: Path, old: str, new: str, problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        FileActions(Root(folder)).edit("a.md", old, new)
    assert (folder / "a.md").read_text() == "one two two"


def test_24_an_edit_of_a_file_that_changed_since_it_was_read_is_an_error(folder: Path) -> None:
    actions = FileActions(Root(folder))
    actions.read("a.md")
    (folder / "a.md").write_text("one, by somebody else")
    with pytest.raises(UsageError, match="read it again"):
        actions.edit("a.md", "one", "1")
    assert (folder / "a.md").read_text() == "one, by somebody else"


def test_24_nothing_is_written_over_removed_with_contents_or_moved_onto_or_into_itself(
    folder: Path,
) -> None:
    actions = FileActions(Root(folder))
    with pytest.raises(UsageError):
        actions.write("a.md", "new")
    with pytest.raises(UsageError):
        actions.rm("full")
    with pytest.raises(UsageError):
        actions.mv("full/b.md", "a.md")
    with pytest.raises(UsageError):
        actions.mv("full", "full/inside")
    assert (folder / "a.md").read_text() == "one two two"
    assert (folder / "full" / "b.md").read_text() == "B"


def test_24_grep_ignores_case_and_finding_nothing_is_no_error(folder: Path) -> None:
    actions = FileActions(Root(folder))
    assert "a.md" in actions.grep("TWO")
    assert "a.md" not in actions.grep("seven")
