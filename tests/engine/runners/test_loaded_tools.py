"""Tools that Anthropic loads late: found by the model, named by the result, called by their names.

Everything goes through the official SDK to the emulator, which refuses what the API refuses."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import anyio
import pytest
from inline_snapshot import snapshot
from msgspec.structs import replace
from tests.fakes.clock import FakeClock
from tests.fakes.index import IndexFake
from tests.fakes.sessions import run
from tests.fakes.tools import ToolHostFake, tool

from lamina.adapters.providers.clients.anthropic import connect
from lamina.adapters.providers.model_book import load_book
from lamina.adapters.stores.memory import MemoryStore
from lamina.apps.views.why import explain_question
from lamina.apps.wiring.runners import open_agent
from lamina.core.audit.verification import verify
from lamina.core.codec import digest_value
from lamina.core.values.entry import ItemEntry, MessageEntry, RequestEntry, ResultEntry
from lamina.core.values.message import LoadedTools, ToolDefinition, ToolResult
from lamina.core.values.selection import SearchSettings
from lamina.core.values.settings import Settings, Target
from lamina.core.values.tool import OfferedTool
from lamina.emulators.answers import EmulatedAnswer, EmulatedCall, EmulatedRequest
from lamina.emulators.anthropic.emulator import AnthropicEmulator
from lamina.emulators.emulator import serve_emulator
from lamina.engine.runners.runner import AgentRunner

pytestmark = pytest.mark.filterwarnings("ignore:The model .* is deprecated")
CLAUDE, OLDER = "anthropic:claude-sonnet-5", "anthropic:claude-sonnet-4-0"
NAMES = ("read", "write", "send", "paint")
ALIKE = {name: {f"tool:fake/{name}": 0.8} for name in NAMES}
PATH = {
    "type": "object",
    "properties": {"path": {"type": "string", "description": "Where to."}},
    "required": ["path"],
}


def chosen(name: str, **given: Any) -> OfferedTool:
    return replace(tool(name, **given), include="agent")


def look(query: str) -> EmulatedAnswer:
    return EmulatedAnswer(calls=(EmulatedCall(name="find_tools", arguments={"query": query}),))


def call(name: str, /, **arguments: Any) -> EmulatedAnswer:
    return EmulatedAnswer(calls=(EmulatedCall(name=name, arguments=arguments),))


class Script:
    """Answers in order, and what could be called when each was given."""

    def __init__(self) -> None:
        self.answers: list[EmulatedAnswer] = []
        self.callable: list[list[str]] = []

    async def answer(self, request: EmulatedRequest) -> EmulatedAnswer:
        await anyio.lowlevel.checkpoint()
        self.callable.append(list(request.tools))
        return self.answers.pop(0)


class _Served:
    """Every target at the emulator's address."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.clients: list[Any] = []

    async def provider(self, target: Target) -> Any:
        await anyio.lowlevel.checkpoint()
        client = connect(replace(target, base_url=self._url), "key")
        self.clients.append(client)
        return client


class Scene:
    def __init__(self, tools: Sequence[OfferedTool], url: str, script: Script, server: Any) -> None:
        self.host = ToolHostFake(*tools)
        self.store, self.clock, self.book = MemoryStore(), FakeClock(), load_book()
        self.script, self.server = script, server
        self.providers = _Served(url)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [body for body in self.server.bodies if "max_tokens" in body]

    def agent(self, index: IndexFake | None = None, **settings: Any) -> Any:
        search = SearchSettings(top_n=0, include_score=1.0)
        limits = {"tool_search": search, "whole_pool_tokens": 0, **settings}
        return open_agent(
            "late", providers=self.providers, tools=self.host, index=index or IndexFake(ALIKE),
            book=self.book, target=CLAUDE, store=self.store, clock=self.clock,
            settings=Settings(**limits),
        )  # fmt: skip

    async def ask(self, agent: AgentRunner, text: str, *answers: EmulatedAnswer | str) -> str:
        self.script.answers += [
            EmulatedAnswer(text=answer) if isinstance(answer, str) else answer for answer in answers
        ]
        answer = await agent.run(text)
        assert not self.script.answers
        return answer.text

    async def kept(self, kind: type) -> list[Any]:
        journal = await self.store.read("late")
        return [entry for entry in journal.entries.values() if isinstance(entry, kind)]

    async def is_sound(self) -> bool:
        verdict = verify(await self.store.read("late"), self.book)
        assert verdict.sound, verdict
        requests = await self.kept(RequestEntry)
        assert not [r for r in requests if r.context.agreement.unexplained]
        return True


