"""Lamina: a context engine for LLM applications.

It decides, for every request, what the model sees, in which order and why; keeps those bytes
still so that prefix caches hit; records what was sent; and shows all of that to a person.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Each name is resolved on first use, so that `import lamina` stays cheap.
_NAMES = {
    "lamina.errors": "BudgetError LaminaError PrefixMoved",
    "lamina.runners.answer": "Answer",
    "lamina.runners.runner": "AgentRunner ChatRunner PlanRunner QaRunner",
    "lamina.session.session": "Session",
    "lamina.session.turn": "Turn",
    "lamina.sources.hooks": "Drop Hooks",
    "lamina.stores.jsonl": "JsonlStore",
    "lamina.stores.memory": "MemoryStore",
    "lamina.tools.functions": "tool",
    "lamina.values.envelope": "Options",
    "lamina.values.item": "Item item_id note_id query_id selection_id tool_id url_id",
    "lamina.values.message": "ToolDefinition ToolResult ToolText",
    "lamina.values.note": "Scope",
    "lamina.values.request": "LeftOut",
    "lamina.values.settings": "Settings",
    "lamina.wiring": "attach open_session",
    "lamina.wiring.runners": "open_agent open_chat open_plan open_qa",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

# Type checkers and editors read the imports (`as` says that a name is meant for others); both
# ignore an `__all__` that is computed.
if TYPE_CHECKING:
    from lamina.errors import BudgetError as BudgetError
    from lamina.errors import LaminaError as LaminaError
    from lamina.errors import PrefixMoved as PrefixMoved
    from lamina.runners.answer import Answer as Answer
    from lamina.runners.runner import AgentRunner as AgentRunner
    from lamina.runners.runner import ChatRunner as ChatRunner
    from lamina.runners.runner import PlanRunner as PlanRunner
    from lamina.runners.runner import QaRunner as QaRunner
    from lamina.session.session import Session as Session
    from lamina.session.turn import Turn as Turn
    from lamina.sources.hooks import Drop as Drop
    from lamina.sources.hooks import Hooks as Hooks
    from lamina.stores.jsonl import JsonlStore as JsonlStore
    from lamina.stores.memory import MemoryStore as MemoryStore
    from lamina.tools.functions import tool as tool
    from lamina.values.envelope import Options as Options
    from lamina.values.item import Item as Item
    from lamina.values.item import item_id as item_id
    from lamina.values.item import note_id as note_id
    from lamina.values.item import query_id as query_id
    from lamina.values.item import selection_id as selection_id
    from lamina.values.item import tool_id as tool_id
    from lamina.values.item import url_id as url_id
    from lamina.values.message import ToolDefinition as ToolDefinition
    from lamina.values.message import ToolResult as ToolResult
    from lamina.values.message import ToolText as ToolText
    from lamina.values.note import Scope as Scope
    from lamina.values.request import LeftOut as LeftOut
    from lamina.values.settings import Settings as Settings
    from lamina.wiring import attach as attach
    from lamina.wiring import open_session as open_session
    from lamina.wiring.runners import open_agent as open_agent
    from lamina.wiring.runners import open_chat as open_chat
    from lamina.wiring.runners import open_plan as open_plan
    from lamina.wiring.runners import open_qa as open_qa
else:
    __all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lamina' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
