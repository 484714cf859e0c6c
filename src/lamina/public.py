"""The names that `lamina` itself has. `lamina` loads this module when one of them is first used, so
that `import lamina` stays cheap; nothing else imports it.

Private: see `lamina` for what is public.
"""

from lamina.assembly.read_result import READ_RESULT
from lamina.errors import BudgetError, LaminaError, PrefixMoved, SpendLimit
from lamina.runners.answer import Answer
from lamina.runners.qa_runner import QaRunner
from lamina.runners.runner import AgentRunner, ChatRunner, PlanRunner
from lamina.session.session import Session
from lamina.session.turn import Turn
from lamina.sources.hooks import Drop, Hooks
from lamina.stores.jsonl import JsonlStore
from lamina.stores.memory import MemoryStore
from lamina.stores.spend_file import SpendFile
from lamina.stores.sqlite import SqliteStore
from lamina.text.citations import renumber_citations
from lamina.tools.functions import tool
from lamina.values.envelope import Options
from lamina.values.item import Item
from lamina.values.message import ToolDefinition, ToolResult, ToolText
from lamina.values.note import Scope
from lamina.values.settings import Settings
from lamina.wiring.opened_workspace import Workspace, open_workspace
from lamina.wiring.runners import open_agent, open_chat, open_plan, open_qa
from lamina.wiring.sessions import attach, open_session
from lamina.workspace.folder import FolderWorkspace

__all__ = [
    # Opening.
    "open_agent",
    "open_chat",
    "open_plan",
    "open_qa",
    "open_session",
    "open_workspace",
    # What is opened, and what it gives.
    "AgentRunner",
    "Answer",
    "ChatRunner",
    "PlanRunner",
    "QaRunner",
    "Session",
    "Turn",
    "Workspace",
    # What is given to it.
    "Drop",
    "FolderWorkspace",
    "Hooks",
    "Item",
    "JsonlStore",
    "MemoryStore",
    "Options",
    "READ_RESULT",
    "Scope",
    "Settings",
    "SpendFile",
    "SqliteStore",
    "ToolDefinition",
    "ToolResult",
    "ToolText",
    "attach",
    "tool",
    # What is done with an answer of one's own client.
    "renumber_citations",
    # What is caught most; all of them are in `lamina.errors`.
    "BudgetError",
    "LaminaError",
    "PrefixMoved",
    "SpendLimit",
]
