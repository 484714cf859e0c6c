"""The outline of a conversation: which journal entries are rows, how they connect, and which part
of a path some of the rows cover.

Laws: a journal only grows, so an outline is only extended; a row's index is its place on the
active path. Two rows are siblings if either could stand in the place of the other. Only entries of
visible rows are read: from the start of the first row's turn to the results after the last
row.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from lamina.apps.web.conversation.entry_sketch import EntrySketch, read_sketches
from lamina.apps.web.conversation.message_records import RowKind
from lamina.core.journal import Journal, walk_back
from lamina.core.values.entry import PROBLEM, Entry, MessageEntry
from lamina.engine.session.inbox import ADDED

_COMPACTION = "compaction_apply"
_SETTINGS = ("settings", "model")
SPOKEN: tuple[RowKind, ...] = ("question", "answer")


class Outline:
    """The rows of one journal."""

    def __init__(self) -> None:
        # The row at or before each entry, the row before each row, and the rows after it.
        self._row_at: dict[str, str] = {}
        self.kinds: dict[str, RowKind] = {}
        self._before: dict[str, str] = {}
        self._behind: dict[str, list[str]] = {}
        self._parents: dict[str, str] = {}
        # For each entry, the last entry up to it that changed settings.
        self._settings_at: dict[str, str] = {}
        self.labels: dict[str, str] = {}
        self.name = ""
        self.first_question = ""
        self._spoken = 0
        # How many questions and answers are on other branches.
        self.other_rows = 0
        self._leaf = ""
        self.rows: list[str] = []
        self._index: dict[str, int] = {}

    @property
    def size(self) -> int:
        """Return how many entries were read."""
        return len(self._row_at)

    def follow(self, journal: Journal) -> None:
        """Read the entries that the journal gained."""
        entries = journal.entries
        known = len(self._row_at)
        if len(entries) > known:
            for sketch in read_sketches(entries, known):
                self._take(sketch)
        if journal.leaf != self._leaf:
            self._leaf = journal.leaf
            self._lay_path()

    def _take(self, entry: EntrySketch) -> None:
        parent = entry.parent or ""
        front = self._row_at.get(parent, "")
        self._parents[entry.id] = parent
        changes = entry.type in _SETTINGS
        self._settings_at[entry.id] = entry.id if changes else self._settings_at.get(parent, "")
        kind = kind_of_row(entry)
        if entry.type == "model" and self.kinds.get(front, "question") == "question":
            # The initial target is not a change, nor is one set by an import.
            kind = None
        if kind is None:
            self._row_at[entry.id] = front
            if entry.type == "label":
                self.labels[entry.target] = entry.label
            elif entry.type == "info" and entry.name:
                self.name = entry.name
            return
        self._row_at[entry.id] = entry.id
        self.kinds[entry.id] = kind
        self._before[entry.id] = front
        self._behind.setdefault(front, []).append(entry.id)
        self._spoken += kind in SPOKEN
        if kind == "question" and not self.first_question:
            self.first_question = entry.id

    def _lay_path(self) -> None:
        rows: list[str] = []
        at = self._row_at.get(self._leaf, "")
        # A continuation of the last path only extends it.
        while at and self._index.get(at) is None:
            rows.append(at)
            at = self._before[at]
        keep = self._index[at] + 1 if at else 0
        for gone in self.rows[keep:]:
            del self._index[gone]
        del self.rows[keep:]
        for row in reversed(rows):
            self._index[row] = len(self.rows)
            self.rows.append(row)
        self.other_rows = self._spoken - sum(1 for row in self.rows if self.kinds[row] in SPOKEN)

    # -- lookups ---------------------------------------------------------------------------------

    def index_of(self, entry: str) -> int | None:
        """Return the row that an entry belongs to, if it is on the active path."""
        return self._index.get(self._row_at.get(entry, ""))

    def settings_of(self, entry: str) -> list[str]:
        """Return the entries that changed settings on the way to an entry, in order."""
        changes = []
        at = self._settings_at.get(entry, "")
        while at:
            changes.append(at)
            at = self._settings_at.get(self._parents[at], "")
        return changes[::-1]

    def question_of(self, index: int) -> int:
        """Return the row of a row's question; the first row if there is none."""
        while index > 0 and self.kinds[self.rows[index]] != "question":
            index -= 1
        return index

    def siblings(self, row: str, entries: Mapping[str, Entry]) -> Sequence[str]:
        """Return the rows that could stand in the place of this one, including itself, in the order
        written. A question repeated for another answer is the same question."""
        kind = self.kinds[row]
        front = self._before[row]
        if kind == "question":
            return self._questions(row, front, entries)
        if kind != "answer":
            return (row,)
        fronts = [front]
        if self.kinds.get(front) == "question":
            fronts = self._same_question(front, entries)
        answers = [
            behind
            for place in fronts
            for behind in self._behind.get(place, ())
            if self.kinds[behind] == "answer"
        ]
        return answers if len(answers) > 1 else (row,)

    def _questions(self, row: str, front: str, entries: Mapping[str, Entry]) -> Sequence[str]:
        group = [other for other in self._behind[front] if self.kinds[other] == "question"]
        if len(group) == 1:
            return group
        chosen: dict[str, str] = {}
        for other in group:
            text = _text_of(entries[other])
            # Of those with the same text: the visible one, or else the latest.
            if chosen.get(text) != row:
                chosen[text] = other
        return list(chosen.values())

    def _same_question(self, question: str, entries: Mapping[str, Entry]) -> list[str]:
        group = self._behind[self._before[question]]
        if len(group) == 1:
            return group
        text = _text_of(entries[question])
        return [
            other
            for other in group
            if self.kinds[other] == "question" and _text_of(entries[other]) == text
        ]

    def end_of_branch(self, entry: str, journal: Journal) -> str:
        """Return the last-written entry after an entry, within its branch."""
        behind = {entry}
        last = entry
        seen = False
        for entry_id in journal.entries:
            if entry_id == entry:
                seen = True
            elif seen and self._parents.get(entry_id) in behind:
                behind.add(entry_id)
                last = entry_id
        return last


