"""Breakpoints, restricted tools and schemas: what only OpenAI's own models get."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from msgspec.structs import replace
from tests.adapters.providers.strict import JSON
from tests.adapters.providers.test_prefix_on_the_wire import Said, converse, turns
from tests.adapters.providers.vendors import CLOCK, WEATHER, open_with, openai

from lamina.adapters.providers.model_book import load_book
from lamina.adapters.providers.wires import openai as wire
from lamina.core.values.envelope import Options
from lamina.core.values.message import Message, Text
from lamina.core.values.patch import MessagesUncachedAppend
from lamina.core.values.wire import WireRequest
from lamina.emulators.openai.cache import OpenAICache
from lamina.emulators.openai.checks import OpenAIRefusal, check_body
from lamina.engine.session.turn import Turn

PERSONA = "You are terse, and you know every city by heart. " * 200
BREAK = "prompt_cache_breakpoint"


class Since:
    """OpenAI from GPT-5.6 on; what it is sent is looked at afterwards."""

    target = "openai:gpt-5.6"
    calling = staticmethod(openai.calling)
    answer = staticmethod(openai.answer)

    def send(self, request: JSON, reply: JSON) -> JSON:
        return reply


SINCE: Any = Since()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workspace")


def parts(body: JSON) -> list[tuple[str, int, JSON]]:
    """Every part of every message: role, number of the message, and the part."""
    return [
        (message["role"], number, part)
        for number, message in enumerate(body["messages"])
        for part in (
            message["content"]
            if isinstance(message["content"], list)
            else [{"type": "text", "text": message["content"]}]
        )
    ]


def marked(body: JSON) -> list[tuple[str, int]]:
    return [(role, number) for role, number, part in parts(body) if BREAK in part]


def unmarked(body: JSON) -> list[JSON]:
    plain: list[JSON] = json.loads(json.dumps(body["messages"]))
    for message in plain:
        for part in message["content"] if isinstance(message["content"], list) else ():
            part.pop(BREAK, None)
    return plain


def of(turn: Turn) -> WireRequest:
    return turn._wire_request


async def play(folder: Path, **given: Any) -> list[JSON]:
    """Requests of a session: a question with attachments, eighteen calls at once, one more call,
    and another question."""
    session = await open_with(SINCE, folder, system=PERSONA, **given)
    bodies = []
    turn = await session.prepare("Which city?", attach=["api.md", "plan.png"])
    for count in (18, 1, 0):
        bodies.append(turn.request())
        check_body(bodies[-1], of(turn).target)
        calls: list[tuple[str, str, JSON]] = [
            (f"call-{count}-{n}", "clock", {}) for n in range(count)
        ]
        reply = openai.calling(*calls) if calls else openai.answer("Oslo.")
        turn = await turn.commit(reply)
        if calls:
            turn = await turn.resume({call: "noon" for call, _, _ in calls})
    turn = await session.prepare("And then?")
    bodies.append(turn.request())
    check_body(bodies[-1], of(turn).target)
    return bodies


def test_where_a_request_ended_is_marked_in_the_next_one(tmp_path: Path) -> None:
    bodies = anyio.run(play, tmp_path)
    places = [marked(body) for body in bodies]
    assert places == [
        [("system", 0), ("user", 1)],
        [("system", 0), ("user", 1), ("tool", 20)],
        [("system", 0), ("tool", 20), ("tool", 22)],
        [("system", 0), ("tool", 22), ("user", 24)],
    ]
    for before, after in pairwise(places):
        assert before[-1] in after
    for body in bodies:
        assert body["prompt_cache_options"] == {"mode": "explicit", "ttl": "30m"}


def test_marking_changes_nothing_else(tmp_path: Path) -> None:
    for before, after in pairwise(anyio.run(play, tmp_path)):
        sent, again = unmarked(before), unmarked(after)
        assert again[: len(sent)] == sent
        assert before["tools"] == after["tools"]


@settings(max_examples=25, deadline=None, database=None)
@given(said=turns)
def test_every_request_reads_all_that_the_one_before_it_wrote(
    folder: Path, said: list[Said]
) -> None:
    async def main() -> None:
        cache = OpenAICache()
        written = 0
        for body in await converse(SINCE, folder, said, system=PERSONA):
            target = load_book().find(SINCE.target)
            check_body(body, target)
            assert len(marked(body)) <= 4
            account = cache.use(body, target, 1.0)
            assert account.cached == written
            written = account.cached + account.written
            assert written > 0

    anyio.run(main)


def test_the_ends_of_system_and_library_are_marked_apart(tmp_path: Path) -> None:
    (tmp_path / "rule.md").write_text("Say where north is. " * 300, "utf-8")

    async def main() -> None:
        session = await open_with(SINCE, tmp_path, system=PERSONA)
        turn = await session.prepare("First?", attach=["rule.md"])
        await turn.commit(openai.answer("Up."))
        # Another model is a boundary: what was attached stands in the library now.
        turn = await session.prepare("Second?", target="openai:gpt-6")
        body = turn.request()
        system = [part for role, _, part in parts(body) if role == "system"]
        assert [BREAK in part for part in system] == [True, False, True]
        assert "Say where north is." in system[2]["text"]
        assert marked(body) == [("system", 0), ("system", 0), ("user", 1), ("user", 3)]

    anyio.run(main)


def test_what_is_gone_with_the_next_request_is_not_marked(tmp_path: Path) -> None:
    async def main() -> None:
        session = await open_with(SINCE, tmp_path, system=PERSONA)
        hint = Message(role="user", blocks=(Text("It is noon."),), id="hint")
        await session.apply("test", MessagesUncachedAppend(messages=(hint,)))
        turn = await session.prepare("What time is it?")
        body = turn.request()
        assert marked(body) == [("system", 0), ("user", 1)]
        assert "It is noon." in json.dumps(body["messages"][-1])
        assert len(body["messages"]) == 3

    anyio.run(main)


def test_a_short_request_is_not_marked(tmp_path: Path) -> None:
    async def main() -> None:
        session = await open_with(SINCE, tmp_path)
        body = (await session.prepare("Hello?")).request()
        assert marked(body) == []
        # Nothing of it is worth being written.
        assert body["prompt_cache_options"]["mode"] == "explicit"

    anyio.run(main)


@pytest.mark.parametrize("target", ["openai:gpt-4o", "openai:gpt-5.5", "compatible:gpt-5.6"])
def test_others_get_no_breakpoints(target: str, tmp_path: Path) -> None:
    class Other:
        pass

    other: Any = Other()
    other.target = target

    async def main() -> None:
        session = await open_with(other, tmp_path, system=PERSONA)
        body = (await session.prepare("Hello?")).request()
        assert marked(body) == []
        assert "prompt_cache_options" not in body
        assert isinstance(body["messages"][0]["content"], str)
        assert ("prompt_cache_key" in body) == target.startswith("openai:")

    anyio.run(main)


def test_a_long_key_is_shortened_and_stays_its_own(tmp_path: Path) -> None:
    async def main() -> None:
        session = await open_with(SINCE, tmp_path)
        request = of(await session.prepare("Hello?"))
        short, long = "s" * 64, "s" * 65
        assert wire.encode(replace(request, cache_key=short))["prompt_cache_key"] == short
        hashed = wire.encode(replace(request, cache_key=long))["prompt_cache_key"]
        assert len(hashed) == 64
        assert hashed != short

    anyio.run(main)


def test_tools_are_restricted_without_touching_the_list(tmp_path: Path) -> None:
    async def main() -> None:
        session = await open_with(SINCE, tmp_path, tools=(WEATHER, CLOCK))
        request = of(await session.prepare("Hello?"))
        whole = wire.encode(request)
        some = wire.encode(replace(request, allowed_tools=("clock", "gone")))
        none = wire.encode(replace(request, allowed_tools=()))
        assert whole["tools"] == some["tools"] == none["tools"]
        assert "tool_choice" not in whole
        allowed = [{"type": "function", "function": {"name": "clock"}}]
        assert some["tool_choice"] == {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "auto", "tools": allowed},
        }
        assert none["tool_choice"] == "none"
        for body in (whole, some, none):
            check_body(body, request.target)
        older = replace(request.target, restricts_tools=False)
        limited = replace(request, target=older, allowed_tools=("clock",))
        assert "tool_choice" not in wire.encode(limited)

    anyio.run(main)


CLOSED = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
OPEN = {"type": "object", "properties": {"cities": {"type": "array", "items": CLOSED}}}


@pytest.mark.parametrize(("schema", "strict"), [(CLOSED, True), (OPEN, False)])
def test_a_schema_is_enforced_where_it_leaves_nothing_open(
    schema: JSON, strict: bool, tmp_path: Path
) -> None:
    async def main() -> None:
        session = await open_with(SINCE, tmp_path, options=Options(schema=schema))
        turn = await session.prepare("Which city?")
        form = turn.request()["response_format"]
        assert form["type"] == "json_schema"
        assert form["json_schema"] == {"name": "answer", "schema": schema, "strict": strict}
        check_body(turn.request(), of(turn).target)
        wrong = {"name": "answer", "schema": OPEN, "strict": True}
        body = turn.request() | {"response_format": {"type": "json_schema", "json_schema": wrong}}
        with pytest.raises(OpenAIRefusal, match="additionalProperties"):
            check_body(body, of(turn).target)

    anyio.run(main)
