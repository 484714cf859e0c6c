"""The hooks of a session: those of installed packages, and the application's own."""

import inspect
import os
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from lamina.apps.wiring.index import OFF_WORDS
from lamina.engine.sources.hooks import Hooks
from lamina.errors import HookError


def load_hooks(own: Hooks | None) -> Hooks:
    """The hooks of installed packages (entry points `lamina.hooks`, each called with a `Hooks`),
    then the application's own. LAMINA_HOOKS=off leaves the packages' out.

    Raises:
        HookError: a package's hooks cannot be loaded.
    """
    hooks = Hooks()
    if os.environ.get("LAMINA_HOOKS", "on").lower() not in OFF_WORDS:
        for point in _hook_points():
            owner = f" of {point.dist.name}" if point.dist else ""
            try:
                outcome = point.load()(hooks)
            except Exception as error:
                problem = f"cannot be loaded: {type(error).__name__}: {error}; LAMINA_HOOKS=off"
                raise HookError(f"{point.value}{owner}", f"{problem} goes on without it") from error
            if inspect.iscoroutine(outcome):
                outcome.close()
                problem = "is not awaited: register with a plain function; LAMINA_HOOKS=off"
                raise HookError(f"{point.value}{owner}", f"{problem} goes on without it")
    return hooks.joined(own) if own else hooks


@cache
def _hook_points() -> tuple[EntryPoint, ...]:
    # Sorted, for the same order on every machine.
    return tuple(sorted(entry_points(group="lamina.hooks"), key=lambda point: point.name))
