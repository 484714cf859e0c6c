"""A journal as a working session leaves it: every kind of entry, tool loops and branches."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from tests.fakes.book import SMALL, FakeBook
from tests.fakes.clock import FakeClock
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import rule
from tests.fakes.workspace import FakeWorkspace

import lamina
from lamina.adapters.stores.jsonl import JsonlStore
from lamina.adapters.stores.sqlite import SqliteStore
from lamina.core.ports import JournalStore
from lamina.core.values.entry import (
    BranchSummaryEntry,
    CustomEntry,
    Entry,
    InfoEntry,
    LabelEntry,
    LeafEntry,
    ModelEntry,
    SessionEntry,
)
from lamina.core.values.item import Item
from lamina.core.values.message import ToolDefinition, ToolText
from lamina.core.values.settings import Settings
from lamina.engine.session.session import Session

SESSION = "sample"
NOTES = {f"{name}.md": f"{name} is “noted”.\nTwo lines\u2028é {name}" for name in "abcdef"}
TOOLS = (
    ToolDefinition(name="find", description="Finds.", parameters={"type": "object",
                                                                  "properties": {}}),
)  # fmt: skip


def header_of(session: str = SESSION) -> SessionEntry:
    settings = Settings(target=SMALL.name)
    return SessionEntry(id="000000", parent=None, at=1.5, session=session, settings=settings)


def entry_of(entry: str, parent: str, text: str) -> Entry:
    return CustomEntry(id=entry, parent=parent, at=1.5, kind="test", data={"text": text})


KINDS = ("jsonl", "sqlite")


def store_in(folder: str | Path, kind: str = "jsonl", *, wait: float = 5.0) -> JournalStore:
    """The store of that kind in a folder."""
    if kind == "sqlite":
        return SqliteStore(Path(folder) / "sessions.sqlite", wait=wait)
    return JsonlStore(folder, wait=wait)


async def open_sample(
    folder: Path,
    session: str = SESSION,
    *,
    given_anew: bool = False,
    always: Sequence[Item] = (),
    kind: str = "jsonl",
) -> Session:
    """The sample session; what it was created with is given again only if `given_anew`."""
    store = store_in(folder, kind)
    given: dict[str, Any] = {}
    if given_anew or not await store.has(session):
        settings = Settings(target=SMALL.name, window=1_200, output_reserve=100)
        given = {"system": "You are terse.", "tools": TOOLS, "settings": settings}
        given |= {"always": always} if always else {}
    return await lamina.open_session(
        session,
        workspace=FakeWorkspace(NOTES),
        store=store,
        book=FakeBook(),
        clock=FakeClock(),
        **given,
    )


@cache
def sample_journal() -> bytes:
    """The bytes of a session of some 200 entries."""

    async def body() -> bytes:
        with TemporaryDirectory() as folder:
            async with await open_sample(Path(folder), always=[rule("tone", "Be brief.")]) as made:
                await _talk(made)
            return JsonlStore(folder).path_of(SESSION).read_bytes()

    return anyio.run(body)


async def _talk(session: Session) -> None:
    number = 0
    while len(session.entries) < 200:
        number += 1
        names = list(NOTES)[number % 5 : number % 5 + 2]
        texts = [ToolText(name="search", text=f"found {number}")] if number % 7 == 0 else []
        turn = await session.prepare(f"Question {number}?", attach=names, tool_texts=texts)
        if number % 6 == 5:
            # It is never answered; the next one becomes its sibling.
            turn = await session.prepare(f"Question {number}, in other words?", attach=names)
        for step in range(number % 3):
            calls = [(f"call{number}.{step}.{each}", "find") for each in range(1 + number % 2)]
            turn = await turn.commit(openai_reply(None, input=40, cached=20, calls=calls))
            turn = await turn.resume({call: f"result of {call}" for call, _ in calls})
        await turn.commit(openai_reply(f"Answer {number}.", input=40, cached=20))
        await _do_other_things(session, number)


async def _do_other_things(session: Session, number: int) -> None:
    match number % 10:
        case 1:
            await session.pin("a.md")
            await _write(session, InfoEntry, name="A talk about notes")
        case 2:
            await session.update_settings(strip_turns=3)
            await _write(session, CustomEntry, kind="app.score", data={"n": [1, 2.5, None, "{"]})
        case 3:
            await session.set_system("mood", f"Be kind, {number}.", reason="a change of mood")
        case 4:
            await _write(session, LabelEntry, target=session.path[-1].id, label="here")
            await session.unpin("a.md")
        case 5:
            await session.forget("b.md")
            await _write(session, LeafEntry)
        case 6:
            await session.rebuild_library("tidy up")
        case 7:
            branch = session.path[3].id
            await _write(session, BranchSummaryEntry, branch=branch, summary="It led nowhere.")
        case 8:
            await _write(session, ModelEntry, target=SMALL.name)
        case _:
            pass


async def _write(session: Session, kind: type[Entry], /, **fields: object) -> None:
    """An entry that no method of a session writes by itself."""
    await session._record.write(kind, **fields)
