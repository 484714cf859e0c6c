"""Results that load tools, on every wire: named where that can be, described elsewhere."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from lamina.adapters.providers.model_book import load_book
from lamina.core.layers import Assembler, layout_for
from lamina.core.values.collections import Chain
from lamina.core.values.envelope import Envelope
from lamina.core.values.item import ItemId
from lamina.core.values.message import (
    LoadedTool,
    LoadedTools,
    Message,
    Text,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from lamina.core.values.wire import WireRequest

CLAUDE = "anthropic:claude-sonnet-5"
FIND = ToolDefinition(name="find_tools", description="Looks.", parameters={"type": "object"})
NAMES = ("read", "write", "send")


def definition(name: str, description: str = "") -> ToolDefinition:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    return ToolDefinition(name=name, description=description or f"Does {name}.", parameters=schema)


def search(number: int, *tools: ToolDefinition) -> tuple[Message, ...]:
    """A question, a search for it that brings these tools, and an answer."""
    call = ToolCall(id=f"c{number}", name="find_tools", arguments='{"query":"it"}')
    names = ", ".join(tool.name for tool in tools)
    result = ToolResult(call_id=call.id, name=call.name, text=f"Found {len(tools)}: {names}")
    loaded = tuple(
        LoadedTool(item=ItemId(f"tool:fake/{tool.name}"), definition=tool) for tool in tools
    )
    loads = LoadedTools(call_id=call.id, model="claude-sonnet-5", tools=loaded)
    return (
        Message(role="user", blocks=(Text("Go on."),), id=f"q{number}"),
        Message(role="assistant", blocks=(call,), id=f"a{number}"),
        Message(role="tool", blocks=(result, loads) if tools else (result,), id=f"r{number}"),
        Message(role="assistant", blocks=(Text("Done."),), id=f"d{number}"),
    )


def encode(messages: tuple[Message, ...], *listed: ToolDefinition, to: str = CLAUDE) -> Any:
    book = load_book()
    target = book.find(to)
    layout = layout_for("lazy", target.wire, target.model)
    assembler = Assembler(book.counter(target).count, layout)
    envelope = Envelope(tools=listed, cached=Chain(messages))
    prompt = assembler.assemble(envelope, {}, len(messages))
    return book.wire(target).encode(WireRequest(prompt=prompt, target=target))


def deferred(body: Any) -> list[str]:
    return [tool["name"] for tool in body.get("tools", ()) if tool.get("defer_loading")]


def results(body: Any) -> list[Any]:
    blocks = [block for message in body["messages"] for block in message["content"]]
    return [block["content"] for block in blocks if block["type"] == "tool_result"]


def test_a_result_names_tools_that_are_defined_behind_the_list() -> None:
    body = encode(search(1, definition("read"), definition("write")), FIND)
    assert body["tools"] == snapshot(
        [
            {
                "name": "find_tools",
                "description": "Looks.",
                "input_schema": {"type": "object", "properties": {}},
            },
            {
                "name": "read",
                "description": "Does read.",
                "input_schema": {
                    "type": "object",
                    "properties": {"path": {"type": "string"}},
                    "required": ["path"],
                },
                "defer_loading": True,
            },
            {
                "name": "write",
                "description": "Does write.",
                "input_schema": {
                    "type": "object",
                    "properties": {"path": {"type": "string"}},
                    "required": ["path"],
                },
                "defer_loading": True,
            },
        ]
    )
    assert body["messages"][2] == snapshot(
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [
                        {"type": "tool_reference", "tool_name": "read"},
                        {"type": "tool_reference", "tool_name": "write"},
                    ],
                }
            ],
        }
    )


@pytest.mark.parametrize(
    "other", ["openai:gpt-4o", "gemini:gemini-2.5-flash", "anthropic:claude-opus-4-5"]
)
def test_who_did_not_load_them_is_told_what_they_are(other: str) -> None:
    body = str(encode(search(1, definition("read")), FIND, to=other))
    assert "Call these tools through use_tool:" in body
    assert "<tool_context>" in body
    assert "read: Does read." in body
    assert "tool_reference" not in body
    assert "defer_loading" not in body


def test_what_stands_in_the_list_is_not_loaded() -> None:
    body = encode(search(1, definition("read"), definition("write")), FIND, definition("read"))
    assert deferred(body) == ["write"]
    assert results(body) == [[{"type": "tool_reference", "tool_name": "write"}]]
    body = encode(search(1, definition("read")), FIND, definition("read"))
    assert deferred(body) == []
    assert results(body) == ["Found 1: read"]


def test_without_a_list_nothing_is_loaded() -> None:
    body = encode(search(1, definition("read")))
    assert "tools" not in body
    assert results(body) == ["Found 1: read"]


def test_a_name_is_loaded_as_it_was_first() -> None:
    messages = (*search(1, definition("read")), *search(2, definition("read", "Other.")))
    body = encode(messages, FIND)
    assert [tool["description"] for tool in body["tools"]] == ["Looks.", "Does read."]
    assert results(body) == [[{"type": "tool_reference", "tool_name": "read"}], "Found 1: read"]


def test_a_result_that_loads_tools_is_as_large_as_their_definitions() -> None:
    book = load_book()
    target = book.find(CLAUDE)
    assembler = Assembler(book.counter(target).count, layout_for("lazy", target.wire, target.model))
    bare, one, two = (
        sum(assembler.message_sizes(search(1, *map(definition, names))))
        for names in ((), NAMES[:1], NAMES[:2])
    )
    assert one - bare >= assembler.definition_tokens(definition("read")) - 10
    assert two - one == assembler.definition_tokens(definition("write"))


@given(st.lists(st.lists(st.sampled_from(NAMES), unique=True, max_size=3), max_size=5), st.data())
def test_every_name_has_one_definition_and_what_was_sent_stays(
    searches: list[list[str]], data: st.DataObject
) -> None:
    messages: tuple[Message, ...] = ()
    for number, names in enumerate(searches):
        messages += search(number, *map(definition, names))
    until = data.draw(st.integers(0, len(searches))) * 4
    before, after = encode(messages[:until], FIND), encode(messages, FIND)
    named = [part["tool_name"] for r in results(after) if isinstance(r, list) for part in r]
    assert deferred(after) == list(dict.fromkeys(named))
    assert after["tools"][: len(before["tools"])] == before["tools"]
    assert after["messages"][: len(before["messages"])] == before["messages"]
