"""Runs turns in order: replay, attachments, hooks, compaction, layers, budget, prefix; then the
answer.

Laws: everything is decided before anything is written, and written before it is acknowledged. The
last target that a person named is asked; changing other settings does not name a target.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial

import anyio
from msgspec import Struct
from msgspec.structs import replace

from lamina.core.assembly.boundary import choose_renderer, find_boundary
from lamina.core.assembly.planner import foresee, plan_results, plan_turn
from lamina.core.assembly.request_draft import CallResults, Draft, Ephemera, Page, RequestPlan
from lamina.core.assembly.request_report import read_attachments, sizes_of
from lamina.core.assembly.tool_offer import (
    Implementations,
    allowed_tools,
    describe_offer,
    removed_items,
    settle_tools,
)
from lamina.core.assembly.turn_items import ABSENCE_REASONS, in_wire_order
from lamina.core.assembly.wire_parameters import recorded_parameters
from lamina.core.audit.hook_displays import entries_before, find_displays
from lamina.core.audit.rebuilt_request import pictures_in
from lamina.core.codec import require_text
from lamina.core.journal import State, awaits_results, copy_for_request, renderer_in
from lamina.core.layers import with_compiled_system
from lamina.core.ports import JournalStore
from lamina.core.values.entry import (
    CustomEntry,
    InboxEntry,
    ModelEntry,
    OpeningEntry,
    RequestEntry,
    SettingsEntry,
)
from lamina.core.values.envelope import SystemParts
from lamina.core.values.event import Event
from lamina.core.values.item import Attachment
from lamina.core.values.message import Message, Text, ToolResult, ToolText
from lamina.core.values.prompt import Prompt
from lamina.core.values.request import NOTHING, Attachments, LeftOut
from lamina.core.values.settings import Target
from lamina.core.values.tool import Toolset
from lamina.core.values.wire import Reply, WireRequest
from lamina.engine.record.branch import page_back, page_beside, page_for_question
from lamina.engine.record.layouts import Layouts
from lamina.engine.record.record import Record
from lamina.engine.session.compactor import (
    CompactionOutcome,
    Compactions,
    report_compaction,
    report_strip,
)
from lamina.engine.session.engine_calls import EngineCalls, SessionTools
from lamina.engine.session.inbox import add_message, take_out
from lamina.engine.session.known_prefixes import KnownPrefixes
from lamina.engine.session.replies import CommitOutcome, Replies
from lamina.engine.session.session_ports import RunnerPorts, SessionPorts
from lamina.engine.session.session_spending import Spending
from lamina.engine.session.tool_results import ResultReader, ToolResults
from lamina.engine.session.turn import Turn
from lamina.engine.sources.attachments import Attachable, AttachmentReader
from lamina.engine.sources.changes import change_warnings
from lamina.engine.sources.found_tools import attach_finds, find_loads
from lamina.engine.sources.hook_runs import DROPPED, TurnFrame, TurnHooks
from lamina.engine.sources.hooks import Hooks
from lamina.engine.sources.memory_part import update_memory
from lamina.engine.sources.secret_screen import typed_secret_warnings
from lamina.engine.sources.turn_choices import NO_TOOLS, ChosenTools, TurnChoices, tools_of
from lamina.errors import JournalError, MessageDropped, TurnStateError, WindowExceeded


class RequestBrief(Struct, frozen=True, kw_only=True):
    """The specification of a request: its message, the tools that were chosen, accompanying items,
    results of planned tools, and the `texts` that take room in it. `frame` applies to the whole
    turn; `before` is the compaction after an overflow.
    """

    frame: TurnFrame
    message: Message
    tools: ChosenTools
    attached: Attachments
    texts: Sequence[str]
    tool_texts: tuple[ToolText, ...] = ()
    before: CompactionOutcome | None = None


class Drafts:
    """Makes the drafts of one session's requests."""

    def __init__(self, layouts: Layouts, hooks: TurnHooks, compactions: Compactions) -> None:
        self._layouts = layouts
        self._hooks = hooks
        self._compactions = compactions

    async def make(
        self, page: Page, brief: RequestBrief, here: Implementations
    ) -> tuple[Page, Draft]:
        """Return the draft, and the page that it continues; `here` is what runs calls."""
        frame, message, attached = brief.frame, brief.message, brief.attached
        target = frame.target
        earlier = page.state.requests.cuts
        system = partial(self._foresee, brief, here) if message.role == "user" else None
        await self._hooks.on_context("before_request", page, frame, message, system)
        left = settle_tools(page, target, here)
        compaction, strip = brief.before, None
        if compaction is None:
            items = [attachment.item for attachment in attached.attachments]
            page, compaction, strip = await self._compactions.before_request(
                page, target, frame.promotion, brief.texts, items,
                is_question=message.role == "user",
            )  # fmt: skip
        ephemera = await self._hooks.for_request(page, frame, message, system)
        draft = self._draft(page, brief, here, ephemera)
        warnings = Attachments(warnings=(*left.warnings, *self._hooks.report_late()))
        draft = replace(draft, attachments=draft.attachments + warnings)
        if compaction or earlier:
            draft = report_compaction(draft, compaction, earlier)
        if strip:
            draft = report_strip(draft, strip)
        reports = {report.what: report for report in (*brief.tools.reports, *left.left_out)}
        return page, replace(draft, reports=(*reports.values(), *draft.reports))

    def _draft(
        self, page: Page, brief: RequestBrief, here: Implementations, ephemera: Ephemera
    ) -> Draft:
        target = brief.frame.target
        # As in this request: hooks may have changed tools and options for it alone.
        local = ephemera.apply_to(page.state)
        local = replace(local, envelope=copy_for_request(local).envelope)
        # A hook may have removed a tool that would be described here.
        removed = removed_items(page.state, here.toolset)
        kept = [a for a in brief.attached.attachments if a.item.id not in removed]
        return Draft(
            target=target,
            room=self._layouts.room(target, local),
            text=brief.message.text,
            tools=describe_offer(local, brief.tools.tools, here.toolset),
            allowed_tools=allowed_tools(local.envelope, answer_only=brief.tools.answer_only),
            tool_texts=brief.tool_texts,
            ephemera=ephemera,
            attachments=replace(brief.attached, attachments=in_wire_order(kept)),
            retry=brief.before is not None,
        )

    def _foresee(
        self, brief: RequestBrief, here: Implementations, page: Page, ephemera: Ephemera
    ) -> SystemParts:
        """Return the system prompt that a question will be sent with, if nothing changes from here
        on.
        """
        target, promotion = brief.frame.target, brief.frame.promotion
        renderer = choose_renderer(page.state, find_boundary(page.state, target, page.at))
        assembler = self._layouts.assembler_for(target, promotion, renderer)
        state = foresee(page, self._draft(page, brief, here, ephemera), assembler)
        envelope = copy_for_request(state).envelope
        return with_compiled_system(envelope, state, renderer).system


