"""Sessions that are begun under a name of one's own, and what there is not in them."""

import json
from pathlib import Path

import anyio
import pytest
from tests.apps.cli.inside import lamina as command
from tests.fakes.sessions import World, run, talk

import lamina
from lamina.errors import NoSuchEntry, UnknownSession

TARGET = "openai:gpt-4o"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    notes = tmp_path / "notes"
    notes.mkdir()
    return notes


def begin(folder: Path, name: str) -> None:
    async def body() -> None:
        async with await lamina.open_session(name, workspace=folder, target=TARGET) as session:
            assert session.id == name

    anyio.run(body)


def test_a_name_with_new_begins_a_session_and_without_it_continues_one(folder: Path) -> None:
    asked = ("context", "Hello", "-s", "my-chat", "-t", TARGET, "--json")
    code, _, err = command(*asked, cwd=folder)
    assert code == 1
    assert "--new starts a session with this name" in err
    code, out, _ = command(*asked, "--new", cwd=folder)
    assert code == 0
    assert json.loads(out)["target"] == TARGET
    begin(folder, "my-chat")
    code, _, err = command(*asked, "--new", cwd=folder)
    assert code == 1
    assert "session 'my-chat' already exists: leave out --new" in err
    assert command(*asked, cwd=folder)[0] == 0


@pytest.mark.parametrize("how", ["--resume", "--edit=last", "--regenerate=last"])
def test_there_is_nothing_to_go_on_with_in_a_session_that_is_begun(folder: Path, how: str) -> None:
    words = ("ask", "-s", "my-chat", "--new", how, *(("Hi",) if "edit" in how else ()))
    code, _, err = command(*words, cwd=folder)
    assert code == 2
    assert "--new starts a session" in " ".join(err.replace("│", " ").split())


def test_new_needs_a_name(folder: Path) -> None:
    code, _, err = command("ask", "Hello", "--new", "-t", TARGET, cwd=folder)
    assert code == 1
    assert "--new needs --session NAME" in err


def test_an_entry_that_is_not_there_has_an_error_of_its_own() -> None:
    async def body() -> None:
        session = await World().open("talk")
        await talk(session)
        for call in (session.navigate("nope"), session.label("nope", "x"), session.fork(at="nope")):
            with pytest.raises(NoSuchEntry, match="no entry 'nope' in session 'talk'") as caught:
                await call
            assert caught.value.code == "unknown_entry"
            # Programs that looked for the error of before still find it.
            assert isinstance(caught.value, UnknownSession)

    run(body())
