"""One batch of planned calls: which may run, and the outcome of each.

Laws: calls run together, and what goes wrong with one is what it gave. A call that needs a person's
approval runs only if somebody can be asked: there is no answer yet that it could wait in.
"""

from collections.abc import Sequence
from typing import Literal

import anyio
from msgspec import Struct

from lamina.core.codec import mend_text
from lamina.core.ports import Approver, ToolHost
from lamina.core.values.event import ToolFinished, ToolStarted
from lamina.core.values.message import ToolCall, ToolResult, ToolText
from lamina.core.values.tool import DENIED
from lamina.engine.runners.caller import CUT_SHORT, CheckedCall, ask_person, needs_decision
from lamina.engine.runners.citations import LOCAL_SEARCH
from lamina.engine.runners.search_output import SearchOutput
from lamina.engine.runners.search_tool import SearchTools
from lamina.engine.runners.sender import Emit
from lamina.engine.session.session import Session, core_of
from lamina.engine.task_groups import patient_group

NOBODY = "Tool call denied: it needs a person's word, and nobody can be asked while a plan is run."
Outcome = Literal["ran", "failed", "denied", "stopped"]


class FinishedCall(Struct, frozen=True, kw_only=True):
    """The outcome of a call; `whole` is all of a text that was cut. `search` is what a search gave,
    which has a block of its own."""

    call: ToolCall
    outcome: Outcome
    text: str
    whole: str = ""
    seconds: float = 0.0
    search: SearchOutput | None = None


class Batch:
    """Runs the calls of one plan. `search` answers to its own name, the rest is the host's."""

    def __init__(
        self,
        session: Session,
        host: ToolHost,
        search: SearchTools | None,
        approver: Approver | None,
        emit: Emit,
    ) -> None:
        self._session = session
        self._host = host
        self._search = search
        self._approver = approver
        self._emit = emit
        self._outcomes: dict[str, FinishedCall] = {}

    @property
    def outcomes(self) -> tuple[FinishedCall, ...]:
        """The outcomes so far, in the order of the calls."""
        return tuple(self._outcomes[call] for call in sorted(self._outcomes, key=_number))

    async def run(self, calls: Sequence[CheckedCall]) -> None:
        policy = self._session.settings.ask_before_tools
        allowances = self._session.state.allowed
        open_calls = [call for call in calls if needs_decision(call.tool, policy, allowances)]
        async with patient_group() as group:
            for call in calls:
                if call not in open_calls:
                    group.start_soon(self._call, call)
            for call in open_calls:
                if await self._may_run(call):
                    group.start_soon(self._call, call)

    async def _may_run(self, checked: CheckedCall) -> bool:
        session, approver, emit = self._session, self._approver, self._emit
        if approver and await ask_person(session, approver, checked, emit, planned=True) != "deny":
            return True
        problem = DENIED if approver else NOBODY
        await self._keep(FinishedCall(call=checked.intended, outcome="denied", text=problem))
        return False

    async def _call(self, checked: CheckedCall) -> None:
        call = checked.intended
        await self._emit(ToolStarted(call=call, label=checked.tool.label))
        began = anyio.current_time()
        self._outcomes[call.id] = FinishedCall(call=call, outcome="stopped", text=CUT_SHORT)
        if self._search is not None and call.name == LOCAL_SEARCH:
            secrets = self._session.settings.secrets
            output = await self._search.search(checked.arguments, secrets)
        else:
            output = await self._host.call(call.name, checked.arguments)
        text, whole = core_of(self._session).turns.results.screen_cut(
            call.name, mend_text(output.text), output.whole
        )
        await self._keep(
            FinishedCall(
                call=call,
                outcome="failed" if output.is_error else "ran",
                text=text,
                whole=whole,
                seconds=anyio.current_time() - began,
                search=output if isinstance(output, SearchOutput) else None,
            )
        )

    async def _keep(self, outcome: FinishedCall) -> None:
        call, is_error = outcome.call, outcome.outcome != "ran"
        self._outcomes[call.id] = outcome
        result = ToolResult(call_id=call.id, name=call.name, text=outcome.text, is_error=is_error)
        await self._emit(ToolFinished(result=result, seconds=outcome.seconds))


def _number(call_id: str) -> int:
    return int(call_id.rpartition("-")[2])


def searches_of(calls: Sequence[FinishedCall]) -> tuple[SearchOutput, ...]:
    """What searches gave: those of the notes, then the others."""
    outputs = [call.search for call in calls if call.search]
    return tuple(sorted(outputs, key=lambda output: output.name != LOCAL_SEARCH))


def render_done(calls: Sequence[FinishedCall]) -> tuple[ToolText, ...]:
    """What tools gave, one text for each tool, with the arguments of each call; searches have a
    block of their own."""
    texts: dict[str, list[str]] = {}
    for call in calls:
        if call.search is None:
            text = f"Error: {call.text}" if call.outcome in ("failed", "stopped") else call.text
            arguments = " ".join(call.call.arguments.split())
            head = f"Arguments: {arguments}\n" if arguments.strip("{} ") else ""
            texts.setdefault(call.call.name, []).append(f"{head}{text}")
    return tuple(ToolText(name=name, text="\n\n".join(parts)) for name, parts in texts.items())
