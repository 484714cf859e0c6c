"""What holds the embedded model to citing: which request it is on, and which not."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.adapters.providers.llamacpp_bodies import (
    LlamaWire,
    ToldMessage,
    llama_body,
    llama_request,
    llama_target,
)
from tests.fakes.book import SMALL

from lamina.adapters.providers.wires.citation_grammar import write_citation_grammar
from lamina.core.assembly.wire_parameters import untaken_options
from lamina.core.values.envelope import Options
from lamina.core.values.message import Text, ToolDefinition

QUESTION: ToldMessage = ("user", [Text("How many berths?")])
FIND = ToolDefinition(name="find", description="Finds a file.")
SCHEMA = {"type": "object", "properties": {"berths": {"type": "integer"}}}
WIRES: tuple[LlamaWire, ...] = ("llamacpp", "llamacpp_tools")


@pytest.mark.parametrize("wire", WIRES)
def test_a_request_that_has_to_cite_carries_a_grammar_with_its_numbers(wire: LlamaWire) -> None:
    body = llama_body(wire, QUESTION, citations=(1, 3, 12))
    assert body["grammar"].endswith('mark ::= "[^" ("1" | "3" | "12") "]"\n')
    plain = llama_body(wire, QUESTION)
    assert {name: value for name, value in body.items() if name != "grammar"} == plain


@pytest.mark.parametrize(
    ("wire", "given", "why"),
    [
        ("llamacpp", {"tools": [FIND]}, "the request has tools"),
        ("llamacpp_tools", {"tools": [FIND]}, "the request has tools"),
        ("llamacpp_tools", {"options": Options(schema=SCHEMA)}, "the request has a schema"),
    ],
)
def test_an_answer_has_one_form_and_a_person_is_told_if_it_is_another(
    wire: LlamaWire, given: dict[str, Any], why: str
) -> None:
    request = llama_request(wire, QUESTION, citations=(1, 2), **given)
    assert "grammar" not in llama_body(wire, QUESTION, citations=(1, 2), **given)
    assert request.enforced_citations == ()
    assert f"local:tiny is not held to citing: {why}" in untaken_options(request)


def test_a_schema_beside_tools_is_told_to_be_left_away() -> None:
    options = Options(schema=SCHEMA)
    request = llama_request("llamacpp_tools", QUESTION, tools=[FIND], options=options)
    assert untaken_options(request) == (
        "local:tiny takes tools or a schema: the schema is not sent",
    )
    assert untaken_options(llama_request("llamacpp_tools", QUESTION, options=options)) == ()


def test_targets_that_cannot_be_held_to_it_are_sent_what_they_always_were() -> None:
    request = llama_request("llamacpp", QUESTION, citations=(1, 2))
    for target in (
        replace(llama_target("llamacpp"), enforces_citations=False),
        # A book may say so of a vendor, whose wire has no word for it.
        replace(SMALL, wire="openai", enforces_citations=True),
    ):
        other = replace(request, target=target)
        assert other.enforced_citations == ()
        assert untaken_options(other) == ()


@given(st.sets(st.integers(1, 999), min_size=1, max_size=40))
def test_a_grammar_is_the_same_but_for_its_numbers(numbers: set[int]) -> None:
    rules, _, mark = write_citation_grammar(sorted(numbers)).rpartition("mark ::= ")
    assert rules == write_citation_grammar((1,)).rpartition("mark ::= ")[0]
    assert [int(part) for part in mark.split('"') if part.isdigit()] == sorted(numbers)
