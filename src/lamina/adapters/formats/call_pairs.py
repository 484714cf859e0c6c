"""Pairs tool calls with their results and puts them in order.

Laws: a message that calls tools is followed by the results of its calls, and by nothing else until
all are there; vendors refuse any other order. Violations in a foreign file are repaired so that the
model still sees the content: a result without a call becomes user text, and a call without a result
gets one that says so. Results of parallel calls are in the order of the calls. The tree does not
change: results on one of its lines are reordered, unless a branch starts between them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from lamina.core.values.entry import CustomEntry, Entry, InfoEntry, LabelEntry, MessageEntry
from lamina.core.values.message import Block, Message, Text, ToolResult

NO_RESULT = "No result of this call was recorded."


class _Messages(Protocol):
    """A sequence of messages, from a chain or elsewhere."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Message: ...


def waiting_calls(messages: _Messages) -> dict[str, str]:
    """Return the calls at the end of `messages` that have no result yet: ids and tool names."""
    answered_ids: set[str] = set()
    index = len(messages) - 1
    while index >= 0 and messages[index].role == "tool":
        answered_ids.update(b.call_id for b in messages[index].blocks if isinstance(b, ToolResult))
        index -= 1
    if index < 0:
        return {}
    return {call.id: call.name for call in messages[index].calls if call.id not in answered_ids}


def results_of(message: Message) -> tuple[ToolResult, ...]:
    return tuple(block for block in message.blocks if isinstance(block, ToolResult))


def split_results(
    results: Iterable[ToolResult], waiting: Mapping[str, str]
) -> tuple[list[ToolResult], list[ToolResult]]:
    """Split results into those that answer a waiting call, in call order and with tool names, and
    the rest."""
    fitting: dict[str, ToolResult] = {}
    orphans: list[ToolResult] = []
    for result in results:
        if result.call_id in waiting and result.call_id not in fitting:
            name = result.name or waiting[result.call_id]
            fitting[result.call_id] = replace(result, name=name)
        else:
            orphans.append(result)
    return [fitting[call] for call in waiting if call in fitting], orphans


def orphan_text(result: ToolResult) -> Text:
    """Return a result that has no call as user text."""
    tool = f" of {result.name}" if result.name else ""
    return Text(f"[A tool result{tool} whose call is not part of this conversation]\n{result.text}")


def missing_results(waiting: Mapping[str, str]) -> tuple[ToolResult, ...]:
    return tuple(
        ToolResult(call_id=call, name=name, text=NO_RESULT, is_error=True)
        for call, name in waiting.items()
    )


def pair_calls(messages: Sequence[Message]) -> tuple[tuple[Message, ...], list[str]]:
    """Return messages that satisfy the law, and the repairs made. Calls at the very end may
    wait."""
    paired_messages: list[Message] = []
    repairs: list[str] = []
    for message in messages:
        waiting = waiting_calls(paired_messages)
        if message.role == "tool":
            fitting, orphans = split_results(results_of(message), waiting)
            if fitting:
                paired_messages.append(Message(role="tool", blocks=tuple(fitting), id=message.id))
            if not orphans:
                continue
            repairs += [f"result of {orphan.call_id!r} without its call" for orphan in orphans]
            blocks: tuple[Block, ...] = tuple(map(orphan_text, orphans))
            message = Message(role="user", blocks=blocks, id="" if fitting else message.id)
            waiting = waiting_calls(paired_messages)
        if waiting:
            repairs += [f"call {call!r} without its result" for call in waiting]
            paired_messages.append(Message(role="tool", blocks=missing_results(waiting)))
        paired_messages.append(message)
    return tuple(paired_messages), repairs


# Entries that are not part of the conversation.
_ASIDE = (CustomEntry, InfoEntry, LabelEntry)


def order_results(entries: Sequence[Entry]) -> tuple[list[Entry], dict[str, str]]:
    """Return the entries, parents first, with their results in order; also map each moved result's
    old entry to its new one."""
    ordered = {entry.id: entry for entry in entries}
    moves: dict[str, str] = {}
    for calls, run in _runs(entries):
        sources = sorted(run, key=lambda entry: min(map(calls.index, _answered_calls(entry))))
        for place, source in zip(run, sources, strict=True):
            if source is not place:
                message = replace(source.message, id=place.message.id)
                ordered[place.id] = replace(
                    source, id=place.id, parent=place.parent, message=message
                )
                moves[source.id] = place.id
    for entry in entries:
        if isinstance(entry, LabelEntry) and entry.target in moves:
            ordered[entry.id] = replace(entry, target=moves[entry.target])
    return list(ordered.values()), moves


def _runs(entries: Sequence[Entry]) -> Iterator[tuple[list[str], list[MessageEntry]]]:
    """Yield the calls of each answer, with the consecutive entries of their results."""
    followers = _only_followers(entries)
    for entry in entries:
        if not isinstance(entry, MessageEntry) or len(entry.message.calls) < 2:
            continue
        calls = [call.id for call in entry.message.calls]
        run: list[MessageEntry] = []
        behind = followers.get(entry.id)
        while isinstance(behind, (MessageEntry, *_ASIDE)):
            if isinstance(behind, MessageEntry):
                if behind.message.role != "tool":
                    break
                run.append(behind)
            behind = followers.get(behind.id)
        if len(run) > 1:
            yield calls, run


def _only_followers(entries: Sequence[Entry]) -> dict[str, Entry]:
    """Map each entry with exactly one follower to that follower."""
    goes_on: set[str] = set()
    for entry in reversed(entries):
        if entry.parent is not None and (entry.id in goes_on or not isinstance(entry, _ASIDE)):
            goes_on.add(entry.parent)
    carriers = [e for e in entries if e.id in goes_on or not isinstance(e, _ASIDE)]
    counts = Counter(entry.parent for entry in carriers)
    return {entry.parent: entry for entry in carriers if entry.parent and counts[entry.parent] == 1}


def _answered_calls(entry: MessageEntry) -> list[str]:
    return [result.call_id for result in results_of(entry.message)]
