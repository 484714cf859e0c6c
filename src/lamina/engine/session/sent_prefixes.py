"""What a session knows of requests that others sent, and what it tells them of its own."""

from msgspec.structs import replace

from lamina.core.assembly.boundary import find_boundary
from lamina.core.assembly.warm_prefix import cache_form, describe_prefix
from lamina.core.journal import State, options_for_request
from lamina.core.ports import SentPrefixes
from lamina.core.values.entry import RequestEntry
from lamina.core.values.prompt import Prompt
from lamina.core.values.sent_prefix import NOTHING_RECENT, RecentPrefixes
from lamina.core.values.settings import Target, cache_rules
from lamina.core.values.usage import Usage
from lamina.engine.record.branch_prefixes import branch_prefixes
from lamina.engine.record.layouts import Layouts
from lamina.engine.record.record import Record


class KnownPrefixes:
    """Those of one session; `shared` is where the sessions of this machine remember theirs."""

    def __init__(self, record: Record, layouts: Layouts, shared: SentPrefixes | None) -> None:
        self._record = record
        self._layouts = layouts
        self.shared = shared

    async def recent(self, state: State, target: Target, now: float) -> RecentPrefixes:
        """What a request to `target` may find that was not sent on the path of `state`."""
        if cache_rules(state.settings, target).lifetime_s is None:
            return NOTHING_RECENT
        recent = NOTHING_RECENT
        if self.shared is not None and find_boundary(state, target, now) is not None:
            recent = await self.shared.recent(target.name, now)
        if branches := branch_prefixes(self._record, state, target, now):
            recent = replace(recent, prefixes=(*branches, *recent.prefixes))
        return recent

    async def count(self, request: RequestEntry) -> None:
        """A request is about to be sent: its key has one more."""
        if self.shared is not None and request.routing_key:
            await self.shared.count(request.routing_key, request.at)

    async def keep(self, request: RequestEntry, prompt: Prompt, state: State, usage: Usage) -> None:
        """A request was answered: what others may find of it."""
        if self.shared is None or usage.explicit:
            return
        target = self._layouts.book.find(request.target)
        rules = cache_rules(state.settings, target)
        form = cache_form(options_for_request(state), target)
        prefix = describe_prefix(request, prompt, state, target, rules, form)
        if prefix is not None:
            await self.shared.keep(prefix)
