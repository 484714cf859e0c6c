"""Configuration in, working sessions out: the one place that knows both ports and adapters.

Private: see `lamina` for what is public.
"""

from lamina.wiring.clock import SystemClock
from lamina.wiring.folders import data_folder
from lamina.wiring.session_contents import default_target
from lamina.wiring.sessions import attach, open_session
from lamina.wiring.stores import default_store

__all__ = [
    "SystemClock",
    "attach",
    "data_folder",
    "default_store",
    "default_target",
    "open_session",
]
