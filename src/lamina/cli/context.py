"""`lamina context`: a question as a command would send it, prepared and not sent.

Law: nothing is kept. The session is in memory, and searches are made on a copy of the index.
"""

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
    played = read_script(script) if script else Script(turns=())
    folder, index = FolderWorkspace(options.workspace, watch=False), LazyIndex(keep=False)
    stage = _Stage(question, options, prompt, played, folder)
    try:
        async with await stage.open(index) as session:
            preview = await stage.play(session)
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
    """Where a script is played, and then the question put."""

    def __init__(
        self,
        question: str | None,
        request: SessionOptions,
        prompt: PromptOptions,
        script: Script,
        folder: FolderWorkspace,
    ) -> None:
        self._question = question
        self._request = request
        self._prompt = prompt
        self._script = script
        self._clock = ScriptClock()
        self._folder = folder
        # Searches and tools see the folder itself, so there is nothing in between without need.
        self._edited: EditedWorkspace | None = None
        if any(turn.edit for turn in self._script.turns):
            if request.mode != "agent" or request.files:
                raise UsageError(
                    "the script edits notes, which searches and tools would not see: leave out "
                    "its edits, or --mode and --files"
                )
            self._edited = EditedWorkspace(folder)

    async def open(self, index: LazyIndex) -> Session:
        request = self._request
        changes = request.changes.as_settings()
        session = await open_session(
            system=request.system or self._script.system, target=request.target,
            workspace=self._edited or self._folder, index=index,
            settings=None if request.agent else Settings(**changes), clock=self._clock,
            store=MemoryStore(), project=request.project,
            agent=find_agent(request.agent, request.workspace) if request.agent else None,
        )  # fmt: skip
        if request.agent:
            # The agent's settings hold, except for those asked for here.
            await session.change(**changes)
        return session

    async def play(self, session: Session) -> Preview | PlanPreview:
        """Plays the script, and prepares the question, or else the script's last one."""
        turns = list(self._script.turns)
        last = turns.pop() if self._question is None and turns else None
        for scripted in turns:
            self._begin(scripted)
            turn = await session.prepare(scripted.ask, attach=scripted.attach)
            await turn.commit(scripted_reply(scripted.answer))
        if last is None and self._question is None:
            raise UsageError("no question was given")
        last = last or ScriptTurn(ask=self._question or "")
        self._begin(last)
        request = self._request
        return await preview_question(
            session, last.ask, [*last.attach, *self._prompt.attachments()],
            mode=request.mode, files=request.files, scope=request.scope,
        )  # fmt: skip

    def _begin(self, turn: ScriptTurn) -> None:
        self._clock.time += turn.pause
        if self._edited is not None:
            self._edited.edit(turn.edit)
