"""`lamina ask`: one question; standard output contains the answer and nothing else.

Laws: standard output contains the answer, or one JSON object; everything else goes to standard
error. The answer is written as it arrives. If tools are offered and the output is a file or a pipe,
words wait until it is certain that no call follows them: only then are they the answer. Whatever
stops an answer, the part that has arrived is kept. Nothing that a model or a tool says can steer a
terminal.

There are no prompts about tools: a tool that needs permission is denied, or `--allow-tools` allows
each call once, which leaves the session's own settings as they are. A person at a terminal is asked
about a price; without a terminal, a request that needs consent is not sent.
"""

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, TextIO

import msgspec
import typer
from msgspec import Struct
from rich.console import Console
from rich.status import Status

from lamina.apps.cli.console_notices import ConsoleNotices
from lamina.apps.cli.flags import (
    AllowTools,
    PersonFlags,
    SessionFlags,
    SpendUnasked,
    expand_flags,
    session_flag,
)
from lamina.apps.cli.footnotes import hold_until_final, render_footnotes
from lamina.apps.cli.outcome import refuse_if, run_to_exit
from lamina.apps.cli.report_text import describe_history_price, is_price_news
from lamina.apps.cli.screen import can_ask
from lamina.apps.cli.session_tree import LAST, find_question
from lamina.apps.cli.stdio import is_piped, own_output, read_text, stop_on_signals
from lamina.apps.cli.terminal_text import print_note, visible
from lamina.apps.cli.trust_command import ask_trust
from lamina.apps.cli.verbosity import is_log_written
from lamina.apps.views.answer_json import CUT_OFF, describe_answer, is_notable
from lamina.apps.views.approvers import AllowAllApprover, DenyAllApprover
from lamina.apps.views.journal_log import describe_display, display_lines
from lamina.apps.views.note_problems import open_notes
from lamina.apps.views.plain_text import format_json, shorten, write_sum
from lamina.apps.views.session_opener import (
    open_runner,
    require_extras,
    require_fetchable,
    require_readable,
)
from lamina.apps.views.session_options import PromptOptions, SessionOptions
from lamina.apps.views.spending_report import ask_before_rewrites
from lamina.core.codec import require_text
from lamina.core.text import escape_content
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
from lamina.engine.runners.runner import Answer, ChatRunner, Listener
from lamina.errors import LaminaError, UsageError

app = typer.Typer()

WIDTH = 200


class AskOutput:
    """Writes a turn's output. With `quiet`, only an object is printed, at the end."""

    def __init__(self, out: TextIO, console: Console, *, quiet: bool = False) -> None:
        self.warnings: list[str] = []
        # Called when the reader of the answer is gone.
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
        # The display names of tools, by the ids of their calls.
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
                self.say(f"summarising part {step} of {of} of the history")
            case RequestRetried(reason=reason):
                self._retry(reason)
            case WarningIssued(text=text):
                self.warn(text)
            case _:
                pass

    def _begin(self, event: RequestStarted) -> None:
        for omission in event.context.left_out:
            if is_notable(omission) and omission.detail not in self._omissions:
                self._omissions.add(omission.detail)
                self.say(f"left out: {omission.detail}")
        if is_price_news(price := event.context.history_price):
            for line in describe_history_price(price):
                self.say(line)
        has_tools = any(size.layer == "tools" and size.segments for size in event.layers)
        self._pending = [] if has_tools and not self._is_terminal else None
        if self._text and self._pending is None:
            # The words before a call are complete; what follows the call begins.
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
        """Show what a hook wants to display; all of it if the log is on."""
        self.say(_shortened(describe_display(shown)))
        if is_log_written():
            for line in display_lines(shown.display):
                self.say(f"| {line}")

    def _correct(self, hooks: Sequence[str], text: str) -> None:
        """A hook changed the answer: write the new one, or warn if the old one is out already."""
        names, self._text = ", ".join(hooks), text
        if self._is_quiet:
            return
        if self._pending is not None:
            self._pending = [text]
            return
        self.warn(f"hook {names} changed the answer after it was written; the new version is:")
        for line in text.splitlines():
            self.say(f"| {line}")

    def _put_aside(self) -> None:
        """A call followed: the words before it are not the answer."""
        pending, self._pending = self._pending, None if self._pending is None else []
        if pending:
            self.say(_shortened(f"said {''.join(pending)}"))
            self._text = ""

    def _retry(self, reason: str) -> None:
        self.say(f"sent again, smaller: {reason}")
        if self._pending:
            self._pending, self._text = [], ""
        elif self._text:
            self.warn("the answer starts again: ignore what was written so far")

    def _rest(self) -> None:
        if self._status:
            self._status.stop()
            self._status = None

    # -- the answer ------------------------------------------------------------------------------

    def _write(self, text: str) -> None:
        if not self._is_quiet:
            self.print(text)

    def print(self, text: str) -> None:
        """Write to the answer's stream; if its reader is gone, stop the turn."""
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
        """End the current line, so that nothing is appended to it."""
        self._rest()
        pending, self._pending = self._pending, None
        self._write("".join(pending or ()))
        if self._has_open_line:
            self.print("\n")

    def compare(self, answer: Answer) -> None:
        """Warn if the stored answer differs from the one that was written."""
        if answer.ending == "answered" and self._text.strip() != answer.text.strip():
            self.warn(
                "the answer was changed after it was written; --json prints the final version"
            )

    # -- all else --------------------------------------------------------------------------------

    def warn(self, text: str) -> None:
        self.warnings.append(text)
        self.say(f"warning: {text}")

    def say(self, line: str) -> None:
        """Write one line to standard error."""
        self._rest()
        if self._has_open_line and self._is_terminal and self._console.is_terminal:
            self.print("\n")
        shown = visible(" ".join(line.splitlines()))
        print_note(self._console, shown)

    def close(self, answer: Answer, session: str) -> None:
        """Show the cost if a person is watching."""
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
    """What an answer cost; empty if nothing was charged, as with a model on this machine."""
    is_free = answer.cost == 0 and not answer.unpriced
    return "" if is_free else write_sum(answer.cost, answer.unpriced)