@asynccontextmanager
async def scene(*tools: OfferedTool) -> AsyncIterator[Scene]:
    script = Script()
    server = AnthropicEmulator(answers=script)
    async with serve_emulator(server) as url:
        played = Scene(tools or tuple(map(chosen, NAMES)), url, script, server)
        try:
            yield played
        finally:
            for client in played.providers.clients:
                await client.aclose()


def names(body: dict[str, Any], *, deferred: bool) -> list[str]:
    return [t["name"] for t in body["tools"] if bool(t.get("defer_loading")) is deferred]


def result_of(body: dict[str, Any], message: int = -1) -> Any:
    block = body["messages"][message]["content"][0]
    assert block["type"] == "tool_result"
    return block["content"]


def test_what_the_model_finds_is_loaded_by_the_result_and_called_by_its_name() -> None:
    async def body() -> None:
        async with (
            scene(chosen("write", parameters=PATH), *map(chosen, ("read", "send"))) as played,
            await played.agent() as agent,
        ):
            found = look("write it down")
            assert await played.ask(agent, "Keep it.", found, call("write", path="a"), "Kept.")
            assert played.host.calls == [("write", {"path": "a"})]
            first, second, third = played.bodies
            assert names(first, deferred=True) == []
            assert [tool for tool in second["tools"] if "defer_loading" in tool] == snapshot(
                [
                    {
                        "name": "write",
                        "description": "Does write.",
                        "input_schema": {
                            "type": "object",
                            "properties": {"path": {"type": "string"}},
                            "required": ["path"],
                        },
                        "defer_loading": True,
                    }
                ]
            )
            assert result_of(second) == snapshot([{"type": "tool_reference", "tool_name": "write"}])
            # What stands in the prefix does not move, and what was loaded stays.
            assert names(first, deferred=False) == names(third, deferred=False)
            assert third["tools"] == second["tools"]
            assert "write" not in played.script.callable[0]
            assert "write" in played.script.callable[1]
            requests = await played.kept(RequestEntry)
            assert [entry.context.agreement.broke for entry in requests] == [None] * 3
            rows = [tool for tool in requests[1].context.tools if tool.origin == "model"]
            assert [(row.item, row.source, row.kept) for row in rows] == [
                ("tool:fake/write", "write it down", False)
            ]
            assert all(row.tokens for row in rows)
            why = explain_question(await played.store.read("late"), 1, played.book)
            found_rows = [(row.name, row.source) for row in why.tools if row.origin == "model"]
            assert found_rows == [("write", "write it down")]
            # Nothing is described, so no item is kept.
            assert not await played.kept(ItemEntry)
            assert await played.is_sound()

    run(body())


def test_loading_more_tools_leaves_the_cached_prefix_where_it_was() -> None:
    async def body() -> None:
        async with scene() as played, await played.agent() as agent:
            for name in NAMES:
                await played.ask(agent, f"Go on {'x ' * 1_500}", look(name), call(name), "Done.")
            assert names(played.bodies[-1], deferred=True) == list(NAMES)
            requests = await played.kept(RequestEntry)
            assert [entry.context.agreement.broke for entry in requests] == [None] * 12
            uses = played.server.cache_uses
            # All that the request before had up to its last marker is read again.
            assert all(
                after.read >= before.read + before.written for before, after in pairwise(uses)
            )
            assert uses[-1].read > 0
            assert await played.is_sound()

    run(body())


