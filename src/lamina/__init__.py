"""Lamina: a context engine for LLM applications.

It decides, for every request, what the model sees, in which order and why; keeps those bytes
still so that prefix caches hit; records what was sent; and shows all of that to a person.

Open something:  open_session, open_chat, open_agent, open_plan, open_qa, open_workspace
What you get:    Session, Turn, Answer, ChatRunner, AgentRunner, PlanRunner, QaRunner, Workspace
What you give:   attach, tool, Hooks, Drop, Item, Options, Settings, Scope, ToolDefinition,
                 ToolResult, ToolText, FolderWorkspace, JsonlStore, SqliteStore, MemoryStore,
                 SpendFile, READ_RESULT
Afterwards:      renumber_citations
Errors:          LaminaError, BudgetError, PrefixMoved, SpendLimit; all others in lamina.errors

These names are public, and so are those in `lamina.ops`, `lamina.errors` and `lamina.types`, and
in `lamina.sync`, which needs no `await`. Everything else is private, also what is listed below as
contents of the package: it can change or go in any release.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lamina.version import __version__ as __version__

if TYPE_CHECKING:
    from lamina import errors as errors
    from lamina import ops as ops
    from lamina import sync as sync
    from lamina import types as types
    from lamina.public import *  # noqa: F403
else:
    _MODULES = ("errors", "ops", "sync", "types")

    def __getattr__(name: str) -> Any:
        # On first use: `import lamina` is cheap, opening a session is not.
        if name in _MODULES:
            return import_module(f"lamina.{name}")
        if name != "__all__" and name.startswith("_"):
            raise AttributeError(f"module 'lamina' has no attribute {name!r}")
        public = import_module("lamina.public")
        if name == "__all__":
            return public.__all__
        if name not in public.__all__:
            raise AttributeError(f"module 'lamina' has no attribute {name!r}")
        globals()[name] = value = getattr(public, name)
        return value

    def __dir__() -> list[str]:
        own = (name for name in globals() if name.startswith("__"))
        return sorted({*own, *_MODULES, *__getattr__("__all__")})
