"""`lamina context`: a question as a command would send it, prepared and not sent.

Law: nothing is kept. The session is in memory, and searches are made on a copy of the index.
"""

from collections.abc import Sequence
from pathlib import Path

from lamina.cli.context_view import (
    describe_plan_preview,
    describe_preview,
    render_plan_preview,
    render_preview,
)
from lamina.cli.script import (
    EditedWorkspace,
    Script,
    ScriptClock,
    ScriptTurn,
    read_script,
    scripted_reply,
)
from lamina.errors import UsageError
from lamina.faces.options import PromptOptions, SessionOptions, refuse_ignored
from lamina.faces.plain_text import format_json
from lamina.faces.session_opener import require_extras
from lamina.runners.preview import PlanPreview, Preview
from lamina.session.session import Session
from lamina.stores.memory import MemoryStore
from lamina.values.settings import Settings
from lamina.wiring import open_session
from lamina.wiring.agents import find_agent
from lamina.wiring.index import LazyIndex
from lamina.wiring.runners import preview_question
from lamina.workspace.folder import FolderWorkspace


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
        UsageError: options contradict one another.
        BudgetError: it does not fit.
    """
    refuse_ignored(options)
    require_extras(options, prompt, sends=False)
    played = read_script(script) if script else Script(turns=())
    turns = [*played.turns, *([] if question is None else [ScriptTurn(ask=question)])]
    if not turns:
        raise UsageError("no question was given")
    folder, index = FolderWorkspace(options.workspace, watch=False), LazyIndex(keep=False)
    stage = _Stage(options, folder, turns)
    try:
        async with await stage.open(index, played.system) as session:
            preview = await stage.play(session, prompt)
            if isinstance(preview, PlanPreview):
                if not (wire or as_json):
                    return render_plan_preview(preview, full=full)
                return format_json(preview.body if wire else describe_plan_preview(preview))
            if not (wire or as_json):
                return render_preview(session, preview, full=full)
            return format_json(preview.turn.request() if wire else describe_preview(preview))
    finally:
        await index.aclose()
        await folder.aclose()


class _Stage:
    """Where turns are played up to the last one, which is only prepared."""

    def __init__(
        self, options: SessionOptions, folder: FolderWorkspace, turns: Sequence[ScriptTurn]
    ) -> None:
        self._options, self._folder, self._turns = options, folder, turns
        self._clock = ScriptClock()
        # Searches and tools see the folder itself, so there is nothing in between without need.
        self._edits: EditedWorkspace | None = None
        if any(turn.edit for turn in turns):
            if options.mode != "agent" or options.files:
                raise UsageError(
                    "the script edits notes, which searches and tools would not see: leave out "
                    "its edits, or --mode and --files"
                )
            self._edits = EditedWorkspace(folder)

    async def open(self, index: LazyIndex, system: str) -> Session:
        options, changes = self._options, self._options.changes.as_settings()
        session = await open_session(
            system=options.system or system, target=options.target, index=index,
            workspace=self._edits or self._folder, clock=self._clock, store=MemoryStore(),
            settings=None if options.agent else Settings(**changes), project=options.project,
            agent=find_agent(options.agent, options.workspace) if options.agent else None,
            trust=options.trust,
        )  # fmt: skip
        if options.agent:
            # The agent's settings hold, except for those asked for here.
            await session.update_settings(**changes)
        return session

    async def play(self, session: Session, prompt: PromptOptions) -> Preview | PlanPreview:
        *earlier, last = self._turns
        for scripted in earlier:
            self._begin(scripted)
            turn = await session.prepare(scripted.ask, attach=scripted.attach)
            await turn.commit(scripted_reply(scripted.answer))
        self._begin(last)
        options = self._options
        return await preview_question(
            session, last.ask, [*last.attach, *prompt.attachments()],
            mode=options.mode, files=options.files, scope=options.scope,
        )  # fmt: skip

    def _begin(self, turn: ScriptTurn) -> None:
        self._clock.time += turn.pause
        if self._edits is not None:
            self._edits.edit(turn.edit)
