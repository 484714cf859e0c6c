"""The public modules, and the names in them."""

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import lamina
import lamina.sync

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "lamina"
# Where a user's code may import from.
MODULES = ("lamina", "lamina.ops", "lamina.errors", "lamina.types", "lamina.sync")
# Made by opening a session or preparing a turn: their constructors are nobody's to call.
MADE_BY_US = (
    lamina.Session, lamina.Turn, lamina.ChatRunner, lamina.AgentRunner, lamina.QaRunner,
    lamina.PlanRunner, lamina.sync.Session, lamina.sync.Turn, lamina.sync.ChatRunner,
    lamina.sync.AgentRunner, lamina.sync.QaRunner, lamina.sync.PlanRunner, lamina.Workspace,
    lamina.sync.Workspace,
)  # fmt: skip


def names_of(module: str) -> list[str]:
    home = import_module(module)
    if module == "lamina.errors":
        return [name for name, value in vars(home).items() if inspect.isclass(value) and
                issubclass(value, lamina.LaminaError)]  # fmt: skip
    return list(home.__all__)


def public_names() -> Iterator[tuple[str, Any]]:
    """Every public name with its module in front, and what it is."""
    for module in MODULES:
        for name in names_of(module):
            yield f"{module}.{name}", getattr(import_module(module), name)


def public_members(owner: type) -> Iterator[tuple[str, Any]]:
    """The methods and properties of a class that are ours and not private, wherever in its bases
    they are written."""
    for name in dir(owner):
        if name.startswith("_"):
            continue
        value = inspect.getattr_static(owner, name)
        value = value.__func__ if isinstance(value, staticmethod | classmethod) else value
        function = value.fget if isinstance(value, property) else value
        home = getattr(inspect.unwrap(function), "__module__", "") if callable(function) else ""
        if home.startswith("lamina"):
            yield name, value
