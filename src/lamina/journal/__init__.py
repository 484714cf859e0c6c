"""The tree of entries, and the fold that makes a session's state of one path through it."""

from lamina.journal.folding import (
    Known,
    State,
    awaits_results,
    begin,
    fold,
    is_guidance,
    path_to,
    replay,
)
from lamina.journal.patching import SUMMARY, apply_patch, items_named
from lamina.journal.standing import Standing

__all__ = [
    "SUMMARY",
    "Known",
    "Standing",
    "State",
    "apply_patch",
    "awaits_results",
    "begin",
    "fold",
    "is_guidance",
    "items_named",
    "path_to",
    "replay",
]
