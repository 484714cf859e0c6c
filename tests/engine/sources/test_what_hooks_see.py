"""What hooks are shown of a turn: what applies to it, with its text, and the system prompt."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.book import SMALL
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, note, rule, run, system_of, talk, words
from tests.strategies import thorough

import lamina
from lamina.core.values.message import ToolResult
from lamina.core.values.patch import SystemPartSet
from lamina.engine.session.session import core_of
from lamina.engine.sources.hooks import REASONS, ContextEvent, Hooks, MessageEvent, TurnItem


class Watcher:
    """Hooks at every moment, which keep what they were given."""

    def __init__(self) -> None:
        self.hooks = Hooks()
        self.contexts: dict[str, list[ContextEvent]] = {reason: [] for reason in REASONS}
        self.messages: dict[str, list[MessageEvent]] = {"user": [], "assistant": [], "tool": []}
        for reason in REASONS:
            self.hooks.context(reason=reason)(self.contexts[reason].append)
        self.hooks.message(lambda event: self.messages[event.message.role].append(event))

    def ids(self, event: Any) -> list[str]:
        return [item.id for item in event.items]


def test_hooks_see_what_is_attached_with_its_text() -> None:
    async def body() -> None:
        watcher = Watcher()
        world = World({"spec.md": "The spec.", "api.md": "The API."})
        session = await world.open(hooks=watcher.hooks)
        await session.prepare("Q", attach=[lamina.attach("spec.md", essential=True), "api.md"])
        for event in (watcher.messages["user"][0], watcher.contexts["before_request"][0]):
            first, second = event.items
            assert (first.id, first.kind, first.text) == ("note:spec.md", "note", "The spec.")
            assert (second.text, second.include, second.priority) == ("The API.", "manual", 5)
            assert (first.essential, second.essential) == (True, False)
            assert first.version == note("spec.md", "The spec.").version
        assert watcher.ids(watcher.contexts["ephemeral"][0]) == ["note:spec.md", "note:api.md"]

    run(body())


def test_a_hook_gets_the_tokens_that_the_request_context_has() -> None:
    async def body() -> None:
        watcher = Watcher()
        session = await World({"a.md": words(30)}).open(hooks=watcher.hooks)
        turn = await session.prepare("Q", attach=["a.md"])
        (item,) = watcher.contexts["before_request"][0].items
        assert item.tokens == turn.context.items[0].tokens > 30

    run(body())


def test_a_hook_sees_an_item_that_only_is_named_with_its_text_too() -> None:
    async def body() -> None:
        watcher = Watcher()
        session = await World({"a.md": "A"}).open(hooks=watcher.hooks)
        await talk(session, "Q1", "a.md")
        await talk(session, "Q2", "a.md")
        await talk(session, "Q3")
        events = watcher.contexts["before_request"]
        assert [[item.text for item in event.items] for event in events] == [["A"], ["A"], []]

    run(body())


def test_a_hook_is_told_why_an_item_is_there() -> None:
    async def body() -> None:
        watcher = Watcher()
        session = await World().open(hooks=watcher.hooks, always=[rule("tone", "Be brief.")])
        await session.pin(note("p.md", "P"))
        await session.prepare("Q", attach=[note("a.md", "A")])
        by_id = {item.id: item for item in watcher.messages["user"][0].items}
        assert by_id["rule:tone"].include == "always"  # type: ignore[index]
        assert by_id["note:p.md"].essential  # type: ignore[index]
        assert by_id["note:a.md"].include == "manual"  # type: ignore[index]

    run(body())


def test_later_requests_and_the_end_of_a_turn_see_what_applies_to_it_as_well() -> None:
    async def body() -> None:
        watcher = Watcher()
        session = await World({"a.md": "A"}).open(hooks=watcher.hooks)
        turn = await session.prepare("Q", attach=["a.md"])
        turn = await turn.commit(openai_reply("Hm.", calls=[("c1", "find")]))
        turn = await turn.resume([ToolResult(call_id="c1", name="find", text="r")])
        await turn.commit(openai_reply("Done."))
        events = [
            *watcher.contexts["before_request"], *watcher.contexts["turn_end"],
            *watcher.messages["assistant"], *watcher.messages["tool"],
        ]  # fmt: skip
        assert len(events) == 6
        assert all(watcher.ids(event) == ["note:a.md"] for event in events)

    run(body())


def test_what_has_no_room_is_not_among_the_items_of_the_end() -> None:
    async def body() -> None:
        watcher = Watcher()
        session = await World().open(hooks=watcher.hooks, attachment_limit=20)
        await talk(session, "Q", note("big.md", words(400)), note("a.md", "A"))
        assert watcher.ids(watcher.contexts["before_request"][0]) == ["note:big.md", "note:a.md"]
        assert watcher.ids(watcher.contexts["turn_end"][0]) == ["note:a.md"]

    run(body())


def test_a_secret_in_an_attachment_does_not_reach_hooks() -> None:
    async def body() -> None:
        watcher = Watcher()
        key = "sk-ant-api03-" + "a1B2" * 24
        session = await World({"a.md": f"key: {key}"}).open(hooks=watcher.hooks)
        await session.prepare("Q", attach=["a.md"])
        assert key not in str(watcher.messages["user"][0].items)

    run(body())


def test_items_are_frozen() -> None:
    item = TurnItem(
        id=note("a.md", "A").id, kind="note", version="v", text="A", tokens=1, priority=5
    )
    with pytest.raises(AttributeError):
        item.text = "B"  # type: ignore[misc]


def test_what_hooks_cost_does_not_grow_with_the_session() -> None:
    async def body() -> None:
        """Every block of an item is rendered and counted once, however often hooks see it."""
        watcher = Watcher()
        session = await World({"a.md": words(50)}).open(hooks=watcher.hooks)
        counted: list[str] = []
        assembler = core_of(session).layouts.assembler_for(SMALL, "lazy")
        count = assembler._count

        def listen(text: str) -> int:
            counted.append(text)
            return count(text)

        assembler._count = listen
        for number in range(12):
            await talk(session, f"Q{number}", "a.md")
        assert len([text for text in counted if "word word" in text]) == 1
        assert all(len(event.items) == 1 for event in watcher.contexts["before_request"])

    run(body())


# -- the system prompt ---------------------------------------------------------------------------


def test_the_envelope_has_the_system_prompt_as_it_is_sent() -> None:
    async def body() -> None:
        watcher = Watcher()
        system = [("persona", "You are brief. "), ("blank", "  "), ("policy", "Be kind.")]
        session = await World().open(hooks=watcher.hooks, system=system)
        turn = await session.prepare("Q")
        seen = watcher.contexts["before_request"][0].envelope.system
        assert seen.compiled == system_of(turn) == "You are brief.\n\nBe kind."
        assert session.envelope.system.compiled == seen.compiled
        assert [part.name for part in seen.parts] == ["persona", "policy"]
        assert seen == session.state.envelope.system

    run(body())


@thorough
@given(
    promotion=st.sampled_from(["eager", "lazy"]),
    parts=st.lists(st.sampled_from(["", "  ", "S", "T\n\n", " U"]), max_size=3),
    attached=st.lists(st.lists(st.sampled_from("abc"), max_size=3), min_size=1, max_size=4),
)
def test_compiled_is_what_the_next_request_sends(
    promotion: Any, parts: list[str], attached: list[list[str]]
) -> None:
    async def body() -> None:
        system = [(f"part{number}", text) for number, text in enumerate(parts)]
        session = await World().open(system=system, promotion=promotion)
        for number, names in enumerate(attached):
            notes = [note(f"{name}.md", f"text of {name}") for name in names]
            turn = await talk(session, f"Q{number}", *notes)
            # What a request left standing is what its system message was made of.
            assert session.envelope.system.compiled == system_of(turn)
            await session.rebuild_library("to see")

    run(body())


def test_a_hook_sees_the_system_prompt_as_the_hook_before_it_left_it() -> None:
    async def body() -> None:
        hooks, seen = Hooks(), list[str]()

        @hooks.context
        def change(event: ContextEvent) -> SystemPartSet:
            return SystemPartSet(name="tone", text="Be brief.", reason="people are busy")

        @hooks.context
        def look(event: ContextEvent) -> None:
            seen.append(event.envelope.system.compiled)

        session = await World().open(hooks=hooks, system="S")
        await session.prepare("Q")
        assert seen == ["S\n\nBe brief."]

    run(body())


def test_the_library_is_in_the_system_prompt_that_message_hooks_see() -> None:
    async def body() -> None:
        watcher = Watcher()
        session = await World().open(hooks=watcher.hooks, system="S", promotion="eager")
        await talk(session, "Q1", note("a.md", "the text of a"))
        await talk(session, "Q2", note("a.md", "the text of a"))
        seen = watcher.messages["assistant"][1].envelope.system
        assert seen.compiled.startswith("S\n\n## Context Library\n\n")
        assert "the text of a" in seen.compiled
        assert [part.name for part in seen.parts if part.name == "library"] == []

    run(body())


@pytest.mark.parametrize("promotion", ["eager", "lazy"])
def test_the_system_prompt_that_hooks_see_has_what_the_request_promotes(promotion: Any) -> None:
    async def body() -> None:
        watcher, world = Watcher(), World()
        session = await world.open(hooks=watcher.hooks, system="S", promotion=promotion)
        await talk(session, "Q1", note("a.md", "the text of a"))
        # A boundary for lazy promotion; eager promotes anyway.
        world.clock.pass_by(3600)
        turn = await session.prepare("Q2")
        assert "the text of a" in system_of(turn)
        for reason in ("before_request", "ephemeral"):
            seen = watcher.contexts[reason][-1].envelope.system
            assert seen.compiled == system_of(turn), reason
            assert [part.name for part in seen] == ["system"]

    run(body())


def test_an_ephemeral_hook_sees_the_boundary_that_a_hook_before_the_request_made() -> None:
    async def body() -> None:
        hooks, seen = Hooks(), dict[str, str]()

        @hooks.context(name="change")
        def change(event: ContextEvent) -> SystemPartSet | None:
            if event.message is None or event.message.text != "Q2":
                return None
            return SystemPartSet(name="tone", text="Be brief.", reason="people are busy")

        @hooks.context
        def look(event: ContextEvent) -> None:
            seen["before_request"] = event.envelope.system.compiled

        @hooks.context(reason="ephemeral")
        def once(event: ContextEvent) -> SystemPartSet:
            return SystemPartSet(name="now", text="Only now.", reason="just once")

        @hooks.context(reason="ephemeral")
        def look_last(event: ContextEvent) -> None:
            seen["ephemeral"] = event.envelope.system.compiled

        session = await World().open(hooks=hooks, system="S")
        await talk(session, "Q1", note("a.md", "the text of a"), rule("kind", "Be kind."))
        turn = await session.prepare("Q2")
        assert "the text of a" in system_of(turn)
        assert seen["ephemeral"] == system_of(turn)
        assert seen["before_request"] == system_of(turn).replace("\n\nOnly now.", "")

    run(body())


@thorough
@given(
    promotion=st.sampled_from(["eager", "lazy"]),
    attached=st.lists(st.lists(st.sampled_from("abc"), max_size=3), min_size=1, max_size=4),
    pauses=st.lists(st.sampled_from([0, 3600]), min_size=4, max_size=4),
)
def test_hooks_see_the_system_prompt_that_is_sent(
    promotion: Any, attached: list[list[str]], pauses: list[int]
) -> None:
    async def body() -> None:
        watcher, world = Watcher(), World()
        session = await world.open(hooks=watcher.hooks, system="S", promotion=promotion)
        for number, names in enumerate(attached):
            world.clock.pass_by(pauses[number])
            notes = [note(f"{name}.md", words(40)) for name in names]
            turn = await talk(session, f"Q{number}", *notes)
            for reason in ("before_request", "ephemeral"):
                seen = watcher.contexts[reason][-1].envelope.system.compiled
                assert seen == system_of(turn)

    run(body())


def test_hooks_see_the_system_prompt_that_is_left_where_the_window_is_too_small() -> None:
    async def body() -> None:
        watcher, world = Watcher(), World()
        session = await world.open(
            hooks=watcher.hooks, system="S", promotion="eager", window=600, output_reserve=50
        )
        for name in "abcdef":
            turn = await talk(session, f"Q {name}", note(f"{name}.md", words(150)))
            for reason in ("before_request", "ephemeral"):
                seen = watcher.contexts[reason][-1].envelope.system.compiled
                assert seen == system_of(turn)
        assert turn.context.left_out or turn.context.boundaries

    run(body())