def test_a_session_that_is_opened_again_goes_on_with_what_it_loaded() -> None:
    async def body() -> None:
        async with scene() as played:
            async with await played.agent() as agent:
                await played.ask(agent, "Keep it.", look("write"), call("write"), "Kept.")
            async with await played.agent() as agent:
                await played.ask(agent, "Again.", call("write"), "Kept again.")
                # It is there already: the search says so, in words.
                await played.ask(agent, "And again.", look("write"), "No.")
            assert [name for name, _ in played.host.calls] == ["write", "write"]
            assert result_of(played.bodies[-1]) == snapshot("""\
No other tool matches. Describe the task differently.
Already available: write\
""")
            assert names(played.bodies[-1], deferred=True) == ["write"]
            requests = await played.kept(RequestEntry)
            assert [entry.context.agreement.broke for entry in requests] == [None] * 7
            assert await played.is_sound()

    run(body())


def test_what_a_search_loads_is_in_the_journal_with_its_result() -> None:
    async def body() -> None:
        async with scene() as played:
            async with await played.agent() as agent:
                await played.ask(agent, "Keep it.", look("write"), call("write"), "Kept.")
            (entry,) = [e for e in await played.kept(ResultEntry) if e.found]
            assert (entry.query, entry.loads.model) == ("write", "claude-sonnet-5")
            messages = [e.message for e in await played.kept(MessageEntry)]
            blocks = [m.blocks for m in messages if m.role == "tool"]
            assert [type(block) for block in blocks[0]] == [ToolResult, LoadedTools]

    run(body())


def test_a_turn_that_is_left_with_a_call_that_waits_keeps_what_its_search_loaded() -> None:
    async def body() -> None:
        async with scene(tool("paint", "required"), chosen("write")) as played:
            both = EmulatedAnswer(calls=(*look("write").calls, *call("paint").calls))
            async with await played.agent() as agent:
                await played.ask(agent, "Keep it.", both)
            async with await played.agent() as agent:
                await played.ask(agent, "Never mind: write.", call("write"), "Written.")
            assert [name for name, _ in played.host.calls] == ["write"]
            assert names(played.bodies[-1], deferred=True) == ["write"]
            assert await played.is_sound()

    run(body())


def test_what_a_compaction_drops_is_loaded_no_more_and_can_be_found_again() -> None:
    async def body() -> None:
        async with scene() as played, await played.agent(compaction_keep=100) as agent:
            await played.ask(agent, "Keep it.", look("write"), call("write"), "Kept.")
            for number in range(3):
                await played.ask(agent, f"{number} " + "more of it " * 200, "Well.")
            outcome = await agent.session.compact()
            assert outcome.changed
            await played.ask(agent, "Again.", look("write"), call("write"), "Kept.")
            assert [names(body, deferred=True) for body in played.bodies[-3:]] == [
                [], ["write"], ["write"],
            ]  # fmt: skip
            assert [name for name, _ in played.host.calls] == ["write", "write"]
            assert await played.is_sound()

    run(body())


@pytest.mark.parametrize("other", [OLDER, "anthropic:claude-haiku-4-5"])
def test_another_model_reads_in_words_what_was_loaded_and_calls_it_through_use_tool(
    other: str,
) -> None:
    async def body() -> None:
        async with scene() as played, await played.agent() as agent:
            await played.ask(agent, "Keep it.", look("write"), call("write"), "Kept.")
            await agent.session.update_settings(target=other)
            use = call("use_tool", name="write", arguments={})
            await played.ask(agent, "Again.", use, "Kept again.")
            last = played.bodies[-1]
            assert names(last, deferred=True) == []
            assert result_of(last, 2) == snapshot("""\
Found 1: write

Call these tools through use_tool:

<tool_context>
write: Does write.
Arguments: none
</tool_context>\
""")
            assert [name for name, _ in played.host.calls] == ["write", "write"]
            assert await played.is_sound()
            # Back with the first one, they are loaded again.
            await agent.session.update_settings(target=CLAUDE)
            await played.ask(agent, "Once more.", call("write"), "Kept.")
            assert names(played.bodies[-1], deferred=True) == ["write"]
            assert await played.is_sound()

    run(body())


