"""The tree of entries, and the fold that makes a session's state of one path through it."""

from lamina.journal.folding import (
    TOOLS_JOIN,
    Known,
    State,
    awaits_results,
    begin,
    fold,
    is_guidance,
    path_to,
    replay,
)
from lamina.journal.indexing import Entries, Index, Places
from lamina.journal.mending import (
    begin_mended,
    fold_mended,
    lost_results,
    replay_mended,
    settle,
)
from lamina.journal.patching import SUMMARY, apply_patch, items_named
from lamina.journal.reading import Journal, journal_of, read_journal
from lamina.journal.standing import Standing

__all__ = [
    "SUMMARY",
    "TOOLS_JOIN",
    "Entries",
    "Index",
    "Journal",
    "Known",
    "Places",
    "Standing",
    "State",
    "apply_patch",
    "awaits_results",
    "begin",
    "begin_mended",
    "fold",
    "fold_mended",
    "is_guidance",
    "items_named",
    "journal_of",
    "lost_results",
    "path_to",
    "read_journal",
    "replay",
    "replay_mended",
    "settle",
]
