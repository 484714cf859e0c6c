"""What a person or a script is told while `ask` works: the answer on one stream, all else on the
other.

Laws: the answer is written as it comes. If tools are offered and a file or a pipe takes it, words
wait until it is sure that no call follows them: only then are they the answer. Nothing that a model
or a tool says can steer a terminal.
"""

import time
from collections.abc import Callable
from typing import TextIO

from rich.console import Console
from rich.status import Status

from lamina.cli.terminal_text import visible
from lamina.runners.runner import Answer
from lamina.values.event import (
    BlockDelta,
    BlockStarted,
    Event,
    PromptProgress,
    RequestRetried,
    RequestStarted,
    ToolFinished,
    ToolStarted,
    UsageReported,
    WarningIssued,
)

WIDTH = 200


class AskOutput:
    """`quiet` writes no words of the answer: for an object that is printed at the end."""

    def __init__(self, out: TextIO, console: Console, *, quiet: bool = False) -> None:
        self.warnings: list[str] = []
        # Called once nobody reads the answer any more.
        self.on_gone: Callable[[], object] | None = None
        self._out = out
        self._console = console
        self._quiet = quiet
        self._terminal = out.isatty()
        self._kind = ""
        self._said = ""
        self._held: list[str] | None = None
        self._status: Status | None = None
        self._open_line = False
        self._gone = False
        self._began = time.monotonic()
        self._told: set[str] = set()
        # What the tools of calls are called for people, by the ids of the calls.
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
            case UsageReported():
                self._rest()
            case ToolStarted(call=call, label=label):
                self._put_aside()
                self._labels[call.id] = label or call.name
                self.say(_shortened(f"tool {self._labels[call.id]} {call.arguments}"))
            case ToolFinished(result=result, seconds=seconds):
                self._put_aside()
                word = "failed:" if result.is_error else "gave"
                said = f"{len(result.text):,} characters"
                if result.is_error:
                    said = result.text
                name = self._labels.get(result.call_id, result.name)
                self.say(_shortened(f"tool {name} {word} {said} ({seconds:.1f} s)"))
            case RequestRetried(reason=reason):
                self._retry(reason)
            case WarningIssued(text=text):
                self.warn(text)
            case _:
                pass

    def _begin(self, event: RequestStarted) -> None:
        for omission in event.context.left_out:
            # That others fit better is how choosing goes: `lamina why` tells.
            if omission.reason != "ranked_lower" and omission.detail not in self._told:
                self._told.add(omission.detail)
                self.say(f"left out: {omission.detail}")
        offered = any(size.layer == "tools" and size.segments for size in event.layers)
        self._held = [] if offered and not self._terminal else None
        if self._said and self._held is None:
            # Words in front of a call, and now what follows it.
            self._write("\n" if self._said.endswith("\n") else "\n\n")
        self._said = ""
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
        self._said += text
        if self._held is not None:
            self._held.append(text)
        else:
            self._write(text)

    def _put_aside(self) -> None:
        """A call followed: what was said in front of it is no answer."""
        held, self._held = self._held, None if self._held is None else []
        if held:
            self.say(_shortened(f"said {''.join(held)}"))
            self._said = ""

    def _retry(self, reason: str) -> None:
        self.say(f"sent again, smaller: {reason}")
        if self._held:
            self._held, self._said = [], ""
        elif self._said:
            self.warn("the answer begins anew: what was written of it so far is void")

    def _rest(self) -> None:
        if self._status:
            self._status.stop()
            self._status = None

    # -- the answer ------------------------------------------------------------------------------

    def _write(self, text: str) -> None:
        if not self._quiet:
            self.print(text)

    def print(self, text: str) -> None:
        """Writes on the stream of the answer; once nobody reads it, the turn is to stop."""
        if self._gone or not text:
            return
        shown = visible(text) if self._terminal else text
        try:
            self._out.write(shown)
            self._out.flush()
        except OSError:
            self._gone = True
            if self.on_gone is not None:
                self.on_gone()
        self._open_line = not shown.endswith("\n")

    def end_line(self) -> None:
        """Ends what was written with a line's end, so that nothing sticks to it."""
        self._rest()
        held, self._held = self._held, None
        self._write("".join(held or ()))
        if self._open_line:
            self.print("\n")

    def compare(self, answer: Answer) -> None:
        """Says so if the answer that is kept is not the one that was written."""
        if answer.ending == "answered" and self._said.strip() != answer.text.strip():
            self.warn("the answer was changed after it was written; --json gives what is kept")

    # -- all else --------------------------------------------------------------------------------

    def warn(self, text: str) -> None:
        self.warnings.append(text)
        self.say(f"warning: {text}")

    def say(self, line: str) -> None:
        """One line on standard error."""
        self._rest()
        if self._open_line and self._terminal and self._console.is_terminal:
            self.print("\n")
        shown = visible(" ".join(line.splitlines()))
        self._console.print(shown, markup=False, highlight=False, soft_wrap=True)

    def close(self, answer: Answer, session: str) -> None:
        """What it cost, for a person who watches."""
        if not self._console.is_terminal:
            return
        usage = answer.usage
        said = [
            answer.turn.context.target if answer.turn else "",
            f"{usage.input:,} tokens in, {usage.cached:,} cached, {usage.output:,} out",
            f"${answer.cost:.4f}" if answer.cost else "",
            f"{time.monotonic() - self._began:.1f} s",
            f"session {session}",
        ]
        line = " · ".join(filter(None, said))
        self._console.print(line, style="dim", markup=False, highlight=False, soft_wrap=True)


def _shortened(line: str) -> str:
    line = visible(" ".join(line.split()))
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"
