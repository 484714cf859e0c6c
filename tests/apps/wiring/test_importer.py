"""Sessions in and out: what comes of notes that changed meanwhile, and of targets and pictures."""

from pathlib import Path

import anyio
import pytest
from tests.adapters.formats.samples import PNG, SAMPLES
from tests.fakes.replies import openai_reply

import lamina
from lamina.adapters.formats.markdown.chat_exporter import export_chat
from lamina.adapters.providers.model_book import load_book
from lamina.adapters.stores.jsonl import JsonlStore
from lamina.apps.wiring.session_importer import ImportReport, import_data
from lamina.core.audit.verification import verify
from lamina.errors import UsageError

MISSING = "[A picture belongs here, but its file is missing.]"
TARGET = "openai:gpt-4o"
CHAT = b"""\
---
epoch: 1767261600000
modelKey: "claude-opus-5|anthropic"
---

**user**: When does the pier open?
[Context: Notes: plan.md]

**ai**: In May.
"""


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "docs").mkdir(parents=True)
    (folder / "old").mkdir()
    for name in ("plan", "edited", "deleted", "docs/moved", "pinned"):
        (folder / f"{name}.md").write_text(f"The {name} note as it was.\n", "utf-8")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> JsonlStore:
    return JsonlStore(tmp_path / "kept")


async def talk(notes: Path, store: JsonlStore) -> str:
    """A session with notes of every fate, as a Markdown chat."""
    async with await lamina.open_session(
        "before", system="Be brief.", workspace=notes, store=store, target=TARGET
    ) as session:
        await session.pin("pinned.md")
        wanted = [f"{name}.md" for name in ("plan", "edited", "deleted", "docs/moved")]
        turn = await session.prepare("Read these.", attach=wanted)
        await turn.commit(openai_reply("Read."))
        turn = await session.prepare("Again.", attach=["edited.md"])
        await turn.commit(openai_reply("Yes."))
        return export_chat(session.path).text


def change(notes: Path) -> None:
    (notes / "edited.md").write_text("The edited note as it is now.\n", "utf-8")
    (notes / "pinned.md").write_text("The pinned note as it is now.\n", "utf-8")
    (notes / "deleted.md").unlink()
    (notes / "docs" / "moved.md").rename(notes / "old" / "moved.md")


async def bring_back(notes: Path, store: JsonlStore) -> ImportReport:
    text = await talk(notes, store)
    change(notes)
    return await import_data(
        text.encode(), name="chat.md", session="after", workspace=notes, store=store
    )


def test_the_library_of_an_imported_chat_holds_the_notes_as_they_are_now(
    notes: Path, store: JsonlStore
) -> None:
    async def body() -> None:
        ported = await bring_back(notes, store)
        assert ported.laid == (
            "note:plan.md", "note:edited.md", "note:old/moved.md", "note:pinned.md",
        )  # fmt: skip
        async with await lamina.open_session("after", workspace=notes, store=store) as session:
            turn = await session.prepare("Go on.", attach=["edited.md"])
            library, *said = [str(each["content"]) for each in turn.request()["messages"]]
            assert "The edited note as it is now." in library
            assert "The pinned note as it is now." in library
            assert "The docs/moved note as it was." in library
            assert "<path>old/moved.md</path>" in library
            assert "edited note as it was" not in library
            assert "deleted" not in library
            assert said[:-1] == ["Read these.", "Read.", "Again.", "Yes."]
            # Named, and not sent a second time.
            assert "- edited.md" in said[-1]
            assert "as it is now" not in said[-1]
            await turn.commit(openai_reply("Gone on."))
        assert verify(await store.read("after"), load_book()).sound

    anyio.run(body)


def test_the_report_names_what_is_gone_and_what_moved(notes: Path, store: JsonlStore) -> None:
    async def body() -> None:
        ported = await bring_back(notes, store)
        told = {problem.what: problem.detail for problem in ported.problems}
        assert "'deleted.md'" in told["missing"]
        assert "'old/moved.md'" in told["moved"]

    anyio.run(body)