def _shortened(line: str) -> str:
    return shorten(visible(" ".join(line.split())), WIDTH)


STDIN = "-"


def read_question(question: str | None, stdin: TextIO | None) -> str:
    """Return the question, followed by piped text in a block that the text cannot close. With `-`,
    or without a question, the piped text is the question.

    Raises:
        UsageError: there is no question, or it cannot be sent.
    """

    def say(line: str) -> None:
        sys.stderr.write(f"{line}\n")

    if question == STDIN or (question is None and is_piped(stdin)):
        question = read_text(stdin, say)
        if not question.strip():
            raise UsageError("standard input is empty: there is no question")
        return question
    if question is None or not question.strip():
        raise UsageError(
            "give a question, '-' to read it from standard input, or --session ID --resume"
        )
    # Before a session is created for it.
    require_text(question, "the question")
    piped = read_text(stdin, say) if is_piped(stdin) else ""
    if not piped.strip():
        return question
    return f"{question}\n\n<stdin>\n{escape_content(piped, 'stdin').rstrip()}\n</stdin>"


class AskPlace(Struct, frozen=True, kw_only=True):
    """Where in a session to ask: in place of the question `edit`, or again for the answer
    `regenerate`. By default at the end."""

    edit: str | None = None
    regenerate: str | None = None


AT_THE_END = AskPlace()


async def ask_model(
    text: str | None,
    options: SessionOptions,
    prompt: PromptOptions,
    *,
    place: AskPlace = AT_THE_END,
    allow_tools: bool = False,
    as_json: bool = False,
    asks_price: bool = True,
) -> int:
    """Ask, and return the exit code. Without a `text`, continue the interrupted turn, unless an
    answer is to be regenerated."""
    console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    # Before standard input is put aside.
    asks = can_ask(console)
    notices = ConsoleNotices(console, asks=asks)
    with own_output() as out:
        output = AskOutput(out, console, quiet=as_json)
        approver = AllowAllApprover() if allow_tools else DenyAllApprover(output.warn)
        try:
            code = 1
            require_extras(options, prompt)
            require_fetchable(prompt.references, options)
            async with open_notes(options.workspace) as workspace, stop_on_signals() as stop:
                await require_readable(prompt.references, workspace)
                runner = await open_runner(
                    options, notices, approver=approver, needs_key=True, workspace=workspace
                )
                async with runner:
                    output.on_gone = stop.abort = runner.abort
                    if asks_price:
                        ask_price = partial(agree_to_price, console, output) if asks else None
                        ask_before_rewrites(runner.session, ask_price)
                    if options.continued is None:
                        output.say(f"session {runner.session.id}")
                    hear = hold_until_final(output.hear, runner)
                    answer = await put_question(runner, text, prompt, output, hear, place)
                    code = report_answer(answer, runner, output, as_json=as_json)
            if stop.signal is not None:
                output.end_line()
                return stop.exit_code
            return code
        except LaminaError as error:
            if as_json:
                problem = {"code": error.code, "message": str(error)}
                output.print(msgspec.json.encode({"ending": "failed", "error": problem}).decode())
            raise
        finally:
            # Also before the line that says what went wrong.
            output.end_line()


async def agree_to_price(console: Console, output: AskOutput, text: str) -> bool:
    """Ask the person at the terminal whether a price is acceptable."""
    output.end_line()
    console.print(visible(text))
    return await ask_trust(console, "Send it?")


