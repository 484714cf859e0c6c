"""Decisions on tool calls without a person at the keyboard: by a rule, or later by a client."""

from collections.abc import Callable

import anyio

from lamina.core.values.message import ToolCall
from lamina.core.values.tool import Decision, OfferedTool
from lamina.errors import TurnStateError


class AllowAllApprover:
    """Allows every call, once: the permission ends with this command."""

    async def decide(self, call: ToolCall, tool: OfferedTool) -> Decision:  # noqa: ARG002
        return "allow_once"


class DenyAllApprover:
    """Denies calls that need a person's permission, and warns how to allow them."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn

    async def decide(self, call: ToolCall, tool: OfferedTool) -> Decision:
        name = tool.label or call.name
        self._warn(f"denied {name}: no one can approve it here; --allow-tools lets tools run")
        return "deny"


class PendingApprovals:
    """Calls that wait for a decision. Several can wait and are decided in any order."""

    def __init__(self) -> None:
        self._waiting: dict[str, anyio.Event] = {}
        self._decisions: dict[str, Decision] = {}

    def announce(self, call_id: str) -> None:
        self._waiting[call_id] = anyio.Event()

    async def decide(self, call: ToolCall, tool: OfferedTool) -> Decision:  # noqa: ARG002
        await self._waiting.setdefault(call.id, anyio.Event()).wait()
        return self._decisions[call.id]

    def give(self, call_id: str, decision: Decision) -> None:
        """Decide a waiting call.

        Raises:
            TurnStateError: no such call is waiting.
        """
        if call_id not in self._waiting or call_id in self._decisions:
            waiting = [call for call in self._waiting if call not in self._decisions]
            raise TurnStateError(f"no call {call_id!r} is waiting; waiting calls: {waiting!r}")
        self._decisions[call_id] = decision
        self._waiting[call_id].set()

    def close(self, call_id: str) -> None:
        """Forget a call that has its result and needs no decision any more."""
        self._waiting.pop(call_id, None)
        self._decisions.pop(call_id, None)

    def clear(self) -> None:
        self._waiting.clear()
        self._decisions.clear()
