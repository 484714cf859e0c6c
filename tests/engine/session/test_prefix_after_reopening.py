"""After reopening, a request is compared with what was recorded, and breaks have their causes.

Issue 16, B.7: a changed wire, another renderer, a lost line, a changed entry are told apart; what
the engine knows to be the cause is a recorded reason, and a reason covers what it was given for.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import cast
from zlib import crc32

import pytest
from msgspec.structs import replace
from tests.fakes.book import SMALL, THINKER, FakeBook
from tests.fakes.replies import anthropic_reply, openai_reply
from tests.fakes.sessions import (
    World,
    all_text,
    boundaries,
    messages_of,
    run,
    talk,
    user_of,
    words,
)
from tests.fakes.store import FakeStore

from lamina import JsonlStore
from lamina.apps.views.session_check import write_repaired_copy
from lamina.apps.views.stored_sessions import StoredSession
from lamina.core.audit.verification import verify
from lamina.core.values.entry import RENDERER, Entry, MessageEntry, RequestEntry, SessionEntry
from lamina.core.values.envelope import Options
from lamina.core.values.message import Message, Text
from lamina.core.values.patch import OptionsSet
from lamina.core.values.settings import CacheRules
from lamina.engine.session.session import Session
from lamina.errors import PrefixMoved

RULES = CacheRules(minimum=100, step=10, lifetime_s=300.0)


# -- a journal that was changed behind its session's back ---------------------------------------


async def moved(check: str) -> tuple[World, Session]:
    """A session that is opened again after somebody changed an earlier question in its journal,
    with a right checksum."""
    world = World()
    session = await world.open(prefix_check=check)
    for text in ("Q1", "Q2"):
        await talk(session, text)
    entries = [
        replace(entry, message=question("Q1, changed", entry.message.id))
        if isinstance(entry, MessageEntry) and entry.message.text == "Q1"
        else entry
        for entry in session.entries
    ]
    return world, await opened_with(world, entries)


def question(text: str, name: str) -> Message:
    return Message(role="user", blocks=(Text(text),), id=name)


async def opened_with(world: World, entries: Sequence[Entry]) -> Session:
    """The session that these entries are, in a store of its own."""
    header = entries[0]
    assert isinstance(header, SessionEntry)
    world.store = FakeStore()
    journal = await world.store.create(header)
    await journal.append(entries[1:])
    await journal.close()
    return await world.open(header.session)


def test_bytes_that_move_without_a_reason_are_refused_by_name() -> None:
    """Issue 16, B.7: also after reopening."""

    async def body() -> None:
        world, session = await moved("raise")
        writes, state = world.store.writes, session.state
        with pytest.raises(PrefixMoved, match="invalidate_cache_reason") as caught:
            await session.prepare("Q3")
        assert caught.value.layer == "L4"
        assert caught.value.segment == 0
        assert caught.value.source.startswith("message:")
        assert world.store.writes == writes
        assert session.state is state

    run(body())


def test_with_the_check_set_to_warn_they_are_sent_and_told() -> None:
    async def body() -> None:
        _, session = await moved("warn")
        turn = await session.prepare("Q3")
        assert "Q1, changed" in all_text(turn)
        assert turn.context.agreement.broke is not None
        [warning] = turn.context.warnings
        assert "without a reason" in warning
        assert "L4" in warning
        assert f"{turn.context.agreement.reprocessed:,} tokens" in warning
        await turn.commit(openai_reply("A"))
        assert (await session.prepare("Q4")).context.warnings == ()

    run(body())


# -- causes that the engine knows (issue 16, B.7) -------------------------------------------------


async def thinking_talk(world: World) -> Session:
    """Two turns with thinking in their answers, which only one wire carries."""
    session = await world.open(target=THINKER.name)
    for text in ("Q1", "Q2"):
        turn = await session.prepare(text)
        await turn.commit(anthropic_reply("A", thinking="hm"))
    return session


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("old", [False, True])
def test_a_changed_wire_is_a_break_with_its_cause_also_after_reopening(
    reopened: bool, old: bool
) -> None:
    async def body() -> None:
        world = World()
        session = await thinking_talk(world)
        if old:
            session = await opened_with(world, [before_wires(entry) for entry in session.entries])
        world.book.put(replace(THINKER, wire="openai"))
        if reopened:
            await session.close()
            session = await world.open(session.id)
        turn = await session.prepare("Q3")
        assert boundaries(turn) == ["wire_change"]
        broke = turn.context.agreement.broke
        assert broke is not None
        assert broke.segment == 0
        assert (
            broke.reason == "fake:thinker is sent over the wire of openai, and was over anthropic"
        )
        answered = await turn.commit(openai_reply("A", input=90, cached=0))
        assert answered.verdict is not None
        assert answered.verdict.meaning != "routed_elsewhere"
        assert (await session.prepare("Q4")).context.agreement.broke is None

    run(body())


def before_wires(entry: Entry) -> Entry:
    """An entry as it was written before requests said what they were encoded with."""
    if not isinstance(entry, RequestEntry):
        return entry
    return replace(
        entry, wire="", cache_key="", prompt_digest="", parameters_digest="", target_digest=""
    )


def rendered_otherwise(entry: Entry) -> Entry:
    """An entry of a session whose texts an earlier renderer made."""
    match entry:
        case SessionEntry():
            return replace(entry, renderer=0)
        case RequestEntry():
            digests = tuple(f"{digest[::-1]}" for digest in entry.digests)
            return replace(entry, digests=digests, prompt_digest="0" * 64)
        case _:
            return entry


def test_after_an_upgrade_of_the_renderer_a_session_goes_on_and_says_why_its_prefix_moved() -> None:
    async def body() -> None:
        world = World()
        world.book = FakeBook(replace(SMALL, cache=RULES))
        session = await world.open(system="S")
        await talk(session, words(500))
        session = await opened_with(world, [rendered_otherwise(entry) for entry in session.entries])
        turn = await session.prepare("Q")
        assert boundaries(turn) == ["renderer_change"]
        broke = turn.context.agreement.broke
        assert broke is not None
        assert broke.reason == "texts are rendered otherwise since an upgrade (0, now 3)"
        assert turn.entry.renderer == RENDERER
        answered = await turn.commit(openai_reply("A", input=turn.prompt.tokens, cached=0))
        assert answered.verdict is not None
        assert answered.verdict.meaning == "prefix_moved"
        session = await world.open(session.id)
        assert (await session.prepare("Q")).context.agreement.broke is None

    run(body())


def test_a_repaired_copy_that_lost_nothing_is_opened_from_its_index(tmp_path: Path) -> None:
    async def body() -> None:
        store = JsonlStore(tmp_path)
        world = World()
        world.store = cast(FakeStore, store)
        session = await world.open("s", system="S")
        await talk(session, "Q1")
        await session.close()
        path = store.path_of("s")
        first, *rest = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join((first, b"rubbish\n", *rest)))
        copy = await write_repaired_copy(StoredSession("s", store))
        opened = await store.open(copy.session)
        assert opened.journal.snapshot is not None
        await opened.close()

    run(body())


@pytest.mark.parametrize("how", ["reopened", "forked", "repaired"])
def test_a_lost_line_is_a_break_with_its_cause(how: str, tmp_path: Path) -> None:
    async def body() -> None:
        store = JsonlStore(tmp_path)
        world = World()
        world.store = cast(FakeStore, store)
        session = await world.open("s", system="S")
        for text in ("Q1", "Q2", "Q3"):
            await talk(session, text)
        await session.close()
        path = store.path_of("s")
        lines = path.read_bytes().splitlines(keepends=True)
        [lost] = [line for line in lines if b'"Q2"' in line]
        path.write_bytes(b"".join(line for line in lines if line is not lost))
        name = "s"
        if how == "repaired":
            name = (await write_repaired_copy(StoredSession("s", store))).session
        session = await world.open(name)
        if how == "forked":
            session = await session.fork()
        turn = await session.prepare("Q4")
        assert boundaries(turn) == ["damage"]
        broke = turn.context.agreement.broke
        assert broke is not None
        assert (broke.layer, broke.reason) == (
            "L4", "the journal is damaged: some of what was sent is lost"
        )  # fmt: skip
        await turn.commit(openai_reply("A"))
        await session.close()
        session = await world.open(session.id)
        again = await session.prepare("Q5")
        assert again.context.agreement.broke is None
        await session.close()

    run(body())


def test_an_interrupted_question_whose_request_cannot_be_made_again_is_asked_anew() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(system="S")
        await talk(session, "Q1")
        await session.prepare("Q2")
        session = await opened_with(world, [rendered_otherwise(entry) for entry in session.entries])
        requests = [entry for entry in session.entries if isinstance(entry, RequestEntry)]
        turn = await session.current_turn()
        assert turn is not None
        assert turn.id not in {request.id for request in requests}
        assert boundaries(turn) == ["renderer_change"]
        assert user_of(turn) == "Q2"
        assert len(messages_of(turn)) == 4
        await turn.commit(openai_reply("A2"))
        journal = await world.store.read(session.id)
        assert verify(journal, world.book).state == "not_covered"

    run(body())


def test_an_interrupted_question_is_sent_with_the_options_that_were_recorded_with_it() -> None:
    """Issue 16, B.8: what was set meanwhile is for the next request."""

    async def body() -> None:
        world = World()
        session = await world.open(system="S", options=Options(temperature=0.5))
        before = (await session.prepare("Q1")).request()
        await session.apply("test", OptionsSet(temperature=0.25))
        session = await world.open(session.id)
        turn = await session.current_turn()
        assert turn is not None
        assert turn.request() == before
        await turn.commit(openai_reply("A1"))
        assert (await session.prepare("Q2")).request()["temperature"] == 0.25
        assert verify(await world.store.read(session.id), world.book).sound

    run(body())


def test_a_snapshot_keeps_what_was_recorded_and_a_changed_line_behind_it_is_found(
    tmp_path: Path,
) -> None:
    """Opened again from its index, a session is compared with the digest of the last request; an
    index is no longer believed once a line was changed."""

    async def body() -> None:
        store = JsonlStore(tmp_path)
        world = World()
        world.store = cast(FakeStore, store)
        session = await world.open("s", system="S")
        for number in range(30):
            await talk(session, f"Q{number} {words(400)}")
        await session.close()
        path = store.path_of("s")
        assert path.with_suffix(".index").exists()
        session = await world.open("s")
        assert (await session.prepare("Q")).context.agreement.broke is None
        await session.close()
        lines = path.read_bytes().splitlines(keepends=True)
        place = next(at for at, line in enumerate(lines) if b'"Q3 word' in line)
        lines[place] = proven(lines[place].replace(b'"Q3 word', b'"Q9 word'))
        path.write_bytes(b"".join(lines))
        session = await world.open("s")
        assert not session.damage
        with pytest.raises(PrefixMoved) as caught:
            await session.prepare("Q")
        assert caught.value.layer == "L4"
        await session.close()

    run(body())


def proven(line: bytes) -> bytes:
    """A line with the checksum that fits it."""
    body, mark, _ = line.rpartition(b',"sum":"')
    return b'%b%b%08x"}\n' % (body, mark, crc32(body))


# -- a reason covers what it was given for (issue 16, B.7) ----------------------------------------


def test_a_reason_for_one_part_does_not_cover_another_place() -> None:
    async def body() -> None:
        _, session = await moved("raise")
        await session.set_system("mood", "Be kind.", reason="kindness")
        with pytest.raises(PrefixMoved) as caught:
            await session.prepare("Q3")
        assert caught.value.layer == "L4"

    run(body())
