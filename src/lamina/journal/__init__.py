"""The tree of entries, and the fold that makes a session's state of one path through it.

Private: see `lamina` for what is public.
"""

from lamina.journal.calibration import is_believable
from lamina.journal.fold import awaits_results, fold_entry, initial_state, replay
from lamina.journal.grown_entries import GrownEntries
from lamina.journal.journal import (
    Journal,
    TreeReader,
    journal_of,
    path_to,
    read_journal,
    walk_back,
)
from lamina.journal.laid_versions import LaidVersions
from lamina.journal.patch_effects import SUMMARY_ID, apply_patch, laid_items
from lamina.journal.reasons import (
    LIBRARY_SOURCE,
    MovedParts,
    RecordedReason,
    find_moved_names,
    texts_of,
)
from lamina.journal.removed_tools import TOOLS, TOOLS_JOIN
from lamina.journal.repair import (
    close_answered_request,
    fold_repaired,
    lost_results,
    replay_repaired,
)
from lamina.journal.state import LastRequests, Library, OpenTurn, State

__all__ = [
    "LIBRARY_SOURCE",
    "SUMMARY_ID",
    "TOOLS",
    "TOOLS_JOIN",
    "GrownEntries",
    "Journal",
    "LaidVersions",
    "LastRequests",
    "Library",
    "OpenTurn",
    "MovedParts",
    "RecordedReason",
    "State",
    "TreeReader",
    "apply_patch",
    "awaits_results",
    "initial_state",
    "is_believable",
    "fold_entry",
    "find_moved_names",
    "fold_repaired",
    "laid_items",
    "journal_of",
    "lost_results",
    "path_to",
    "read_journal",
    "replay",
    "replay_repaired",
    "texts_of",
    "walk_back",
    "close_answered_request",
]
