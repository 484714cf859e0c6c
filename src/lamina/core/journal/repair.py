"""Replays a path that may have gaps.

Law: a journal that lost lines still results in a state that can be sent: an entry that no longer
applies is left out and reported, and no call is left without its result or vice versa. For an
intact path this is the same as `replay`.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from lamina.core.journal.fold import awaits_results, fold_entry, initial_state
from lamina.core.journal.state import State
from lamina.core.text import label_of
from lamina.core.values.damage import Damage
from lamina.core.values.entry import BranchSummaryEntry, Entry, MessageEntry, PinEntry, ReplyEntry
from lamina.core.values.message import AbsentAttachment, Context, Message, Text, ToolResult
from lamina.core.values.usage import Usage
from lamina.errors import JournalError, LaminaError

LOST_QUESTION = "[What was asked here was lost: the journal is damaged.]"
LOST_RESULT = "The result of this call was lost: the journal is damaged here."


def replay_repaired(
    path: Iterable[Entry], state: State | None = None
) -> tuple[State, list[Damage]]:
    """Return the state at the end of `path`, starting from `state` if given, and the entries or
    parts that had to be left out.

    Raises:
        JournalError: the path does not start with a header.
    """
    damage: list[Damage] = []
    for entry in path:
        state = fold_repaired(state, entry, damage)
    if state is None:
        raise JournalError("no entries: nothing to replay")
    return state, damage


def fold_repaired(state: State | None, entry: Entry, damage: list[Damage]) -> State:
    """Return the state after one more entry, or without it if it does not apply. A path starts with
    no state and a header.

    Raises:
        JournalError: the first entry is not a header.
    """
    if state is None:
        return initial_state(entry)
    if not isinstance(entry, ReplyEntry) and is_answered(state):
        detail = f"what the answer before {entry.id!r} cost is lost"
        damage.append(Damage(kind="lost_reply", detail=detail))
        state = close_answered_request(state)
    if awaits_results(state) and _needs_results(entry):
        calls = state.envelope.cached[-1].calls
        detail = f"the results of {len(calls)} calls before {entry.id!r} are lost"
        damage.append(Damage(kind="lost_results", detail=detail))
        state = fold_entry(state, lost_results(state, f"{entry.id}:lost", entry.at))
    if _lost_question(state, entry):
        detail = f"the question that {entry.id!r} answers is lost"
        damage.append(Damage(kind="lost_question", detail=detail))
        question = Message(role="user", blocks=(Text(LOST_QUESTION),), id=f"{entry.id}:lost")
        stand_in = MessageEntry(id=question.id, parent=state.leaf, at=entry.at, message=question)
        state = fold_entry(state, stand_in)
        state = replace(state, turn=replace(state.turn, asked=""))
    try:
        if (sound_entry := _repair_entry(state, entry, damage)) is not None:
            return fold_entry(state, sound_entry)
    except LaminaError as error:
        detail = f"entry {entry.id!r} no longer applies: {error}"
        damage.append(Damage(kind="not_applicable", detail=detail))
    return replace(state, leaf=entry.id)


def is_answered(state: State) -> bool:
    """Return whether the open request already has its answer, but not the closing entry written
    with it, because that line is lost; or whether the question or results it was made for are lost,
    so that it cannot be sent. An answer at the end of history does not suffice: someone may have
    replaced it while the request was open."""
    cached, turn = state.envelope.cached, state.turn
    if state.requests.open is None or not len(cached) or cached[-1].role != "assistant":
        return False
    return cached[-1].id == state.leaf or turn.start is None or bool(turn.called_by)


def close_answered_request(state: State) -> State:
    """Return the state with the open request closed, whose answer exists and whose closing entry is
    lost."""
    if state.requests.open is None or not is_answered(state):
        return state
    closing = ReplyEntry(
        id=state.leaf,
        parent=state.leaf,
        at=state.requests.open.at,
        request=state.requests.open.id,
        usage=Usage(cache_reported=False),
        stop="lost",
    )
    return fold_entry(state, closing)


def lost_results(state: State, entry_id: str, at: float) -> MessageEntry:
    """Return placeholders for lost results, which say that they are lost."""
    blocks = tuple(
        ToolResult(call_id=call.id, name=call.name, text=LOST_RESULT, is_error=True)
        for call in state.envelope.cached[-1].calls
    )
    message = Message(role="tool", blocks=blocks, id=entry_id)
    return MessageEntry(id=entry_id, parent=state.leaf, at=at, message=message)


def _lost_question(state: State, entry: Entry) -> bool:
    """Return whether an answer would be the very first message, which no vendor accepts, and no
    question started its turn. A question may have been removed while the request was open."""
    if not isinstance(entry, MessageEntry) or state.requests.open is None:
        return False
    if state.turn.start is not None:
        return False
    return entry.message.role == "assistant" and not len(state.envelope.cached)


def _needs_results(entry: Entry) -> bool:
    """Return whether an entry can only follow once waiting calls have their results."""
    if isinstance(entry, MessageEntry):
        return entry.message.role != "tool"
    return isinstance(entry, BranchSummaryEntry)


def _repair_entry(state: State, entry: Entry, damage: list[Damage]) -> Entry | None:
    """Return the entry without references to what is lost; None if nothing is left of it."""
    match entry:
        case MessageEntry(message=message) if message.role == "tool":
            pairs = _pair(state, message)
            if pairs is message:
                return entry
            detail = f"results in {entry.id!r} belong to calls that are lost; left out"
            damage.append(Damage(kind="lost_results", detail=detail))
            return replace(entry, message=pairs) if pairs.blocks else None
        case MessageEntry(message=message) if message.context:
            rest = _without_lost(state, message)
            if rest is not message:
                detail = f"the content of items that {entry.id!r} attached is lost"
                damage.append(Damage(kind="lost_item", detail=detail))
            return replace(entry, message=rest)
        case PinEntry(item=item, pinned=True) if (item, entry.version) not in state.library.items:
            detail = f"{item!r}, which was pinned, is lost"
            damage.append(Damage(kind="lost_item", detail=detail))
            return None
        case _:
            return entry


def _without_lost(state: State, message: Message) -> Message:
    """Return the message without items whose content is lost, and with notices about them for the
    model."""
    context = message.context
    if context is None:
        return message
    lost_uses = [use for use in context.uses if (use.item, use.version) not in state.library.items]
    if not lost_uses:
        return message
    labels = [label_of(use.item) for use in lost_uses if use.form == "full"]
    absent = tuple(AbsentAttachment(label=label, why="lost") for label in labels)
    uses = tuple(use for use in context.uses if use not in lost_uses)
    rest = replace(context, uses=uses, absent=context.absent + absent)
    blocks = tuple(rest if isinstance(block, Context) else block for block in message.blocks)
    return replace(message, blocks=blocks)


def _pair(state: State, message: Message) -> Message:
    """Return the message with only those results whose calls wait right before it."""
    cached = state.envelope.cached
    answered_calls: set[str] = set()
    at = len(cached) - 1
    while at >= 0 and cached[at].role == "tool":
        answered_calls |= {b.call_id for b in cached[at].blocks if isinstance(b, ToolResult)}
        at -= 1
    open_calls = {call.id for call in cached[at].calls} - answered_calls if at >= 0 else set()
    blocks = tuple(
        block
        for block in message.blocks
        if not isinstance(block, ToolResult) or block.call_id in open_calls
    )
    return message if blocks == message.blocks else replace(message, blocks=blocks)