class WireRequests:
    """Encodes the drafts of one session in wire format."""

    def __init__(self, record: Record, store: JournalStore) -> None:
        self._record = record
        self._store = store

    async def make(
        self, request: RequestEntry, prompt: Prompt, target: Target, state: State | None = None
    ) -> WireRequest:
        """Return the request in wire format; `state` is the state behind it, by default the
        record's state, just after it was written.
        """
        state = state or self._record.state
        await self._record.read_ahead()
        base = self._record.entries.get(request.base or "")
        parameters = recorded_parameters(request, state, target, base)
        pictures = await self.pictures(prompt, state)
        wire_request = parameters.wire_request(prompt, target, pictures)
        if not state.pictured:
            return wire_request
        missing = tuple(digest for digest in pictures_in(prompt) if digest not in pictures)
        return replace(wire_request, missing_pictures=missing)

    async def pictures(self, prompt: Prompt, state: State | None = None) -> Mapping[str, bytes]:
        """Return the pictures of a prompt, by digest, as far as they exist: missing ones are
        reported to the model and in `Turn.warnings`.
        """
        if not (state or self._record.state).pictured:
            return {}
        pictures: dict[str, bytes] = {}
        for digest in pictures_in(prompt):
            with suppress(JournalError):
                pictures[digest] = await self._store.get_blob(digest)
        return pictures


async def _pass_over(event: Event) -> None:
    """Ignore the event: the default listener."""


NO_RUNNER = RunnerPorts(emit=_pass_over)
# Reasons for which an item stays out when a question is sent again.
WITHOUT = (*ABSENCE_REASONS, "still_out")


