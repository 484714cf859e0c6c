"""A turn as it happens: reading, thinking, words, calls and results.

Laws: finished blocks are printed once; only the last one is redrawn. Only its changed lines are
written, in one write, so nothing flickers; lines that have scrolled off the screen are final.
Without a terminal, words are written as they arrive. While a person is asked something, events
wait.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import assert_never

import anyio
from rich.text import Text

from lamina.apps.cli.chat.markdown import draw_markdown, split_finished
from lamina.apps.cli.report_text import describe_history_price, is_price_news
from lamina.apps.cli.screen import Screen, ScreenLine
from lamina.apps.cli.terminal_text import one_line, visible
from lamina.apps.views.answer_json import is_notable
from lamina.apps.views.journal_log import describe_display
from lamina.core.values.event import (
    AnswerChanged,
    AnswerHeld,
    ApprovalDecided,
    ApprovalWanted,
    BlockDelta,
    BlockEnded,
    BlockKind,
    BlockStarted,
    Event,
    HookShown,
    PromptProgress,
    RequestRetried,
    RequestStarted,
    SummaryStep,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    UsageReported,
    WarningIssued,
)
from lamina.core.values.message import ToolCall, ToolResult
from lamina.core.values.patch import HookDisplay
from lamina.core.values.tool import Decision

ERASE_LINE, ERASE_BELOW = "\r\x1b[2K", "\x1b[J"


class Tail:
    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._lines: list[ScreenLine] = []
        # How many lines of the current text have scrolled off.
        self._scrolled_lines = 0
        self._width = screen.width

    def draw(self, lines: Sequence[ScreenLine]) -> None:
        """Replace the drawn lines with `lines`."""
        if self._screen.width != self._width:
            # The lines wrap differently now: better to show some twice than not at all.
            self._width = self._screen.width
            self._scrolled_lines = 0
        new = list(lines[self._scrolled_lines :])
        old = self._lines
        same = 0
        while same < min(len(old), len(new)) and old[same] == new[same]:
            same += 1
        if same == len(old) == len(new):
            return
        up = sum(map(self._rows, old[same:]))
        parts = [f"\x1b[{up}A"] if up else []
        parts += [f"{ERASE_LINE}{line}\n" for line in new[same:]]
        if up > sum(map(self._rows, new[same:])):
            parts.append(ERASE_BELOW)
        self._screen.write("".join(parts))
        self._lines = new
        self._let_go()

    def finish(self, lines: Sequence[ScreenLine]) -> None:
        """Draw `lines` for good; what follows is drawn below them."""
        self.draw(lines)
        self._lines = []
        self._scrolled_lines = 0

    def clear(self) -> None:
        """Erase the drawn lines; lines that scrolled off stay."""
        self.finish(())

    def _let_go(self) -> None:
        """Let go of lines that do not fit the screen and can no longer be redrawn."""
        room = max(1, self._screen.height - 2)
        rows = 0
        for count, line in enumerate(reversed(self._lines)):
            rows += self._rows(line)
            if rows > room:
                self._scrolled_lines += len(self._lines) - count
                self._lines = self._lines[len(self._lines) - count :]
                return

    def _rows(self, line: ScreenLine) -> int:
        """How many rows a line takes now: the terminal may be narrower than before."""
        return max(1, -(-line.width // max(1, self._screen.width)))


# Drawing takes at most this share of the time, with at least this long between frames.
SHARE, FRAME_S = 0.25, 0.05
THINKING = "dim italic"
DECISIONS: dict[Decision, str] = {
    "allow_once": "allowed once",
    "allow_session": "allowed for this session",
    "deny": "denied",
}


class TurnView:
    """Draws one turn. `warnings` were shown before in this chat."""

    def __init__(self, screen: Screen, warnings: set[str]) -> None:
        self._screen = screen
        self._warnings = warnings
        self._tail = Tail(screen)
        self._kind: BlockKind | None = None
        self._text = ""
        self._status = ""
        self._has_output = False
        self._dirty = False
        self._next_frame = 0.0
        self._backlog: list[Event] | None = None
        self.reports: list[UsageReported] = []

    async def keep_drawing(self) -> None:
        """Draw new content frame by frame, until cancelled."""
        while True:
            await anyio.sleep(FRAME_S)
            if self._dirty and anyio.current_time() >= self._next_frame:
                began = anyio.current_time()
                self.refresh()
                now = anyio.current_time()
                self._next_frame = now + (now - began) / SHARE

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the screen to others while the block runs."""
        self._end_block()
        self._backlog = []
        try:
            yield
        finally:
            backlog, self._backlog = self._backlog, None
            for event in backlog:
                self.take(event)

    def take(self, event: Event) -> None:
        """Process an event; words are drawn with the next frame."""
        if self._backlog is not None:
            self._backlog.append(event)
            return
        match event:
            case RequestStarted():
                self._on_request(event)
            case PromptProgress(done=done, total=total):
                self._set_status(f"reading {done:,} of {total:,} tokens")
            case BlockStarted(kind=kind, name=name):
                self._start_block(kind, name)
            case BlockDelta(text=text):
                self._add(text)
            case BlockEnded():
                self._end_block()
            case AnswerHeld() | AnswerChanged() | HookShown():
                self._on_hook(event)
            case ToolStarted() | ToolFinished() | ApprovalDecided():
                self._on_tool(event)
            case ApprovalWanted():
                pass  # the approver asks
            case UsageReported():
                self.reports.append(event)
            case WarningIssued(text=text):
                self._warn(text)
            case SummaryStep(step=step, of=of):
                self._set_status(f"summarising part {step} of {of} of the history")
            case RequestRetried(reason=reason):
                self._drop()
                self._note(f"(sent again, smaller: {reason})")
            case TurnEnded():
                self.finish()
            case _:
                assert_never(event)

    def finish(self) -> None:
        """Draw the rest for good."""
        self._end_block()

    def refresh(self) -> None:
        """Draw the changes."""
        self._dirty = False
        if not self._screen.live:
            return
        if self._kind == "text":
            blocks, rest = split_finished(self._text)
            if blocks:
                self._print(draw_markdown(self._screen, blocks))
                self._text = rest
        self._tail.draw(self._lines())

    # -- inside ----------------------------------------------------------------------------------

    def _on_request(self, event: RequestStarted) -> None:
        for omission in event.context.left_out:
            if is_notable(omission):
                self._warn(f"left out: {omission.detail}")
        if is_price_news(price := event.context.history_price):
            for line in describe_history_price(price):
                self._note(f"({line})")
        self._set_status(f"asking {event.target}")

    def _on_hook(self, event: AnswerHeld | AnswerChanged | HookShown) -> None:
        self._end_block()
        match event:
            case AnswerHeld(hooks=hooks) if self._screen.live:
                self._set_status(f"waiting for hook {', '.join(hooks)}")
            case AnswerHeld(hooks=hooks):
                self._note(f"(waiting for hook {', '.join(hooks)})")
            case HookShown(hook=hook, display=display):
                shown = describe_display(HookDisplay(hook=hook, display=display))
                self._note(one_line(shown, self._screen.width))
            case AnswerChanged(hooks=hooks, text=text):
                self._note(f"(hook {', '.join(hooks)} changed the answer; the new version is:)")
                self._start_block("text", "")
                self._add(text)
                self._end_block()

    def _on_tool(self, event: ToolStarted | ToolFinished | ApprovalDecided) -> None:
        self._end_block()
        match event:
            case ToolStarted(call=call, label=label):
                self._note(render_call(call, label, self._screen.width))
            case ToolFinished(result=result, seconds=seconds):
                self._note(render_result(result, seconds, self._screen.width))
            case ApprovalDecided(decision=decision):
                self._note(f"  {DECISIONS[decision]}")

    def _start_block(self, kind: BlockKind, name: str) -> None:
        self._end_block()
        if kind == "action":
            self._set_status(f"writing a call to {name}" if name else "writing a call")
            return
        self._kind = kind
        self._dirty = True

    def _add(self, text: str) -> None:
        if self._kind is None:
            return
        if self._screen.live or self._kind == "thinking":
            self._text = visible(self._text + text)
            self._dirty = True
        else:
            self._screen.stream(text)
            self._text = text

    def _end_block(self) -> None:
        kind, self._status = self._kind, ""
        if self._screen.live:
            lines = self._lines()
            self._kind = None
            self._print(lines)
        elif kind == "text" and not self._text.endswith("\n"):
            self._screen.stream("\n")
        elif kind == "thinking":
            self._screen.tell(f"(thinking: {self._text.strip()})")
        self._kind = None
        self._text = ""
        self._dirty = False

    def _drop(self) -> None:
        """Discard the output so far."""
        self._kind, self._text, self._status = None, "", ""
        if self._screen.live:
            self._tail.clear()

    def _set_status(self, text: str) -> None:
        if self._kind is None:
            self._status = text
            self._dirty = True

    def _lines(self) -> list[ScreenLine]:
        """The current lines of the unfinished block."""
        gap = [ScreenLine("")] if self._has_output else []
        if self._kind == "text":
            lines = draw_markdown(self._screen, self._text)
        elif self._kind == "thinking":
            lines = self._screen.draw(Text(self._text.strip("\n"), style=THINKING))
        elif self._status:
            line = one_line(self._status, self._screen.width - 2)
            lines = self._screen.draw(Text(f"{line} …", style="dim"))
        else:
            return []
        return [*gap, *lines] if lines else []

    def _print(self, lines: Sequence[ScreenLine]) -> None:
        if self._has_output and lines and not lines[0].is_blank:
            lines = [ScreenLine(""), *lines]
        self._has_output = self._has_output or bool(lines)
        self._tail.finish(lines)

    def _note(self, text: str) -> None:
        """Print a line between blocks."""
        if self._screen.live:
            self._tail.clear()
        self._screen.tell(text)
        self._has_output = True

    def _warn(self, text: str) -> None:
        if text in self._warnings:
            return
        self._warnings.add(text)
        if self._screen.live:
            self._tail.clear()
        self._screen.warn(text)
        self._dirty = True


def render_call(call: ToolCall, label: str, width: int) -> str:
    return one_line(f"→ {label or call.name} {call.arguments}", width)


def render_result(result: ToolResult, seconds: float, width: int) -> str:
    duration = f" ({seconds:.1f} s)" if seconds >= 0.05 else ""
    prefix = "failed: " if result.is_error else ""
    line = one_line(result.text, max(20, width - len(duration) - len(prefix) - 4))
    return f"  ← {prefix}{line or '(nothing)'}{duration}"
