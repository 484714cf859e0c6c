"""Turns configuration into working sessions: the one place that knows both ports and adapters.

Private: see `lamina` for what is public.
"""

from lamina.apps.wiring.folders import data_folder
from lamina.apps.wiring.session_contents import default_target
from lamina.apps.wiring.sessions import SystemClock, attach, open_session
from lamina.apps.wiring.stores import default_store

__all__ = [
    "SystemClock",
    "attach",
    "data_folder",
    "default_store",
    "default_target",
    "open_session",
]
