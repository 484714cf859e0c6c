"""Python functions as tools: what a model is told, what it gets back, and what is refused early."""

import enum
import functools
import re
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import anyio
import msgspec
import pytest
from inline_snapshot import snapshot

from lamina.adapters.tools.functions import FunctionTool, FunctionTools, tool
from lamina.core.schemas import check_arguments
from lamina.core.text.excerpt import cut_text
from lamina.core.values.tool import ToolOutput
from lamina.errors import UsageError

pytestmark = pytest.mark.anyio


class Unit(enum.Enum):
    METRIC = "metric"
    US = "us"


@dataclass
class Place:
    lat: float
    lon: float


class Node(msgspec.Struct):
    name: str
    children: list["Node"] = []


@tool
def forecast(
    city: str,
    days: Annotated[int, "How many days ahead."] = 3,
    unit: Unit = Unit.METRIC,
    around: list[Place] | None = None,
    kind: Literal["rain", "wind"] = "rain",
) -> dict[str, Any]:
    """Says what the weather
    will be.

    This is for people who read code.

    Args:
        city (str): The city,
            with its country.
        days: Not this, the annotation says more.
        unit: Which units.

    Returns:
        A forecast.
    """
    return {"city": city, "days": days, "unit": unit, "around": around, "kind": kind}


def test_a_definition_is_read_from_the_signature_and_the_docstring() -> None:
    definition = forecast.offered.definition
    assert (definition.name, definition.description) == (
        "forecast",
        "Says what the weather will be.",
    )
    assert definition.parameters == snapshot(
        {
            "additionalProperties": False,
            "properties": {
                "around": {
                    "anyOf": [
                        {
                            "items": {
                                "properties": {
                                    "lat": {"type": "number"},
                                    "lon": {"type": "number"},
                                },
                                "required": ["lat", "lon"],
                                "title": "Place",
                                "type": "object",
                            },
                            "type": "array",
                        },
                        {"type": "null"},
                    ],
                    "default": None,
                },
                "city": {"description": "The city, with its country.", "type": "string"},
                "days": {
                    "default": 3,
                    "description": "How many days ahead.",
                    "type": "integer",
                },
                "kind": {"default": "rain", "enum": ["rain", "wind"]},
                "unit": {
                    "description": "Which units.",
                    "enum": ["metric", "us"],
                    "title": "Unit",
                },
            },
            "required": ["city"],
            "type": "object",
        }
    )
    assert forecast.offered.permission == "required"
    assert forecast.offered.id == "tool:/forecast"


def test_a_type_that_holds_itself_stays_a_reference_that_resolves() -> None:
    def plant(tree: Node) -> None: ...

    schema = FunctionTool(plant).offered.definition.parameters
    assert schema["properties"]["tree"] == {"$ref": "#/$defs/Node"}
    assert check_arguments(schema, {"tree": {"name": "a", "children": [{"name": "b"}]}}) is None
    assert check_arguments(schema, {"tree": {"name": "a", "children": [{}]}}) is not None


def test_a_tool_is_still_the_function_it_was_made_of() -> None:
    assert forecast("Rome", days=1)["days"] == 1
    assert forecast.__name__ == "forecast"


def test_a_changed_description_is_another_digest() -> None:
    def first() -> None:
        """One."""

    one = FunctionTool(first).offered
    assert FunctionTool(first).offered.digest == one.digest
    assert FunctionTool(first, description="Two.").offered.digest != one.digest


async def test_arguments_become_what_the_function_wants() -> None:
    given = {"city": "Rome", "unit": "us", "around": [{"lat": 1, "lon": 2}]}
    output = await forecast.run(given)
    assert output == ToolOutput(
        text='{"around":[{"lat":1.0,"lon":2.0}],"city":"Rome","days":3,"kind":"rain","unit":"us"}'
    )


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"city": 5}, "Expected `str`, got `int` - at `$.city`"),
        ({}, "Object missing required field `city`"),
        ({"city": "Rome", "dyas": 1}, "Object contains unknown field `dyas`"),
        ({"city": "Rome", "days": "many"}, "Expected `int`, got `str` - at `$.days`"),
        ({"city": "Rome", "unit": "si"}, "Invalid enum value 'si' - at `$.unit`"),
    ],
)
async def test_wrong_arguments_are_an_error_that_says_where(
    given: dict[str, Any], problem: str
) -> None:
    output = await forecast.run(given)
    assert output == ToolOutput(text=f"Wrong arguments for 'forecast': {problem}", is_error=True)


async def test_a_number_in_quotes_is_taken_where_a_number_is_meant_and_only_there() -> None:
    def show(count: int, code: int | str) -> str:
        return f"{count!r} {code!r}"

    assert (await FunctionTool(show).run({"count": "5", "code": "5"})).text == "5 '5'"


async def test_a_default_that_can_change_is_the_functions_own() -> None:
    seen: list[int] = [1, 2]

    def show(numbers: list[int] = seen) -> bool:
        return numbers is seen

    assert (await FunctionTool(show).run({})).text == "true"


class Odd:
    pass


