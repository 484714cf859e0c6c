"""A question as a runner would send it, and not sent.

Law: no model is asked, since there is none here that could be; so of a planned question only the
request for the plan can be shown. No tool is run.
"""

from collections.abc import Sequence
from typing import Any, NoReturn

from msgspec import Struct

from lamina.errors import UsageError
from lamina.runners.composer import with_composer
from lamina.runners.plan import PlanRunner
from lamina.runners.qa import QaRunner
from lamina.runners.runner import AgentRunner, ChatRunner
from lamina.session.session import Session
from lamina.session.turn import Turn
from lamina.sources.attachments import Attachable
from lamina.tools.toolbox import Toolbox
from lamina.values.note import NoteSearchResult, Scope
from lamina.values.prompt import Prompt
from lamina.values.request import LeftOut
from lamina.values.settings import Target
from lamina.wiring.runners import offer_files, require_search, with_search


class Preview(Struct, frozen=True, kw_only=True):
    """A turn that was prepared. `found` is what a search brought to it."""

    turn: Turn
    found: NoteSearchResult | None = None
    warnings: tuple[str, ...] = ()


class PlanPreview(Struct, frozen=True, kw_only=True):
    """The request for a plan; `body` is what goes over the wire."""

    target: Target
    prompt: Prompt
    body: dict[str, Any]
    left_out: tuple[LeftOut, ...] = ()
    warnings: tuple[str, ...] = ()


class Nobody:
    """Providers of nothing."""

    async def provider(self, target: Target) -> NoReturn:
        raise UsageError(f"nothing is sent from here, to {target.name} neither")


async def preview_agent(
    session: Session, text: str, attach: Sequence[Attachable], *, files: bool, scope: Scope
) -> Preview:
    """The first request of `open_agent`; with `files` those tools are in it.

    Raises:
        UsageError: the workspace is no folder.
    """
    if not files:
        return await _Asking(session, Nobody()).preview(text, attach)
    # None of these has to be opened.
    host = await offer_files(session)
    if session.searcher is not None:
        host = with_search(session, host, scope)
    return await _Calling(session, Nobody(), host).preview(text, attach)


async def preview_qa(
    session: Session, text: str, attach: Sequence[Attachable], *, scope: Scope
) -> Preview:
    """The request of `open_qa`, with what is found for it.

    Raises:
        UsageError: the workspace has no notes that could be searched.
    """
    return await _Answering(session, Nobody(), require_search(session), scope=scope).preview(
        text, attach
    )


async def preview_plan(
    session: Session, text: str, attach: Sequence[Attachable], *, files: bool, scope: Scope
) -> PlanPreview:
    """The first request of `open_plan`: the second depends on what a model makes of it.

    Raises:
        UsageError: the workspace is no folder.
        WindowExceeded: it does not fit.
    """
    host = Toolbox(*([await offer_files(session)] if files else []))
    planning = _Planning(session, Nobody(), host, search=session.searcher, scope=scope)
    return await planning.preview(text, attach)


class _Asking(ChatRunner):
    async def preview(self, text: str, attach: Sequence[Attachable]) -> Preview:
        turn = await self._take_up(text, attach, None)
        return Preview(turn=turn, found=self._brought(), warnings=tuple(self._tally.warnings))

    def _brought(self) -> NoteSearchResult | None:
        return None


class _Calling(_Asking, AgentRunner):
    pass


class _Answering(_Asking, QaRunner):
    def _brought(self) -> NoteSearchResult | None:
        return self._found


class _Planning(PlanRunner):
    async def preview(self, text: str, attach: Sequence[Attachable]) -> PlanPreview:
        session = self.session
        target = session.target()
        hydrated = await session.turns.read_attachments(with_composer(text, attach))
        offered = await self._offer(text, target)
        tools = [tool.definition for tool in offered.values()]
        request = self._planner.request(text, hydrated, tools, target)
        return PlanPreview(
            target=target,
            prompt=request.prompt,
            body=session.turns.layouts.book.wire(target).encode(request),
            left_out=hydrated.left_out,
            warnings=(*hydrated.warnings, *self._tally.warnings),
        )