class TurnLifecycle:
    """Prepares, commits and resumes the turns of one session, one after the other."""

    def __init__(
        self,
        record: Record,
        layouts: Layouts,
        reader: AttachmentReader,
        hooks: Hooks,
        ports: SessionPorts,
    ) -> None:
        self.lock = anyio.Lock(fast_acquire=True)
        self._record = record
        # How requests are laid out, also for runners that need to know their size.
        self.layouts = layouts
        self._reader = reader
        # Warnings to be shown before anything is sent: once, with the next request.
        self._warnings = [f"journal: {damage}" for damage in record.damage]
        self.spending = spending = Spending(
            record, layouts.book, ports.spend_ledger, ports.spend_ceilings, self.warn
        )
        self.hooks = TurnHooks(record, layouts, hooks)
        self._wire_requests = WireRequests(record, ports.store)
        self.compactions = Compactions(
            record, layouts, ports.summarizer, self._wire_requests.pictures, spending, self._emit
        )
        self._drafts = Drafts(layouts, self.hooks, self.compactions)
        self.prefixes = KnownPrefixes(record, layouts, ports.prefixes)
        self._replies = Replies(
            record, layouts, self.hooks, self.compactions, self.prefixes, spending
        )
        self._memory = ports.memory
        self.tools = SessionTools(ports.selector)
        self._without_tools = False  # whether the current turn has a runner without tools
        self.runner = NO_RUNNER
        # Whether the session moved in front of a question, to ask another one in its place.
        self.asks_here = False
        # The last entry whose hook displays were shown.
        self._shown_until = record.state.leaf
        self.results = ToolResults(record, ports.store, reader.screen, self.warn, self.lock)
        results = ResultReader(record, ports.store, reader.screen, layouts)
        self.engine_calls = EngineCalls(
            record, layouts, self.tools, self.results, results, self.lock
        )
        # Whether the session continues an earlier one, during which files may have changed.
        self._compare_due = record.state.requests.sent is not None

    def warn(self, *texts: str) -> None:
        """Show a person a warning with the next request."""
        self._warnings += texts

    async def _emit(self, event: Event) -> None:
        await self.runner.emit(event)

    async def read_attachments(self, attach: Iterable[Attachable]) -> Attachments:
        """Return everything that applies to the next turn, for runners that look at it first;
        `prepare` accepts it.
        """
        async with self.lock:
            return await self._reader.read_all(attach, self._record.state)

    async def prepare(
        self,
        text: str,
        attach: Iterable[Attachable],
        target: str | None,
        tool_texts: tuple[ToolText, ...],
        *,
        starting: bool = False,
        toolset: Toolset | None = None,
        attachments: Attachments | None = None,
        answer_only: bool = False,
        taken: InboxEntry | None = None,
        follows: bool = False,
    ) -> Turn:
        """Return the next request, for a question; `starting` if a runner asks it. `toolset`
        contains the tools that can be called now; without one, no tools are chosen. `attachments`
        is what `read_attachments` returned for `attach`, if it was called first. With
        `answer_only`, no call will be run. `taken` is the inbox message that is asked; by default,
        all waiting ones come along. `follows` is true if the question was sent to a turn that had
        begun.
        """
        require_text(text, "the message")
        async with self.lock:
            self.spending.begin_turn()
            await self._go_back()
            settled = self._record.is_settled
            page = self._record.page() if settled else page_for_question(self._record, self.layouts)
            model = self.layouts.choose(target, page.state.settings)
            if attachments is None:
                attachments = await self._reader.read_all(attach, page.state)
            frame = TurnFrame(
                target=model,
                promotion=page.state.settings.promotion,
                attachments=attachments.attachments,
            )
            warnings = await self._take_along(page, frame) if taken is None else ()
            hooked = await self.hooks.on_question(page, frame, text)
            message, question = hooked.message, hooked.message.text
            warnings += hooked.warnings
            if taken is not None:
                take_out(page, taken)
            warnings += typed_secret_warnings(question, page.state.settings.secrets)
            if self._memory is not None:
                warnings += await update_memory(page, self._memory, self._reader.screen)
            if toolset is not None:
                self.tools.take(toolset)
            self._without_tools = starting and self.tools.toolset is None
            left = settle_tools(page, model, self._implementations)
            choices = None
            weighs = self.tools.selector.guides_turns or page.state.settings.relevance_priority
            if weighs or toolset is not None or page.state.hosted:
                choices = self._choices(page, model, question)
                await choices.choose(attachments, toolset)
            tools = NO_TOOLS if toolset is None or not choices else choices.tools(toolset)
            tools = replace(tools, reports=left.left_out, answer_only=answer_only)
            warnings += left.warnings
            if starting and not follows:
                await self.hooks.on_context("before_agent_start", page, frame, message)
                # They ran for the question, not for this request: a retry continues from here.
                page.began_at = page.state.leaf
            if self._compare_due:
                self._compare_due = False
                warnings += await change_warnings(page.state, self._reader, attachments)
            if choices:
                attachments = await choices.guides(attachments, tools)
            tool_texts = self.results.screen_texts(tool_texts, page.state)
            attachments = Attachments(warnings=(*self._warnings, *warnings)) + attachments
            return await self._ask(page, model, message, attachments, tools, tool_texts)

    async def _take_along(self, page: Page, frame: TurnFrame) -> tuple[str, ...]:
        """Put the messages waiting in the inbox in front of the question of `page`, as hooks leave
        them; return warnings about them.
        """
        warnings: tuple[str, ...] = ()
        for waiting in page.state.inbox.values():
            message = Message(role="user", blocks=(Text(waiting.text),))
            try:
                hooked = await self.hooks.on_message(message, page.state, frame)
            except MessageDropped as drop:
                page.write(CustomEntry, kind=DROPPED, data={"hook": drop.hook, "text": drop.text})
                warnings += (f"a message that waited was not sent: {drop}",)
            else:
                text = hooked.message.text
                add_message(page, text, role="user", custom_type="", shown=True)
                secrets = typed_secret_warnings(text, page.state.settings.secrets)
                warnings += (*hooked.warnings, *secrets)
            take_out(page, waiting)
        return warnings

    async def _ask(
        self,
        page: Page,
        target: Target,
        message: Message,
        attached: Attachments,
        tools: ChosenTools,
        tool_texts: tuple[ToolText, ...],
        before: CompactionOutcome | None = None,
    ) -> Turn:
        """Send a question; `before` is the compaction after an overflow."""
        promotion = page.state.settings.promotion
        brief = RequestBrief(
            frame=TurnFrame(target=target, promotion=promotion, attachments=attached.attachments),
            message=message,
            tools=tools,
            attached=attached,
            texts=[message.text, *[text.text for text in tool_texts]],
            tool_texts=tool_texts,
            before=before,
        )
        page, draft = await self._drafts.make(page, brief, self._implementations)
        boundary = find_boundary(page.state, target, page.at)
        recent = await self.prefixes.recent(page.state, target, page.at, boundary)
        draft = replace(draft, recent=recent)
        renderer = choose_renderer(page.state, boundary)
        assembler = self.layouts.assembler_for(target, promotion, renderer)
        sent = self.layouts.last_sent(page.state, assembler, target)
        plan = plan_turn(page, draft, assembler, sent)
        return await self._keep(plan, target)

    async def _keep(self, plan: RequestPlan, target: Target) -> Turn:
        """Reserve the price of the request, and write the request to the journal."""
        async with self.spending.reserving(plan.request, plan.prompt, target, plan.state):
            await self._record.keep(plan.entries, plan.state)
        await self.prefixes.count(plan.request)
        self._warnings.clear()
        return await self._turn_of(plan.request, plan.prompt, target, plan.kept)

    @property
    def _implementations(self) -> Implementations:
        return Implementations(toolset=self.tools.toolset, without_tools=self._without_tools)

    def _choices(self, page: Page, target: Target, text: str = "") -> TurnChoices:
        return TurnChoices(
            self.tools.selector, self._reader.screen, self.layouts, page, target, text
        )

    async def commit(self, turn: Turn, reply: Reply, *, end: bool) -> CommitOutcome:
        """Append an answer and its cost."""
        async with self.lock:
            outcome = await self._replies.commit(turn.entry, turn.prompt, reply, end=end)
            self._shown_until = self._record.state.leaf
            return outcome

    async def resume(self, turn: Turn, results: Sequence[ToolResult]) -> Turn:
        """Return the turn's next request, with the results of its calls."""
        async with self.lock:
            record, request = self._record, self._record.state.requests.open
            page = page_beside(record, self.layouts, request) if request else record.page()
            state = page.state
            if state.requests.sent is None or state.requests.sent.id != turn.id:
                raise TurnStateError("only the latest answer of a session can be resumed")
            if not awaits_results(state):
                raise TurnStateError("the calls of this turn already have their results")
            blocks = tuple(self.results.screen(result, state) for result in results)
            message = Message(role="tool", blocks=blocks, id=page.next_id())
            target = self.layouts.book.find(turn.target)
            frame = TurnFrame(
                target=target, promotion=turn.entry.promotion, attachments=turn.attachments
            )
            hooked = await self.hooks.on_message(message, state, frame)
            message, kept = hooked.message, turn.attachments
            found = await self._choices(page, target).find_in_results(
                message, turn.pending_calls, kept, self.tools.toolset
            )
            found = attach_finds(state, removed_items(state, self.tools.toolset), found)
            found = Attachments(warnings=(*self._warnings, *hooked.warnings)) + found
            return await self._answer_calls(page, turn.entry, target, message, kept, found)

    async def _answer_calls(
        self,
        page: Page,
        request: RequestEntry,
        target: Target,
        message: Message,
        attachments: tuple[Attachment, ...],
        found: Attachments = NOTHING,
        *,
        left_out: tuple[LeftOut, ...] | None = None,
        before: CompactionOutcome | None = None,
        wholes: Mapping[str, str] | None = None,
    ) -> Turn:
        """Send results, and the items that they added (`found`); `request` is the one whose answer
        made the calls.
        """
        results = tuple(block for block in message.blocks if isinstance(block, ToolResult))
        # A turn continues as it began; changed settings apply from the next turn on.
        promotion = request.promotion
        brief = RequestBrief(
            frame=TurnFrame(target=target, promotion=promotion, attachments=attachments),
            message=message,
            tools=tools_of(request),
            attached=replace(found, attachments=()),
            texts=[result.text for result in results],
            before=before,
        )
        page, draft = await self._drafts.make(page, brief, self._implementations)
        assembler = self.layouts.assembler_for(target, promotion, renderer_in(page.state))
        answer = CallResults(
            results=results,
            attachments=attachments,
            left_out=request.context.left_out if left_out is None else left_out,
            wholes=wholes,
            found=found.attachments,
            loads=find_loads(page.state, removed_items(page.state, self.tools.toolset)),
        )
        sent = self.layouts.last_sent(page.state, assembler, target)
        plan = plan_results(page, draft, answer, assembler, sent)
        await self.results.keep_shortened(plan.entries, results)
        return await self._keep(plan, target)

    async def go_back(self) -> None:
        """Return the session to its previous position, if it asked something again and got no
        answer.
        """
        async with self.lock:
            await self._go_back()

    async def _go_back(self) -> None:
        if self._record.state.requests.left in self._record.entries and not self.asks_here:
            page = page_back(self._record, self.layouts)
            await self._record.keep(page.written, page.state)

    async def current(self) -> Turn | None:
        """Return the unfinished turn; None if the last one is complete."""
        async with self.lock:
            state = self._record.state
            waits = awaits_results(state) and state.turn.called_by
            if (request := state.requests.open or (state.requests.sent if waits else None)) is None:
                return None
            target = self.layouts.book.find(request.target)
            prompt = self.layouts.rebuild(request)
            attachments = read_attachments(request.context, state.library.items)
            if state.requests.open is None:
                message = state.envelope.cached[-1]
                return await self._turn_of(request, prompt, target, attachments, message)
            asked = self._record.message_of(request)
            if not prompt.turn or asked is None:
                return None  # what was asked is lost
            if not self.layouts.is_as_recorded(request, prompt):
                # The recorded request can no longer be sent: it is left, and its question asked
                # again.
                page = page_beside(self._record, self.layouts, request)
                if asked.message.role == "tool" and not awaits_results(page.state):
                    return None  # the calls that it answers are lost
                texts = state.envelope.tool_texts
                return await self.ask_again(page, request, target, attachments, texts)
            state = self._record.state_at(request.id)
            return await self._turn_of(request, prompt, target, attachments, state=state)

    async def retry_smaller(self, turn: Turn) -> Turn:
        """Remake the turn after a compaction: the provider reported that the request is too
        long.
        """
        async with self.lock:
            state, request = self._record.state, turn.entry
            self._record.require_open(request)
            target = self.layouts.book.find(request.target)
            limit = self.layouts.room(target, state).limit
            sizes = sizes_of(self.layouts.rebuild(request))
            problem = "the provider refused the request as too long"
            if state.turn.retried:
                problem += " after a compaction, too; shorten the message"
                raise WindowExceeded(problem, sizes, limit)
            page = page_beside(self._record, self.layouts, request)
            compaction = await self.compactions.now(page, target, request.promotion, "overflow")
            if not compaction.changed:
                raise WindowExceeded(f"{problem}, and {compaction.reason}", sizes, limit)
            page = await self.compactions.keep(page, leaving=True)
            texts = state.envelope.tool_texts
            return await self.ask_again(page, request, target, turn.attachments, texts, compaction)

    async def ask_again(
        self,
        page: Page,
        request: RequestEntry,
        target: Target,
        attachments: tuple[Attachment, ...],
        tool_texts: tuple[ToolText, ...],
        before: CompactionOutcome | None = None,
    ) -> Turn:
        """Send the question or the results of an open request once more, on another page."""
        asked = self._record.message_of(request)
        assert asked is not None
        message = asked.message
        # Items that it left out before are left out again, and reported.
        without = tuple(e for e in request.context.left_out if e.reason in WITHOUT)
        if message.role == "tool":
            caller = page.state.requests.sent
            assert caller is not None
            earlier = {item.item for item in caller.context.items}
            kept = tuple(a for a in attachments if a.item.id in earlier)
            found = tuple(a for a in attachments if a.item.id not in earlier)
            return await self._answer_calls(
                page, caller, target, message, kept, Attachments(attachments=found),
                left_out=without, before=before, wholes=asked.whole_results,
            )  # fmt: skip
        question = Message(role="user", blocks=(Text(message.text),))
        attached = await self._reader.read_all(attachments, page.state)
        attached = replace(attached, left_out=(*attached.left_out, *without))
        tools = tools_of(request)
        return await self._ask(page, target, question, attached, tools, tool_texts, before)

    async def _turn_of(
        self,
        request: RequestEntry,
        prompt: Prompt,
        target: Target,
        attachments: tuple[Attachment, ...],
        message: Message | None = None,
        state: State | None = None,
    ) -> Turn:
        return Turn(
            keeper=self,
            entry=request,
            wire=self.layouts.book.wire(target),
            wire_request=await self._wire_requests.make(request, prompt, target, state),
            attachments=attachments,
            message=message,
            displays=find_displays(
                entries_before(request, self._record.entries, self._shown_until)
            ),
            rewrite=self.spending.rewrite(request, target) if message is None else None,
        )


