"""Every request of a session can be rebuilt byte for byte, and what was tampered with is named."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import force_setattr, replace
from tests.engine.session.conversations import Conversation, Player, conversations, modest
from tests.fakes.book import SMALL, THINKER, FakeBook
from tests.fakes.replies import anthropic_reply, openai_reply
from tests.fakes.sessions import World, note, rule, run, talk, words

from lamina.core.audit.verification import Verification, verify
from lamina.core.journal import journal_of
from lamina.core.journal.journal import read_journal
from lamina.core.journal.lines import write_lines
from lamina.core.values.entry import (
    Entry,
    EphemeralEntry,
    ItemEntry,
    MessageEntry,
    ReplyEntry,
    RequestEntry,
    SessionEntry,
    TransformEntry,
)
from lamina.core.values.envelope import SystemPart
from lamina.core.values.item import Item
from lamina.core.values.message import Message, Text, ToolText
from lamina.core.values.patch import MessagesUncachedAppend, SystemPartSet
from lamina.core.values.settings import Promotion
from lamina.engine.session.session import Session
from lamina.engine.sources.hooks import ContextEvent, Hooks

A, B = note("a.md", "AAA"), note("b.md", words(30))
both = pytest.mark.parametrize("promotion", ["lazy", "eager"])


async def verdict_of(world: World, session: Session) -> Verification:
    return verify(await world.store.read(session.id), world.book)


# -- sound sessions ------------------------------------------------------------------------------


@settings(modest, max_examples=25)
@given(conversations)
def test_whatever_is_said_and_done_every_request_can_be_rebuilt(conversation: Conversation) -> None:
    async def body() -> None:
        player = Player(conversation)
        moments = await player.play()
        verdict = await verdict_of(player.world, player.session)
        assert verdict.sound, verdict
        checked = {each.request: each for each in verdict.checked}
        for moment in moments:
            assert checked[moment.turn.id].segments == len(moment.turn.prompt)
            assert checked[moment.turn.id].tokens == moment.turn.prompt.tokens

    run(body())


@both
def test_a_session_with_everything_in_it_is_sound(promotion: Promotion) -> None:
    async def body() -> None:
        hooks = Hooks()

        @hooks.context(reason="ephemeral")
        def tell_time(event: ContextEvent) -> MessagesUncachedAppend:
            return MessagesUncachedAppend(messages=(Message(role="user", blocks=(Text("12:00"),)),))

        @hooks.context(reason="turn_end")
        def remember(event: ContextEvent) -> SystemPartSet | None:
            if len(event.envelope.cached) != 4:
                return None
            return SystemPartSet(name="memory", text="learnt", reason="a lesson")

        world = World()
        session = await world.open(
            system="S", promotion=promotion, always=[rule("tone", "Be brief.")], hooks=hooks,
            window=600, output_reserve=100,
        )  # fmt: skip
        await talk(session, "Q1", A, tool_texts=[ToolText(name="search", text="found")])
        turn = await session.prepare("Q2", attach=[A, B])
        turn = await turn.commit(openai_reply(None, calls=[("c1", "find"), ("c2", "find")]))
        turn = await turn.resume({"c1": words(20), "c2": words(20)})
        await turn.commit(openai_reply("A2", input=90))
        start = session.state.leaf
        thinking = await session.prepare("Q3", target=THINKER.name)
        await thinking.commit(anthropic_reply("A3", thinking="hm"))
        await session.update_settings(promotion="eager" if promotion == "lazy" else "lazy")
        await talk(session, "Q4", note("a.md", "AAA anew"))
        await session.prepare("never answered", attach=[B])
        await session.navigate(start, summary="It led nowhere.")
        for number in range(8):
            await talk(session, f"{number} {words(40)}", B, answer=words(60))
        assert (await session.compact()).changed
        await session.pin(A)
        await talk(session, "Q5", tool_texts=[ToolText(name="search", text="found")])
        verdict = await verdict_of(world, session)
        assert verdict.sound, verdict
        assert len(verdict.checked) == len(
            [entry for entry in session.entries if isinstance(entry, RequestEntry)]
        )
        assert {each.target for each in verdict.checked} == {SMALL.name, THINKER.name}

    run(body())


def test_a_session_without_requests_is_sound() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(system="S")
        assert (await verdict_of(world, session)) == Verification(checked=())
        await session.rename("A name")
        assert (await verdict_of(world, session)).sound

    run(body())


def test_verifying_asks_nobody_and_changes_nothing() -> None:
    async def body() -> None:
        world = World({"a.md": "AAA"})
        session = await world.open(system="S")
        await talk(session, "Q", "a.md")
        world.workspace.notes.clear()
        world.store.failing = True
        writes = world.store.writes
        assert (await verdict_of(world, session)).sound
        assert (await verdict_of(world, session)) == (await verdict_of(world, session))
        assert world.store.writes == writes

    run(body())


# -- what was tampered with ----------------------------------------------------------------------


async def _sample() -> list[Entry]:
    """Three turns with a note each, a change of system and a tool's text."""
    world = World()
    session = await world.open(system="You are terse.")
    await talk(session, "Q1", A, answer="A1")
    await session.set_system("mood", "Be kind.", reason="kindness")
    await talk(session, "Q2", B, tool_texts=[ToolText(name="search", text="found")], answer="A2")
    await talk(session, "Q3", A, answer="A3")
    return list(session.entries)


