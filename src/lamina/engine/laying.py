"""How a target is laid out for: assemblers, room, and the prompt that was sent last.

All of it can be rebuilt from the journal; it is kept so that a turn costs what it adds.
"""

from msgspec.structs import replace

from lamina.budget import Room, make_room
from lamina.engine.keeping import Record
from lamina.engine.rebuilding import rebuild_prompt
from lamina.journal import State
from lamina.layers import Assembler, Layout
from lamina.ledger import judge_cache
from lamina.ports import TargetBook
from lamina.values.entry import RequestEntry
from lamina.values.prompt import Prompt
from lamina.values.request import CacheVerdict
from lamina.values.settings import Promotion, Settings, Target
from lamina.values.usage import Usage


class Workbench:
    def __init__(self, book: TargetBook, record: Record) -> None:
        self.book = book
        self._record = record
        self._assembler: Assembler | None = None
        self._assembled_for: tuple[str, Layout] | None = None
        self._sent: Prompt | None = None
        self._sent_for: str | None = None

    def choose(self, name: str | None, settings: Settings) -> Target:
        return self.book.find(name or settings.target)

    def assembler_for(self, target: Target, promotion: Promotion) -> Assembler:
        counter = self.book.counter(target)
        layout = Layout(promotion=promotion, wire=target.wire)
        if self._assembler is None or self._assembled_for != (counter.name, layout):
            self._assembler = Assembler(counter.count, layout)
            self._assembled_for = (counter.name, layout)
        return self._assembler

    def fresh_assembler(self, request: RequestEntry) -> Assembler:
        """An assembler that lays out as the request was, apart from the one in use."""
        target = self.book.find(request.target)
        layout = Layout(promotion=request.promotion, wire=target.wire)
        return Assembler(self.book.counter(target).count, layout)

    def room(self, target: Target, state: State) -> Room:
        factor = state.calibration.get(target.name, 1.0)
        return make_room(state.settings, target, state.envelope.options.max_tokens, factor)

    def remember(self, request: RequestEntry, prompt: Prompt) -> None:
        """`prompt` is what was sent for `request`."""
        self._sent, self._sent_for = prompt, request.id

    def last_sent(self, base: State, assembler: Assembler) -> Prompt | None:
        """The prompt of the last request known to be sent on this path."""
        last = base.last_sent
        if last is None:
            return None
        if self._sent is None or self._sent_for != last.id:
            # Laid out as it was then: the settings may have changed since.
            layout = Layout(promotion=last.promotion, wire=self.book.find(last.target).wire)
            if assembler.layout != layout:
                assembler = self.fresh_assembler(last)
            self.remember(last, rebuild_prompt(self._record.path(last.id), assembler))
        return self._sent

    def judge(self, state: State, request: RequestEntry, usage: Usage) -> CacheVerdict:
        """What the provider's cache figures mean."""
        target = self.book.find(request.target)
        last = state.last_sent
        lifetime = state.settings.cache_lifetime_s
        rules = target.cache if lifetime is None else replace(target.cache, lifetime_s=lifetime)
        # What the provider counts, over what we counted: the truest factor for this request.
        factor = usage.input / request.tokens if usage.input and request.tokens else 1.0
        return judge_cache(
            request.context.agreement,
            last.cached_tokens if last else 0,
            request.at - last.at if last else None,
            rules,
            usage,
            factor,
            same_cache=last is not None and last.target == request.target,
        )
