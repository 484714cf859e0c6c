"""Configuration in, working sessions out: the one place that knows both ports and adapters. What
other systems keep is read by `lamina.wiring.porting`, which few need."""

from lamina.wiring.opening import (
    SystemClock,
    attach,
    default_store,
    default_target,
    open_session,
)
from lamina.wiring.places import data_folder

__all__ = [
    "SystemClock",
    "attach",
    "data_folder",
    "default_store",
    "default_target",
    "open_session",
]