async def take_up(turns: TurnLifecycle, record: Record, target: str | None) -> Turn | None:
    """Return the unfinished turn, for `target` or the one named since then."""
    turn = await turns.current()
    name = turn and (target or named_since(record, turn.entry))
    if turn is None or not name or name == turn.target:
        if turn is not None and turn.message is None and not turns.spending.is_reserved(turn.id):
            # It may have been sent already, and be charged for: that price also stays reserved.
            await turns.spending.reserve_again(turn.entry, turn.prompt)
        return turn
    chosen = turns.layouts.choose(name, record.state.settings)
    if turn.message is not None:
        return turn.with_target(chosen.name)
    async with turns.lock:
        # The request was never answered: it is left as a branch, and made again.
        record.require_open(turn.entry)
        page = page_beside(record, turns.layouts, turn.entry)
        texts = record.state.envelope.tool_texts
        return await turns.ask_again(page, turn.entry, chosen, turn.attachments, texts)


def named_since(record: Record, request: RequestEntry) -> str | None:
    """Return the target that was named for the session after `request`, which is on its path."""
    target = record.state.settings.target
    entries = record.since(request.id)
    if any(isinstance(entry, OpeningEntry) and "target" in entry.given for entry in entries):
        return target
    if not any(isinstance(entry, SettingsEntry | ModelEntry) for entry in entries):
        return None
    before = record.state_at(request.id).settings.target
    return target if target != before else None
