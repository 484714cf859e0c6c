"""Turns, in order: replay, attachments, hooks, compaction, layers, budget, prefix; then the answer.

Law: everything is decided before anything is written, and written before it is acknowledged.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import anyio
from msgspec.structs import replace

from lamina.assembly.draft import NOTHING_ADDED, Draft
from lamina.assembly.items import ABSENCE_REASONS, in_wire_order
from lamina.assembly.offer import (
    Implementations,
    allowed_tools,
    describe_offer,
    removed_items,
    settle_tools,
)
from lamina.assembly.page import Page
from lamina.assembly.planner import plan_results, plan_turn
from lamina.assembly.report import read_attachments, sizes_of
from lamina.codec import require_text
from lamina.errors import TurnStateError, WindowExceeded
from lamina.journal import State, awaits_results
from lamina.ports import JournalStore, MemorySource, Summarizer
from lamina.record.branch import page_beside, page_for_question
from lamina.record.layouts import Layouts
from lamina.record.record import Record
from lamina.session.compactor import CompactionOutcome, Compactions, report_compaction
from lamina.session.inbox import take_out
from lamina.session.replies import CommitOutcome, Replies
from lamina.session.tool_results import ToolResults
from lamina.session.turn import Turn
from lamina.session.turn_hooks import TurnHooks
from lamina.session.wire_requests import WireRequests
from lamina.sources.attachments import Attachable, AttachmentReader
from lamina.sources.changes import change_warnings
from lamina.sources.choices import NO_TOOLS, ChosenTools, TurnChoices
from lamina.sources.hook_runs import run_ephemeral_hooks
from lamina.sources.hooks import Hooks
from lamina.sources.memory_part import update_memory
from lamina.sources.secrets import typed_secret_warnings
from lamina.sources.selector import Selector
from lamina.values.entry import InboxEntry, RequestEntry
from lamina.values.item import Attachment
from lamina.values.message import Message, Text, ToolResult, ToolText
from lamina.values.prompt import Prompt
from lamina.values.request import Attachments, LeftOut
from lamina.values.settings import Promotion, Target
from lamina.values.tool import OfferedTool, Toolset
from lamina.values.wire import Reply

# Reasons for which an item stays out when a question is sent again.
WITHOUT = (*ABSENCE_REASONS, "still_out")


class TurnLifecycle:
    """Prepares, commits and resumes the turns of one session, one after the other."""

    def __init__(
        self,
        record: Record,
        layouts: Layouts,
        reader: AttachmentReader,
        store: JournalStore,
        hooks: Hooks,
        summarizer: Summarizer | None,
        selector: Selector,
        memory: MemorySource | None = None,
    ) -> None:
        self.lock = anyio.Lock(fast_acquire=True)
        self._record = record
        # How requests are laid out, also for runners that need to know their size.
        self.layouts = layouts
        self._reader = reader
        self._hooks = hooks
        self._moments = TurnHooks(record, hooks)
        self._wire_requests = WireRequests(record, store)
        self.compactions = Compactions(record, layouts, summarizer, self._wire_requests.pictures)
        self._replies = Replies(record, layouts, hooks, self.compactions)
        self.selector = selector
        self.memory = memory
        # What a runner of the session can call; None if it has none, or there is no runner.
        self.toolset: Toolset | None = None
        self._without_tools = False  # whether a runner without tools has the turn under way
        # Set by the runner of the tools, so that they can be listed before the first question.
        self.list_tools: Callable[[], Awaitable[Toolset]] | None = None
        # What a person should know before anything is sent: once, with the next request.
        self.news = [f"journal: {damage}" for damage in record.damage]
        self.results = ToolResults(record, store, reader.screen, self.news)
        # Whether the session went on from an earlier opening, since when files may have changed.
        self._compare_due = record.state.requests.sent is not None

    @property
    def tools(self) -> tuple[OfferedTool, ...]:
        """What a runner of the session can call."""
        return self.toolset.tools if self.toolset else ()

    async def read_attachments(self, attach: Iterable[Attachable]) -> Attachments:
        """What applies to the next turn, for runners that look at it first; `prepare` takes it."""
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
    ) -> Turn:
        """The next request, for a question; `starting` if a runner takes it up. `toolset` is what
        can be called now; without one no tools are chosen. `attachments` is what
        `read_attachments` gave for `attach`, if it was called first. With `answer_only` no call
        will be run. `taken` is the message of the inbox that is asked."""
        require_text(text, "the message")
        async with self.lock:
            settled = self._record.is_settled
            page = self._record.page() if settled else page_for_question(self._record, self.layouts)
            model = self.layouts.choose(target, page.state.settings)
            message, warnings = await self._moments.on_question(page, text)
            question = message.text
            if taken is not None:
                take_out(page, taken)
            warnings += typed_secret_warnings(question, page.state.settings.secrets)
            if self.memory is not None:
                warnings += await update_memory(page, self.memory, self._reader.screen)
            self.toolset = self.toolset if toolset is None else toolset
            self._without_tools = starting and self.toolset is None
            left = self._settle(page, model)
            choices = None
            weighs = self.selector.guides_turns or page.state.settings.relevance_priority
            if weighs or toolset is not None or page.state.hosted:
                choices = TurnChoices(
                    self.selector, self._reader.screen, self.layouts, page, model, question
                )
            tools = NO_TOOLS if toolset is None or not choices else await choices.tools(toolset)
            tools = replace(tools, reports=left.left_out, answer_only=answer_only)
            warnings += left.warnings
            if starting:
                await self._moments.on_context("before_agent_start", page, model.name, message)
                # They ran for the question, not for this request: a retry goes back to here.
                page.began_at = page.state.leaf
            if attachments is None:
                attachments = await self._reader.read_all(attach, page.state)
            if self._compare_due:
                self._compare_due = False
                warnings += await change_warnings(page.state, self._reader, attachments)
            if choices:
                attachments = await choices.guides(attachments, tools)
            tool_texts = self.results.screen_texts(tool_texts, page.state)
            attachments = Attachments(warnings=(*self.news, *warnings)) + attachments
            return await self._ask(page, model, message, attachments, tools, tool_texts)

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
        """Sends a question; `before` is the compaction that an overflow asked for."""
        promotion = page.state.settings.promotion
        page, draft = await self._draft(
            page, target, promotion, message, tools, attached, before,
            texts=[message.text, *[text.text for text in tool_texts]],
        )  # fmt: skip
        # A hook may have removed a tool that would be described here.
        removed = removed_items(page.state, self.toolset)
        attachments = [a for a in attached.attachments if a.item.id not in removed]
        attached = replace(draft.attachments, attachments=in_wire_order(attachments))
        draft = replace(draft, text=message.text, attachments=attached, tool_texts=tool_texts)
        assembler = self.layouts.assembler_for(target, promotion)
        sent = self.layouts.last_sent(page.state, assembler, target)
        plan = plan_turn(page, draft, assembler, sent)
        if plan.state.pictured:
            # Raises before anything is written.
            await self._wire_requests.pictures(plan.prompt, plan.state)
        await self._record.keep(plan.entries, plan.state)
        self.news.clear()
        return await self._turn_of(plan.request, plan.prompt, target, plan.kept)

    async def _draft(
        self,
        page: Page,
        target: Target,
        promotion: Promotion,
        message: Message,
        tools: ChosenTools,
        attached: Attachments,
        before: CompactionOutcome | None,
        *,
        texts: Sequence[str],
    ) -> tuple[Page, Draft]:
        """What hooks and compaction make of a request before it is planned."""
        earlier = page.state.requests.cuts
        await self._moments.on_context("before_request", page, target.name, message)
        left = self._settle(page, target)
        compaction = before
        if before is None:
            items = [attachment.item for attachment in attached.attachments]
            compaction = await self.compactions.if_due(page, target, promotion, texts, items)
            if compaction and compaction.changed:
                page = await self.compactions.keep(page)
        ephemera = NOTHING_ADDED
        if self._hooks.context_hooks:
            ephemera = await run_ephemeral_hooks(self._hooks, page, target.name, message)
        draft = Draft(
            target=target,
            room=self.layouts.room(target, page.state),
            tools=describe_offer(page.state, tools.tools, self.toolset),
            allowed_tools=allowed_tools(page.state.envelope, answer_only=tools.answer_only),
            ephemera=ephemera,
            attachments=attached + Attachments(warnings=left.warnings),
            retry=before is not None,
        )
        if compaction or earlier:
            draft = report_compaction(draft, compaction, earlier)
        reports = {report.what: report for report in (*tools.reports, *left.left_out)}
        return page, replace(draft, reports=(*reports.values(), *draft.reports))

    def _settle(self, page: Page, target: Target) -> Attachments:
        here = Implementations(toolset=self.toolset, without_tools=self._without_tools)
        return settle_tools(page, target, here)

    async def commit(self, turn: Turn, reply: Reply, *, end: bool) -> CommitOutcome:
        """Appends an answer and what it cost."""
        async with self.lock:
            return await self._replies.commit(turn.entry, turn.prompt, reply, end=end)

    async def resume(self, turn: Turn, results: Sequence[ToolResult]) -> Turn:
        """The turn's next request, with the results of its calls."""
        async with self.lock:
            record, request = self._record, self._record.state.requests.open
            page = page_beside(record, self.layouts, request) if request else record.page()
            state = page.state
            if state.requests.sent is None or state.requests.sent.id != turn.id:
                raise TurnStateError("only the latest answer of a session can be resumed")
            if not awaits_results(state):
                raise TurnStateError("the calls of this turn have their results already")
            blocks = tuple(self.results.screen(result, state) for result in results)
            message = Message(role="tool", blocks=blocks, id=page.next_id())
            message, warnings = await self._moments.on_message(message, state)
            warnings = (*self.news, *warnings)
            target = self.layouts.book.find(turn.target)
            return await self._answer_calls(
                page, turn.entry, target, message, turn.attachments, warnings
            )

    async def keep_result(self, result: ToolResult, whole: str = "") -> ToolResult:
        """Keeps what a tool gave while other calls of its turn wait, and the `whole` of what was
        cut; gives it as it is kept."""
        async with self.lock:
            return await self.results.keep(result, whole)

    async def _answer_calls(
        self,
        page: Page,
        request: RequestEntry,
        target: Target,
        message: Message,
        attachments: tuple[Attachment, ...],
        warnings: tuple[str, ...] = (),
        *,
        left_out: Sequence[LeftOut] | None = None,
        before: CompactionOutcome | None = None,
        wholes: Mapping[str, str] | None = None,
    ) -> Turn:
        """Sends results; `request` is the one whose answer called for them."""
        results = [block for block in message.blocks if isinstance(block, ToolResult)]
        # A turn goes on as it began; changed settings hold from the next one on.
        promotion = request.promotion
        page, draft = await self._draft(
            page, target, promotion, message, _tools_of(request), Attachments(warnings=warnings),
            before,
            texts=[result.text for result in results],
        )  # fmt: skip
        assembler = self.layouts.assembler_for(target, promotion)
        plan = plan_results(
            page, draft, results, assembler,
            self.layouts.last_sent(page.state, assembler, target), attachments,
            request.context.left_out if left_out is None else left_out, wholes,
        )  # fmt: skip
        await self.results.keep_shortened(plan.entries, results)
        await self._record.keep(plan.entries, plan.state)
        self.news.clear()
        return await self._turn_of(plan.request, plan.prompt, target, plan.kept)

    async def current(self) -> Turn | None:
        """The turn that was left in the middle; None if the last one is complete."""
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
                # What was recorded cannot be sent any more: it is asked anew, and left.
                page = page_beside(self._record, self.layouts, request)
                if asked.message.role == "tool" and not awaits_results(page.state):
                    return None  # the calls that it answers are lost
                texts = state.envelope.tool_texts
                return await self.ask_again(page, request, target, attachments, texts)
            state = self._record.state_at(request.id)
            return await self._turn_of(request, prompt, target, attachments, state=state)

    async def retry_smaller(self, turn: Turn) -> Turn:
        """The turn anew after a compaction: the provider said that the request is too long."""
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
        """The question or the results of an open request once more, on another page."""
        asked = self._record.message_of(request)
        assert asked is not None
        message = asked.message
        # What it went without before, it goes without again, and says so.
        without = tuple(e for e in request.context.left_out if e.reason in WITHOUT)
        if message.role == "tool":
            caller = page.state.requests.sent
            assert caller is not None
            return await self._answer_calls(
                page, caller, target, message, attachments,
                left_out=without, before=before, wholes=asked.whole_results,
            )  # fmt: skip
        question = Message(role="user", blocks=(Text(message.text),))
        attached = await self._reader.read_all(attachments, page.state)
        attached = replace(attached, left_out=(*attached.left_out, *without))
        tools = _tools_of(request)
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
        )


def _tools_of(request: RequestEntry) -> ChosenTools:
    context = request.context
    return ChosenTools(tools=context.tools, answer_only=context.allowed_tools == ())
