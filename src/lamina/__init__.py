"""Lamina: a context engine for LLM applications.

It decides, for every request, what the model sees, in which order and why; keeps those bytes still
so that prefix caches hit; records what was sent; and shows all of that to a person.

Open something:  open_session, open_chat, open_agent, open_plan, open_qa, open_workspace
What you get:    Session, Turn, Answer, ChatRunner, AgentRunner, PlanRunner, QaRunner, Workspace
What you give:   attach, tool, Hooks, Drop, Item, Options, Settings, Scope, ToolDefinition,
                 ToolResult, ToolText, FolderWorkspace, JsonlStore, SqliteStore, MemoryStore,
                 SpendFile, READ_RESULT
Afterwards:      renumber_citations
Errors:          LaminaError, BudgetError, PrefixMoved, SpendLimit; all others in lamina.errors

These names are public, as are those in `lamina.ops`, `lamina.errors` and `lamina.types`, and in
`lamina.sync`, which needs no `await`. Everything else is private, including the package contents
listed below: it can change or disappear in any release.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from lamina import errors as errors
    from lamina import ops as ops
    from lamina import sync as sync
    from lamina import types as types
    from lamina.adapters.stores.jsonl import JsonlStore as JsonlStore
    from lamina.adapters.stores.memory import MemoryStore as MemoryStore
    from lamina.adapters.stores.spend_file import SpendFile as SpendFile
    from lamina.adapters.stores.sqlite import SqliteStore as SqliteStore
    from lamina.adapters.tools.functions import tool as tool
    from lamina.adapters.workspace.folder import FolderWorkspace as FolderWorkspace
    from lamina.apps.wiring.opened_workspace import Workspace as Workspace
    from lamina.apps.wiring.opened_workspace import open_workspace as open_workspace
    from lamina.apps.wiring.runners import open_agent as open_agent
    from lamina.apps.wiring.runners import open_chat as open_chat
    from lamina.apps.wiring.runners import open_plan as open_plan
    from lamina.apps.wiring.runners import open_qa as open_qa
    from lamina.apps.wiring.sessions import attach as attach
    from lamina.apps.wiring.sessions import open_session as open_session
    from lamina.core.assembly.shortened_results import READ_RESULT as READ_RESULT
    from lamina.core.text.citations import renumber_citations as renumber_citations
    from lamina.core.values.envelope import Options as Options
    from lamina.core.values.item import Item as Item
    from lamina.core.values.message import ToolDefinition as ToolDefinition
    from lamina.core.values.message import ToolResult as ToolResult
    from lamina.core.values.message import ToolText as ToolText
    from lamina.core.values.note import Scope as Scope
    from lamina.core.values.settings import Settings as Settings
    from lamina.engine.runners.answer import Answer as Answer
    from lamina.engine.runners.qa import QaRunner as QaRunner
    from lamina.engine.runners.runner import AgentRunner as AgentRunner
    from lamina.engine.runners.runner import ChatRunner as ChatRunner
    from lamina.engine.runners.runner import PlanRunner as PlanRunner
    from lamina.engine.session.session import Session as Session
    from lamina.engine.session.turn import Turn as Turn
    from lamina.engine.sources.hooks import Drop as Drop
    from lamina.engine.sources.hooks import Hooks as Hooks
    from lamina.errors import BudgetError as BudgetError
    from lamina.errors import LaminaError as LaminaError
    from lamina.errors import PrefixMoved as PrefixMoved
    from lamina.errors import SpendLimit as SpendLimit
else:
    _MODULES = ("errors", "ops", "sync", "types")
    # Where the public names live, loaded on first use: `import lamina` is cheap, opening a session
    # is not.
    _HOMES = {
        "AgentRunner": "lamina.engine.runners.runner",
        "Answer": "lamina.engine.runners.answer",
        "BudgetError": "lamina.errors",
        "ChatRunner": "lamina.engine.runners.runner",
        "Drop": "lamina.engine.sources.hooks",
        "FolderWorkspace": "lamina.adapters.workspace.folder",
        "Hooks": "lamina.engine.sources.hooks",
        "Item": "lamina.core.values.item",
        "JsonlStore": "lamina.adapters.stores.jsonl",
        "LaminaError": "lamina.errors",
        "MemoryStore": "lamina.adapters.stores.memory",
        "Options": "lamina.core.values.envelope",
        "PlanRunner": "lamina.engine.runners.runner",
        "PrefixMoved": "lamina.errors",
        "QaRunner": "lamina.engine.runners.qa",
        "READ_RESULT": "lamina.core.assembly.shortened_results",
        "Scope": "lamina.core.values.note",
        "Session": "lamina.engine.session.session",
        "Settings": "lamina.core.values.settings",
        "SpendFile": "lamina.adapters.stores.spend_file",
        "SpendLimit": "lamina.errors",
        "SqliteStore": "lamina.adapters.stores.sqlite",
        "ToolDefinition": "lamina.core.values.message",
        "ToolResult": "lamina.core.values.message",
        "ToolText": "lamina.core.values.message",
        "Turn": "lamina.engine.session.turn",
        "Workspace": "lamina.apps.wiring.opened_workspace",
        "attach": "lamina.apps.wiring.sessions",
        "open_agent": "lamina.apps.wiring.runners",
        "open_chat": "lamina.apps.wiring.runners",
        "open_plan": "lamina.apps.wiring.runners",
        "open_qa": "lamina.apps.wiring.runners",
        "open_session": "lamina.apps.wiring.sessions",
        "open_workspace": "lamina.apps.wiring.opened_workspace",
        "renumber_citations": "lamina.core.text.citations",
        "tool": "lamina.adapters.tools.functions",
    }
    __all__ = sorted(_HOMES)

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"lamina.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module 'lamina' has no attribute {name!r}")
        globals()[name] = value = getattr(import_module(_HOMES[name]), name)
        return value

    def __dir__() -> list[str]:
        own = (name for name in globals() if name.startswith("__"))
        return sorted({*own, *_MODULES, *__all__})
