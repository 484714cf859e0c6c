"""Lamina: a context engine for LLM applications.

It decides, for every request, what the model sees, in which order and why; keeps those bytes
still so that prefix caches hit; records what was sent; and shows all of that to a person.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from lamina.errors import BudgetError, LaminaError, PrefixMoved
    from lamina.runners.answer import Answer
    from lamina.runners.runner import AgentRunner, ChatRunner, PlanRunner, QaRunner
    from lamina.session.session import Session
    from lamina.session.turn import Turn
    from lamina.sources.hooks import Drop, Hooks
    from lamina.stores.jsonl import JsonlStore
    from lamina.stores.memory import MemoryStore
    from lamina.tools.functions import tool
    from lamina.values.envelope import Options
    from lamina.values.item import (
        Item,
        item_id,
        note_id,
        query_id,
        selection_id,
        tool_id,
        url_id,
    )
    from lamina.values.message import ToolDefinition, ToolResult, ToolText
    from lamina.values.note import Scope
    from lamina.values.request import LeftOut
    from lamina.values.settings import Settings
    from lamina.wiring import attach, open_session
    from lamina.wiring.runners import open_agent, open_chat, open_plan, open_qa

# Resolved on first use: `import lamina` stays cheap.
_HOMES = {
    "AgentRunner": "lamina.runners.runner",
    "PlanRunner": "lamina.runners.runner",
    "QaRunner": "lamina.runners.runner",
    "LeftOut": "lamina.values.request",
    "Scope": "lamina.values.note",
    "Answer": "lamina.runners.answer",
    "ChatRunner": "lamina.runners.runner",
    "Session": "lamina.session.session",
    "Turn": "lamina.session.turn",
    "BudgetError": "lamina.errors",
    "LaminaError": "lamina.errors",
    "PrefixMoved": "lamina.errors",
    "JsonlStore": "lamina.stores.jsonl",
    "MemoryStore": "lamina.stores.memory",
    "Drop": "lamina.sources.hooks",
    "Hooks": "lamina.sources.hooks",
    "Options": "lamina.values.envelope",
    "Item": "lamina.values.item",
    "item_id": "lamina.values.item",
    "note_id": "lamina.values.item",
    "query_id": "lamina.values.item",
    "selection_id": "lamina.values.item",
    "tool_id": "lamina.values.item",
    "url_id": "lamina.values.item",
    "ToolDefinition": "lamina.values.message",
    "ToolResult": "lamina.values.message",
    "ToolText": "lamina.values.message",
    "Settings": "lamina.values.settings",
    "attach": "lamina.wiring",
    "open_agent": "lamina.wiring.runners",
    "open_chat": "lamina.wiring.runners",
    "open_plan": "lamina.wiring.runners",
    "open_qa": "lamina.wiring.runners",
    "tool": "lamina.tools.functions",
    "open_session": "lamina.wiring",
}

__all__ = [
    "AgentRunner",
    "Answer",
    "BudgetError",
    "ChatRunner",
    "Drop",
    "Hooks",
    "Item",
    "JsonlStore",
    "LaminaError",
    "LeftOut",
    "MemoryStore",
    "Options",
    "PlanRunner",
    "PrefixMoved",
    "QaRunner",
    "Scope",
    "Session",
    "Settings",
    "ToolDefinition",
    "ToolResult",
    "ToolText",
    "Turn",
    "attach",
    "item_id",
    "note_id",
    "open_agent",
    "open_chat",
    "open_plan",
    "open_qa",
    "open_session",
    "query_id",
    "selection_id",
    "tool",
    "tool_id",
    "url_id",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lamina' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
