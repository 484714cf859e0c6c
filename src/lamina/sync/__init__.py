"""Lamina without `await`: the same names as in `lamina`, for scripts, threads, notebooks and web
frameworks that are not async.

All calls run in one event loop in its own thread, and wait for it; so they also work where a loop
is already running, such as in a notebook. Ctrl-C stops the current call and keeps its partial
result. `on_event` and approvers are called in the thread that waits for the answer. Take everything
that needs no `await` (`attach`, `tool`, `Settings`, `Hooks`, stores...) from `lamina`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lamina.sync.runners import AgentRunner as AgentRunner
    from lamina.sync.runners import Answer as Answer
    from lamina.sync.runners import Approver as Approver
    from lamina.sync.runners import ChatRunner as ChatRunner
    from lamina.sync.runners import PlanRunner as PlanRunner
    from lamina.sync.runners import Preview as Preview
    from lamina.sync.runners import QaRunner as QaRunner
    from lamina.sync.runners import open_agent as open_agent
    from lamina.sync.runners import open_chat as open_chat
    from lamina.sync.runners import open_plan as open_plan
    from lamina.sync.runners import open_qa as open_qa
    from lamina.sync.session import Session as Session
    from lamina.sync.session import Turn as Turn
    from lamina.sync.session import open_session as open_session
    from lamina.sync.workspace import Workspace as Workspace
    from lamina.sync.workspace import open_workspace as open_workspace
else:
    # Loaded on first use, so that the import stays cheap.
    _HOMES = {
        "AgentRunner": "lamina.sync.runners",
        "Answer": "lamina.sync.runners",
        "Approver": "lamina.sync.runners",
        "ChatRunner": "lamina.sync.runners",
        "PlanRunner": "lamina.sync.runners",
        "Preview": "lamina.sync.runners",
        "QaRunner": "lamina.sync.runners",
        "Session": "lamina.sync.session",
        "Turn": "lamina.sync.session",
        "Workspace": "lamina.sync.workspace",
        "open_agent": "lamina.sync.runners",
        "open_chat": "lamina.sync.runners",
        "open_plan": "lamina.sync.runners",
        "open_qa": "lamina.sync.runners",
        "open_session": "lamina.sync.session",
        "open_workspace": "lamina.sync.workspace",
    }
    __all__ = sorted(_HOMES)

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'lamina.sync' has no attribute {name!r}")
        globals()[name] = value = getattr(import_module(_HOMES[name]), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_HOMES})
