"""Requests before they are planned: what hooks and compaction make of them."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.assembly.draft import Draft
from lamina.assembly.offer import (
    Implementations,
    allowed_tools,
    describe_offer,
    settle_tools,
)
from lamina.assembly.page import Page
from lamina.journal import copy_for_request
from lamina.record.layouts import Layouts
from lamina.session.compaction_reports import report_compaction, report_strip
from lamina.session.compactor import CompactionOutcome, Compactions
from lamina.session.turn_hooks import TurnFrame, TurnHooks
from lamina.sources.choices import ChosenTools
from lamina.values.message import Message
from lamina.values.request import Attachments


class RequestBrief(Struct, frozen=True, kw_only=True):
    """What a request is to be: its message, the tools that were chosen, what goes along with it,
    and the `texts` that take room in it. `frame` is what holds for the whole turn; `before` is the
    compaction that an overflow asked for."""

    frame: TurnFrame
    message: Message
    tools: ChosenTools
    attached: Attachments
    texts: Sequence[str]
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
        await self._hooks.on_context("before_request", page, frame, message)
        left = settle_tools(page, target, here)
        compaction, strip = brief.before, None
        if compaction is None:
            items = [attachment.item for attachment in attached.attachments]
            page, compaction, strip = await self._compactions.before_request(
                page, target, frame.promotion, brief.texts, items,
                is_question=message.role == "user",
            )  # fmt: skip
        ephemera = await self._hooks.for_request(page, frame, message)
        warnings = (*left.warnings, *self._hooks.tell_late())
        # As this request has it: hooks may have changed tools and options for it alone.
        local = ephemera.apply_to(page.state)
        local = replace(local, envelope=copy_for_request(local).envelope)
        draft = Draft(
            target=target,
            room=self._layouts.room(target, local),
            tools=describe_offer(local, brief.tools.tools, here.toolset),
            allowed_tools=allowed_tools(local.envelope, answer_only=brief.tools.answer_only),
            ephemera=ephemera,
            attachments=attached + Attachments(warnings=warnings),
            retry=brief.before is not None,
        )
        if compaction or earlier:
            draft = report_compaction(draft, compaction, earlier)
        if strip:
            draft = report_strip(draft, strip)
        reports = {report.what: report for report in (*brief.tools.reports, *left.left_out)}
        return page, replace(draft, reports=(*reports.values(), *draft.reports))