def test_a_model_that_cannot_load_late_gets_descriptions() -> None:
    async def body() -> None:
        async with scene() as played, await played.agent() as agent:
            await agent.session.update_settings(target=OLDER)
            use = call("use_tool", name="write", arguments={})
            await played.ask(agent, "Keep it.", look("write"), use, "Kept.")
            assert names(played.bodies[-1], deferred=True) == []
            assert [e.item.id for e in await played.kept(ItemEntry)] == ["tool:fake/write"]
            assert await played.is_sound()

    run(body())


def test_a_loaded_tool_that_was_removed_is_not_run() -> None:
    async def body() -> None:
        async with scene() as played, await played.agent() as agent:
            await played.ask(agent, "Keep it.", look("write"), call("write"), "Kept.")
            await agent.session.remove("tool:fake/write")
            await played.ask(agent, "Again.", call("write"), "It is gone.")
            assert [name for name, _ in played.host.calls] == ["write"]
            told = "- the tool fake/write (it was removed from this session and cannot be called)"
            assert told in str(played.bodies[-1])
            assert "removed" in result_of(played.bodies[-1])
            assert await played.is_sound()

    run(body())


def test_a_loaded_tool_that_changed_is_described_when_it_is_found_again() -> None:
    async def body() -> None:
        async with scene() as played, await played.agent() as agent:
            await played.ask(agent, "Keep it.", look("write"), call("write"), "Kept.")
            definition = ToolDefinition(name="write", description="Writes now.", parameters=PATH)
            changed = replace(
                played.host.tools[1], definition=definition, digest=digest_value(definition)
            )
            played.host.tools = [t if t.id != changed.id else changed for t in played.host.tools]
            use = call("use_tool", name="write", arguments={"path": "a"})
            await played.ask(agent, "Again.", call("write"), look("write"), use, "Kept.")
            assert [name for name, _ in played.host.calls] == ["write", "write"]
            # What was sent of it stays as it was sent.
            deferred = [t for t in played.bodies[-1]["tools"] if t.get("defer_loading")]
            assert [(t["name"], t["description"]) for t in deferred] == [("write", "Does write.")]
            assert await played.is_sound()

    run(body())


def test_arguments_that_do_not_fit_bring_the_whole_description() -> None:
    async def body() -> None:
        async with (
            scene(chosen("write", parameters=PATH), chosen("read")) as played,
            await played.agent() as agent,
        ):
            await played.ask(agent, "Keep it.", look("write"), call("write"), "Not kept.")
            assert result_of(played.bodies[-1]) == snapshot("""\
The arguments do not fit the tool: arguments: 'path' is a required property

write: Does write.
Arguments:
- path (string): Where to.\
""")
            assert played.host.calls == []

    run(body())


def test_a_loaded_tool_that_a_person_adds_stands_in_the_list_and_is_loaded_no_more() -> None:
    async def body() -> None:
        async with scene() as played, await played.agent() as agent:
            await played.ask(agent, "Keep it.", look("write"), call("write"), "Kept.")
            await agent.session.add("tool:fake/write")
            await played.ask(agent, "Again.", call("write"), "Kept.")
            last = played.bodies[-1]
            assert "write" in names(last, deferred=False)
            assert names(last, deferred=True) == []
            assert result_of(last, 2) == snapshot("Found 1: write")
            assert await played.is_sound()

    run(body())


