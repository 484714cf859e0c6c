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
    Withdrawal,
    allowed_tools,
    describe_offer,
    removed_items,
    settle_tools,
)
from lamina.assembly.page import Page
from lamina.assembly.planner import plan_results, plan_turn
from lamina.assembly.report import read_attachments, sizes_of
from lamina.audit.rebuilt_request import pictures_in
from lamina.codec import require_text
from lamina.errors import MessageDropped, TurnStateError, WindowExceeded
from lamina.journal import State, awaits_results
from lamina.ledger import left_in_cache, previous_reply
from lamina.ports import JournalStore, MemorySource, Summarizer
from lamina.record.branch import page_beside, page_for_question
from lamina.record.layouts import Layouts
from lamina.record.record import Record
from lamina.session.compactor import CompactionOutcome, Compactions, report_compaction
from lamina.session.replies import CommitOutcome, Replies
from lamina.session.turn import Turn
from lamina.sources.attachments import Attachable, AttachmentReader, Attachments
from lamina.sources.changes import change_warnings
from lamina.sources.choices import NO_TOOLS, ChosenTools, TurnChoices
from lamina.sources.hook_runs import run_context_hooks, run_ephemeral_hooks, run_message_hooks
from lamina.sources.hooks import HookReason, Hooks
from lamina.sources.memory_part import update_memory
from lamina.sources.secrets import typed_secret_warnings
from lamina.sources.selector import Selector
from lamina.values.entry import CustomEntry, RequestEntry
from lamina.values.item import Attachment, Item
from lamina.values.message import Message, Text, ToolResult, ToolText
from lamina.values.prompt import Prompt
from lamina.values.request import LeftOut
from lamina.values.settings import Promotion, Target
from lamina.values.tool import OfferedTool, Toolset
from lamina.values.wire import Reply, WireRequest

