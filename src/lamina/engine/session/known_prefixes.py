"""Finds prefixes that a provider may still have in its cache: of other branches, and of other
sessions.

Law: a session without branches costs nothing here: its state shows that no branch was left.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from lamina.core.assembly.warm_prefix import cache_form, describe_prefix, sent_key
from lamina.core.audit.requests import recorded_digests
from lamina.core.codec import entry_number, mint_id
from lamina.core.journal import State, options_for_request
from lamina.core.ports import SentPrefixes
from lamina.core.values.entry import WIRE_FORM, Entry, ReplyEntry, RequestEntry
from lamina.core.values.prompt import Prompt
from lamina.core.values.request import Boundary
from lamina.core.values.sent_prefix import DIGEST_DIGITS, NOTHING_RECENT, RecentPrefixes, SentPrefix
from lamina.core.values.settings import Target, cache_rules
from lamina.core.values.usage import Usage
from lamina.engine.record.layouts import Layouts
from lamina.engine.record.record import Record

# How many requests of other branches are compared: the latest ones.
MAX_REQUESTS = 16
# How many entries are searched for them.
MAX_ENTRIES = 2_000


def branch_prefixes(
    record: Record, state: State, target: Target, now: float
) -> tuple[SentPrefix, ...]:
    """Return the requests to `target` that were answered on any branch and may be in its cache, the
    latest first; none if `state` continues from the last of them.
    """
    if not state.requests.branched:
        return ()
    lifetime = cache_rules(state.settings, target).lifetime_s
    if lifetime is None:
        return ()
    last = state.requests.sent
    prefixes: list[SentPrefix] = []
    for request in _answered(record, now - lifetime):
        if last is not None and request.id == last.id:
            if not prefixes:
                return ()
            continue
        if request.target != target.name or request.wire_form != WIRE_FORM:
            continue
        prefixes.append(_describe(request, record, state, target, lifetime))
        if len(prefixes) == MAX_REQUESTS:
            break
    return tuple(prefixes)


def _answered(record: Record, since: float) -> Iterator[RequestEntry]:
    """Return the answered requests sent `since` that time, the latest first."""
    answered: set[str] = set()
    for entry in _latest_first(record):
        if entry.at < since:
            return
        if isinstance(entry, ReplyEntry):
            answered.add(entry.request)
        elif isinstance(entry, RequestEntry) and entry.id in answered:
            yield entry


def _latest_first(record: Record) -> Iterator[Entry]:
    for entry_id in _latest_ids(record):
        if (entry := record.entries.get(entry_id)) is not None:
            yield entry


def _latest_ids(record: Record) -> Iterator[str]:
    """Return the ids of the latest entries, which are numbered in the order of writing."""
    number = entry_number(record.page().next_id()) or 0
    return map(mint_id, range(number - 1, max(-1, number - 1 - MAX_ENTRIES), -1))


def _describe(
    request: RequestEntry, record: Record, state: State, target: Target, lifetime: float
) -> SentPrefix:
    digests = recorded_digests(request, record.entries)
    lost = digests.index(None) if None in digests else len(digests)
    return SentPrefix(
        target=request.target,
        # Sent with the options of its own branch, which are nearly always the same.
        form=cache_form(options_for_request(state), target),
        key=sent_key(request, state) if target.routes_by_key else "",
        digests=tuple((digest or "")[:DIGEST_DIGITS] for digest in digests[:lost]),
        at=request.at,
        expires=request.at + lifetime,
        source="branch",
        base=request.base,
        cached_run=request.cached_run,
    )


class KnownPrefixes:
    """The known prefixes of one session; `shared` stores those of all sessions on this machine."""

    def __init__(self, record: Record, layouts: Layouts, shared: SentPrefixes | None) -> None:
        self._record = record
        self._layouts = layouts
        self.shared = shared

    async def recent(
        self, state: State, target: Target, now: float, boundary: Boundary | None
    ) -> RecentPrefixes:
        """Return prefixes that a request to `target` may find in a cache and that were not sent on
        the path of `state`. Those of other sessions are looked up only if the request is at a
        `boundary`.
        """
        if cache_rules(state.settings, target).lifetime_s is None:
            return NOTHING_RECENT
        recent = NOTHING_RECENT
        if self.shared is not None and boundary is not None:
            recent = await self.shared.recent(target.name, now)
        if branches := branch_prefixes(self._record, state, target, now):
            recent = replace(recent, prefixes=(*branches, *recent.prefixes))
        return recent

    async def count(self, request: RequestEntry) -> None:
        """Record that a request is about to be sent: its key has one more."""
        if self.shared is not None and request.routing_key:
            await self.shared.count(request.routing_key, request.at)

    async def keep(self, request: RequestEntry, prompt: Prompt, state: State, usage: Usage) -> None:
        """Record that a request was answered, and the prefix that others may find."""
        if self.shared is None or usage.explicit:
            return
        target = self._layouts.book.find(request.target)
        rules = cache_rules(state.settings, target)
        form = cache_form(options_for_request(state), target)
        prefix = describe_prefix(request, prompt, state, target, rules, form)
        if prefix is not None:
            await self.shared.keep(prefix)
