"""`lamina context`: a question as `lamina ask` would send it, prepared and not sent.

Laws: what is opened is what `ask` opens, and refused as there; only who answers is not needed.
Nothing is kept: what a session would gain is forgotten, and searches are made on a copy of the
index.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from rich.console import Console

from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.apps.cli.context_view import render_plan_preview, render_preview
from lamina.apps.cli.notices import ConsoleNotices
from lamina.apps.cli.screen import can_ask
from lamina.apps.cli.script import (
    EditedWorkspace,
    Script,
    ScriptClock,
    ScriptTurn,
    read_script,
    scripted_reply,
)
from lamina.apps.views.options import PromptOptions, SessionOptions
from lamina.apps.views.plain_text import format_json
from lamina.apps.views.previews import describe_plan_preview, describe_preview, why_refused
from lamina.apps.views.session_opener import (
    Rehearsal,
    open_runner,
    require_extras,
    require_fetchable,
    require_readable,
)
from lamina.apps.views.spending import find_refusal
from lamina.apps.wiring.index import LazyIndex
from lamina.core.ports import WorkspaceSource
from lamina.engine.runners.preview import PlanPreview, Preview
from lamina.engine.runners.runner import ChatRunner
from lamina.engine.session.session import Session
from lamina.errors import UsageError


async def show_context(
    question: str | None,
    options: SessionOptions,
    prompt: PromptOptions,
    *,
    script: Path | None = None,
    as_json: bool = False,
    wire: bool = False,
    full: bool = False,
) -> str:
    """The text that the command prints. Without a question it is about the script's last one.

    Raises:
        UsageError: options contradict one another, or something cannot be attached.
        BudgetError: it does not fit.
    """
    require_extras(options, prompt, sends=False)
    require_fetchable(prompt.references, options)
    played = read_script(script) if script else Script(turns=())
    turns = [*played.turns, *([] if question is None else [ScriptTurn(ask=question)])]
    if not turns:
        raise UsageError("no question was given")
    if script:
        options = replace(options, system=options.system or played.system)
    console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    notices = ConsoleNotices(console, asks=can_ask(console))
    # Nothing is kept of the notes either.
    folder, index = FolderWorkspace(options.workspace, watch=False), LazyIndex(keep=False)
    try:
        await require_readable(prompt.references, folder)
        stage = _Stage(options, folder, turns)
        rehearsal = Rehearsal(index=index, clock=stage.clock if script else None)
        async with await open_runner(
            options, notices, workspace=stage.workspace, rehearsal=rehearsal
        ) as runner:
            preview = await stage.play(runner, prompt)
            told = tuple(
                f"`lamina ask` would not send this: {refusal}"
                for refusal in await why_refused(runner.session, preview)
            )
            preview = replace(preview, warnings=preview.warnings + told)
            # The wire's own form has no place for what a limit says.
            if (
                wire
                and isinstance(preview, Preview)
                and (limit := await find_refusal(runner.session, preview.turn))
            ):
                notices.say(f"`lamina ask` would not send this: {limit}")
            return _show(runner.session, preview, as_json=as_json, wire=wire, full=full)
    finally:
        await index.aclose()
        await folder.aclose()


def _show(
    session: Session, preview: Preview | PlanPreview, *, as_json: bool, wire: bool, full: bool
) -> str:
    if isinstance(preview, PlanPreview):
        if not (wire or as_json):
            return render_plan_preview(preview, full=full)
        return format_json(_body(preview.body) if wire else describe_plan_preview(preview))
    if not (wire or as_json):
        return render_preview(session, preview, full=full)
    return format_json(_body(preview.turn.request()) if wire else describe_preview(preview))


def _body(arguments: dict[str, Any]) -> dict[str, Any]:
    """What goes over the wire as a body: a vendor's client takes headers, and what it has no word
    for, by themselves."""
    extra: dict[str, Any] = arguments.get("extra_body", {})
    besides = ("extra_body", "extra_headers")
    return {name: value for name, value in arguments.items() if name not in besides} | extra


class _Stage:
    """Where turns are played up to the last one, which is only prepared."""

    def __init__(
        self, options: SessionOptions, folder: WorkspaceSource, turns: Sequence[ScriptTurn]
    ) -> None:
        self._turns = turns
        self.clock = ScriptClock()
        # Searches and tools see the folder itself, so there is nothing in between without need.
        self._edits: EditedWorkspace | None = None
        if any(turn.edit for turn in turns):
            if options.mode != "agent" or options.files:
                raise UsageError(
                    "the script edits notes, which searches and tools would not see: leave out "
                    "its edits, or --mode and --files"
                )
            self._edits = EditedWorkspace(folder)
        self.workspace: WorkspaceSource = self._edits or folder

    async def play(self, runner: ChatRunner, prompt: PromptOptions) -> Preview | PlanPreview:
        *earlier, last = self._turns
        for scripted in earlier:
            self._begin(scripted)
            turn = await runner.session.prepare(scripted.ask, attach=scripted.attach)
            await turn.commit(scripted_reply(scripted.answer))
        self._begin(last)
        return await runner.preview(last.ask, attach=[*last.attach, *prompt.attachments()])

    def _begin(self, turn: ScriptTurn) -> None:
        self.clock.time += turn.pause
        if self._edits is not None:
            self._edits.edit(turn.edit)
