"""The table of routes: where each one is, what it takes and gives, who may call it; and all of
them, joined from the modules of `handlers`.

Law: routing, checks, rights and the OpenAPI document all come from these rows; there is no
second list of anything.
"""

from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Literal

from msgspec import Struct

from lamina.apps.web import handlers
from lamina.apps.web.desk import Desk
from lamina.apps.web.guard import Right

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
# What an answer is: JSON, a stream of events, or a file.
AnswerForm = Literal["json", "events", "file"]


class Call(Struct, frozen=True):
    """One request, read and checked. `body` and `query` are of the types that the route names."""

    desk: Desk
    path: Mapping[str, str]
    body: Any
    query: Any
    headers: Mapping[str, str]

    @property
    def workspace(self) -> str:
        return self.path["workspace"]

    @property
    def session(self) -> str:
        return self.path["session"]


class Route(Struct, frozen=True, kw_only=True):
    """`path` has its parameters in braces; `{name:path}` takes slashes as well. `result` is the
    type of the answer; of a stream, that of the data of its events."""

    method: Method
    path: str
    handler: Callable[[Call], Awaitable[Any]]
    result: Any
    summary: str
    body: type[Struct] | None = None
    query: type[Struct] | None = None
    right: Right = "read"
    status: int = 200
    form: AnswerForm = "json"


def all_routes() -> tuple[Route, ...]:
    """The table. A module of `handlers` takes part by having `ROUTES`."""
    names = sorted(module.name for module in iter_modules(handlers.__path__))
    modules = [import_module(f"{handlers.__name__}.{name}") for name in names]
    return tuple(route for module in modules for route in getattr(module, "ROUTES", ()))
