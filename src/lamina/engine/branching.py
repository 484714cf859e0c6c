"""Going on beside a request that was never answered.

Law: what a person pinned, set or changed meanwhile belongs to the session, not to the branch that
is left behind.
"""

from collections.abc import Sequence

from lamina.engine.shrinking import BOUNDARY, consolidate
from lamina.engine.writing import Pen
from lamina.journal import items_named
from lamina.layers import Assembler, Items
from lamina.values.entry import (
    CustomEntry,
    Entry,
    InfoEntry,
    ItemEntry,
    LabelEntry,
    LeafEntry,
    PinEntry,
    TransformEntry,
)
from lamina.values.item import ItemId
from lamina.values.patch import op_reason

# What an entry has from its place in the tree, not from what it says.
_PLACE = ("id", "parent", "at")


def carry_over(pen: Pen, since: Sequence[Entry], items: Items, assembler: Assembler) -> None:
    """Writes the entries `since` the unanswered request again, for the branch of `pen`."""
    for entry in since:
        if isinstance(entry, LabelEntry | InfoEntry | LeafEntry | CustomEntry):
            # These are about the tree, or about no context at all: they hold where they stand.
            continue
        if isinstance(entry, TransformEntry) and entry.transformer == BOUNDARY:
            # What it laid out was the other branch; this one is laid out for itself.
            reason = "; ".join(filter(None, map(op_reason, entry.patch.ops)))
            consolidate(pen, assembler, reason)
            continue
        for key in _items_of(entry):
            if key not in pen.state.items and key in items:
                pen.write(ItemEntry, item=items[key])
        fields = {name: getattr(entry, name) for name in entry.__struct_fields__}
        pen.write(type(entry), **{k: v for k, v in fields.items() if k not in _PLACE})
    # The next request may be left in turn; these entries are not.
    pen.began_at = pen.state.leaf


def _items_of(entry: Entry) -> list[tuple[ItemId, str]]:
    """The item versions that an entry speaks of, whose contents it needs."""
    match entry:
        case PinEntry(item=item, version=version, pinned=True):
            return [(item, version)]
        case TransformEntry(patch=patch):
            return [key for op in patch.ops for key in items_named(op)]
        case _:
            return []