def test_a_note_that_left_the_top_of_the_folder_is_reported_as_moved(
    notes: Path, store: JsonlStore
) -> None:
    async def body() -> None:
        text = await talk(notes, store)
        (notes / "plan.md").rename(notes / "old" / "plan.md")
        ported = await import_data(
            text.encode(), name="chat.md", session="after", workspace=notes, store=store
        )
        assert "note:old/plan.md" in ported.laid
        assert [problem.what for problem in ported.problems] == ["moved"]

    anyio.run(body)


def test_the_report_names_what_was_edited(notes: Path, store: JsonlStore) -> None:
    async def body() -> None:
        ported = await bring_back(notes, store)
        told = " ".join(f"{problem.what} {problem.detail}" for problem in ported.problems)
        assert "edited.md" in told
        assert "plan.md" not in told

    anyio.run(body)


def test_a_pin_is_a_pin_again(notes: Path, store: JsonlStore) -> None:
    async def body() -> None:
        await bring_back(notes, store)
        async with await lamina.open_session("after", workspace=notes, store=store) as session:
            assert session.state.library.pinned.keys() == {"note:pinned.md"}
            turn = await session.prepare("Go on.")
            assert [item.label for item in turn.context.items] == ["pinned.md"]

    anyio.run(body)


def test_an_imported_chat_goes_on_with_the_model_it_was_had_with(
    notes: Path, store: JsonlStore
) -> None:
    async def body() -> None:
        await import_data(CHAT, name="chat.md", session="s", workspace=notes, store=store)
        async with await lamina.open_session("s", workspace=notes, store=store) as session:
            assert session.settings.target == "anthropic:claude-opus-5"

    anyio.run(body)


@pytest.mark.parametrize("name", ["codex", "claude_code", "opencode", "request_log"])
def test_a_target_that_is_given_is_whom_the_session_goes_on_with(
    notes: Path, store: JsonlStore, name: str
) -> None:
    async def body() -> None:
        await import_data(
            SAMPLES[name], name=name, session="s", workspace=notes, store=store, target=TARGET
        )
        async with await lamina.open_session("s", workspace=notes, store=store) as session:
            assert session.settings.target == TARGET

    anyio.run(body)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_session_of_another_system_is_kept_and_goes_on(
    notes: Path, store: JsonlStore, name: str
) -> None:
    async def body() -> None:
        ported = await import_data(
            SAMPLES[name], name=f"{name}.jsonl", workspace=notes, store=store
        )
        assert ported.source == name.removesuffix("_v1")
        assert ported.session.startswith(f"{name}-")
        journal = await store.read(ported.session)
        assert (len(journal.entries), journal.damage) == (ported.entries, ())
        async with await lamina.open_session(
            ported.session, workspace=notes, store=store, target=TARGET
        ) as session:
            turn = await session.prepare("And now?", attach=["plan.md"])
            assert "The plan note as it was." in str(turn.request())
            await turn.commit(openai_reply("Now this."))
        assert verify(await store.read(ported.session), load_book()).sound

    anyio.run(body)


def test_what_is_no_session_leaves_nothing_behind(notes: Path, store: JsonlStore) -> None:
    async def body() -> None:
        for data in (b"", PNG, b'{"a": 1}\n', b"[" * 10_000, b"\xff\xfe" * 100):
            with pytest.raises(UsageError, match="is not a session in a known format"):
                await import_data(data, name="x.bin", workspace=notes, store=store)
        assert await store.sessions() == ()

    anyio.run(body)


