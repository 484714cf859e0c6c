"""The tree of entries, and the fold that converts one path through it to a session's state.

Private: see `lamina` for what is public.
"""

from lamina.core.journal.calibration import is_believable
from lamina.core.journal.fold import (
    ALWAYS,
    TOOLS,
    TOOLS_JOIN,
    awaits_results,
    fold_entry,
    initial_state,
    replay,
    results_of,
    whole_digest,
)
from lamina.core.journal.journal import (
    GrownEntries,
    Journal,
    TreeReader,
    journal_of,
    path_to,
    read_journal,
    walk_back,
)
from lamina.core.journal.patch_effects import SUMMARY_ID, apply_patch, shorten_patch
from lamina.core.journal.plain_patch import open_patch, parse_op, read_display, read_op, read_patch
from lamina.core.journal.reasons import (
    LIBRARY_SOURCE,
    MovedParts,
    RecordedReason,
    find_changed_options,
    find_moved_names,
    texts_of,
)
from lamina.core.journal.repair import (
    close_answered_request,
    fold_repaired,
    lost_results,
    replay_repaired,
)
from lamina.core.journal.request_copy import (
    RequestCopy,
    check_once,
    copy_for_request,
)
from lamina.core.journal.state import (
    LaidVersions,
    LastRequests,
    Library,
    OpenTurn,
    State,
    find_laid_versions,
    has_grown,
    known_renderer,
    laid_items,
    options_for_request,
    renderer_in,
)

__all__ = [
    "ALWAYS",
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
    "find_changed_options",
    "find_laid_versions",
    "has_grown",
    "find_moved_names",
    "fold_repaired",
    "known_renderer",
    "laid_items",
    "renderer_in",
    "RequestCopy",
    "check_once",
    "copy_for_request",
    "options_for_request",
    "open_patch",
    "parse_op",
    "read_display",
    "read_op",
    "read_patch",
    "results_of",
    "shorten_patch",
    "journal_of",
    "lost_results",
    "path_to",
    "read_journal",
    "replay",
    "replay_repaired",
    "texts_of",
    "walk_back",
    "whole_digest",
    "close_answered_request",
]
