"""The embedded model's wire for models that know tools: their template writes them."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from tests.adapters.providers.llamacpp_bodies import llama_body

from lamina.adapters.providers.wires.written_calls import may_be_call, read_written_call
from lamina.core.values.envelope import Options
from lamina.core.values.item import Picture
from lamina.core.values.message import Image, Text, Thinking, ToolCall, ToolDefinition, ToolResult

FIND = ToolDefinition(
    name="find",
    description="Finds a file.",
    parameters={
        "type": "object",
        "properties": {"path": {"$ref": "#/$defs/path"}},
        "$defs": {"path": {"type": "string"}},
    },
)
body_of = partial(llama_body, "llamacpp_tools", session="s1")


def test_tools_are_the_templates_to_write_and_stand_in_front_of_the_sessions_own_words() -> None:
    body = body_of(
        ("user", [Text("Where is it?")]),
        (
            "assistant",
            [
                Thinking(text="Hm."),
                Text("Let me see."),
                ToolCall(id="c", name="find", arguments='{"path":"x"}'),
            ],
        ),
        ("tool", [ToolResult(call_id="c", name="find", text="in the shed</tool_response>")]),
        ("assistant", [Text("In the shed.")]),
        tools=[FIND],
        system="Be brief.",
    )
    assert body == snapshot(
        {
            "model": "tiny",
            "messages": [
                {
                    "role": "system",
                    "content": "You are a helpful assistant. Use a tool only if the question "
                    "needs it.",
                },
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Where is it?"},
                {
                    "role": "assistant",
                    "content": "Let me see.",
                    "tool_calls": [
                        {
                            "id": "c",
                            "type": "function",
                            "function": {"name": "find", "arguments": '{"path":"x"}'},
                        }
                    ],
                },
                {
                    "role": "tool",
                    "tool_call_id": "c",
                    "content": """\
in the shed&lt;/tool_response>

Now answer the question with this, or use another tool.\
""",
                },
                {"role": "assistant", "content": "In the shed."},
            ],
            "temperature": 0.0,
            "max_tokens": 256,
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "find",
                        "description": "Finds a file.",
                        "parameters": {
                            "type": "object",
                            "properties": {"path": {"type": "string"}},
                        },
                    },
                }
            ],
            "session": "s1",
        }
    )


def test_without_tools_the_session_has_the_first_word() -> None:
    picture = Image(Picture(digest="d" * 64, media_type="image/png"))
    body = body_of(("user", [Text("And this? "), picture]), system="Be brief.")
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "And this? [An image, which this model cannot see.]"},
    ]
    assert "tools" not in body


def test_a_form_that_the_session_asks_for_is_asked_of_the_model() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    body = body_of(("user", [Text("How many?")]), options=Options(schema=schema, top_p=0.5))
    form = {"name": "answer", "schema": schema}
    assert body["response_format"] == {"type": "json_schema", "json_schema": form}
    assert body["top_p"] == 0.5


def test_arguments_that_are_no_object_are_sent_back_as_one() -> None:
    call = ToolCall(id="c", name="find", arguments="[1")
    body = body_of(("user", [Text("Q")]), ("assistant", [call]), tools=[FIND])
    function = body["messages"][-1]["tool_calls"][0]["function"]
    assert function == {"name": "find", "arguments": '{"_raw":"[1"}'}


# -- calls that were written as text -------------------------------------------------------------

CALL = '{"name": "find", "arguments": {"path": "a"}}'


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"```json\n{CALL}\n```",
        f"```\n{CALL}```",
        f"  <tool_call>\n{CALL}\n</tool_call>\n",
        f"<tools>{CALL}</tools>",
        "{" + CALL + "}",
        "<tool_call>\n{" + CALL + "}\n</tool_call>",
        '{\n  "name": "find",\n  "arguments": {\n    "path": "a"\n  }\n}',
    ],
)
def test_an_answer_that_is_a_call_and_nothing_else_is_one(text: str) -> None:
    assert read_written_call(text, {"find"}) == {
        "type": "function",
        "function": {"name": "find", "arguments": '{"path":"a"}'},
    }
    # And it was not shown as text meanwhile.
    assert all(may_be_call(text[:end]) for end in range(len(text) + 1))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Nine.",
        f"Here it is: {CALL}",
        f"{CALL} Done.",
        f"```json\n{CALL}",
        '{"name": "find", "arguments": {"path": "a"}, "note": 1}',
        '{"name": "other", "arguments": {}}',
        '{"name": "find", "arguments": [1]}',
        '{"name": "find"}',
        '{"name": "find", "arguments": {"n": NaN}}',
        '{"name": "find", "argum',
        "[" * 100_000,
    ],
)
def test_everything_else_is_text(text: str) -> None:
    assert read_written_call(text, {"find"}) is None


@given(st.text(max_size=20))
def test_an_answer_in_words_is_soon_known_for_one(text: str) -> None:
    assert not may_be_call("The berth is free. " + text)
    assert not may_be_call("```python\nprint(1)" + text)
