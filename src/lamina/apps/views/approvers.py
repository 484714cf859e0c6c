"""Who decides on tool calls where nobody sits at a keyboard: a rule, or a client, later."""

from collections.abc import Callable

import anyio

from lamina.core.values.message import ToolCall
from lamina.core.values.tool import Decision, OfferedTool
from lamina.errors import TurnStateError


class AllowAllApprover:
    """Lets every call run, once: nothing is allowed for longer than this command."""

    async def decide(self, call: ToolCall, tool: OfferedTool) -> Decision:  # noqa: ARG002
        return "allow_once"


class DenyAllApprover:
    """Denies what a person would have to allow, and warns how to allow it."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn

    async def decide(self, call: ToolCall, tool: OfferedTool) -> Decision:
        name = tool.label or call.name
        self._warn(f"denied {name}: nobody can be asked here; --allow-tools lets tools run")
        return "deny"


class PendingApprovals:
    """Where calls wait for a decision. Several can wait; they are decided in any order."""

    def __init__(self) -> None:
        self._waiting: dict[str, anyio.Event] = {}
        self._decisions: dict[str, Decision] = {}

    def announce(self, call_id: str) -> None:
        self._waiting[call_id] = anyio.Event()

    async def decide(self, call: ToolCall, tool: OfferedTool) -> Decision:  # noqa: ARG002
        await self._waiting.setdefault(call.id, anyio.Event()).wait()
        return self._decisions[call.id]

    def give(self, call_id: str, decision: Decision) -> None:
        """Decides a call that waits.

        Raises:
            TurnStateError: no such call waits.
        """
        if call_id not in self._waiting or call_id in self._decisions:
            waiting = [call for call in self._waiting if call not in self._decisions]
            raise TurnStateError(f"no call {call_id!r} waits; those that do: {waiting!r}")
        self._decisions[call_id] = decision
        self._waiting[call_id].set()

    def close(self, call_id: str) -> None:
        """The call has its result: there is nothing to decide any more."""
        self._waiting.pop(call_id, None)
        self._decisions.pop(call_id, None)

    def clear(self) -> None:
        self._waiting.clear()
        self._decisions.clear()
