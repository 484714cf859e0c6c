"""What `ask` shows while it works: the answer on one stream, everything else on the other.

Laws: the answer is written as it comes. If tools are offered and a file or a pipe takes it, words
wait until it is certain that no call follows them: only then are they the answer. Nothing that a
model or a tool says can steer a terminal.
"""

import time
from collections.abc import Callable, Sequence
from typing import TextIO

from rich.console import Console
from rich.status import Status

from lamina.apps.cli.history_price import describe_history_price, is_price_news
from lamina.apps.cli.terminal_text import visible
from lamina.apps.cli.verbosity import is_log_written
from lamina.apps.cli.wrapped_text import print_note
from lamina.apps.views.journal_log import describe_display, display_lines
from lamina.apps.views.money import write_sum
from lamina.apps.views.plain_text import shorten
from lamina.apps.views.request_context import is_news
from lamina.core.values.event import (
    AnswerChanged,
    AnswerHeld,
    BlockDelta,
    BlockStarted,
    Event,
    HookShown,
    PromptProgress,
    RequestRetried,
    RequestStarted,
    SummaryStep,
    ToolFinished,
    ToolStarted,
    UsageReported,
    WarningIssued,
)
from lamina.core.values.patch import HookDisplay
from lamina.engine.runners.runner import Answer

WIDTH = 200


