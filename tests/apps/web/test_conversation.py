"""Rows of a conversation: however its journal was read, they are the same."""

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.fakes.replies import openai_reply

from lamina.adapters.stores.jsonl import JsonlStore
from lamina.apps.web.conversation.entry_sketch import read_sketches
from lamina.apps.web.conversation.message_outline import Outline, kind_of_row
from lamina.apps.web.server_events import EventLog
from lamina.apps.wiring import open_session
from lamina.core.journal import Journal
from lamina.core.values.patch import SystemPartSet
from lamina.core.values.settings import Settings
from lamina.engine.session.session import Session

pytestmark = pytest.mark.anyio


async def talk(session: Session) -> None:
    """A conversation with branches, labels, names, added messages and a compaction."""
    for number in range(6):
        turn = await session.prepare(f"Question {number} " + "word " * 600)
        await turn.commit(openai_reply(f"Answer {number} " + "word " * 600))
    await session.rename("A talk")
    questions = [entry for entry in session.entries if entry.id in _rows(session)]
    await session.label(questions[2].id, "here")
    await session.add_message("By the way.", custom_type="note")
    await session.add_message("Not for people.", shown=False)
    await session.apply("test", SystemPartSet(name="tone", text="Be brief.", reason="test"))
    await session.navigate(questions[4].id)
    await session.update_settings(temperature=0.5)
    turn = await session.prepare("Another question")
    await turn.commit(openai_reply("Another answer"))
    await session.compact()


def _rows(session: Session) -> list[str]:
    outline = Outline()
    outline.follow(Journal(entries={e.id: e for e in session.entries}, leaf=session.state.leaf))
    return outline.rows


def facts(outline: Outline) -> dict[str, Any]:
    return {
        "rows": outline.rows, "kinds": outline.kinds, "labels": outline.labels,
        "name": outline.name, "others": outline.other_rows, "first": outline.first_question,
    }  # fmt: skip


async def test_rows_are_the_same_from_lines_from_entries_and_bit_by_bit(tmp_path: Path) -> None:
    store = JsonlStore(tmp_path)
    opening = partial(open_session, "talk", store=store, workspace=tmp_path, target="openai:gpt-4o")
    async with await opening(settings=Settings(compaction_keep=1)) as session:
        await talk(session)
    # Once more, so that there is an index of its lines.
    await store.list_sessions()
    whole, viewed = await store.read("talk"), await store.view("talk")
    assert dict(whole.entries) == dict(viewed.entries)
    one_way, other_way = (
        [(sketch.id, sketch.parent, sketch.type, kind_of_row(sketch)) for sketch in sketches]
        for sketches in (read_sketches(whole.entries), read_sketches(viewed.entries))
    )
    assert one_way == other_way
    outlines = [Outline(), Outline(), Outline()]
    outlines[0].follow(whole)
    outlines[1].follow(viewed)
    seen: dict[str, Any] = {}
    for name, entry in whole.entries.items():
        seen[name] = entry
        outlines[2].follow(Journal(entries=seen, leaf=name))
    one, two, three = map(facts, outlines)
    assert one == two == three
    assert {"question", "answer", "added", "compaction"} <= set(one["kinds"].values())
    assert one["name"] == "A talk"
    assert one["others"] > 0


async def test_a_view_is_given_while_the_session_is_open_and_written_to(tmp_path: Path) -> None:
    store = JsonlStore(tmp_path)
    async with await open_session(
        "talk", store=store, workspace=tmp_path, target="openai:gpt-4o"
    ) as session:
        assert await store.is_open("talk")
        stamps = [await store.stamp("talk")]
        for number in range(3):
            turn = await session.prepare(f"Question {number}")
            await turn.commit(openai_reply(f"Answer {number}"))
            stamps.append(await store.stamp("talk"))
            assert dict((await store.view("talk")).entries) == {e.id: e for e in session.entries}
        assert len(set(stamps)) == 4
    assert not await store.is_open("talk")


async def test_every_watcher_gets_every_event_once_in_order() -> None:
    log = EventLog()
    seen: list[list[int | None]] = [[], [], []]

    async def watch(place: int, after: int) -> None:
        async for event in log.follow(after):
            seen[place].append(event.number)

    async with anyio.create_task_group() as group:
        group.start_soon(watch, 0, 0)
        for number in range(50):
            log.add("block_delta", {"text": str(number)})
            if number == 25:
                group.start_soon(watch, 1, 0)
                group.start_soon(watch, 2, 20)
            await anyio.lowlevel.checkpoint()
        log.add("end", {})
        log.add("block_delta", {"text": "too late"})
    assert seen == [list(range(1, 52)), list(range(1, 52)), list(range(21, 52))]
    assert [event.number async for event in log.follow(51)] == []
