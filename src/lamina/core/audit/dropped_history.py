"""Finds history that compactions and prunes removed from the context; it is still in the
journal."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from lamina.core.journal import State, fold_repaired
from lamina.core.values.damage import Damage
from lamina.core.values.entry import Entry, TransformEntry
from lamina.core.values.message import Message
from lamina.core.values.patch import CompactionApply, ResultsReplace


class DroppedHistory(Struct, frozen=True, kw_only=True):
    """History that one compaction or prune removed from the context; it is still in the journal."""

    entry: str
    at: float
    by: str
    reason: str
    summary: str
    messages: tuple[Message, ...]


def find_dropped_history(path: Sequence[Entry]) -> Iterator[DroppedHistory]:
    """Yield the history that compactions and prunes on this path removed from the context, in
    order."""
    state: State | None = None
    damage: list[Damage] = []
    for entry in path:
        if state is not None and isinstance(entry, TransformEntry):
            cached = state.envelope.cached
            for op in entry.patch.ops:
                if isinstance(op, ResultsReplace):
                    summary = "The same results, shortened."
                    messages = tuple(message for message in cached if message.id == op.message)
                elif isinstance(op, CompactionApply):
                    summary = op.summary
                    end = max(0, min(op.first_kept, len(cached)))
                    messages = tuple(cached.until(end).since(max(0, op.after)))
                else:
                    continue
                yield DroppedHistory(
                    entry=entry.id,
                    at=entry.at,
                    by=entry.transformer,
                    reason=op.reason,
                    summary=summary,
                    messages=messages,
                )
        state = fold_repaired(state, entry, damage)
