"""The part of a path that some rows are made of.

Law: only what is shown is looked at, and what belongs to it: the turn that the first row is of, and
the results behind the last one.
"""

from collections.abc import Sequence

from msgspec import Struct

from lamina.apps.web.conversation.outline import SPOKEN, Outline
from lamina.core.journal import Journal, walk_back
from lamina.core.values.entry import Entry


class RowSpan(Struct, frozen=True):
    """Rows from `first` up to before `end`, and the entries of the path around them."""

    first: int
    end: int
    entries: Sequence[Entry]


def cut_window(outline: Outline, journal: Journal, first: int, end: int) -> RowSpan:
    """The entries that the rows from `first` up to before `end` are made of."""
    rows = outline.rows
    if first >= end:
        return RowSpan(first, end, ())
    question = outline.question_of(first)
    until = rows[question - 1] if question else ""
    after = end
    while after < len(rows) and outline.kinds[rows[after]] not in SPOKEN:
        after += 1
    # Up to the next row, which may be an answer: the request in front of it is not its own.
    last = journal.entries[rows[after]].parent if after < len(rows) else journal.leaf
    return RowSpan(first, end, walk_back(journal.entries, last or "", until))
