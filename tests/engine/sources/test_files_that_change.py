"""What stands in the context and is no longer as the folder has it."""

from pathlib import Path

import pytest
from tests.fakes.replies import openai_reply

import lamina

pytestmark = pytest.mark.anyio
TARGET = "openai:gpt-4o"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    notes = tmp_path / "notes"
    (notes / "old").mkdir(parents=True)
    for name in ("plan", "edited", "deleted", "old/moved", "renamed"):
        (notes / f"{name}.md").write_text(f"# {name}\n\nThis is {name}.\n", "utf-8")
    return notes


async def open_(folder: Path, store: lamina.JsonlStore) -> lamina.Session:
    return await lamina.open_session("s", workspace=folder, store=store, target=TARGET)


async def ask(session: lamina.Session, text: str, *attach: str) -> lamina.Turn:
    turn = await session.prepare(text, attach=attach)
    return await turn.commit(openai_reply("Yes.", input=turn.prompt.tokens, cached=0))


def change(folder: Path) -> None:
    (folder / "edited.md").write_text("# edited\n\nThis is new.\n", "utf-8")
    (folder / "deleted.md").unlink()
    (folder / "new").mkdir()
    (folder / "old" / "moved.md").rename(folder / "new" / "moved.md")
    (folder / "renamed.md").rename(folder / "new" / "other name.md")


async def test_opening_again_says_what_changed_meanwhile(folder: Path, tmp_path: Path) -> None:
    store = lamina.JsonlStore(tmp_path / "kept")
    async with await open_(folder, store) as session:
        await ask(session, "Read.", "plan", "edited", "deleted", "old/moved.md", "renamed")
        assert await session.find_changes() == ()
    change(folder)
    async with await open_(folder, store) as session:
        turn = await ask(session, "And now?")
        told = [warning for warning in turn.context.warnings if "since it was shown" in warning]
        assert [each.split(";")[0] for each in told] == [
            "edited.md was edited since it was shown",
            "deleted.md was deleted since it was shown",
            "old/moved.md was moved to new/moved.md since it was shown",
            "renamed.md was moved to new/other name.md since it was shown",
        ]
        turn = await ask(session, "Once more?")
        assert not [warning for warning in turn.context.warnings if "since it was shown" in warning]


async def test_a_refresh_brings_the_library_up_to_date(folder: Path, tmp_path: Path) -> None:
    store = lamina.JsonlStore(tmp_path / "kept")
    async with await open_(folder, store) as session:
        await ask(session, "Read.", "plan", "edited", "deleted", "old/moved.md", "renamed")
        change(folder)
        changes = {each.item: each.change for each in await session.refresh()}
        assert changes == {
            "note:deleted.md": "deleted",
            "note:edited.md": "edited",
            "note:old/moved.md": "moved",
            "note:renamed.md": "moved",
        }
        await session.rebuild_library("the files changed")
        assert [laid.item for laid in session.envelope.library] == [
            "note:plan.md", "note:edited.md", "note:new/moved.md", "note:new/other name.md",
        ]  # fmt: skip
        assert await session.find_changes() == ()
        turn = await session.prepare("What is new?")
        sent = str(turn.request())
        assert "This is new." in sent
        assert "This is edited." not in sent
        assert "This is deleted." not in sent


async def test_another_note_of_the_same_name_is_not_where_it_was_moved_to(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "plan.md").rename(folder / "old" / "README.md")
    (folder / "edited.md").rename(folder / "README.md")
    async with await open_(folder, lamina.JsonlStore(tmp_path / "kept")) as session:
        await ask(session, "Read.", "README.md", "old/README.md")
        (folder / "README.md").unlink()
        (change,) = await session.find_changes()
        assert (change.item, change.change) == ("note:README.md", "deleted")


async def test_an_attachment_that_was_moved_is_found(folder: Path, tmp_path: Path) -> None:
    store = lamina.JsonlStore(tmp_path / "kept")
    async with await open_(folder, store) as session:
        await ask(session, "Read.", "renamed.md")
        change(folder)
        turn = await ask(session, "Again.", "renamed.md", "deleted.md")
        assert [item.item for item in turn.context.items] == ["note:new/other name.md"]
        assert "renamed.md is not there any more; new/other name.md is taken for it" in (
            turn.context.warnings
        )
        assert [omission.what for omission in turn.context.left_out] == ["note:deleted.md"]


async def test_items_of_another_workspace_are_refused(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "secret.md").write_text("The code is 1234.", "utf-8")
    stranger = await lamina.open_session(workspace=other, store=lamina.MemoryStore(), target=TARGET)
    found = await stranger.workspace.read("secret.md", "attached")
    assert not isinstance(found, lamina.types.LeftOut)
    session = await lamina.open_session(workspace=folder, store=lamina.MemoryStore(), target=TARGET)
    turn = await session.prepare("What is the code?", attach=[found.item, "plan"])
    assert "1234" not in str(turn.request())
    (left,) = turn.context.left_out
    assert (left.what, left.reason) == ("note:secret.md", "refused")
    assert "another workspace" in left.detail
    for each in (stranger, session):
        await each.close()


async def test_a_pin_is_taken_away_by_the_name_it_was_given_by(
    folder: Path, tmp_path: Path
) -> None:
    async with await open_(folder, lamina.JsonlStore(tmp_path / "kept")) as session:
        assert await session.pin("plan")
        assert not await session.pin("plan.md")
        assert await session.unpin("[[plan]]")
        assert not session.state.library.pinned


async def test_a_folder_is_not_pinned(folder: Path, tmp_path: Path) -> None:
    async with await open_(folder, lamina.JsonlStore(tmp_path / "kept")) as session:
        with pytest.raises(lamina.LaminaError, match="cannot pin the folder old"):
            await session.pin("old/")


async def test_a_table_that_is_none_any_more_was_edited_and_stands_as_a_text(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "sales.csv").write_text("month,units\n1,20\n", "utf-8")
    async with await open_(folder, lamina.JsonlStore(tmp_path / "kept")) as session:
        await ask(session, "Read.", "sales.csv")
        (folder / "sales.csv").write_text("No table,\n\nbut, as you see, a letter.\n", "utf-8")
        (found,) = await session.refresh()
        assert (found.item, found.change) == ("table:sales.csv", "edited")
        assert found.detail == "sales.csv was edited since it was shown"
        assert await session.find_changes() == ()
        await session.rebuild_library("to see what stands")
        assert list(session.state.library.standing) == ["file:sales.csv"]


async def test_what_was_attached_as_a_plain_file_stays_one(folder: Path, tmp_path: Path) -> None:
    (folder / "sales.csv").write_text("month,units\n1,20\n", "utf-8")
    async with await open_(folder, lamina.JsonlStore(tmp_path / "kept")) as session:
        await ask(session, "Read.", "file:sales.csv")
        assert list(session.state.library.standing) == ["file:sales.csv"]
        assert await session.find_changes() == ()
        (folder / "sales.csv").write_text("month,units\n1,20\n2,30\n", "utf-8")
        (found,) = await session.refresh()
        assert (found.item, found.change) == ("file:sales.csv", "edited")
