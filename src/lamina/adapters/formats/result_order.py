"""The order of results in what was imported.

Law: results of parallel calls stand in the order of the calls, as some vendors take no other;
foreign files have them in the order in which tools were done. The tree stays as it is: results on
one line of it change places. Where a branch goes on from between two of them, they stay.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from lamina.adapters.formats.call_pairs import results_of
from lamina.core.values.entry import CustomEntry, Entry, InfoEntry, LabelEntry, MessageEntry

# What stands beside the conversation.
_ASIDE = (CustomEntry, InfoEntry, LabelEntry)


def order_results(entries: Sequence[Entry]) -> tuple[list[Entry], dict[str, str]]:
    """The entries, parents first, with their results in order; and for what changed places, by the
    entry that held it, the one that does now."""
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
    """The calls of each answer, and the entries with their results, one behind the other."""
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
    """By each entry that the conversation goes on behind in one way only: what follows it."""
    goes_on: set[str] = set()
    for entry in reversed(entries):
        if entry.parent is not None and (entry.id in goes_on or not isinstance(entry, _ASIDE)):
            goes_on.add(entry.parent)
    carriers = [e for e in entries if e.id in goes_on or not isinstance(e, _ASIDE)]
    counts = Counter(entry.parent for entry in carriers)
    return {entry.parent: entry for entry in carriers if entry.parent and counts[entry.parent] == 1}


def _answered_calls(entry: MessageEntry) -> list[str]:
    return [result.call_id for result in results_of(entry.message)]