def test_behind_the_first_three_a_tool_goes_by_its_name_unless_that_is_one_word() -> None:
    async def body() -> None:
        tools = ("read_one", "read_two", "read_three", "read_four", "read", "read_five")
        alike = {f"tool:fake/{name}": 0.8 - 0.01 * place for place, name in enumerate(tools)}
        async with (
            scene(*(chosen(name, parameters=PATH) for name in tools)) as played,
            await played.agent(IndexFake({"all": alike})) as agent,
        ):
            await played.ask(agent, "Go on.", look("all"), call("read_five", path="a"), "Done.")
            deferred = [t for t in played.bodies[-1]["tools"] if t.get("defer_loading")]
            assert {t["name"]: t.get("description") for t in deferred} == {
                "read_one": "Does read_one.",
                "read_two": "Does read_two.",
                "read_three": "Does read_three.",
                "read_four": None,
                "read": "Does read.",
                "read_five": None,
            }
            assert len({str(t["input_schema"]) for t in deferred}) == 1
            assert played.host.calls == [("read_five", {"path": "a"})]
            # Both forms are the tool itself: neither is loaded, nor described, once more.
            await played.ask(agent, "Again.", look("all"), call("read_four"), "Done.")
            assert result_of(played.bodies[-2]) == snapshot("""\
No other tool matches. Describe the task differently.
Already available: read_one, read_two, read_three\
""")
            assert "- path (string): Where to." in result_of(played.bodies[-1])
            assert [t for t in played.bodies[-1]["tools"] if t.get("defer_loading")] == deferred
            assert await played.is_sound()

    run(body())


def test_what_another_model_reads_of_a_tool_without_a_sentence_is_its_signature() -> None:
    async def body() -> None:
        tools = ("read_one", "read_two", "read_three", "read_four")
        alike = {f"tool:fake/{name}": 0.8 - 0.01 * place for place, name in enumerate(tools)}
        async with (
            scene(*(chosen(name, parameters=PATH) for name in tools)) as played,
            await played.agent(IndexFake({"all": alike})) as agent,
        ):
            await played.ask(agent, "Go on.", look("all"), "Done.")
            await agent.session.update_settings(target=OLDER)
            use = call("use_tool", name="read_four", arguments={"path": "a"})
            await played.ask(agent, "Again.", use, "Done.")
            assert result_of(played.bodies[-1], 2).endswith(
                "<tool_context>\nread_four\nArguments: path: string\n</tool_context>"
            )
            assert played.host.calls == [("read_four", {"path": "a"})]
            assert await played.is_sound()

    run(body())


def test_chosen_tools_do_not_move_a_list_that_was_sent_where_tools_are_loaded_late() -> None:
    async def body() -> None:
        search = SearchSettings(top_n=1)
        async with scene() as played, await played.agent(tool_search=search) as agent:
            use = call("use_tool", name="write", arguments={})
            await played.ask(agent, "read it", call("read"), "Read.")
            await played.ask(agent, "write it", use, "Written.")
            assert "read" in names(played.bodies[0], deferred=False)
            assert "write" not in names(played.bodies[-1], deferred=False)
            requests = await played.kept(RequestEntry)
            assert [entry.context.agreement.broke for entry in requests] == [None] * 4
            # At a boundary it joins.
            played.clock.pass_by(301)
            await played.ask(agent, "write it again", call("write"), "Written.")
            assert "write" in names(played.bodies[-1], deferred=False)
            assert [name for name, _ in played.host.calls] == ["read", "write", "write"]
            assert await played.is_sound()

    run(body())


def test_whoever_wants_every_chosen_tool_in_the_list_has_them_there_on_any_model() -> None:
    async def body() -> None:
        search = SearchSettings(top_n=1)
        async with (
            scene() as played,
            await played.agent(tool_search=search, tool_joins=None) as agent,
        ):
            await played.ask(agent, "read it", call("read"), "Read.")
            await played.ask(agent, "write it", call("write"), "Written.")
            assert {"read", "write"} <= {*names(played.bodies[-1], deferred=False)}
            assert await played.is_sound()

    run(body())
