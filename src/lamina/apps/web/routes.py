"""The table of routes: where each one is, what it accepts and returns, who may call it; and all
routes, joined from the modules of `handlers`.

Law: routing, checks, rights and the OpenAPI document all come from these rows; there is no second
list.
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
# The form of an answer: JSON, a stream of events, or a file.
AnswerForm = Literal["json", "events", "file"]


class Call(Struct, frozen=True):
    """One request, read and checked. `body` and `query` have the types that the route names."""

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
    """A route. `path` has its parameters in braces; `{name:path}` accepts slashes as well. `result`
    is the type of the answer; for a stream, of its events' data."""

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
    """Return the table. A module of `handlers` takes part by defining `ROUTES`."""
    names = sorted(module.name for module in iter_modules(handlers.__path__))
    modules = [import_module(f"{handlers.__name__}.{name}") for name in names]
    return tuple(route for module in modules for route in getattr(module, "ROUTES", ()))
