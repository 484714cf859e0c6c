"""Asks the person at the keyboard before a tool runs, and before a costly action."""

from collections.abc import Callable

import anyio
import msgspec

from lamina.apps.cli.chat.message_source import InputInterrupt, MessageSource
from lamina.apps.cli.chat.turn_view import TurnView
from lamina.apps.cli.screen import Screen
from lamina.apps.cli.terminal_text import one_line
from lamina.core.values.message import ToolCall
from lamina.core.values.tool import Decision, OfferedTool

# The accepted answers, and the key that each stands for.
ANSWERS = {
    **dict.fromkeys(("o", "once", "y", "yes"), "o"),
    **dict.fromkeys(("s", "session"), "s"),
    **dict.fromkeys(("d", "deny", "n", "no"), "d"),
}
DECISION_KEYS: dict[str | None, Decision] = {"o": "allow_once", "s": "allow_session", "d": "deny"}
YES_OR_NO = {**dict.fromkeys(("y", "yes"), "y"), **dict.fromkeys(("n", "no"), "n")}
SEND = "send it? [y]es, [n]o "
QUESTION = "allow it? [o]nce, [s]ession, [d]eny "


class KeyboardApprover:
    """Shows a call with its full arguments and waits for a line that decides. Without an answer,
    the call is denied; Ctrl-C stops the turn."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self.source: MessageSource | None = None
        self.view: TurnView | None = None
        self.stop: Callable[[], object] = lambda: None

    async def decide(self, call: ToolCall, tool: OfferedTool) -> Decision:
        if self.source is None or self.view is None:
            return "deny"
        with self.view.paused():
            self._screen.tell(f"? {one_line(tool.label or call.name)} wants to run with", "bold")
            self._screen.tell(_whole(call.arguments, self._screen.width), "none")
            if not self._screen.live:
                self._screen.tell(QUESTION)
            try:
                key = await self.source.choose(QUESTION, ANSWERS)
            except InputInterrupt:
                self.stop()
                await anyio.lowlevel.checkpoint()
                key = "d"
        return DECISION_KEYS.get(key, "deny")

    async def agree(self, text: str) -> bool:
        """Ask the person to agree to `text`; Ctrl-C is a no."""
        if self.source is None or self.view is None:
            return False
        with self.view.paused():
            self._screen.tell(f"? {text}", "bold")
            try:
                return await self.source.choose(SEND, YES_OR_NO) == "y"
            except InputInterrupt:
                return False


def _whole(arguments: str, width: int) -> str:
    """The complete arguments; long ones are indented if they are JSON."""
    if len(arguments) <= width:
        return arguments
    try:
        return msgspec.json.format(arguments.encode(), indent=2).decode()
    except (msgspec.DecodeError, UnicodeEncodeError):
        return arguments
