"""Whatever waits in `lamina` has a twin in `lamina.sync` that takes the same and does not."""

import inspect
import pickle
import re
import typing
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Self

import pytest
from tests.public.faces import public_members

import lamina
import lamina.sync
import lamina.types

# Members that are deliberately missing, and why.
MISSING: dict[str, str] = {}
# Parameters that take more here, and what.
WIDER = {
    "open_agent.approver": "also a plain function, or an object whose `decide` is plain",
    "open_plan.approver": "also a plain function, or an object whose `decide` is plain",
}
OPENERS = ("open_session", "open_chat", "open_agent", "open_qa", "open_plan", "open_workspace")
CLASSES = ("Session", "Turn", "ChatRunner", "AgentRunner", "QaRunner", "PlanRunner", "Workspace")


def members() -> list[tuple[str, Any, Any]]:
    """Every public member of a class that waits, with its twin or None."""
    found = []
    for owner in CLASSES:
        twin = getattr(lamina.sync, owner)
        for name, value in public_members(getattr(lamina, owner)):
            if f"{owner}.{name}" not in MISSING:
                found.append((f"{owner}.{name}", value, inspect.getattr_static(twin, name, None)))
    return found


def parameters(place: str, function: Callable[..., Any]) -> list[tuple[Any, ...]]:
    """Name, kind, default and annotation of what a function takes."""
    parts = inspect.signature(function).parameters.values()
    return [
        (part.name, part.kind, part.default)
        + (() if f"{place}.{part.name}" in WIDER else (part.annotation,))
        for part in parts
    ]


@pytest.mark.parametrize(("place", "value", "twin"), [pytest.param(*m, id=m[0]) for m in members()])
def test_a_member_has_a_twin_that_takes_the_same(place: str, value: Any, twin: Any) -> None:
    assert twin is not None, f"lamina.sync lacks {place}; build it, or say why in MISSING"
    assert isinstance(twin, property) == isinstance(value, property)
    if isinstance(value, property):
        assert (twin.fset is None) == (value.fset is None)
        return
    assert not inspect.iscoroutinefunction(twin)
    assert parameters(place, twin) == parameters(place, value)


@pytest.mark.parametrize(("place", "value", "twin"), [pytest.param(*m, id=m[0]) for m in members()])
def test_a_member_says_what_its_twin_says(place: str, value: Any, twin: Any) -> None:
    text, own = inspect.getdoc(value) or "", inspect.getdoc(twin) or ""
    waiting = re.compile(r"\b(async|await)\s+")
    assert waiting.sub("", own).split() == waiting.sub("", text).split()
    assert not waiting.search(own)


def test_a_member_names_the_objects_of_this_door() -> None:
    hints = {
        "Session.prepare": lamina.sync.Turn, "Session.fork": Self, "Turn.commit": Self,
        "Session.current_turn": lamina.sync.Turn | None, "QaRunner.run": lamina.sync.Answer,
        "open_agent": lamina.sync.AgentRunner, "open_qa": lamina.sync.QaRunner,
    }  # fmt: skip
    for place, kind in hints.items():
        function = attrgetter(place)(lamina.sync)
        assert inspect.signature(function).return_annotation == kind, place
        assert typing.get_type_hints(function)["return"] == kind, place


def test_an_opener_is_found_where_it_is_imported_from() -> None:
    for name in OPENERS:
        function = getattr(lamina.sync, name)
        assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize("name", OPENERS)
def test_an_opener_has_a_twin_that_takes_the_same(name: str) -> None:
    twin = getattr(lamina.sync, name)
    assert not inspect.iscoroutinefunction(twin)
    assert parameters(name, twin) == parameters(name, getattr(lamina, name))


@pytest.mark.parametrize(
    ("record", "twin"),
    [(lamina.Answer, lamina.sync.Answer), (lamina.types.Preview, lamina.sync.Preview)],
)
def test_a_record_has_the_fields_of_its_twin(record: Any, twin: Any) -> None:
    fields = {name: kind for name, kind in record.__annotations__.items() if name != "turn"}
    own = {name: kind for name, kind in twin.__annotations__.items() if name != "turn"}
    assert own == fields
    assert twin.__struct_fields__ == record.__struct_fields__
    assert twin.__struct_defaults__ == record.__struct_defaults__


def test_no_twin_has_more_than_what_waits() -> None:
    for owner in CLASSES:
        # What the other side keeps as plain attributes is a property here.
        attributes = {"target", "verdict", "entry", "message", "attachments", "workspace", "hooks"}
        names = {name for name, _ in public_members(getattr(lamina, owner))} | attributes
        own = {name for name, _ in public_members(getattr(lamina.sync, owner))}
        assert own <= names, owner


def test_the_lists_of_exceptions_name_what_is_there() -> None:
    for place in MISSING:
        owner, _, name = place.partition(".")
        assert hasattr(getattr(lamina, owner), name)
    for place in WIDER:
        opener, _, name = place.partition(".")
        assert name in inspect.signature(getattr(lamina, opener)).parameters
