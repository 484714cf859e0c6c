"""Patches, hooks and the journal as the original documents have them: behaviours 25 to 29, 32 and
43, by number."""

from typing import Any

import pytest
from tests.engine.runners.scenes import Scene
from tests.fakes.providers import saying
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, digests, messages_of, run, system_of, talk

from lamina import Drop, Hooks
from lamina.core.audit.verification import verify
from lamina.core.journal import path_to
from lamina.core.values.entry import Entry, ForgetEntry, MessageEntry, TransformEntry
from lamina.core.values.item import note_id
from lamina.engine.session.session import Session
from lamina.errors import InvalidPatch, JournalError, MessageDropped
from lamina.ops import (
    CompactionApply,
    Display,
    MessagesCachedReplace,
    MessagesUncachedAppend,
    OptionsSet,
    Patch,
    SystemPart,
    SystemPartRemove,
    SystemPartSet,
    SystemPartsReplace,
)
from lamina.types import HookShown, Message, Text

WHY = "the document says so"
BY = "document"


def user(text: str) -> Message:
    return Message(role="user", blocks=(Text(text),))


async def said(session: Session) -> list[str]:
    return [message.text for message in session.envelope.cached.since(0)]


# -- 25: reasons, parts, options ------------------------------------------------------------------


def test_25_a_cached_op_with_a_blank_reason_is_an_error_that_names_it() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        before = session.envelope
        with pytest.raises(InvalidPatch, match="system_part_set"):
            await session.apply(BY, SystemPartSet(name="tone", text="Be brief.", reason="  "))
        assert session.envelope == before

    run(body())


def test_25_of_parts_a_b_b_setting_b_changes_the_first_and_removing_b_removes_both() -> None:
    async def body() -> None:
        parts = tuple(SystemPart(name=n, text=t) for n, t in (("a", "1"), ("b", "2"), ("b", "3")))
        session = await World().open()
        await session.apply(BY, SystemPartsReplace(parts=parts, reason=WHY))
        await session.apply(BY, SystemPartSet(name="b", text="new", reason=WHY))
        assert [part.text for part in session.envelope.system] == ["1", "new", "3"]
        await session.apply(BY, SystemPartRemove(name="b", reason=WHY))
        assert [part.name for part in session.envelope.system] == ["a"]

    run(body())


def test_25_a_temperature_of_nought_is_set_and_null_leaves_max_tokens_unchanged() -> None:
    async def body() -> None:
        session = await World().open()
        await session.apply(BY, OptionsSet(temperature=0.7, max_tokens=100))
        await session.apply(BY, OptionsSet(temperature=0, max_tokens=None))
        options = session.envelope.options
        assert (options.temperature, options.max_tokens) == (0, 100)

    run(body())


# -- 26: compaction as a patch ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "left"), [(-5, ["S", "Q1", "A", "Q2", "A"]), (2, ["S", "Q2", "A"]), (99, ["S"])]
)
def test_26_a_cut_leaves_the_summary_and_what_follows_its_index(
    index: int, left: list[str]
) -> None:
    async def body() -> None:
        session = await World().open()
        await talk(session, "Q1")
        await talk(session, "Q2")
        await session.apply(BY, CompactionApply(first_kept=index, summary="S", reason=WHY))
        assert await said(session) == left

    run(body())


def test_26_the_uncached_tail_is_untouched() -> None:
    async def body() -> None:
        hooks = Hooks()
        tail = MessagesUncachedAppend(messages=(user("tail"),))
        hooks.context(reason="ephemeral")(lambda event: tail)
        session = await World().open(hooks=hooks)
        await talk(session, "Q1")
        await session.apply(BY, CompactionApply(first_kept=99, summary="S", reason=WHY))
        turn = await session.prepare("Q2")
        assert [message["content"] for message in messages_of(turn)] == ["S", "Q2", "tail"]

    run(body())


# -- 27: before_request ----------------------------------------------------------------------------


def test_27_uncached_text_in_before_request_is_an_error_and_nothing_is_written() -> None:
    async def body() -> None:
        hooks = Hooks()
        hooks.context(lambda event: MessagesUncachedAppend(messages=(user("psst"),)))
        session = await World().open(hooks=hooks)
        before = session.entries
        with pytest.raises(InvalidPatch, match="messages_uncached_append"):
            await session.prepare("Q")
        assert session.entries == before

    run(body())


def test_27_a_hook_that_returns_nothing_changes_nothing_and_leaves_no_entry() -> None:
    async def body() -> None:
        hooks, seen = Hooks(), []
        hooks.context(lambda event: seen.append(event.reason))
        session = await World().open(hooks=hooks)
        await talk(session, "Q")
        assert seen == ["before_request"]
        assert not [entry for entry in session.entries if isinstance(entry, TransformEntry)]

    run(body())


