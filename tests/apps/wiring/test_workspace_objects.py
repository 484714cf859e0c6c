"""Issue 16, A.4: a workspace given as an object is the folder it is of: its persona, its agents and
its sessions are its own, and so are its items."""

from collections.abc import Sequence
from pathlib import Path

import pytest

import lamina
from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.apps.wiring import default_store

pytestmark = pytest.mark.anyio


async def open_(folder: Path) -> lamina.Session:
    return await lamina.open_session(
        workspace=folder, store=lamina.MemoryStore(), target="openai:gpt-4o"
    )


@pytest.fixture
def twins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sequence[Path]:
    """Two folders of one name, each with its persona and its agent, and a third one to stand in."""
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    places = [tmp_path / name / "notes" for name in ("a", "b", "c")]
    for place in places:
        agent = place / ".lamina/agents/own"
        agent.mkdir(parents=True)
        (agent / "agent.yaml").write_text("name: own")
        (agent / "persona.md").write_text(f"Agent of {place.parent.name}.")
        (place / ".lamina/persona.md").write_text(f"Workspace {place.parent.name}.")
        (place / "x.md").write_text(f"Note of {place.parent.name}.")
    monkeypatch.chdir(places[2])
    return places


async def test_who_answers_goes_by_the_workspace_in_use(twins: Sequence[Path]) -> None:
    for place in twins[:2]:
        name = place.parent.name
        async with await lamina.open_session(
            workspace=FolderWorkspace(place), agent="own", target="openai:gpt-4o"
        ) as session:
            system = {part.name: part.text for part in session.envelope.system}
            assert system == {
                "persona": f"Agent of {name}.", "workspace_persona": f"Workspace {name}."
            }  # fmt: skip


async def test_two_folders_of_one_name_share_no_sessions(twins: Sequence[Path]) -> None:
    for place in twins[:2]:
        async with await lamina.open_session(
            "main", workspace=FolderWorkspace(place), target="openai:gpt-4o"
        ) as session:
            assert len(session.entries) == 1
            await session.rename(place.parent.name)
    # The same folder by its path has the same sessions.
    async with await lamina.open_session("main", workspace=twins[0]) as session:
        assert len(session.entries) == 2


async def test_sessions_that_were_kept_by_a_name_alone_are_still_found(
    twins: Sequence[Path], tmp_path: Path
) -> None:
    earlier = lamina.JsonlStore(tmp_path / "data" / "notes")
    async with await lamina.open_session(
        "old", workspace=twins[0], store=earlier, target="openai:gpt-4o"
    ) as session:
        await session.rename("from before")
    workspace = FolderWorkspace(twins[0])
    store = default_store(workspace)
    assert list(await store.sessions()) == ["old"]
    async with await lamina.open_session("old", workspace=workspace) as session:
        assert len(session.entries) == 2
        await session.rename("goes on")
    assert len((await earlier.read("old")).entries) == 3


async def test_what_was_looked_at_still_says_whose_it_is(twins: Sequence[Path]) -> None:
    async with await open_(twins[0]) as here, await open_(twins[1]) as there:
        (attachment,) = (await here.preview_attachment("x.md")).attachments
        assert attachment.item.workspace
        for what in (attachment, attachment.item):
            turn = await there.prepare("What?", attach=[what])
            assert "Note of a." not in str(turn.request())
            assert "of another workspace" in turn.context.left_out[0].detail
        turn = await here.prepare("What?", attach=[attachment])
        assert "Note of a." in str(turn.request())