def kind_of_row(entry: EntrySketch) -> RowKind | None:
    """Return what kind of row an entry is; None if it is not a row. Results belong to the row of
    their calls."""
    match entry.type:
        case "message" if entry.message is not None:
            if not entry.message.shown or entry.message.role == "tool":
                return None
            if entry.message.role == "user":
                return "added" if entry.message.custom_type else "question"
            return "answer"
        case "context_transform" if entry.patch is not None:
            if any(op.op == _COMPACTION for op in entry.patch.ops):
                return "compaction"
            adds = entry.transformer == ADDED and any(op.adds_shown for op in entry.patch.ops)
            return "added" if adds else None
        case "branch_summary" | "model":
            return "notice"
        case "custom" if entry.kind == PROBLEM:
            return "notice"
        case _:
            return None


def _text_of(entry: Entry) -> str:
    return entry.message.text if isinstance(entry, MessageEntry) else ""


class RowSpan(Struct, frozen=True):
    """Rows from `first` up to but excluding `end`, and the entries of the path around them."""

    first: int
    end: int
    entries: Sequence[Entry]


def cut_window(outline: Outline, journal: Journal, first: int, end: int) -> RowSpan:
    """Return the entries behind the rows from `first` up to but excluding `end`."""
    rows = outline.rows
    if first >= end:
        return RowSpan(first, end, ())
    question = outline.question_of(first)
    until = rows[question - 1] if question else ""
    after = end
    while after < len(rows) and outline.kinds[rows[after]] not in SPOKEN:
        after += 1
    # Up to the next row, which may be an answer: the request before that is not included.
    last = journal.entries[rows[after]].parent if after < len(rows) else journal.leaf
    return RowSpan(first, end, walk_back(journal.entries, last or "", until))
