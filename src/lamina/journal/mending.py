"""Replaying a path that may have holes.

Law: a journal that lost lines still gives a state that can be sent: an entry that no longer
applies is left out and reported, and no call stands without its result or the other way round.
For a sound path this is `replay`.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from lamina.errors import JournalError, LaminaError
from lamina.journal.folding import State, awaits_results, begin, fold
from lamina.values.damage import Damage
from lamina.values.entry import Entry, MessageEntry, SessionEntry
from lamina.values.message import Message, ToolResult

LOST = "The result of this call was lost: the journal is damaged here."


def replay_mended(path: Iterable[Entry], state: State | None = None) -> tuple[State, list[Damage]]:
    """The state at the end of `path`, from `state` on if it is given, and what had to be left out.

    Raises:
        JournalError: the path does not begin with a header.
    """
    damage: list[Damage] = []
    for entry in path:
        state = begin_mended(entry) if state is None else fold_mended(state, entry, damage)
    if state is None:
        raise JournalError("no entries: nothing to replay")
    return state, damage


def begin_mended(entry: Entry) -> State:
    """The state at a session's header.

    Raises:
        JournalError: it is no header.
    """
    if not isinstance(entry, SessionEntry):
        raise JournalError(f"a session begins with its header, not with {entry.id!r}")
    return begin(entry)


def fold_mended(state: State, entry: Entry, damage: list[Damage]) -> State:
    """The state after one more entry, or without it if it does not apply."""
    if isinstance(entry, MessageEntry):
        message = entry.message
        if message.role == "tool":
            paired = _pair(state, message)
            if paired is not message:
                detail = f"results in {entry.id!r} belong to calls that are lost; left out"
                damage.append(Damage(kind="lost_results", detail=detail))
            if not paired.blocks:
                return replace(state, leaf=entry.id)
            entry = replace(entry, message=paired)
        elif awaits_results(state):
            calls = state.envelope.cached[-1].calls
            detail = f"the results of {len(calls)} calls before {entry.id!r} are lost"
            damage.append(Damage(kind="lost_results", detail=detail))
            state = fold(state, _lost_results(state, entry))
    try:
        return fold(state, entry)
    except LaminaError as error:
        detail = f"entry {entry.id!r} no longer applies: {error}"
        damage.append(Damage(kind="not_applicable", detail=detail))
        return replace(state, leaf=entry.id)


def _pair(state: State, message: Message) -> Message:
    """The message with those results only whose calls wait right before it."""
    cached = state.envelope.cached
    answered: set[str] = set()
    at = len(cached) - 1
    while at >= 0 and cached[at].role == "tool":
        answered |= _answered(cached[at])
        at -= 1
    open_calls = {call.id for call in cached[at].calls} - answered if at >= 0 else set()
    kept = tuple(
        block
        for block in message.blocks
        if not isinstance(block, ToolResult) or block.call_id in open_calls
    )
    return message if kept == message.blocks else replace(message, blocks=kept)


def _answered(message: Message) -> set[str]:
    return {block.call_id for block in message.blocks if isinstance(block, ToolResult)}


def _lost_results(state: State, entry: MessageEntry) -> MessageEntry:
    """Results that say they are lost, in the place of those that are."""
    calls = state.envelope.cached[-1].calls
    blocks = tuple(
        ToolResult(call_id=call.id, name=call.name, text=LOST, is_error=True) for call in calls
    )
    message = Message(role="tool", blocks=blocks, id=f"{entry.id}:lost")
    return MessageEntry(id=f"{entry.id}:lost", parent=state.leaf, at=entry.at, message=message)
