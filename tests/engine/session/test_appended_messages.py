"""Messages that are added to history: nothing moves, nothing is repeated, and they stay."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.fakes.book import SMALL, THINKER
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, all_text, digests, messages_of, note, run, talk, words

from lamina.core.audit.verification import verify
from lamina.core.codec import canonical_bytes
from lamina.core.values.entry import TransformEntry
from lamina.core.values.message import Message, Text, ToolCall, ToolDefinition
from lamina.core.values.patch import MessagesCachedAppend, MessagesCachedReplace, PatchOp, op_reason
from lamina.core.values.usage import Usage
from lamina.core.values.wire import Reply
from lamina.engine.session.session import Session
from lamina.engine.sources.hooks import ContextEvent, Hooks
from lamina.errors import InvalidPatch

MARKER = Message(role="user", blocks=(Text("[marker]"),))
WHY = "add marker"


def replace_all(event: ContextEvent) -> PatchOp:
    """The marker hook of the envelope document."""
    return MessagesCachedReplace(messages=(*event.envelope.cached, MARKER), reason=WHY)


def replace_all_as_data(event: ContextEvent) -> Any:
    return {
        "schemaVersion": 1,
        "transformerName": "marker",
        "patch": [
            {
                "op": "messages_cached_replace",
                "messages": [*event.envelope.cached, {"role": "user", "content": "[marker]"}],
                "invalidateCacheReason": WHY,
            }
        ],
    }


def append(event: ContextEvent) -> PatchOp:
    return MessagesCachedAppend(messages=(MARKER,))


MARKERS = [replace_all, replace_all_as_data, append]
Marker = Callable[[ContextEvent], Any]


def marking(marker: Marker) -> Hooks:
    hooks = Hooks()
    hooks.context(reason="before_request", name="marker")(marker)
    return hooks


def transforms(session: Session) -> list[TransformEntry]:
    return [entry for entry in session.entries if isinstance(entry, TransformEntry)]


async def require_sound(world: World, session: Session) -> None:
    assert verify(await world.store.read(session.id), world.book).sound


@pytest.mark.parametrize("marker", MARKERS)
def test_every_request_carries_all_markers_so_far_and_moves_nothing(marker: Marker) -> None:
    async def body() -> None:
        world = World()
        session = await world.open(hooks=marking(marker), system="S")
        sent: Sequence[str] = ()
        for number in range(5):
            turn = await session.prepare(f"Q{number}", attach=[note("a.md", "A")])
            assert all_text(turn).count("[marker]") == number + 1
            assert turn.context.agreement.broke is None
            assert digests(turn)[: len(sent)] == list(sent)
            sent = digests(turn)[: turn.prompt.cached_run()]
            await turn.commit(openai_reply("A"))
        wire = messages_of(turn)
        assert [m["content"] for m in wire[1:4]] == ["[marker]", wire[2]["content"], "A"]
        await require_sound(world, session)
        await session.close()
        # Without the hook: the same messages, and no more markers.
        again = await world.open(session.id)
        following = await again.prepare("Q5")
        assert all_text(following).count("[marker]") == 5
        assert digests(following)[: len(sent)] == list(sent)

    run(body())


@pytest.mark.parametrize("marker", MARKERS)
def test_the_journal_does_not_repeat_history(marker: Marker) -> None:
    async def body() -> None:
        session = await World().open(window=1_000_000, hooks=marking(marker))
        written = []
        for _ in range(200):
            before = len(session.entries)
            await talk(session, words(5), answer=words(5))
            written.append(sum(len(canonical_bytes(entry)) for entry in session.entries[before:]))
        assert max(written[100:]) < 1.2 * max(written[3:10])
        assert sum(written) < 400_000

    run(body())


def test_the_reason_of_a_replacement_that_only_appends_is_recorded() -> None:
    async def body() -> None:
        session = await World().open(hooks=marking(replace_all))
        await talk(session)
        await talk(session)
        last = transforms(session)[-1]
        assert last.transformer == "marker"
        (op,) = last.patch.ops
        assert op == MessagesCachedReplace(messages=(MARKER,), kept=3, reason=WHY)

    run(body())


def test_a_replacement_of_the_last_message_alone_is_recorded_as_that() -> None:
    async def body() -> None:
        world = World()
        session = await world.open()
        await talk(session, "Q1")
        await talk(session, "Q2", answer="A secret.")
        *others, last = session.envelope.cached
        open_answer = Message(role="assistant", blocks=(Text("Redacted."),), id=last.id)
        op = MessagesCachedReplace(messages=(*others, open_answer), reason="redacted")
        await session.apply("redact", op)
        (written,) = transforms(session)[-1].patch.ops
        assert isinstance(written, MessagesCachedReplace)
        assert (written.kept, len(written.messages)) == (3, 1)
        assert [m.text for m in session.envelope.cached] == ["Q1", "A", "Q2", "Redacted."]
        turn = await session.prepare("Q3")
        # The answer was never sent, so that nothing moved.
        assert turn.context.agreement.broke is None
        await turn.commit(openai_reply())
        await require_sound(world, session)

    run(body())


def test_an_appended_message_needs_no_reason_and_keeps_one() -> None:
    async def body() -> None:
        session = await World().open()
        await session.apply("note", MessagesCachedAppend(messages=(MARKER,)))
        await session.apply("note", MessagesCachedAppend(messages=(MARKER,), reason="twice"))
        assert [op_reason(op) for e in transforms(session) for op in e.patch.ops] == ["", "twice"]
        ids = [message.id for message in session.envelope.cached]
        assert len(set(ids)) == 2
        turn = await session.prepare("Q")
        assert [m["content"] for m in messages_of(turn)] == ["[marker]", "[marker]", "Q"]

    run(body())


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_while_calls_wait_an_appended_message_comes_behind_their_results(wire: str) -> None:
    async def body() -> None:
        world = World()
        find = ToolDefinition(name="find")
        target = THINKER.name if wire == "anthropic" else SMALL.name
        session = await world.open(hooks=marking(append), tools=[find], target=target)
        turn = await session.prepare("Q")
        call = ToolCall(id="c1", name="find", arguments="{}")
        answered = await turn.commit(Reply(blocks=(call,), usage=Usage(), stop="tool_calls"))
        turn = await answered.resume({"c1": "found"})
        roles = [message.role for message in session.envelope.cached]
        assert roles == ["user", "user", "assistant", "tool", "user"]
        assert all_text(turn).count("[marker]") == 2
        assert turn.context.agreement.broke is None
        turn.request()
        await turn.commit(Reply(blocks=(Text("A"),), usage=Usage(), stop="stop"))
        await require_sound(world, session)
        again = await world.open(session.id, hooks=Hooks())
        assert [m.role for m in again.envelope.cached] == [*roles, "assistant"]

    run(body())


@pytest.mark.parametrize(
    "op",
    [
        MessagesCachedAppend(
            messages=(
                Message(role="assistant", blocks=(ToolCall(id="c", name="f", arguments="{}"),)),
            )
        ),
        MessagesCachedReplace(messages=(MARKER,), kept=2, reason=WHY),
        MessagesCachedReplace(messages=(MARKER,), kept=-1, reason=WHY),
        {"op": "messages_cached_append", "messages": [], "scope": "uncached"},
    ],
)
def test_what_cannot_be_appended_is_refused_with_its_name(op: Any) -> None:
    async def body() -> None:
        session = await World().open()
        before = session.entries
        with pytest.raises(InvalidPatch, match="messages_cached"):
            await session.apply("test", op)
        assert session.entries == before

    run(body())


def test_neighbours_stay_two_messages_when_a_compaction_moved_their_places() -> None:
    async def body() -> None:
        session = await World().open()
        await talk(session, "Q1")
        await talk(session, "Q2")
        mark = {"op": "messages_cached_append", "messages": [{"role": "user", "content": "x"}]}
        await session.apply("test", mark)
        await session.apply(
            "test", {"op": "compaction_apply", "summary": "S", "first_kept": 2, "reason": "long"}
        )
        await session.apply("test", mark)
        assert [m["content"] for m in messages_of(await session.prepare("Q3"))].count("x") == 2

    run(body())
