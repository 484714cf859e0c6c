"""All routes of the server, joined from the modules that have them."""

from importlib import import_module
from pkgutil import iter_modules

from lamina.apps.web import handlers
from lamina.apps.web.route import Route


def all_routes() -> tuple[Route, ...]:
    """The table. A module of `handlers` takes part by having `ROUTES`."""
    names = sorted(module.name for module in iter_modules(handlers.__path__))
    modules = [import_module(f"{handlers.__name__}.{name}") for name in names]
    return tuple(route for module in modules for route in getattr(module, "ROUTES", ()))