# Reasons for which an item stays out when a question is sent again.
WITHOUT = (*ABSENCE_REASONS, "still_out")
DROPPED = "lamina.dropped"


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
        self._store = store
        self._hooks = hooks
        self.compactions = Compactions(record, layouts, summarizer, self._blobs)
        self._replies = Replies(record, layouts, hooks, self.compactions)
        self.selector = selector
        self.memory = memory
        # What a runner of the session can call; None if it has none, or there is no runner.
        self.toolset: Toolset | None = None
        # Whether the turn under way is that of a runner without tools.
        self._without_tools = False
        # Set by the runner of the tools, so that they can be listed before the first question.
        self.list_tools: Callable[[], Awaitable[Toolset]] | None = None
        # What a person should know before anything is sent: once, with the next request.
        self._news = [f"journal: {damage}" for damage in record.damage]
        # Whether the session went on from an earlier opening, since when files may have changed.
        self._compare_due = record.state.last_sent is not None

    @property
    def tools(self) -> tuple[OfferedTool, ...]:
        """What a runner of the session can call."""
        return self.toolset.tools if self.toolset else ()

    async def read_attachments(self, attach: Iterable[Attachable]) -> Attachments:
        """Everything that applies to the next turn, for runners that look at it first; `prepare`
        takes it, so that nothing is read twice."""
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
    ) -> Turn:
        """The next request, for a question; `starting` if a runner takes it up. `toolset` is what
        can be called now; without one no tools are chosen. `attachments` is what
        `read_attachments` gave for `attach`, if it was called first. With `answer_only` no call
        will be run."""
        require_text(text, "the message")
        async with self.lock:
            record = self._record
            page = record.page() if record.is_settled else page_for_question(record, self.layouts)
            model = self.layouts.choose(target, page.state.settings)
            message, warnings = await self._hook_question(page, text)
            question = message.text
            warnings += typed_secret_warnings(question, page.state.settings.secrets)
            if self.memory is not None:
                warnings += await update_memory(page, self.memory)
            self.toolset = self.toolset if toolset is None else toolset
            self._without_tools = starting and self.toolset is None
            left = self._settle(page, model)
            choices = None
            if self._has_choices(page.state, toolset):
                choices = TurnChoices(self.selector, self.layouts, page, model, question)
            tools = NO_TOOLS if toolset is None or not choices else await choices.tools(toolset)
            tools = replace(tools, reports=left.left_out, answer_only=answer_only)
            warnings += left.warnings
            if starting:
                await self._run_hooks("before_agent_start", page, model.name, message)
                # They ran for the question, not for this request: a retry goes back to here.
                page.began_at = page.state.leaf
            if attachments is None:
                attachments = await self._reader.read_all(attach, page.state)
            if self._compare_due:
                self._compare_due = False
                warnings += await change_warnings(page.state, self._reader, attachments)
            if choices:
                attachments = await choices.guides(attachments, tools)
            warnings = (*self._news, *warnings)
            return await self._ask(page, model, message, attachments, tools, tool_texts, warnings)

    def _has_choices(self, state: State, toolset: Toolset | None) -> bool:
        """Whether there is anything to choose: tools, guides of an agent, priorities to weigh."""
        chooses = toolset is not None or self.selector.guides_turns or bool(state.hosted)
        return chooses or state.settings.relevance_priority

    async def _ask(
        self,
        page: Page,
        target: Target,
        message: Message,
        attached: Attachments,
        tools: ChosenTools,
        tool_texts: tuple[ToolText, ...],
        warnings: tuple[str, ...] = (),
        before: CompactionOutcome | None = None,
    ) -> Turn:
        """Sends a question; `before` is the compaction that an overflow asked for."""
        promotion = page.state.settings.promotion
        page, draft = await self._draft(
            page, target, promotion, message, tools, (*warnings, *attached.warnings), before,
            texts=[message.text, *[text.text for text in tool_texts]],
            items=[attachment.item for attachment in attached.attachments],
        )  # fmt: skip
        # A hook may have removed a tool that would be described here.
        removed = removed_items(page.state, self.toolset)
        attachments = [a for a in attached.attachments if a.item.id not in removed]
        draft = replace(
            draft,
            text=message.text,
            attachments=in_wire_order(attachments),
            left_out=attached.left_out,
            tool_texts=tool_texts,
        )
        assembler = self.layouts.assembler_for(target, promotion)
        plan = plan_turn(page, draft, assembler, self.layouts.last_sent(page.state, assembler))
        if plan.state.pictured:
            await self._blobs(plan.prompt, plan.state)  # raises before anything is written
        await self._record.keep(plan.entries, plan.state)
        self._news.clear()
        return await self._turn_of(plan.request, plan.prompt, target, plan.kept)

    async def _draft(
        self,
        page: Page,
        target: Target,
        promotion: Promotion,
        message: Message,
        tools: ChosenTools,
        warnings: tuple[str, ...],
        before: CompactionOutcome | None,
        *,
        texts: Sequence[str],
        items: Sequence[Item] = (),
    ) -> tuple[Page, Draft]:
        """What hooks and compaction make of a request before it is planned."""
        earlier = page.state.cuts
        await self._run_hooks("before_request", page, target.name, message)
        left = self._settle(page, target)
        compaction = before
        if before is None and self.compactions.summarizer is not None:
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
            warnings=(*warnings, *left.warnings),
            retry=before is not None,
        )
        if compaction or earlier:
            draft = report_compaction(draft, compaction, earlier)
        reports = {report.what: report for report in (*tools.reports, *left.left_out)}
        return page, replace(draft, reports=(*reports.values(), *draft.reports))

    def _settle(self, page: Page, target: Target) -> Withdrawal:
        here = Implementations(toolset=self.toolset, without_tools=self._without_tools)
        return settle_tools(page, target, here)

    async def commit(self, turn: Turn, reply: Reply, *, end: bool) -> CommitOutcome:
        """Appends an answer and what it cost."""
        async with self.lock:
            return await self._replies.commit(turn.entry, turn.prompt, reply, end=end)

    async def resume(self, turn: Turn, results: Sequence[ToolResult]) -> Turn:
        """The turn's next request, with the results of its calls."""
        async with self.lock:
            record, request = self._record, self._record.state.open_request
            page = page_beside(record, self.layouts, request) if request else record.page()
            state = page.state
            if state.last_sent is None or state.last_sent.id != turn.id:
                raise TurnStateError("only the latest answer of a session can be resumed")
            if not awaits_results(state):
                raise TurnStateError("the calls of this turn have their results already")
            message = Message(role="tool", blocks=tuple(results), id=page.next_id())
            message, warnings = await self._hook_message(message, state)
            return await self._answer_calls(page, turn.entry, message, turn.attachments, warnings)

    async def _answer_calls(
        self,
        page: Page,
        request: RequestEntry,
        message: Message,
        attachments: tuple[Attachment, ...],
        warnings: tuple[str, ...] = (),
        *,
        left_out: Sequence[LeftOut] | None = None,
        before: CompactionOutcome | None = None,
    ) -> Turn:
        """Sends results; `request` is the one whose answer called for them."""
        target = self.layouts.book.find(request.target)
        results = [block for block in message.blocks if isinstance(block, ToolResult)]
        # A turn goes on as it began; changed settings hold from the next one on.
        promotion = request.promotion
        page, draft = await self._draft(
            page, target, promotion, message, _tools_of(request), warnings, before,
            texts=[result.text for result in results],
        )  # fmt: skip
        assembler = self.layouts.assembler_for(target, promotion)
        plan = plan_results(
            page, draft, results, assembler,
            self.layouts.last_sent(page.state, assembler), attachments,
            request.context.left_out if left_out is None else left_out,
        )  # fmt: skip
        await self._record.keep(plan.entries, plan.state)
        return await self._turn_of(plan.request, plan.prompt, target, plan.kept)

    async def current(self) -> Turn | None:
        """The turn that was left in the middle; None if the last one is complete."""
        async with self.lock:
            state = self._record.state
            waiting = awaits_results(state) and state.called_by
            request = state.open_request or (state.last_sent if waiting else None)
            if request is None:
                return None
            target = self.layouts.book.find(request.target)
            prompt = self.layouts.rebuild(request)
            if state.open_request is not None and not prompt.turn:
                # Its question is lost: there is nothing to send.
                return None
            attachments = read_attachments(request.context, state.items)
            answer = state.envelope.cached[-1] if state.open_request is None else None
            return await self._turn_of(request, prompt, target, attachments, answer)

    async def retry_smaller(self, turn: Turn) -> Turn:
        """The turn anew after a compaction: the provider said that the request is too long."""
        async with self.lock:
            state, request = self._record.state, turn.entry
            self._record.require_open(request)
            target = self.layouts.book.find(request.target)
            limit = self.layouts.room(target, state).limit
            sizes = sizes_of(self.layouts.rebuild(request))
            problem = "the provider refused the request as too long"
            if state.retried:
                problem += " after a compaction, too; shorten the message"
                raise WindowExceeded(problem, sizes, limit)
            page = page_beside(self._record, self.layouts, request)
            compaction = await self.compactions.now(page, target, request.promotion, "overflow")
            if not compaction.changed:
                raise WindowExceeded(f"{problem}, and {compaction.reason}", sizes, limit)
            page = await self.compactions.keep(page, leaving=True)
            message = self._record.message_of(request)
            # What it went without before, it goes without again, and says so.
            without = tuple(e for e in request.context.left_out if e.reason in WITHOUT)
            if message.role == "tool":
                caller = page.state.last_sent
                assert caller is not None
                return await self._answer_calls(
                    page, caller, message, turn.attachments, left_out=without, before=compaction
                )
            question = Message(role="user", blocks=(Text(message.text),))
            attachments = await self._reader.read_all(turn.attachments, page.state)
            attachments = replace(attachments, left_out=(*attachments.left_out, *without))
            return await self._ask(
                page, target, question, attachments, _tools_of(request), state.envelope.tool_texts,
                before=compaction,
            )  # fmt: skip

    # -- inside ----------------------------------------------------------------------------------

    async def _run_hooks(
        self, reason: HookReason, page: Page, target: str, message: Message
    ) -> None:
        if self._hooks.context_hooks:
            await run_context_hooks(self._hooks, reason, page, target, message)

    async def _hook_message(
        self, message: Message, state: State
    ) -> tuple[Message, tuple[str, ...]]:
        if not self._hooks.message_hooks:
            return message, ()
        return await run_message_hooks(self._hooks, self._record.id, message, state.envelope)

    async def _hook_question(self, page: Page, text: str) -> tuple[Message, tuple[str, ...]]:
        message = Message(role="user", blocks=(Text(text),))
        try:
            return await self._hook_message(message, page.state)
        except MessageDropped as drop:
            # Nothing disappears silently: the journal says what was dropped and by whom.
            data = {"hook": drop.hook, "text": drop.text}
            await self._record.write(CustomEntry, kind=DROPPED, data=data)
            raise

    async def _turn_of(
        self,
        request: RequestEntry,
        prompt: Prompt,
        target: Target,
        attachments: tuple[Attachment, ...],
        message: Message | None = None,
    ) -> Turn:
        state = self._record.state
        wire_request = WireRequest(
            prompt=prompt,
            target=target,
            options=state.envelope.options,
            allowed_tools=request.context.allowed_tools,
            blobs=await self._blobs(prompt) if state.pictured else {},
            cache_key=self._record.id,
            cache_ttl=state.settings.cache_ttl,
            previous=previous_reply(state, target),
            held=left_in_cache(request, self._record.entries.get(request.base or "")),
            explicit_cache=state.settings.explicit_cache,
        )
        wire = self.layouts.book.wire(target)
        return Turn(
            keeper=self, entry=request, wire=wire, wire_request=wire_request,
            attachments=attachments, message=message,
        )  # fmt: skip

    async def _blobs(self, prompt: Prompt, state: State | None = None) -> Mapping[str, bytes]:
        if not (state or self._record.state).pictured:
            return {}
        return {digest: await self._store.get_blob(digest) for digest in pictures_in(prompt)}


def _tools_of(request: RequestEntry) -> ChosenTools:
    context = request.context
    return ChosenTools(tools=context.tools, answer_only=context.allowed_tools == ())
