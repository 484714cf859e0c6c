"""Who moved what stands in a request: hooks and patches by name, the engine, or a person.

Law: only what is written down counts. A hook and a patch that an application applied are recorded
alike, by the name they gave themselves.
"""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from lamina.core.audit.rebuilt_request import RebuiltRequest
from lamina.core.journal import LIBRARY_SOURCE, Journal, State, fold_repaired, path_to
from lamina.core.journal.reasons import MovedParts, find_moved_parts
from lamina.core.values.damage import Damage
from lamina.core.values.entry import EphemeralEntry, ModelEntry, TransformEntry
from lamina.core.values.patch import PatchOp, op_name, op_reason

_OWN = "lamina."


class Mover(Struct, frozen=True, kw_only=True):
    """Who moved something: a hook (or a patch of an application), the engine itself, or a person,
    by the entry that says so."""

    kind: Literal["hook", "engine", "person"]
    name: str
    op: str
    entry: str
    reason: str


def find_movers(
    journal: Journal, before: RebuiltRequest, after: RebuiltRequest, *sources: str
) -> Iterator[Mover]:
    """Whoever moved one of these sources between two requests, as far as that is on the path."""
    start, wanted = before.listed.request.id, {_source(source) for source in sources if source}
    is_message = any(source.partition(":")[0] in _IN_MESSAGES for source in sources)
    damage: list[Damage] = []
    state: State | None = None
    is_between = False
    path = path_to(after.listed.request.id, journal.entries)
    if all(entry.id != start for entry in path):
        # The other one is on another branch: what came since the two parted.
        shared = {entry.id for entry in path_to(start, journal.entries)}
        start = next((entry.id for entry in reversed(path) if entry.id in shared), "")
    for entry in path:
        earlier, state = state, fold_repaired(state, entry, damage)
        if is_between:
            match entry:
                case TransformEntry(transformer=name, patch=patch) if earlier is not None:
                    moved = find_moved_parts(earlier.envelope, state.envelope)
                    if _touches(moved, wanted, is_message):
                        yield _mover(name, patch.ops, entry.id)
                case EphemeralEntry(patches=patches):
                    for once in patches:
                        yield _mover(once.transformer, once.ops, entry.id)
                case ModelEntry(target=target):
                    reason = f"the session talks to {target} from here on"
                    yield Mover(kind="person", name="", op="model", entry=entry.id, reason=reason)
                case _:
                    pass
        is_between = is_between or entry.id == start


_IN_MESSAGES = ("message", "names", "frame", "tool_texts")


def _source(source: str) -> str:
    """A source as reasons name it: whatever stands in the library is one."""
    is_item = "@" in source and source.partition(":")[0] not in ("system", "tool")
    return LIBRARY_SOURCE if is_item else source


def _touches(moved: MovedParts, wanted: set[str], is_message: bool) -> bool:
    return bool(wanted & set(moved.sources)) or (is_message and moved.messages_from is not None)


def _mover(name: str, ops: tuple[PatchOp, ...], entry: str) -> Mover:
    names = dict.fromkeys(op_name(op) for op in ops)
    reasons = dict.fromkeys(filter(None, (op_reason(op) for op in ops)))
    return Mover(
        kind="engine" if name.startswith(_OWN) else "hook",
        name=name,
        op=", ".join(names),
        entry=entry,
        reason="; ".join(reasons),
    )
