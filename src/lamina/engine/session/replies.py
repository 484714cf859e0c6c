"""Commits replies: an answer is written to the journal with its cost, and ends its turn.

Law: once the answer is stored, later errors are recorded and reported, and never remove it.
"""

import anyio
from msgspec import Struct

from lamina.core.audit.hook_displays import entries_behind, find_displays
from lamina.core.codec import mend_text
from lamina.core.journal import awaits_results, is_believable
from lamina.core.layers import bind_thinking
from lamina.core.values.entry import PROBLEM, CustomEntry, MessageEntry, ReplyEntry, RequestEntry
from lamina.core.values.message import Message
from lamina.core.values.patch import HookDisplay
from lamina.core.values.prompt import Prompt
from lamina.core.values.request import CacheVerdict
from lamina.core.values.usage import Usage
from lamina.core.values.wire import Reply
from lamina.engine.logger import log_answer, log_warnings
from lamina.engine.record.layouts import Layouts
from lamina.engine.record.record import Record
from lamina.engine.session.compactor import Compactions, compaction_warnings
from lamina.engine.session.known_prefixes import KnownPrefixes
from lamina.engine.session.session_spending import Spending
from lamina.engine.sources.hook_runs import TurnHooks
from lamina.errors import LaminaError

# How much there must be to read before a snapshot is worth its cost.
SNAPSHOT_BYTES = 1 << 16
# A server may add this much to every request and its count still be right.
SMALL_ERROR = 1_000


class CommitOutcome(Struct, frozen=True, kw_only=True):
    """A committed reply."""

    message: Message
    verdict: CacheVerdict
    warnings: tuple[str, ...] = ()
    # The hooks that changed the message.
    changed_by: tuple[str, ...] = ()
    # Displays from hooks at the end of the turn.
    displays: tuple[HookDisplay, ...] = ()


class Replies:
    """Commits the replies of one session."""

    def __init__(
        self,
        record: Record,
        layouts: Layouts,
        hooks: TurnHooks,
        compactions: Compactions,
        prefixes: KnownPrefixes,
        spending: Spending,
    ) -> None:
        self._record = record
        self._layouts = layouts
        self._hooks = hooks
        self._compactions = compactions
        self._prefixes = prefixes
        self._spending = spending
        # Targets whose counts were already reported as unreliable.
        self._doubted: set[str] = set()

    async def commit(
        self, request: RequestEntry, prompt: Prompt, reply: Reply, *, end: bool
    ) -> CommitOutcome:
        """Append the answer and its cost; end the turn, unless calls wait or `end` is off."""
        record, state = self._record, self._record.state
        record.require_open(request)
        verdict = self._layouts.judge(state, request, reply)
        async with record.writing() as page:
            blocks = bind_thinking(reply.blocks, prompt.standing, request.wire)
            message = Message(role="assistant", blocks=blocks, id=page.next_id())
            hooked = await self._hooks.on_reply(message, state, request, hurry=not end)
            message = hooked.message.thought_by(request.target.partition(":")[2])
            warnings = hooked.warnings + self._hooks.report_late()
            warnings += self._doubt(request, reply.usage)
            page.write(MessageEntry, message=message, interrupted=not reply.complete)
            page.write(
                ReplyEntry,
                request=request.id,
                usage=reply.usage,
                stop=reply.stop,
                model=reply.model,
                verdict=verdict,
                warnings=warnings,
                provider_id=reply.id,
                missed=reply.missed,
                transformations=reply.transformations,
            )
        target = self._layouts.book.find(request.target)
        with anyio.CancelScope(shield=True):
            await self._spending.settle_request(request, target, reply)
        self._layouts.remember(request, prompt)
        await self._prefixes.keep(request, prompt, state, reply.usage)
        log_answer(
            record.id, request, reply.usage, target=target,
            verdict=verdict, is_complete=reply.complete, seconds=page.at - request.at,
            transformations=reply.transformations,
        )  # fmt: skip
        if end and not awaits_results(record.state):
            warnings += await self._end_turn(request, message)
        log_warnings(record.id, request.id, len(warnings))
        await self._layouts.keep_snapshot(least=16 * SNAPSHOT_BYTES, share=0.25)
        return CommitOutcome(
            message=message,
            verdict=verdict,
            warnings=warnings,
            changed_by=hooked.changed_by,
            displays=find_displays(entries_behind(record.state.leaf, record.entries)),
        )

    def _doubt(self, request: RequestEntry, usage: Usage) -> tuple[str, ...]:
        """Return a warning about the provider's count of a request: once, not every time."""
        window, reported = request.context.fit.window, usage.input
        if reported > window:
            figures = f"{reported:,} tokens of a window of {window:,}"
            return (f"the provider says that the request took {figures}, and answered it",)
        far_off = abs(reported - request.tokens) > SMALL_ERROR
        if not far_off or not reported or is_believable(reported, request.tokens):
            return ()
        if request.target in self._doubted:
            return ()
        self._doubted.add(request.target)
        figures = f"{reported:,} tokens where {request.tokens:,} are counted here"
        return (f"the provider reports {figures}; its counts are not used to size requests",)

    async def _end_turn(self, request: RequestEntry, answer: Message) -> tuple[str, ...]:
        """Run the hooks of a finished turn, and compaction if it is due."""
        record = self._record
        try:
            async with record.writing() as page:
                await self._hooks.on_end(page, request, answer)
            target = self._layouts.book.find(request.target)
            promotion = record.state.settings.promotion
            page = record.page()
            compaction = await self._compactions.if_due(page, target, promotion, at_end=True)
            if compaction and compaction.changed:
                await self._compactions.keep(page)
            return compaction_warnings(compaction)
        except LaminaError as error:
            problem = {"where": "turn_end", "problem": mend_text(str(error))}
            await record.write(CustomEntry, kind=PROBLEM, data=problem)
            return (f"after the turn: {error}",)
