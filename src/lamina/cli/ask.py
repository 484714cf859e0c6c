"""`lamina ask`: one question, its answer on standard output and nothing else there.

Laws: standard output holds the answer, or one JSON object; all else is said on standard error. What
came of an answer is kept, whatever stops it. Nobody is asked anything: a tool that would need a
person's word is denied, or allowed by `--allow-tools` for each call once, which leaves the
session's own settings as they are.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import msgspec
from msgspec import Struct
from rich.console import Console

from lamina.cli.ask_output import AskOutput
from lamina.cli.hits import render_footnotes
from lamina.cli.runner import RunOptions, open_runner
from lamina.cli.stdio import is_piped, own_output, read_text, stop_on_signals
from lamina.codec import require_text
from lamina.errors import LaminaError, UsageError
from lamina.faces.answer import CUT_OFF, describe_answer
from lamina.faces.citations import hold_until_final
from lamina.notes.references import is_url
from lamina.runners.runner import Answer, ChatRunner, Listener
from lamina.text import escape_content
from lamina.values.item import AttachmentSpec
from lamina.values.message import ToolCall
from lamina.values.patch import Display, OptionsSet
from lamina.values.request import LeftOut
from lamina.values.tool import Decision, OfferedTool
from lamina.wiring.workspaces import open_workspace

STDIN = "-"


class AskOptions(Struct, frozen=True, kw_only=True):
    """What is asked, and how. Without a `text` the turn that was left in the middle goes on."""

    text: str | None
    attach: tuple[str, ...] = ()
    essential: tuple[str, ...] = ()
    allow_tools: bool = False
    as_json: bool = False
    max_tokens: int | None = None
    active: str | None = None


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
    given = read_text(stdin, say) if is_piped(stdin) else ""
    if not given.strip():
        return question
    return f"{question}\n\n<stdin>\n{escape_content(given, 'stdin').rstrip()}\n</stdin>"


async def ask(asked: AskOptions, options: RunOptions) -> int:
    """Asks, and gives the exit code."""
    console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    with own_output() as out:
        voice = AskOutput(out, console, quiet=asked.as_json)
        try:
            return await _ask(asked, options, voice, console)
        except LaminaError as error:
            if asked.as_json:
                failed = {"code": error.code, "message": str(error)}
                voice.print(msgspec.json.encode({"ending": "failed", "error": failed}).decode())
            raise
        finally:
            # Also in front of the line that says what went wrong.
            voice.end_line()


async def _ask(asked: AskOptions, options: RunOptions, voice: AskOutput, console: Console) -> int:
    code = 1
    active = [asked.active] if asked.active else []
    access = options.changes.get("web")
    await require_readable(
        [*asked.attach, *asked.essential, *active], options.workspace, access, options.session
    )
    async with stop_on_signals() as stop:
        approver = AllowAllApprover() if asked.allow_tools else DenyAllApprover(voice)
        runner = await open_runner(options, console, approver=approver, needs_key=True)
        async with runner:
            voice.on_gone = stop.abort = runner.abort
            if options.session is None:
                voice.say(f"session {runner.session.id}")
            hear = hold_until_final(voice.hear) if options.mode == "qa" else voice.hear
            code = report_answer(
                await put_question(runner, asked, voice, hear), runner, asked, voice
            )
    if stop.signal is not None:
        voice.end_line()
        return stop.exit_code
    return code


async def require_readable(
    references: Sequence[str],
    workspace: Path,
    access: str | None = None,
    session: str | None = None,
) -> None:
    """Refuses what cannot be attached: an answer without it is not what was asked for. A page is
    fetched later; whether that is allowed is known here, but for a session that says so itself.

    Raises:
        UsageError: it cannot be read.
    """
    source = open_workspace(workspace)
    wrong: list[str] = []
    try:
        for reference in references:
            if is_url(reference):
                if access in (None, "off") and session is None:
                    raise UsageError(
                        f"cannot attach {reference}: pages are not fetched unless you say so; "
                        f"--allow-host HOST allows one host, --web public any public one"
                    )
                continue
            found = await source.read(reference, "attached")
            if isinstance(found, LeftOut):
                wrong.append(found.detail)
    finally:
        await source.aclose()
    if wrong:
        raise UsageError(f"cannot attach: {'; '.join(wrong)}")


async def put_question(
    runner: ChatRunner, asked: AskOptions, voice: AskOutput, hear: Listener | None = None
) -> Answer:
    """Puts the question, or goes on with the one that was left.

    Raises:
        TurnState: there is nothing to go on with.
    """
    session = runner.session
    if asked.max_tokens not in (None, session.envelope.options.max_tokens):
        await limit_answers(runner, asked.max_tokens)
    if asked.text is None:
        return await runner.go_on(on_event=hear or voice.hear)
    if session.interrupted or session.waiting:
        voice.warn(
            "the last question of this session was left without an answer; it is put aside for "
            "this one (--resume would have gone on with it)"
        )
    wanted = attachments(asked.attach, asked.essential, asked.active)
    return await runner.run(asked.text, attach=wanted, on_event=hear or voice.hear)


def report_answer(answer: Answer, runner: ChatRunner, asked: AskOptions, voice: AskOutput) -> int:
    """Says what the turn came to, and gives the exit code."""
    session = runner.session
    if asked.as_json:
        described = describe_answer(answer, session, voice.warnings)
        voice.print(msgspec.json.format(msgspec.json.encode(described), indent=2).decode())
    else:
        voice.compare(answer)
    voice.end_line()
    if not asked.as_json and (notes := render_footnotes(answer)):
        voice.print("\n" + "\n".join(notes) + "\n")
    if answer.ending == "aborted":
        kept = "what came of the answer is kept" if answer.text else "nothing came of the answer"
        left = session.interrupted or session.waiting
        hint = f"; lamina ask --session {session.id} --resume asks again" if left else ""
        voice.say(f"stopped: {kept}{hint}")
    if not asked.as_json and answer.turn and answer.turn.stop in CUT_OFF:
        voice.say("cut off: the answer reached its limit; --max-tokens changes it")
    voice.close(answer, session.id)
    return 0 if answer.ending == "answered" else 1


async def limit_answers(runner: ChatRunner, tokens: int | None) -> None:
    """Limits the session's answers, from the next one on."""
    title = f"Answers of at most {tokens:,} tokens"
    op = OptionsSet(max_tokens=tokens)
    await runner.session.apply("lamina.cli", op, display=Display(title=title))


def attachments(
    attach: Sequence[str], essential: Sequence[str], active: str | None = None
) -> list[str | AttachmentSpec]:
    open_note = [AttachmentSpec(what=active, shape="active")] if active else []
    return [*open_note, *attach, *(AttachmentSpec(what=path, essential=True) for path in essential)]


class AllowAllApprover:
    """Lets every call run, once: nothing is allowed for longer than this command."""

    async def decide(self, call: ToolCall, tool: OfferedTool) -> Decision:  # noqa: ARG002
        return "allow_once"


class DenyAllApprover:
    """Denies what a person would have to allow, and says how to allow it."""

    def __init__(self, voice: AskOutput) -> None:
        self._voice = voice

    async def decide(self, call: ToolCall, tool: OfferedTool) -> Decision:
        name = tool.label or call.name
        self._voice.warn(f"denied {name}: nobody can be asked here; --allow-tools lets tools run")
        return "deny"
