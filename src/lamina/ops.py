"""Patch operations: what a hook returns, and what `Session.apply` accepts, to change what is sent.

An operation that moves bytes which may have been sent needs a `reason`. A patch applies as a whole,
or raises `lamina.errors.InvalidPatch` and changes nothing.
"""

from lamina.core.values.envelope import LaidItem, SystemPart
from lamina.core.values.patch import (
    CompactionApply,
    Display,
    ItemLay,
    ItemSupersede,
    LibraryConsolidate,
    MessagesCachedAppend,
    MessagesCachedReplace,
    MessagesUncachedAppend,
    OnceOps,
    OptionsSet,
    Patch,
    PatchOp,
    ResultsReplace,
    SystemPartRemove,
    SystemPartSet,
    SystemPartsReplace,
    ToolsRemove,
    ToolsReplace,
)

__all__ = [
    "Patch",
    "PatchOp",
    "Display",
    "OnceOps",
    # L1 and the tools.
    "SystemPart",
    "SystemPartRemove",
    "SystemPartSet",
    "SystemPartsReplace",
    "ToolsRemove",
    "ToolsReplace",
    # Messages and request options.
    "CompactionApply",
    "MessagesCachedAppend",
    "MessagesCachedReplace",
    "MessagesUncachedAppend",
    "OptionsSet",
    "ResultsReplace",
    # The library.
    "ItemLay",
    "ItemSupersede",
    "LaidItem",
    "LibraryConsolidate",
]
