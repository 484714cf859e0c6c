"""An emulated model that is held to a schema gives what is valid by it, and always the same."""

from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.schemas import check_arguments
from lamina.emulators.answers import EmulatedRequest, ScriptedAnswers, ask, make_instance

numbers = st.fixed_dictionaries(
    {"type": st.sampled_from(["integer", "number"])},
    optional={"minimum": st.integers(-9, 9), "multipleOf": st.sampled_from([1, 5])},
)
texts = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={"minLength": st.integers(0, 4), "maxLength": st.integers(4, 9)},
    ),
    st.sampled_from([{"enum": ["a", "b"]}, {"const": 3}, {"type": ["string", "null"]}]),
)
leaves = st.one_of(numbers, texts, st.sampled_from([{"type": "boolean"}, {"type": "null"}, {}]))


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    properties = st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)
    return st.one_of(
        properties.flatmap(
            lambda shapes: st.fixed_dictionaries(
                {
                    "type": st.just("object"),
                    "properties": st.just(shapes),
                    "required": st.just(sorted(shapes)),
                    "additionalProperties": st.just(False),
                }
            )
        ),
        st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner}, optional={"minItems": st.integers(0, 3)}
        ),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
    )


schemas = st.recursive(leaves, objects, max_leaves=8)


@given(schemas, st.text(max_size=12))
def test_an_instance_is_valid_and_always_the_same(schema: Any, words: str) -> None:
    instance = make_instance(schema, words)
    assert check_arguments(schema, instance) is None
    assert make_instance(schema, words) == instance


TREE = {
    "$ref": "#/$defs/Node",
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "format": "date"},
                "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
                "all": {"allOf": [{"type": "object", "properties": {"x": {"const": 1}}},
                                  {"required": ["x"]}]},
                "pair": {"type": "array", "prefixItems": [{"const": "l"}, {"const": "r"}],
                         "minItems": 2, "maxItems": 2},
                "few": {"type": "number", "exclusiveMinimum": 0, "maximum": 0.5},
                "share": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            },
            "required": ["name", "next", "all", "pair", "few", "share"],
            "additionalProperties": False,
        }
    },
}  # fmt: skip


def test_a_schema_that_refers_to_itself_comes_to_an_end() -> None:
    instance = make_instance(TREE, "words")
    assert check_arguments(TREE, instance) is None
    assert instance["name"] == "2026-01-01"


@pytest.mark.parametrize(("script", "expected"), [("Prose.", '{"x":1}'), ('{"x": 1}', '{"x": 1}')])
def test_an_answer_that_is_valid_already_stays(script: str, expected: str) -> None:
    schema = {"type": "object", "properties": {"x": {"const": 1}}, "required": ["x"]}
    request = EmulatedRequest(messages=(("user", "Hi"),), schema=schema)
    answer = anyio.run(ask, ScriptedAnswers([script]), request)
    assert answer.text == expected


def test_where_a_tool_has_to_be_called_one_is_the_next_one_each_time() -> None:
    tools: dict[str, dict[str, Any]] = {"look": {}, "end": {"properties": {"x": {"const": 1}}}}
    names = []
    for called in ((), ("look",), ("end", "look")):
        request = EmulatedRequest(
            messages=(("user", "Hi"),), tools=tools, must_call=True, called=called
        )
        (call,) = anyio.run(ask, ScriptedAnswers(["Prose."]), request).calls
        names.append(call.name)
        assert call.arguments == ({"x": 1} if call.name == "end" else {})
    assert names == ["look", "end", "end"]