def odd(value: Odd) -> None: ...
def starred(*names: str) -> None: ...
def named(**names: str) -> None: ...
def bare(value) -> None: ...  # type: ignore[no-untyped-def]
def positional(value: int, /) -> None: ...
def unknown(value: "Nowhere") -> None: ...  # type: ignore[name-defined] # noqa: F821


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (odd, r"tool 'odd', parameter 'value': Odd cannot be passed as JSON"),
        (starred, r"tool 'starred', parameter 'names': .*\*args and \*\*kwargs cannot be offered"),
        (named, r"tool 'named', parameter 'names': .*\*args and \*\*kwargs cannot be offered"),
        (bare, r"tool 'bare', parameter 'value': it has no annotation"),
        (positional, r"tool 'positional', parameter 'value': .* remove the '/'"),
        (unknown, r"tool 'unknown': its signature cannot be read: name 'Nowhere'"),
        (lambda: None, r"'<lambda>' is not a valid tool name"),
    ],
)
def test_a_function_that_no_model_could_call_is_refused_at_once(
    function: Callable[..., Any], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        FunctionTools(function)


def test_options_that_cannot_be_are_refused() -> None:
    with pytest.raises(UsageError, match="'required' or 'free', not 'never'"):
        tool(permission="never")(odd)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="seconds above 0"):
        tool(timeout=0)(starred)
    with pytest.raises(UsageError, match="two functions are called 'forecast'"):
        FunctionTools(forecast, forecast)


async def test_methods_partials_and_objects_can_be_tools() -> None:
    class Shelf:
        def __init__(self) -> None:
            self.books = ["Dune"]

        async def titles(self) -> list[str]:
            return self.books

        def __call__(self, number: int) -> str:
            return self.books[number]

    shelf = Shelf()

    def joined(left: str, right: str) -> str:
        return left + right

    fixed = FunctionTool(functools.partial(joined, right="!"), name="shout")
    tools = FunctionTools(shelf.titles, FunctionTool(shelf, name="take"), fixed)
    assert (await tools.call("titles", {})).text == '["Dune"]'
    assert (await tools.call("take", {"number": 0})).text == "Dune"
    assert (await tools.call("shout", {"left": "hey"})).text == "hey!"
    assert (await tools.call("shout", {"left": "hey", "right": "?"})).is_error
    assert list(fixed.offered.definition.parameters["properties"]) == ["left"]
    offered = (await tools.toolset()).tools
    assert [tool.definition.name for tool in offered] == ["titles", "take", "shout"]


async def test_a_plain_function_runs_beside_the_event_loop() -> None:
    def where() -> bool:
        return threading.current_thread() is threading.main_thread()

    async def here() -> bool:
        return threading.current_thread() is threading.main_thread()

    tools = FunctionTools(where, here)
    assert (await tools.call("where", {})).text == "false"
    assert (await tools.call("here", {})).text == "true"


def fails() -> None:
    raise ValueError("no such city")


def leaves() -> None:
    sys.exit("bye")


async def fails_twice() -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_raise)


async def _raise() -> None:
    raise KeyError("inner")


def gives_bytes() -> bytes:
    return b"abc"


def gives_generator() -> Iterator[int]:
    yield 1


def gives_surrogate() -> str:
    return "a\ud800b"


def gives_nothing() -> None: ...


@pytest.mark.parametrize(
    ("function", "problem", "is_error"),
    [
        (fails, "ValueError: no such city", True),
        (leaves, "SystemExit: bye", True),
        (fails_twice, "KeyError: 'inner'", True),
        (gives_bytes, "'gives_bytes' gave 3 bytes, which are no text", True),
        (gives_generator, "'gives_generator' gave a generator, which JSON cannot carry", True),
        (gives_surrogate, "a\ufffd\ufffd\ufffdb", False),
        (gives_nothing, "(no result)", False),
    ],
)
async def test_whatever_a_function_does_is_the_result_of_its_call(
    function: Callable[..., Any], problem: str, is_error: bool
) -> None:
    output = await FunctionTool(function).run({})
    assert problem in output.text
    assert output.is_error is is_error


async def test_a_function_that_takes_too_long_is_given_up() -> None:
    release = threading.Event()

    async def sleepy() -> None:
        await anyio.sleep_forever()

    def stuck() -> None:
        release.wait(10)

    with anyio.fail_after(5):
        try:
            slow = await FunctionTool(sleepy, timeout=0.05).run({})
            assert slow == ToolOutput(text="'sleepy' timed out after 0.05 s", is_error=True)
            held = await FunctionTool(stuck, timeout=0.05).run({})
            assert held.text == "'stuck' timed out after 0.05 s; it may still be running"
        finally:
            release.set()


async def test_a_cancellation_gets_out() -> None:
    async def sleepy() -> None:
        await anyio.sleep_forever()

    with anyio.move_on_after(0.05) as scope:
        await FunctionTool(sleepy).run({})
    assert scope.cancelled_caught


async def test_a_long_result_is_cut_in_the_middle_with_a_note() -> None:
    def much() -> str:
        return "a" * 1000 + "z" * 1000

    text = (await FunctionTool(much, max_characters=200).run({})).text
    assert len(text) == 200
    assert text.startswith("aaa")
    assert text.endswith("zzz")
    assert "[… cut here: 2,000 characters in all, at most 200 are shown …]" in text


def test_a_cut_is_never_longer_than_its_limit() -> None:
    for limit in range(300):
        assert len(cut_text("x" * 500, limit)) == limit
    assert cut_text("x" * 300, 300) == "x" * 300


def test_a_function_says_when_it_is_included() -> None:
    def tide() -> str:
        """Tells the tide."""
        return "high"

    assert tool(tide).offered.include == "always"
    searched = tool(include="agent")(tide).offered
    assert searched.include == "agent"
    # When it is included is no part of what it is.
    assert searched.digest == tool(tide).offered.digest
    with pytest.raises(
        UsageError, match="include must be 'always', 'manual' or 'agent', not 'often'"
    ):
        tool(include="often")(tide)  # type: ignore[call-overload]


def test_an_option_that_nobody_knows_is_refused_with_what_was_meant() -> None:
    options: Any = {"permision": "free"}
    message = "tool() got an unexpected keyword argument 'permision'; did you mean 'permission'?"
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        tool(**options)
