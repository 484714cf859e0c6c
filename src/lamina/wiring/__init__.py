"""Configuration in, working sessions out: the one place that knows both ports and adapters. What
other systems keep is read by `lamina.wiring.importer`, which few need."""

from lamina.wiring.folders import data_folder
from lamina.wiring.sessions import (
    SystemClock,
    attach,
    default_store,
    default_target,
    open_session,
)

__all__ = [
    "SystemClock",
    "attach",
    "data_folder",
    "default_store",
    "default_target",
    "open_session",
]