async def put_question(
    runner: ChatRunner,
    text: str | None,
    prompt: PromptOptions,
    output: AskOutput,
    hear: Listener | None = None,
    place: AskPlace = AT_THE_END,
) -> Answer:
    """Ask the question, or continue the one that was interrupted.

    Raises:
        TurnStateError: there is nothing to continue.
        UsageError: there is no such question or answer.
    """
    session = runner.session
    hear = hear or output.hear
    if place.regenerate is not None:
        answer = None if place.regenerate == LAST else place.regenerate
        return await runner.regenerate(answer, on_event=hear)
    if place.edit is not None and text is not None:
        question = find_question(session, place.edit)
        attach = prompt.attachments() or None
        return await runner.edit(question.id, text, attach=attach, on_event=hear)
    if text is None:
        return await runner.resume(on_event=hear)
    if session.interrupted or session.pending_calls:
        output.warn(
            "this session's last question was never answered; it is set aside for this one "
            "(--resume would have continued it)"
        )
    return await runner.run(text, attach=prompt.attachments(), on_event=hear)


def report_answer(
    answer: Answer, runner: ChatRunner, output: AskOutput, *, as_json: bool = False
) -> int:
    """Report how the turn ended, and return the exit code."""
    session = runner.session
    if as_json:
        report = describe_answer(answer, session, output.warnings)
        output.print(format_json(report))
    else:
        output.compare(answer)
    output.end_line()
    if not as_json and (notes := render_footnotes(answer)):
        output.print("\n" + "\n".join(notes) + "\n")
    if answer.ending == "aborted":
        remains = "the partial answer is kept" if answer.text else "no answer arrived"
        is_open = session.interrupted or session.pending_calls
        hint = f"; lamina ask --session {session.id} --resume asks again" if is_open else ""
        output.say(f"stopped: {remains}{hint}")
    if not as_json and answer.turn and answer.turn.stop_reason in CUT_OFF:
        output.say("cut off: the answer reached its token limit; --max-tokens changes it")
    output.close(answer, session.id)
    return 0 if answer.ending == "answered" else 1


@app.command()
@expand_flags
def ask(
    question: Annotated[
        str | None, typer.Argument(help="Your question; '-' reads it from standard input.")
    ] = None,
    *,
    prompt: PersonFlags,
    opening: SessionFlags,
    resume: Annotated[
        bool, session_flag("--resume", help="With --session: continue an interrupted turn.")
    ] = False,
    edit: Annotated[
        str | None,
        session_flag(
            "--edit", metavar="ENTRY",
            help="With --session: replace an earlier question, or the `last` one, which stays as a "
            "branch. Its attachments are sent again unless you attach something else.",
        ),
    ] = None,
    regenerate: Annotated[
        str | None,
        session_flag(
            "--regenerate", metavar="ENTRY",
            help="With --session: regenerate an answer, or the `last` one, which stays as a "
            "branch. No tool is run again.",
        ),
    ] = None,
    allow_tools: AllowTools = False,
    yes: SpendUnasked = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object at the end instead of text.")
    ] = False,
) -> None:  # fmt: skip
    """Ask one question and print the answer as it arrives.

    Standard output contains only the answer; the session's id, warnings and tool calls go to
    standard error. Piped text follows the question as <stdin>...</stdin>; without a question it is
    the question. Terminals and sockets are not waited for. Tool calls that need your permission are
    denied unless you give --allow-tools. You are asked before a request that rewrites a cache at a
    price; without a terminal, it is not sent unless you give --yes.

    Exits with 0 if there is an answer, 1 if not, 130 after Ctrl-C; partial answers are kept.
    """
    along = prompt.options()
    has_more = opening.session is None or question is not None or along != PromptOptions()
    refuse_if(
        resume and has_more, "--resume needs --session, and accepts no question or attachment"
    )
    refuse_if(
        regenerate is not None and has_more,
        "--regenerate needs --session, and accepts no question or attachment",
    )
    refuse_if(edit is not None and opening.session is None, "--edit needs --session")
    refuse_if(
        opening.new and (resume or edit is not None or regenerate is not None),
        "--new starts a session, so there is nothing to --resume, --edit or --regenerate",
    )
    refuse_if(
        sum((resume, edit is not None, regenerate is not None)) > 1,
        "--resume, --edit and --regenerate cannot be combined",
    )
    try:
        is_asked = not resume and regenerate is None
        text = read_question(question, sys.stdin) if is_asked else None
    except UsageError as error:
        raise typer.BadParameter(str(error)) from error
    place = AskPlace(edit=edit, regenerate=regenerate)
    run_to_exit(
        ask_model, text, opening.options(), along,
        place=place, allow_tools=allow_tools, as_json=as_json, asks_price=not yes,
    )  # fmt: skip
