"""`lamina ask`: one question, its answer on standard output and nothing else there.

Laws: standard output holds the answer, or one JSON object; all else goes to standard error. What
has arrived of an answer is kept, whatever stops it. Nobody is asked about tools: one that needs
permission is denied, or allowed by `--allow-tools` for each call once, which leaves the session's
own settings as they are. About a price a person is asked at their terminal; where there is none,
what would have to be asked is not sent.
"""

import sys
from functools import partial
from typing import TextIO

import msgspec
from msgspec import Struct
from rich.console import Console

from lamina.apps.cli.ask_output import AskOutput
from lamina.apps.cli.citations import hold_until_final
from lamina.apps.cli.note_hits import render_footnotes
from lamina.apps.cli.notices import ConsoleNotices
from lamina.apps.cli.screen import can_ask
from lamina.apps.cli.session_tree import LAST, find_question
from lamina.apps.cli.stdio import is_piped, own_output, read_text, stop_on_signals
from lamina.apps.cli.terminal_text import visible
from lamina.apps.cli.trust import ask_trust
from lamina.apps.views.answer import CUT_OFF, describe_answer
from lamina.apps.views.approvals import AllowAllApprover, DenyAllApprover
from lamina.apps.views.notes import open_notes
from lamina.apps.views.options import PromptOptions, SessionOptions
from lamina.apps.views.plain_text import format_json
from lamina.apps.views.session_opener import (
    open_runner,
    require_extras,
    require_fetchable,
    require_readable,
)
from lamina.apps.views.spending import ask_before_rewrites
from lamina.core.codec import require_text
from lamina.core.text import escape_content
from lamina.engine.runners.runner import Answer, ChatRunner, Listener
from lamina.errors import LaminaError, UsageError

STDIN = "-"


def read_question(question: str | None, stdin: TextIO | None) -> str:
    """The question with what is piped beside it, which stands under it as a block that cannot close
    itself. `-`, or no question at all, means that what is piped is the question.

    Raises:
        UsageError: nothing is asked, or nothing that can be sent.
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
    # Before a session is made for it.
    require_text(question, "the question")
    piped = read_text(stdin, say) if is_piped(stdin) else ""
    if not piped.strip():
        return question
    return f"{question}\n\n<stdin>\n{escape_content(piped, 'stdin').rstrip()}\n</stdin>"


class AskPlace(Struct, frozen=True, kw_only=True):
    """Where in a session is asked: in place of the question `edit`, or for the answer `regenerate`
    again. By default behind everything."""

    edit: str | None = None
    regenerate: str | None = None


AT_THE_END = AskPlace()


async def ask(
    text: str | None,
    options: SessionOptions,
    prompt: PromptOptions,
    *,
    place: AskPlace = AT_THE_END,
    allow_tools: bool = False,
    as_json: bool = False,
    asks_price: bool = True,
) -> int:
    """Asks, and returns the exit code. Without a `text` the turn that was interrupted goes on,
    unless an answer is asked for again."""
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
            # Also in front of the line that says what went wrong.
            output.end_line()


async def agree_to_price(console: Console, output: AskOutput, text: str) -> bool:
    """Asks the person at the terminal whether a price is fine."""
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
    """Puts the question, or goes on with the one that was interrupted.

    Raises:
        TurnStateError: there is nothing to go on with.
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
            "the last question of this session was left without an answer; it is put aside for "
            "this one (--resume would have gone on with it)"
        )
    return await runner.run(text, attach=prompt.attachments(), on_event=hear)


def report_answer(
    answer: Answer, runner: ChatRunner, output: AskOutput, *, as_json: bool = False
) -> int:
    """Tells how the turn ended, and returns the exit code."""
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
        remains = "what came of the answer is kept" if answer.text else "nothing came of the answer"
        is_open = session.interrupted or session.pending_calls
        hint = f"; lamina ask --session {session.id} --resume asks again" if is_open else ""
        output.say(f"stopped: {remains}{hint}")
    if not as_json and answer.turn and answer.turn.stop_reason in CUT_OFF:
        output.say("cut off: the answer reached its limit; --max-tokens changes it")
    output.close(answer, session.id)
    return 0 if answer.ending == "answered" else 1