class AskOutput:
    """With `quiet` no words of the answer are written: an object is printed at the end."""

    def __init__(self, out: TextIO, console: Console, *, quiet: bool = False) -> None:
        self.warnings: list[str] = []
        # Called when nobody reads the answer any more.
        self.on_gone: Callable[[], object] | None = None
        self._out = out
        self._console = console
        self._is_quiet = quiet
        self._is_terminal = out.isatty()
        self._kind = ""
        self._text = ""
        self._pending: list[str] | None = None
        self._status: Status | None = None
        self._has_open_line = False
        self._is_gone = False
        self._start = time.monotonic()
        self._omissions: set[str] = set()
        # The names of tools for people, by the ids of their calls.
        self._labels: dict[str, str] = {}

    # -- events ----------------------------------------------------------------------------------

    def hear(self, event: Event) -> None:
        match event:
            case RequestStarted():
                self._begin(event)
            case PromptProgress(done=done, total=total):
                if self._status:
                    share = f" ({done / total:.0%} of {total:,} tokens)" if total else ""
                    self._status.update(f"reading{share}")
            case BlockStarted(kind=kind):
                self._start_block(kind)
            case BlockDelta(text=text):
                if self._kind == "text":
                    self._speak(text)
            case HookShown(hook=hook, display=display):
                self._show(HookDisplay(hook=hook, display=display))
            case AnswerHeld(hooks=hooks):
                self.say(f"waiting for hook {', '.join(hooks)}")
            case AnswerChanged(hooks=hooks, text=text):
                self._correct(hooks, text)
            case UsageReported():
                self._rest()
            case ToolStarted(call=call, label=label):
                self._put_aside()
                self._labels[call.id] = label or call.name
                self.say(_shortened(f"tool {self._labels[call.id]} {call.arguments}"))
            case ToolFinished(result=result, seconds=seconds):
                self._put_aside()
                word = "failed:" if result.is_error else "gave"
                size = f"{len(result.text):,} characters"
                outcome = result.text if result.is_error else size
                name = self._labels.get(result.call_id, result.name)
                self.say(_shortened(f"tool {name} {word} {outcome} ({seconds:.1f} s)"))
            case SummaryStep(step=step, of=of):
                self.say(f"summing up part {step} of {of} of what was said")
            case RequestRetried(reason=reason):
                self._retry(reason)
            case WarningIssued(text=text):
                self.warn(text)
            case _:
                pass

    def _begin(self, event: RequestStarted) -> None:
        for omission in event.context.left_out:
            if is_news(omission) and omission.detail not in self._omissions:
                self._omissions.add(omission.detail)
                self.say(f"left out: {omission.detail}")
        if is_price_news(price := event.context.history_price):
            for line in describe_history_price(price):
                self.say(line)
        has_tools = any(size.layer == "tools" and size.segments for size in event.layers)
        self._pending = [] if has_tools and not self._is_terminal else None
        if self._text and self._pending is None:
            # Words in front of a call, and now what follows it.
            self._write("\n" if self._text.endswith("\n") else "\n\n")
        self._text = ""
        if self._console.is_terminal and self._status is None:
            self._status = self._console.status("reading")
            self._status.start()

    def _start_block(self, kind: str) -> None:
        self._kind = kind
        if kind == "thinking" and self._status:
            self._status.update("thinking")
        else:
            self._rest()

    def _speak(self, text: str) -> None:
        self._text += text
        if self._pending is not None:
            self._pending.append(text)
        else:
            self._write(text)

    def _show(self, shown: HookDisplay) -> None:
        """What a hook wants a person to be shown; all of it, if they want to know more."""
        self.say(_shortened(describe_display(shown)))
        if is_log_written():
            for line in display_lines(shown.display):
                self.say(f"| {line}")

    def _correct(self, hooks: Sequence[str], text: str) -> None:
        """A hook changed the answer: it is written as it is kept, or told if that is too late."""
        names, self._text = ", ".join(hooks), text
        if self._is_quiet:
            return
        if self._pending is not None:
            self._pending = [text]
            return
        self.warn(f"hook {names} changed the answer after it was written; this is kept:")
        for line in text.splitlines():
            self.say(f"| {line}")

    def _put_aside(self) -> None:
        """A call followed: the words in front of it are no answer."""
        pending, self._pending = self._pending, None if self._pending is None else []
        if pending:
            self.say(_shortened(f"said {''.join(pending)}"))
            self._text = ""

    def _retry(self, reason: str) -> None:
        self.say(f"sent again, smaller: {reason}")
        if self._pending:
            self._pending, self._text = [], ""
        elif self._text:
            self.warn("the answer begins anew: what was written of it so far is void")

    def _rest(self) -> None:
        if self._status:
            self._status.stop()
            self._status = None

    # -- the answer ------------------------------------------------------------------------------

    def _write(self, text: str) -> None:
        if not self._is_quiet:
            self.print(text)

    def print(self, text: str) -> None:
        """Writes on the stream of the answer; once nobody reads it, the turn is to stop."""
        if self._is_gone or not text:
            return
        shown = visible(text) if self._is_terminal else text
        try:
            self._out.write(shown)
            self._out.flush()
        except OSError:
            self._is_gone = True
            if self.on_gone is not None:
                self.on_gone()
        self._has_open_line = not shown.endswith("\n")

    def end_line(self) -> None:
        """Ends the line that is open, so that nothing sticks to it."""
        self._rest()
        pending, self._pending = self._pending, None
        self._write("".join(pending or ()))
        if self._has_open_line:
            self.print("\n")

    def compare(self, answer: Answer) -> None:
        """Warns if the answer that is kept is not the one that was written."""
        if answer.ending == "answered" and self._text.strip() != answer.text.strip():
            self.warn("the answer was changed after it was written; --json gives what is kept")

    # -- all else --------------------------------------------------------------------------------

    def warn(self, text: str) -> None:
        self.warnings.append(text)
        self.say(f"warning: {text}")

    def say(self, line: str) -> None:
        """One line on standard error."""
        self._rest()
        if self._has_open_line and self._is_terminal and self._console.is_terminal:
            self.print("\n")
        shown = visible(" ".join(line.splitlines()))
        print_note(self._console, shown)

    def close(self, answer: Answer, session: str) -> None:
        """Shows the cost to a person who watches."""
        if not self._console.is_terminal:
            return
        usage = answer.usage
        parts = [
            answer.turn.context.target if answer.turn else "",
            f"{usage.input:,} tokens in, {usage.cached:,} cached, {usage.output:,} out",
            _write_cost(answer),
            f"{time.monotonic() - self._start:.1f} s",
            f"session {session}",
        ]
        print_note(self._console, " · ".join(filter(None, parts)), "dim")


def _write_cost(answer: Answer) -> str:
    """What an answer cost; empty if nothing was charged, as by a model on this machine."""
    is_free = answer.cost == 0 and not answer.unpriced
    return "" if is_free else write_sum(answer.cost, answer.unpriced)


def _shortened(line: str) -> str:
    return shorten(visible(" ".join(line.split())), WIDTH)
