"""The hooks of a session, from installed packages and the application itself."""

import inspect
import os
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from lamina.apps.wiring.index import OFF_WORDS
from lamina.engine.sources.hooks import Hooks
from lamina.errors import HookError


def load_hooks(own: Hooks | None) -> Hooks:
    """Load the hooks of installed packages (entry points `lamina.hooks`, each called with a
    `Hooks`), then the application's own. LAMINA_HOOKS=off skips those of packages.

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
                raise HookError(f"{point.value}{owner}", f"{problem} skips it") from error
            if inspect.iscoroutine(outcome):
                outcome.close()
                problem = "is async, and is not awaited: use a plain function; LAMINA_HOOKS=off"
                raise HookError(f"{point.value}{owner}", f"{problem} skips it")
    return hooks.joined(own) if own else hooks


@cache
def _hook_points() -> tuple[EntryPoint, ...]:
    # Sorted, so that the order is the same on every machine.
    return tuple(sorted(entry_points(group="lamina.hooks"), key=lambda point: point.name))
