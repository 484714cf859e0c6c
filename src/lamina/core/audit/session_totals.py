"""Computes a session's totals, from a full reading or by adding new entries to known totals.

Law: totals updated entry by entry equal those of a full reading, or there are none.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec.structs import replace

from lamina.core.audit.requests import waiting_request
from lamina.core.journal import Journal, path_to
from lamina.core.ledger import sum_cost
from lamina.core.ports import TargetBook
from lamina.core.values.entry import (
    CACHE,
    PLAN,
    STORAGE,
    SUMMARIZED,
    CustomEntry,
    Entry,
    InfoEntry,
    LeaveEntry,
    MessageEntry,
    ReplyEntry,
    RequestEntry,
)
from lamina.core.values.prices import CostSum, price_step
from lamina.core.values.totals import SessionTotals, TargetUsage
from lamina.core.values.usage import Usage
from lamina.errors import UnknownTarget

# The maximum length of a name taken from the first question.
_LONGEST_NAME = 80
_BESIDE = (PLAN, SUMMARIZED, CACHE, STORAGE)
_SUMMED = ("input", "cached", "written", "output")


def sum_totals(journal: Journal) -> SessionTotals:
    """Return the totals of a whole journal."""
    tally = _Tally(SessionTotals(workspace=journal.header.workspace))
    for entry in journal.entries.values():
        tally.take(entry)
    path = path_to(journal.leaf, journal.entries)
    return replace(
        tally.totals(),
        messages=sum(isinstance(entry, MessageEntry) for entry in path),
        damage=len(journal.damage),
        is_waiting=bool(waiting_request(path)),
        awaits_results=_awaits_results(path),
        leaf=journal.leaf,
    )


def add_entries(totals: SessionTotals, entries: Sequence[Entry]) -> SessionTotals | None:
    """Return the totals after more entries. None if they have to be recomputed: the session
    continued elsewhere in its tree, or an answered request is not known to be open."""
    tally = _Tally(totals)
    leaf, messages, is_waiting = totals.leaf, totals.messages, totals.is_waiting
    awaits_results = totals.awaits_results
    for entry in entries:
        if entry.parent != leaf:
            return None
        if isinstance(entry, ReplyEntry) and entry.request not in tally.targets:
            return None
        tally.take(entry)
        leaf = entry.id
        messages += isinstance(entry, MessageEntry)
        if isinstance(entry, RequestEntry):
            is_waiting = True
        elif isinstance(entry, MessageEntry | ReplyEntry | LeaveEntry):
            is_waiting = False
        if isinstance(entry, MessageEntry | LeaveEntry):
            awaits_results = _awaits_results((entry,))
    return replace(
        tally.totals(),
        messages=messages,
        is_waiting=is_waiting,
        awaits_results=awaits_results,
        leaf=leaf,
    )


def _awaits_results(path: Sequence[Entry]) -> bool:
    """Return whether a path ends with an answer whose calls have no results."""
    for entry in reversed(path):
        if isinstance(entry, LeaveEntry):
            break
        if isinstance(entry, MessageEntry):
            return entry.message.role == "assistant" and bool(entry.message.calls)
    return False


def name_of(entries: Iterable[Entry]) -> str:
    """Return the name that a person gave the session, else its first question."""
    tally = _Tally(SessionTotals())
    for entry in entries:
        tally.take_name(entry)
    return tally.name


def total_cost(totals: SessionTotals, book: TargetBook) -> CostSum:
    """Return the cost of all requests at the book's prices, except those with an unknown price or a
    target no longer in the book."""
    cost = CostSum(dollars=totals.side_cost, priced=bool(totals.side_cost))
    for paid in totals.paid:
        dollars = None
        with suppress(UnknownTarget):
            dollars = sum_cost(paid, book.find(paid.target))
        cost = cost.plus(dollars, paid.requests)
    return cost


class _Tally:
    """Sums updated entry by entry, wherever in the tree the entries are."""

    def __init__(self, totals: SessionTotals) -> None:
        self._before = totals
        self.name = totals.name
        self._entries = totals.entries
        self._usage = {name: getattr(totals.usage, name) for name in _SUMMED}
        self._paid = {(paid.target, paid.above): paid for paid in totals.paid}
        self._side_cost = totals.side_cost
        # All requests so far, and those without a reply.
        self.targets = dict(totals.unanswered)
        self._unanswered = dict(totals.unanswered)

    def take(self, entry: Entry) -> None:
        self._entries += 1
        match entry:
            case RequestEntry():
                self.targets[entry.id] = self._unanswered[entry.id] = entry.target
            case ReplyEntry(usage=usage, request=request):
                self._add_usage(usage)
                self._unanswered.pop(request, None)
                if (target := self.targets.get(request)) is not None:
                    self._add_paid(target, usage)
            case MessageEntry(usage=Usage() as usage):
                self._add_usage(usage)
            case CustomEntry(kind=kind, data={**data}) if kind in _BESIDE:
                with suppress(msgspec.ValidationError):
                    self._add_side(msgspec.convert(data.get("usage"), Usage), data)
            case _:
                pass
        self.take_name(entry)

    def take_name(self, entry: Entry) -> None:
        match entry:
            case InfoEntry(name=name) if name:
                self.name = name
            case MessageEntry(message=message) if message.role == "user" and not self.name:
                line = message.text.strip().partition("\n")[0]
                cut = len(line) > _LONGEST_NAME
                self.name = f"{line[: _LONGEST_NAME - 1]}…" if cut else line
            case _:
                pass

    def totals(self) -> SessionTotals:
        return replace(
            self._before,
            name=self.name,
            entries=self._entries,
            usage=Usage(**self._usage),
            paid=tuple(self._paid.values()),
            side_cost=self._side_cost,
            unanswered=self._unanswered,
        )

    def _add_usage(self, usage: Usage) -> None:
        for name in _SUMMED:
            self._usage[name] += getattr(usage, name)

    def _add_paid(self, target: str, usage: Usage) -> None:
        above = price_step(usage.input)
        paid = self._paid.get((target, above)) or TargetUsage(
            target=target, usage=Usage(), above=above, requests=0
        )
        self._paid[target, above] = replace(
            paid, usage=_add_usage(paid.usage, usage), requests=paid.requests + 1
        )

    def _add_side(self, usage: Usage, data: Mapping[Any, object]) -> None:
        """Add a request outside the turns: planned calls, a summary, a cache or its storage."""
        self._add_usage(usage)
        target, cost = data.get("target"), data.get("cost")
        if isinstance(target, str):
            self._add_paid(target, usage)
        elif isinstance(cost, int | float):
            self._side_cost += float(cost)


def _add_usage(sum_: Usage, usage: Usage) -> Usage:
    """Return the sum, in which no count is below the sum of its separately counted parts: a
    provider's figures may contradict one another, and are billed as reported."""
    fresh = max(0, usage.input - usage.cached - usage.written)
    written = max(usage.written, usage.written_long)
    return Usage(
        input=sum_.input + fresh + usage.cached + written,
        cached=sum_.cached + usage.cached,
        written=sum_.written + written,
        written_long=sum_.written_long + usage.written_long,
        output=sum_.output + usage.output,
    )
