"""Schemas of strangers: nothing fetched, nothing run, nothing raised."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.schemas import check_arguments, check_schema

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "age": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]},
    },
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"name": "A", "tags": ["x"], "age": None}, None),
        ({}, "arguments: 'name' is a required property"),
        ({"name": 5}, "`name`: 5 is not of type 'string'"),
        ({"name": "A", "tags": ["x", 2]}, "`tags[1]`: 2 is not of type 'string'"),
        ({"name": "A", "age": -1}, "`age`: -1 is less than the minimum of 0"),
        (
            {"name": "A", "nmae": 1},
            "arguments: Additional properties are not allowed ('nmae' was unexpected)",
        ),
        ([], "arguments: [] is not of type 'object'"),
    ],
)
def test_a_problem_names_the_place_and_what_is_wrong(arguments: Any, problem: str | None) -> None:
    assert check_arguments(PERSON, arguments) == problem


def test_several_problems_are_told_at_once() -> None:
    problem = check_arguments(PERSON, {"name": 1, "tags": 2})
    assert problem == "`name`: 1 is not of type 'string'; `tags`: 2 is not of type 'array'"


def test_a_long_value_is_not_quoted_whole() -> None:
    problem = check_arguments(PERSON, {"name": ["x" * 100_000]})
    assert problem is not None
    assert len(problem) < 400


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({}, None),
        ({"type": "object"}, None),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {}}, None),
        ({"$schema": "http://nobody.invalid/knows"}, None),
        ({"properties": {"$ref": {"type": "string"}}}, None),
        ({"properties": {"a": {"enum": [{"$ref": "#/nowhere"}]}}}, None),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}, None),
        ({"properties": {"a": {"type": "string", "pattern": r"^\p{L}(?<x>y)$"}}}, None),
        ([], "a schema is an object, not a list"),
        (None, "a schema is an object, not null"),
        ({"$schema": 5}, "`$schema` is not text"),
        (
            {"properties": {"a": {"type": "strnig"}}},
            "at `properties.a.type`: 'strnig' is not valid under any of the given schemas",
        ),
        ({"$ref": "#/$defs/a"}, "'#/$defs/a' refers to nothing in it, and nothing is fetched"),
        (
            {"properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}},
            "'http://127.0.0.1:9/x' refers to nothing in it, and nothing is fetched",
        ),
    ],
)
def test_a_schema_that_cannot_be_used_is_said_to_be_so(schema: Any, problem: str | None) -> None:
    assert check_schema(schema) == problem


def test_a_reference_that_is_only_found_in_use_is_a_problem_in_words() -> None:
    inner = {"$id": "http://h.invalid/x", "properties": {"b": {"$ref": "other"}}}
    schema = {"properties": {"a": inner}}
    assert check_schema(schema) is None
    problem = check_arguments(schema, {"a": {"b": 1}})
    assert problem is not None
    assert "refers to nothing in it" in problem


def test_a_schema_that_refers_to_itself_without_end_is_a_problem_in_words() -> None:
    problem = check_arguments({"$ref": "#"}, {})
    assert problem == "the tool's own schema cannot be used: it refers to itself without end"


def test_a_schema_cannot_make_us_run_its_regular_expressions() -> None:
    evil = "^(a+)+$"
    schema = {
        "type": "object",
        "properties": {"a": {"pattern": evil}},
        "patternProperties": {evil: {}},
        "additionalProperties": False,
        "unevaluatedProperties": False,
    }
    began = time.monotonic()
    text = "a" * 40 + "!"
    assert check_arguments(schema, {"a": text, text: 1}) is None
    assert time.monotonic() - began < 20


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["type", "properties", "$ref", "$id", "$defs", "items", "anyOf", "enum", "$schema",
             "required", "const", "a", "additionalProperties", "$anchor", "not", "prefixItems"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(JSON, JSON)
def test_nothing_that_a_schema_may_be_is_raised(schema: Any, arguments: Any) -> None:
    problem = check_schema(schema)
    assert problem is None or problem
    if isinstance(schema, dict):
        found = check_arguments(schema, arguments)
        assert found is None or found
