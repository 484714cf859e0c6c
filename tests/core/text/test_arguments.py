"""What a tool takes, said in few words and without losing anything."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from lamina.core.text.tool_descriptions import (
    brief_schema,
    describe_arguments,
    describe_briefly,
    describe_signature,
    is_one_word,
)


def test_plain_arguments_are_said_in_words() -> None:
    schema = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where\n it is."},
            "limit": {"type": "integer", "default": 10},
            "mode": {"enum": ["r", "w"]},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["path"],
    }
    assert describe_arguments(schema) == snapshot("""\
Arguments:
- path (string): Where it is.
- limit (integer, optional, default 10)
- mode (one of "r", "w", optional)
- tags (list of string, optional)\
""")


def test_a_tool_without_arguments_says_so() -> None:
    assert describe_arguments({"type": "object", "properties": {}}) == "Arguments: none"


def test_what_words_cannot_say_stands_as_its_schema() -> None:
    span = {"type": "object", "properties": {"from": {"type": "string"}}}
    schema = {"type": "object", "properties": {"span": span, "n": {"type": "number", "minimum": 1}}}
    assert describe_arguments(schema) == snapshot("""\
Arguments:
- span (optional; as a JSON Schema): {"properties":{"from":{"type":"string"}},"type":"object"}
- n (optional; as a JSON Schema): {"minimum":1,"type":"number"}\
""")


def test_a_schema_with_more_than_a_list_stands_whole() -> None:
    schema = {"type": "object", "properties": {}, "oneOf": [{"required": ["a"]}]}
    assert json.dumps(schema["oneOf"], separators=(",", ":")) in describe_arguments(schema)


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text(max_size=5))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["type", "properties", "required", "items", "enum", "x", "$defs"]), VALUES
    )
)
def test_any_schema_can_be_described(schema: dict[str, Any]) -> None:
    assert describe_arguments(schema).startswith("Arguments")


@pytest.mark.parametrize("name", ["search", "fetch2", "URL", "_run_", "搜索", ""])
def test_a_name_of_one_word_is_told(name: str) -> None:
    assert is_one_word(name)


@pytest.mark.parametrize("name", ["read_file", "get-news", "getUser", "notes.list", "搜索_网页"])
def test_a_name_of_several_words_is_told(name: str) -> None:
    assert not is_one_word(name)


def test_a_tool_in_brief_is_a_sentence_and_a_signature() -> None:
    schema = {
        "type": "object",
        "properties": {"mode": {"enum": ["r", "w"]}, "day": {"type": "string"}},
        "required": ["day"],
    }
    assert describe_briefly("tide", "Tells the tide. For sailors.", schema) == snapshot("""\
tide: Tells the tide.
Arguments: mode?: one of "r", "w", day: string\
""")
    assert describe_signature("tide", schema) == snapshot(
        'tide: Arguments: mode?: one of "r", "w", day: string'
    )


def test_of_very_many_choices_and_arguments_a_brief_schema_names_some() -> None:
    fields: dict[str, Any] = {f"field_{number}": {"type": "string"} for number in range(500)}
    fields |= {"zone": {"type": "string", "enum": [f"z{number}" for number in range(600)]}}
    schema = {"type": "object", "properties": fields, "required": ["field_499", "zone"]}
    brief = brief_schema(schema)
    assert brief["properties"]["zone"] == {"type": "string"}
    assert "field_499" in brief["properties"]
    assert 50 < len(brief["properties"]) < 150
    assert len(describe_signature("form", brief)) < 2_100


@given(
    st.dictionaries(
        st.sampled_from(["type", "properties", "required", "items", "enum", "x", "$defs"]), VALUES
    )
)
def test_any_schema_can_be_described_in_brief(schema: dict[str, Any]) -> None:
    assert describe_signature("tool", schema).startswith("tool: Arguments:")
    assert brief_schema(schema)["type"] == "object"
