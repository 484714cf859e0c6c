"""Flags in groups: a command's parameter that is a dataclass stands for the fields of that class.
Typer itself knows no groups."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, TypeVar, get_type_hints

Result = TypeVar("Result")


def expand_flags(command: Callable[..., Result]) -> Callable[..., Result]:
    """The command with its groups replaced by their flags; it is called with the groups.

    Raises:
        TypeError: two of its flags have the same name.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: dict[str, inspect.Parameter] = {}
    groups: dict[str, Any] = {}

    def add(name: str, default: Any, kind: Any) -> None:
        if name in parameters:
            raise TypeError(f"{command.__name__} has the flag {name!r} twice")
        parameters[name] = inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
        )

    for name, parameter in inspect.signature(command).parameters.items():
        if not is_dataclass(kind := hints[name]):
            add(name, parameter.default, kind)
            continue
        groups[name] = kind
        kinds = get_type_hints(kind, include_extras=True)
        for field in fields(kind):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            add(field.name, default, kinds[field.name])

    @wraps(command)
    def call(**values: Any) -> Result:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        return command(**values)

    # Typer takes defaults from the one and types from the other.
    setattr(call, "__signature__", inspect.Signature(list(parameters.values())))  # noqa: B010
    call.__annotations__ = {name: flag.annotation for name, flag in parameters.items()}
    return call
