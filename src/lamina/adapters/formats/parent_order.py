"""Parents before children, whatever the order of the file.

Laws: every record comes out once; without forward references the order is that of the file; a
cycle of parents is cut at the record of it that the file names first.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
# A record's own id and its parent's; None if it has none.
IdPair = Callable[[T], tuple[str | None, str | None]]


def order_by_parent(records: Sequence[T], ids: IdPair[T]) -> list[tuple[T, bool]]:
    """The records in an order in which they can be placed. Each comes with whether a cycle was cut
    at it: then its parent does not come before it."""
    indexes: dict[str, int] = {}
    for index, record in enumerate(records):
        own, _ = ids(record)
        if own is not None:
            indexes.setdefault(own, index)
    placed_indexes: set[int] = set()
    order: list[tuple[T, bool]] = []
    for start in range(len(records)):
        cut_index = -1
        chain: list[int] = []
        on_chain: set[int] = set()
        at: int | None = start
        while at is not None and at not in placed_indexes and at not in on_chain:
            chain.append(at)
            on_chain.add(at)
            _, parent = ids(records[at])
            at = indexes.get(parent) if parent is not None else None
        if at is not None and at in on_chain:
            # The file names `min` of the cycle first: it becomes the one without a parent.
            inside = chain[chain.index(at) :]
            first = inside.index(min(inside))
            chain = [*chain[: chain.index(at)], *inside[first + 1 :], *inside[: first + 1]]
            cut_index = chain[-1]
        for index in reversed(chain):
            placed_indexes.add(index)
            order.append((records[index], index == cut_index))
    return order
