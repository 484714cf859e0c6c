"""When and where history is cut, and what is said of the part that goes; never a model call."""

from lamina.compaction.cutting import choose_cut, choose_head, find_cuts, last_turns_start
from lamina.compaction.extracting import extract_compaction, extract_summary
from lamina.compaction.files import NO_FILES, Files, files_of, merge
from lamina.compaction.instructing import finish_summary, is_usable, summary_instruction
from lamina.compaction.planning import (
    CompactionPlan,
    NoHelp,
    Trigger,
    is_due,
    keep_of,
    plan_compaction,
    reserve_of,
    summary_of,
)
from lamina.compaction.quoting import Count
from lamina.compaction.sheet import NOTICE

__all__ = [
    "CompactionPlan",
    "Count",
    "NO_FILES",
    "Files",
    "NOTICE",
    "NoHelp",
    "Trigger",
    "choose_cut",
    "choose_head",
    "extract_compaction",
    "extract_summary",
    "files_of",
    "find_cuts",
    "finish_summary",
    "is_due",
    "is_usable",
    "keep_of",
    "last_turns_start",
    "merge",
    "plan_compaction",
    "reserve_of",
    "summary_instruction",
    "summary_of",
]
