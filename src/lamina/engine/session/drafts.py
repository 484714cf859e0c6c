"""Requests before they are planned: what hooks and compaction make of them."""

from collections.abc import Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.assembly.boundary import choose_renderer
from lamina.core.assembly.draft import Draft, Ephemera
from lamina.core.assembly.items import in_wire_order
from lamina.core.assembly.offer import (
    Implementations,
    allowed_tools,
    describe_offer,
    removed_items,
    settle_tools,
)
from lamina.core.assembly.page import Page
from lamina.core.assembly.planner import foresee
from lamina.core.journal import copy_for_request
from lamina.core.layers import with_compiled_system
from lamina.core.values.envelope import SystemParts
from lamina.core.values.message import Message, ToolText
from lamina.core.values.request import Attachments
from lamina.engine.record.layouts import Layouts
from lamina.engine.session.compaction_reports import report_compaction, report_strip
from lamina.engine.session.compactor import CompactionOutcome, Compactions
from lamina.engine.session.turn_hooks import TurnFrame, TurnHooks
from lamina.engine.sources.choices import ChosenTools


class RequestBrief(Struct, frozen=True, kw_only=True):
    """What a request is to be: its message, the tools that were chosen, what goes along with it,
    results of planned tools, and the `texts` that take room in it. `frame` is what holds for the
    whole turn; `before` is the compaction that an overflow asked for."""

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
        """The draft, and the page that it goes on with; `here` is who runs calls."""
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
        warnings = Attachments(warnings=(*left.warnings, *self._hooks.tell_late()))
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
        # As this request has it: hooks may have changed tools and options for it alone.
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
        """The system prompt that a question will be sent with, if nothing changes from here on."""
        target, promotion = brief.frame.target, brief.frame.promotion
        renderer = choose_renderer(page.state, target, page.at)
        assembler = self._layouts.assembler_for(target, promotion, renderer)
        state = foresee(page, self._draft(page, brief, here, ephemera), assembler)
        envelope = copy_for_request(state).envelope
        return with_compiled_system(envelope, state, renderer).system
