"""A day with a folder of notes: everything as a person has it, but for the model."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.fakes.clock import FakeClock
from tests.fakes.replies import openai_reply
from tests.rebuild import rebuild_prompt, request_digests

import lamina
from lamina.adapters.providers.model_book import load_book
from lamina.core.journal import path_to
from lamina.core.layers import Assembler, Layout
from lamina.core.values.entry import ItemEntry, RequestEntry
from lamina.core.values.wire import WireRequest

TARGET = "openai:gpt-4o"
SEARCH = lamina.ToolDefinition(
    name="search",
    description="Searches the notes.",
    parameters={"type": "object", "properties": {"query": {"type": "string"}}},
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "spec.md").write_text("# Spec\n\nThe limit is 40 requests a second.\n", "utf-8")
    (notes / "api.md").write_text("# API\n\n`GET /v2/cities` lists cities.\n", "utf-8")
    (notes / "log.txt").write_text("12:01 error 429\n", "utf-8")
    (tmp_path / "secret.md").write_text("not for you\n", "utf-8")
    return notes


class Day:
    """One session over the folder, with all requests that were made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = FakeClock()
        self.store = lamina.MemoryStore()
        self.requests: list[dict[str, Any]] = []
        self.session: lamina.Session

    async def open(self, session: str | None = None) -> "Day":
        self.session = await lamina.open_session(
            session, system="You answer from notes.", tools=[SEARCH], target=TARGET,
            workspace=self.folder, store=self.store, clock=self.clock,
        )  # fmt: skip
        return self

    async def ask(self, text: str, *attach: str, answer: str = "Noted.") -> lamina.Turn:
        turn = await self.session.prepare(text, attach=attach)
        self.requests.append(turn.request())
        return await turn.commit(openai_reply(answer))

    def said(self, index: int = -1) -> list[str]:
        return [str(message["content"]) for message in self.requests[index]["messages"]]


async def spend(folder: Path) -> Day:
    """Questions, an edit, a tool loop, a lunch break, a restart, a deleted note."""
    day = await Day(folder).open()
    await day.ask("What is the limit?", "spec.md", answer="40 a second.")
    await day.ask("And the API?", "spec.md", "api.md")
    (folder / "spec.md").write_text("# Spec\n\nThe limit is 50 requests a second.\n", "utf-8")
    turn = await day.session.prepare("I changed it. What now?", attach=["spec.md", "log.txt"])
    day.requests.append(turn.request())
    answered = await turn.commit(openai_reply(None, calls=[("call-1", "search")]))
    turn = await answered.resume({"call-1": "spec.md: 50 requests"})
    day.requests.append(turn.request())
    await turn.commit(openai_reply("50 a second."))
    day.clock.pass_by(3_600)
    await day.open(day.session.id)
    await day.ask("Back from lunch. Where were we?", "spec.md")
    (folder / "api.md").unlink()
    await day.ask("Is the API still there?", "api.md", "../secret.md")
    return day


def test_a_day_goes_as_a_person_would_expect(folder: Path) -> None:
    async def body() -> None:
        day = await spend(folder)
        # In the morning every request begins with the one before it.
        for earlier, later in zip(day.requests[:3], day.requests[1:4], strict=True):
            assert later["messages"][: len(earlier["messages"])] == earlier["messages"]
        assert day.requests[2]["messages"][-1]["content"].startswith("Changed since it was last")
        # After lunch the library is tidy: the new version only, in order of first appearance.
        library = day.said(4)[0]
        assert "50 requests" in library
        assert "40 requests" not in library
        places = [library.index(name) for name in ("spec.md", "api.md", "log.txt")]
        assert places == sorted(places)
        assert "40 a second." in "\n".join(day.said(4)[1:])
        # What is gone is said, what is outside is not read.
        assert "- api.md (not found)" in day.said()[-1]
        assert "- ../secret.md (not allowed)" in day.said()[-1]
        assert not any("not for you" in text for text in day.said())

    anyio.run(body)


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


def test_every_request_of_the_day_can_be_rebuilt_without_the_folder(folder: Path) -> None:
    async def body() -> None:
        day = await spend(folder)
        empty(folder)
        entries = (await day.store.read(day.session.id)).entries
        requests = {id: entry for id, entry in entries.items() if isinstance(entry, RequestEntry)}
        assert len(requests) == len(day.requests)
        book = load_book()
        target = book.find(TARGET)
        for id, sent in zip(requests, day.requests, strict=True):
            prompt = rebuild_prompt(
                path_to(id, entries),
                Assembler(book.counter(target).count, Layout(wire=target.wire)),
            )
            assert tuple(s.digest for s in prompt) == request_digests(requests[id], requests)
            wire = book.wire(target).encode(
                WireRequest(prompt=prompt, target=target, cache_key=day.session.id)
            )
            assert wire == sent

    anyio.run(body)


def test_each_version_of_a_note_is_kept_once(folder: Path) -> None:
    async def body() -> None:
        day = await spend(folder)
        kept = [
            (entry.item.key, entry.item.version)
            for entry in day.session.entries
            if isinstance(entry, ItemEntry)
        ]
        assert len(set(kept)) == len(kept)
        assert [key for key, _ in kept] == ["spec.md", "api.md", "spec.md", "log.txt"]

    anyio.run(body)


def test_two_sessions_over_one_folder_and_store_do_not_meet(folder: Path) -> None:
    async def body() -> None:
        one, two = await Day(folder).open(), Day(folder)
        two.store = one.store
        await two.open()
        await one.ask("Mine", "spec.md")
        turn = await two.ask("Yours", "api.md")
        assert [item.label for item in turn.context.items] == ["api.md"]
        assert len(one.session.entries) == len(two.session.entries) == 6

    anyio.run(body)


@pytest.mark.parametrize("target", [TARGET, "anthropic:claude-sonnet-4-5", "gemini:gemini-2.5-pro"])
def test_a_conversation_can_begin_with_any_vendor(folder: Path, target: str) -> None:
    async def body() -> None:
        session = await lamina.open_session(system="S", target=target, workspace=folder)
        turn = await session.prepare("What is the limit?", attach=["spec.md"])
        assert "40 requests" in str(turn.request())
        assert turn.context.target == target
        assert turn.context.fit.tokens == turn.prompt.tokens

    anyio.run(body)
