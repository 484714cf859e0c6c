"""When and where history is cut, and what is said of the part that goes; never a model call."""

from lamina.compaction.cuts import choose_cut, choose_head, find_cuts, last_turns_start
from lamina.compaction.extractive_summary import extract_plan_summary, extract_summary
from lamina.compaction.files import NO_FILES, TouchedFiles, merge_files, touched_files
from lamina.compaction.instruction import finish_summary, is_usable_summary, summary_instruction
from lamina.compaction.plan import (
    CompactionPlan,
    NoCompaction,
    Trigger,
    is_compaction_due,
    keep_limit,
    plan_compaction,
    reserve_limit,
    summary_limit,
)
from lamina.compaction.quotes import Count
from lamina.compaction.summary_sheet import NOTICE

__all__ = [
    "CompactionPlan",
    "Count",
    "NO_FILES",
    "TouchedFiles",
    "NOTICE",
    "NoCompaction",
    "Trigger",
    "choose_cut",
    "choose_head",
    "extract_plan_summary",
    "extract_summary",
    "touched_files",
    "find_cuts",
    "finish_summary",
    "is_compaction_due",
    "is_usable_summary",
    "keep_limit",
    "last_turns_start",
    "merge_files",
    "plan_compaction",
    "reserve_limit",
    "summary_instruction",
    "summary_limit",
]