Tamper = Callable[[Any], Any]


def change_first(kind: type[Entry], tamper: Tamper) -> Callable[[Sequence[Entry]], list[Entry]]:
    def change(entries: Sequence[Entry]) -> list[Entry]:
        at = next(i for i, entry in enumerate(entries) if isinstance(entry, kind))
        return [*entries[:at], tamper(entries[at]), *entries[at + 1 :]]

    return change


def drop_first(kind: type[Entry]) -> Callable[[Sequence[Entry]], list[Entry]]:
    def change(entries: Sequence[Entry]) -> list[Entry]:
        gone = next(entry for entry in entries if isinstance(entry, kind))
        return [
            replace(entry, parent=gone.parent) if entry.parent == gone.id else entry
            for entry in entries
            if entry is not gone
        ]

    return change


def _content(entry: ItemEntry) -> ItemEntry:
    item = Item(id=entry.item.id, content=entry.item.content.replace("A", "B", 1))
    force_setattr(item, "version", entry.item.version)
    return replace(entry, item=item)


def _whole_item(entry: ItemEntry) -> ItemEntry:
    """Content and version both changed: the item fits itself, and nothing else."""
    return replace(entry, item=Item(id=entry.item.id, content="other"))


def _title(entry: ItemEntry) -> ItemEntry:
    return replace(entry, item=replace(entry.item, title="Another title"))


def _message(entry: MessageEntry) -> MessageEntry:
    blocks = tuple(
        Text(f"{block.text}!") if isinstance(block, Text) else block
        for block in entry.message.blocks
    )
    return replace(entry, message=replace(entry.message, blocks=blocks))


def _digest(entry: RequestEntry) -> RequestEntry:
    return replace(entry, digests=("0" * 64, *entry.digests[1:]))


def _fewer(entry: RequestEntry) -> RequestEntry:
    return replace(entry, digests=entry.digests[:-1])


def _more(entry: RequestEntry) -> RequestEntry:
    return replace(entry, digests=(*entry.digests, "0" * 64))


def _system(entry: SessionEntry) -> SessionEntry:
    return replace(entry, system=(SystemPart(name="system", text="You are terse!"),))


def _patch(entry: TransformEntry) -> TransformEntry:
    op = SystemPartSet(name="mood", text="Be unkind.", reason="kindness")
    return replace(entry, patch=replace(entry.patch, ops=(op,)))


def _ephemeral(entry: EphemeralEntry) -> EphemeralEntry:
    return replace(entry, tool_texts=(ToolText(name="search", text="forged"),))


class Case(Struct, frozen=True):
    change: Callable[[Sequence[Entry]], list[Entry]]
    says: str


