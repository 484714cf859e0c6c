"""Every wire takes the options that it is not said to go without."""

from typing import Any, get_args

import pytest
from msgspec.structs import replace
from tests.fakes.book import SMALL, FakeBook

from lamina.adapters.providers.model_book import load_book
from lamina.core.assembly.wire_parameters import untaken_options
from lamina.core.values.collections import Chain
from lamina.core.values.envelope import Options
from lamina.core.values.message import ToolDefinition
from lamina.core.values.prompt import Prompt, Segment, link_segments
from lamina.core.values.settings import Target, WireName
from lamina.core.values.wire import WireRequest

GIVEN: dict[str, Any] = {
    "temperature": 0.25, "top_p": 0.75, "max_tokens": 321, "reasoning": "low",
    "schema": {"type": "object"},
}  # fmt: skip
WIRES = get_args(WireName)


def with_tools() -> Prompt:
    tool = Segment(
        layer="tools", role="system", message="", source="tool:look_up", tokens=5, digest="d",
        content=ToolDefinition(name="look_up", description="", parameters={}),
    )  # fmt: skip
    return Prompt(front=link_segments(Chain(), [tool]))


def encode(target: Target, prompt: Prompt, options: Options) -> dict[str, Any]:
    request = WireRequest(prompt=prompt, target=target, options=options)
    return dict(FakeBook(target).wire(target).encode(request))


def untaken(options: Options, target: Target, prompt: Prompt) -> tuple[str, ...]:
    return untaken_options(WireRequest(prompt=prompt, target=target, options=options))


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("takes_sampling", [True, False])
@pytest.mark.parametrize("prompt", [Prompt(), with_tools()], ids=["bare", "tools"])
def test_an_option_is_on_the_wire_or_named_as_untaken(
    wire: WireName, name: str, takes_sampling: bool, prompt: Prompt
) -> None:
    # Only models of OpenAI and Anthropic refuse it; on other wires the book never says so.
    is_free = takes_sampling or wire not in ("openai", "anthropic")
    target = replace(SMALL, wire=wire, takes_sampling=is_free)
    options = Options(**{name: GIVEN[name]})
    plain, given = (encode(target, prompt, chosen) for chosen in (Options(), options))
    named = untaken(options, target, prompt)
    assert (given == plain) == bool(named), (given, named)


@pytest.mark.parametrize("wire", WIRES)
def test_reasoning_that_is_off_is_no_option_and_nothing_is_missing(wire: WireName) -> None:
    target, off = replace(SMALL, wire=wire), Options(reasoning="off")
    assert encode(target, Prompt(), off) == encode(target, Prompt(), Options())
    assert untaken(off, target, Prompt()) == ()


@pytest.mark.parametrize("model", ["gpt-5", "gpt-5.6", "gpt-6", "gpt-6.1-sol", "o1", "o4-mini"])
def test_models_of_openai_that_reason_get_neither_temperature_nor_top_p(model: str) -> None:
    target = load_book().find(f"openai:{model}")
    options = Options(temperature=0.2, top_p=0.9, max_tokens=50)
    assert not {"temperature", "top_p"} & set(encode(target, Prompt(), options))
    assert untaken(options, target, Prompt()) == (
        f"openai:{model} knows no temperature: it is not sent",
        f"openai:{model} knows no top_p: it is not sent",
    )


@pytest.mark.parametrize("model", ["claude-sonnet-5", "claude-opus-5-5", "claude-opus-4-8"])
def test_newer_models_of_anthropic_get_neither(model: str) -> None:
    target = load_book().find(f"anthropic:{model}")
    options = Options(temperature=0.2, top_p=0.9, max_tokens=50)
    assert "extra_body" not in encode(target, Prompt(), options)
    assert untaken(options, target, Prompt()) == (
        f"anthropic:{model} knows no temperature: it is not sent",
        f"anthropic:{model} knows no top_p: it is not sent",
    )


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4.1"])
def test_models_of_openai_before_those_get_both(model: str) -> None:
    target = load_book().find(f"openai:{model}")
    options = Options(temperature=0.2, top_p=0.9)
    assert encode(target, Prompt(), options).items() >= {"temperature": 0.2, "top_p": 0.9}.items()
    assert untaken(options, target, Prompt()) == ()


EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max", "xxx")


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("openai:gpt-4o", ()),
        ("openai:gpt-5.6", EFFORTS[:-1]),
        ("anthropic:claude-opus-5", EFFORTS[2:-1]),
        ("anthropic:claude-sonnet-4-6", EFFORTS[2:-1]),
        ("anthropic:claude-sonnet-4-5", ()),
        ("anthropic:claude-3-5-haiku-latest", ()),
        ("gemini:gemini-3-pro", EFFORTS[1:5]),
        ("compatible:any", EFFORTS),
    ],
)
def test_a_target_gets_the_efforts_that_it_has_words_for(name: str, taken: tuple[str, ...]) -> None:
    target = load_book().find(name)
    plain = encode(target, Prompt(), Options())
    for effort in EFFORTS:
        options = Options(reasoning=effort)
        assert (encode(target, Prompt(), options) != plain) == (effort in taken), effort
        warnings = untaken(options, target, Prompt())
        assert bool(warnings) == (effort not in taken), (effort, warnings)
        assert all(repr(effort) in warning for warning in warnings)