# -- 28: replay ------------------------------------------------------------------------------------


def test_28_replay_without_the_hooks_gives_the_messages_of_the_live_request() -> None:
    async def body() -> None:
        world, hooks = World(), Hooks()
        tone = SystemPartSet(name="tone", text="Be brief.", reason=WHY)
        hooks.context(lambda event: tone)
        tail = MessagesUncachedAppend(messages=(user("It is noon."),))
        hooks.context(reason="ephemeral")(lambda event: tail)
        session = await world.open("talk", hooks=hooks, system="S")
        await talk(session, "Q1")
        live = await session.prepare("Q2")
        replayed = await (await world.open("talk")).current_turn()
        assert replayed is not None
        assert replayed.request() == live.request()
        assert digests(replayed) == digests(live)
        # What was ephemeral is in no rebuilt context.
        await live.commit(openai_reply("A"))
        later = await world.open("talk")
        assert await said(later) == ["Q1", "A", "Q2", "A"]
        assert later.envelope.uncached == ()

    run(body())


# -- 29: message hooks -----------------------------------------------------------------------------


def test_29_drop_drops_a_user_message_and_none_leaves_it() -> None:
    async def body() -> None:
        async with Scene(saying("A"), chat=True) as played:

            @played.runner.session.hooks.message
            def guard(event: Any) -> Drop | None:
                return Drop() if "password" in event.message.text else None

            with pytest.raises(MessageDropped):
                await played.ask("my password is x")
            assert played.provider.bodies == []
            assert (await played.ask("hello")).text == "A"
            assert [text for _, text in played.history] == ["hello", "A"]

    run(body())


def test_29_dropping_an_answer_is_an_error_and_the_answer_stays() -> None:
    async def body() -> None:
        async with Scene(saying("A"), chat=True) as played:

            @played.runner.session.hooks.message
            def guard(event: Any) -> Drop | None:
                return Drop() if event.message.role == "assistant" else None

            answer = await played.ask("hello")
            assert answer.text == "A"
            assert any("Drop" in warning or "drop" in warning for warning in answer.warnings)

    run(body())


# -- 32: damaged trees -----------------------------------------------------------------------------


def tree(**parents: str | None) -> dict[str, Entry]:
    return {
        name: ForgetEntry(id=name, parent=parent, at=0.0, item=note_id("a.md"))
        for name, parent in parents.items()
    }


def test_32_a_missing_parent_is_reported_and_a_cycle_of_parents_terminates() -> None:
    with pytest.raises(JournalError, match="'gone' is missing"):
        path_to("c", tree(b="gone", c="b"))
    with pytest.raises(JournalError, match="its own ancestor"):
        path_to("a", tree(a="b", b="a"))


# -- 43: the marker hook ---------------------------------------------------------------------------


def marking() -> Hooks:
    hooks = Hooks()

    @hooks.context(name="marker")
    def mark(event: Any) -> MessagesCachedReplace:
        marked = (*event.envelope.cached.since(0), user("[marker]"))
        return MessagesCachedReplace(messages=marked, reason="add marker")

    return hooks


def test_43_later_requests_carry_all_markers_so_far_and_replay_gives_the_same_bytes() -> None:
    async def body() -> None:
        world = World()
        session = await world.open("talk", hooks=marking(), system="S")
        for number in range(1, 4):
            await talk(session, f"Q{number}", answer=f"A{number}")
        live = await session.prepare("Q4")
        assert [message["content"] for message in messages_of(live)] == [
            "S", "[marker]", "Q1", "A1", "[marker]", "Q2", "A2", "[marker]", "Q3", "A3",
            "[marker]", "Q4",
        ]  # fmt: skip
        transforms = [entry for entry in session.entries if isinstance(entry, TransformEntry)]
        assert {entry.transformer for entry in transforms} == {"marker"}
        assert all("add marker" in str(entry.patch) for entry in transforms)
        replayed = await (await world.open("talk")).current_turn()
        assert replayed is not None
        assert replayed.request() == live.request()
        assert system_of(replayed) == "S"
        await live.commit(openai_reply("A4"))
        assert verify(await world.store.read("talk"), world.book).sound

    run(body())


def test_43_a_marker_is_written_once_and_not_with_all_that_stood_before_it() -> None:
    async def body() -> None:
        world = World()
        session = await world.open("talk", hooks=marking())
        sizes = []
        for number in range(40):
            await talk(session, f"Q{number}")
            turns = [e for e in session.entries if isinstance(e, TransformEntry | MessageEntry)]
            sizes.append(sum(len(str(entry)) for entry in turns[-3:]))
        assert sizes[-1] < 1.5 * sizes[1]

    run(body())