CASES = {
    "a byte of an item's content": Case(change_first(ItemEntry, _content), "is not the version"),
    "an item that fits itself": Case(change_first(ItemEntry, _whole_item), "a.md"),
    "an item's title": Case(change_first(ItemEntry, _title), "segment"),
    "the system prompt": Case(change_first(SessionEntry, _system), "system:system, L1"),
    "a question": Case(change_first(MessageEntry, _message), "segment"),
    "a digest": Case(change_first(RequestEntry, _digest), "segment 0"),
    "a digest that is missing": Case(change_first(RequestEntry, _fewer), "segment"),
    "a digest too many": Case(change_first(RequestEntry, _more), "segment"),
    "a transform": Case(change_first(TransformEntry, _patch), "system:mood, L1"),
    "a transform that is gone": Case(drop_first(TransformEntry), "segment"),
    "an item that is gone": Case(drop_first(ItemEntry), "a.md"),
    "a message that is gone": Case(drop_first(MessageEntry), "segment"),
    "a tool's text": Case(change_first(EphemeralEntry, _ephemeral), "tool_texts"),
    "a tool's text that is gone": Case(drop_first(EphemeralEntry), "segment"),
}


@pytest.mark.parametrize("what", CASES)
def test_what_was_tampered_with_is_found(what: str) -> None:
    """With right checksums: whoever did it knew the format."""

    async def body() -> None:
        entries = await _sample()
        assert verify(journal_of(entries), FakeBook()).sound
        changed = CASES[what].change(entries)
        assert changed != entries
        verdict = verify(journal_of(changed), FakeBook())
        assert not verdict.sound
        said = [*verdict.problems, *(each.problem for each in verdict.checked)]
        said += [each.detail for each in verdict.damage]
        assert CASES[what].says in "\n".join(said)

    run(body())


def test_an_answer_that_was_tampered_with_is_found_by_the_requests_behind_it() -> None:
    async def body() -> None:
        entries = await _sample()
        at = [i for i, e in enumerate(entries) if isinstance(e, MessageEntry)][1]
        changed = entries[at]
        assert isinstance(changed, MessageEntry)
        assert changed.message.role == "assistant"
        tampered = [*entries[:at], _message(changed), *entries[at + 1 :]]
        verdict = verify(journal_of(tampered), FakeBook())
        assert [bool(each.problem) for each in verdict.checked] == [False, True, True]

    run(body())


def test_only_the_branch_that_was_tampered_with_is_wrong() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(system="S")
        await talk(session, "Q1", answer="A1")
        start = session.state.leaf
        await talk(session, "left 1")
        await talk(session, "left 2")
        await session.navigate(start)
        await talk(session, "right 1")
        entries = [
            _message(entry)
            if isinstance(entry, MessageEntry) and entry.message.text == "left 1"
            else entry
            for entry in session.entries
        ]
        verdict = verify(journal_of(entries), FakeBook())
        assert [bool(each.problem) for each in verdict.checked] == [False, True, True, False]

    run(body())


def test_a_session_of_a_target_that_is_not_known_here_says_so_for_each_request() -> None:
    async def body() -> None:
        entries = await _sample()
        verdict = verify(journal_of(entries), FakeBook(THINKER))
        assert not verdict.sound
        assert len(verdict.checked) == 3
        for each in verdict.checked:
            assert "cannot be rebuilt" in each.problem
            assert SMALL.name in each.problem

    run(body())


@settings(modest, max_examples=40)
@given(st.data())
def test_a_file_in_which_any_line_is_missing_is_not_sound(data: st.DataObject) -> None:
    async def body() -> None:
        entries = await _sample()
        lines = [write_lines([entry], int(entry.id, 16) - 1) for entry in entries]
        session = entries[0]
        assert isinstance(session, SessionEntry)
        assert verify(read_journal(b"".join(lines), session.session), FakeBook()).sound
        # The last line may be gone without a trace: nothing says that it was there.
        gone = data.draw(st.integers(0, len(lines) - 2))
        rest = b"".join(line for at, line in enumerate(lines) if at != gone)
        assert not verify(read_journal(rest, session.session), FakeBook()).sound

    run(body())


def test_a_reply_is_no_part_of_what_was_sent() -> None:
    """Usage may be corrected by hand; no request is rebuilt from it."""

    async def body() -> None:
        entries = await _sample()
        change = change_first(ReplyEntry, lambda entry: replace(entry, stop="other", model="m"))
        assert verify(journal_of(change(entries)), FakeBook()).sound

    run(body())
