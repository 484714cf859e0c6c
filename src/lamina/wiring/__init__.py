"""Configuration in, working sessions out: the one place that knows both ports and adapters."""

from lamina.wiring.opening import (
    SystemClock,
    attach,
    data_folder,
    default_store,
    open_session,
)
from lamina.wiring.porting import Ported, export_chat, import_data

__all__ = [
    "Ported",
    "SystemClock",
    "attach",
    "data_folder",
    "default_store",
    "export_chat",
    "import_data",
    "open_session",
]