# -- the examples of the documents, to the letter ------------------------------------------------


def test_the_marker_example_runs_with_its_timestamp() -> None:
    async def body() -> None:
        hooks = Hooks()

        @hooks.context
        def mark(event: Any) -> dict[str, Any]:
            marker = {"role": "user", "content": "[marker]", "timestamp": 1_766_880_000_000}
            return {
                "transformerName": "marker",
                "patch": [
                    {
                        "op": "messages_cached_replace",
                        "scope": "cached",
                        "messages": [*event.envelope.cached, marker],
                        "invalidateCacheReason": "add marker",
                    },
                ],
            }

        @hooks.context(reason="ephemeral")
        def tell(event: Any) -> dict[str, Any]:
            eph = {"role": "user", "content": "[request-only]", "timestamp": 0}
            op = {"op": "messages_uncached_append", "scope": "uncached", "messages": [eph]}
            return {"patch": [op]}

        world = World()
        session = await world.open(hooks=hooks)
        turn = await session.prepare("Q")
        assert [m["content"] for m in messages_of(turn)] == ["[marker]", "Q", "[request-only]"]
        await turn.commit(openai_reply())
        assert verify(await world.store.read(session.id), world.book).sound

    run(body())


ENTRY = {
    "type": "context_transform",
    "schemaVersion": 1,
    "transformerName": "redact",
    "timestamp": "2025-12-28T00:00:00.000Z",
    "patch": [
        {
            "op": "messages_cached_replace",
            "scope": "cached",
            "messages": [{"role": "user", "content": "...", "timestamp": 0}],
            "invalidateCacheReason": "redact secrets",
        }
    ],
    "display": {"title": "Redaction", "summary": "Removed secrets"},
}


def test_an_entry_of_the_documents_is_a_patch() -> None:
    async def body() -> None:
        session = await World().open()
        await session.apply("redact", ENTRY)
        assert await said(session) == ["..."]
        cut: dict[str, Any] = {
            "op": "compaction_apply", "scope": "cached", "summary": "So far.",
            "timestamp": 0, "firstKeptMessageIndex": 1, "tokensBefore": 9,
            "invalidateCacheReason": "compaction",
        }  # fmt: skip
        await session.apply(BY, cut)
        assert await said(session) == ["So far."]
        with pytest.raises(InvalidPatch, match="'ephemeral' is no patch"):
            await session.apply("redact", ENTRY | {"type": "ephemeral"})
        with pytest.raises(InvalidPatch, match="'timestamp' is a number, not None"):
            await session.apply("redact", ENTRY | {"timestamp": None})

    run(body())


SHOW = {
    "title": "My Transform",
    "summary": "...",
    "rendererId": "my-transform-renderer",
    "rendererProps": {"n": [1, 2]},
    "showInChat": True,
}


@pytest.mark.parametrize("how", ["apply", "before_request", "ephemeral", "a value"])
def test_a_display_keeps_its_renderer_and_every_face_is_given_it(how: str) -> None:
    async def body() -> None:
        part = {
            "op": "system_part_set", "partName": "tone", "text": "Be brief.",
            "invalidateCacheReason": WHY,
        }  # fmt: skip
        patch: Any = {"transformerName": "my-transform", "patch": [part], "display": SHOW}
        display = Display(
            title="My Transform", summary="...", renderer_id="my-transform-renderer",
            renderer_props={"n": [1, 2]}, show_in_chat=True,
        )  # fmt: skip
        if how == "a value":
            patch = Patch(ops=(SystemPartSet(name="tone", text="x", reason=WHY),), display=display)
        hooks = Hooks()
        if how == "ephemeral":
            hooks.context(reason="ephemeral")(lambda event: patch)
        elif how != "apply":
            hooks.context(lambda event: patch)
        async with Scene(saying("A"), chat=True, hooks=hooks) as scene:
            if how == "apply":
                await scene.runner.session.apply("my-transform", patch)
            await scene.ask("Q")
            (shown,) = scene.told(HookShown)
            assert shown.display == display
            await scene.verify()

    run(body())


@pytest.mark.parametrize("how", ["apply", "hook"])
def test_a_key_that_no_display_has_is_an_error(how: str) -> None:
    async def body() -> None:
        part = SystemPartSet(name="tone", text="Be brief.", reason=WHY)
        patch = {"patch": [part], "display": SHOW | {"colour": "red"}}
        hooks = Hooks()
        if how == "hook":
            hooks.context(lambda event: patch)
        session = await World().open(hooks=hooks)
        entries = session.entries
        with pytest.raises(InvalidPatch, match="a display has no field 'colour'"):
            await (session.apply(BY, patch) if how == "apply" else session.prepare("Q"))
        assert session.entries == entries

    run(body())