def test_an_id_that_is_taken_is_refused_before_anything_is_written(
    notes: Path, store: JsonlStore
) -> None:
    async def body() -> None:
        first = await import_data(CHAT, name="chat.md", workspace=notes, store=store)
        before = store.path_of(first.session).read_bytes()
        with pytest.raises(UsageError, match="session 'chat-"):
            await import_data(CHAT, name="chat.md", workspace=notes, store=store)
        assert store.path_of(first.session).read_bytes() == before
        # Other content under the same name is another session.
        other = await import_data(CHAT + b"\n", name="chat.md", workspace=notes, store=store)
        assert other.session != first.session

    anyio.run(body)


def test_a_question_nobody_answered_is_not_lost_without_a_word(
    notes: Path, store: JsonlStore
) -> None:
    chat = b"**user**: First?\n\n**ai**: Yes.\n\n**user**: Second?\n"

    async def body() -> None:
        ported = await import_data(chat, name="c.md", session="s", workspace=notes, store=store)
        async with await lamina.open_session("s", workspace=notes, store=store) as session:
            turn = await session.prepare("Third?")
            assert "Second?" in str(turn.request()) or ported.problems or turn.context.warnings

    anyio.run(body)


def test_a_journal_with_pictures_goes_on_in_another_store_or_says_what_is_missing(
    notes: Path, store: JsonlStore, tmp_path: Path
) -> None:
    (notes / "pier.png").write_bytes(PNG)
    other = JsonlStore(tmp_path / "other")

    async def body() -> None:
        async with await lamina.open_session(
            "s", workspace=notes, store=store, target=TARGET
        ) as session:
            turn = await session.prepare("What is this?", attach=["pier.png"])
            await turn.commit(openai_reply("A pier."))
        data = store.path_of("s").read_bytes()
        ported = await import_data(data, name="s.jsonl", session="s", workspace=notes, store=other)
        assert [problem.what for problem in ported.problems] == ["picture"]
        async with await lamina.open_session("s", workspace=notes, store=other) as session:
            turn = await session.prepare("And now?")
            # It costs the picture, not the session: the model and the person are told.
            assert MISSING in str(turn.request())
            assert any("is missing: the model is told so" in w for w in turn.warnings)
        # Attached again, it is there again.
        async with await lamina.open_session(
            "s", workspace=notes, store=other, target=TARGET
        ) as session:
            turn = await session.prepare("And now?", attach=["pier.png"])
            assert "data:image/png;base64," in str(turn.request())
            assert not turn.warnings

    anyio.run(body)


@pytest.mark.parametrize("target", [TARGET, "anthropic:claude-opus-4-5", "gemini:gemini-2.5-flash"])
def test_every_wire_says_where_a_picture_is_missing(
    notes: Path, store: JsonlStore, target: str
) -> None:
    (notes / "pier.png").write_bytes(PNG)

    async def body() -> None:
        async with await lamina.open_session(
            "s", workspace=notes, store=store, target=target
        ) as session:
            turn = await session.prepare("What is this?", attach=["pier.png"])
            assert MISSING not in str(turn.request())
            for blob in (store.path_of("s").parent.parent / "blobs").rglob("*"):
                if blob.is_file():
                    blob.unlink()
            again = await session.current_turn()
            assert again is not None
            assert MISSING in str(again.request())

    anyio.run(body)


def test_a_chat_goes_out_and_in_again_without_a_change(notes: Path, store: JsonlStore) -> None:
    async def body() -> None:
        text = await talk(notes, store)
        await import_data(
            text.encode(), name="chat.md", session="s", workspace=notes, store=store, target=TARGET
        )
        async with await lamina.open_session("s", workspace=notes, store=store) as session:
            again = export_chat(session.path).chat
        async with await lamina.open_session("before", workspace=notes, store=store) as session:
            before = export_chat(session.path).chat
        assert [m.text for m in again.messages] == [m.text for m in before.messages]
        assert [m.at for m in again.messages] == [m.at for m in before.messages]
        assert [m.context for m in again.messages] == [m.context for m in before.messages]
        assert again.epoch == before.epoch
        assert again.pinned == before.pinned

    anyio.run(body)
