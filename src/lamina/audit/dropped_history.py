"""What compactions and prunes took out of the context; the journal still has it."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from lamina.journal import State, fold_repaired, require_initial_state
from lamina.values.damage import Damage
from lamina.values.entry import Entry, TransformEntry
from lamina.values.message import Message
from lamina.values.patch import CompactionApply, ResultsReplace


class DroppedHistory(Struct, frozen=True, kw_only=True):
    """What one compaction or prune took out of the context; the journal still has it."""

    entry: str
    at: float
    by: str
    reason: str
    summary: str
    messages: tuple[Message, ...]


def find_dropped_history(path: Sequence[Entry]) -> Iterator[DroppedHistory]:
    """What compactions and prunes on this path took out of the context, in order."""
    state: State | None = None
    damage: list[Damage] = []
    for entry in path:
        if state is None:
            state = require_initial_state(entry)
            continue
        if isinstance(entry, TransformEntry):
            for op in entry.patch.ops:
                if isinstance(op, ResultsReplace):
                    yield DroppedHistory(
                        entry=entry.id,
                        at=entry.at,
                        by=entry.transformer,
                        reason=op.reason,
                        summary="The same results, shortened.",
                        messages=tuple(m for m in state.envelope.cached if m.id == op.message),
                    )
                if isinstance(op, CompactionApply):
                    end = max(0, min(op.first_kept, len(state.envelope.cached)))
                    yield DroppedHistory(
                        entry=entry.id,
                        at=entry.at,
                        by=entry.transformer,
                        reason=op.reason,
                        summary=op.summary,
                        messages=state.envelope.cached.until(end).since(max(0, op.after)),
                    )
        state = fold_repaired(state, entry, damage)
