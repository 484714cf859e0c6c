"""`lamina context`: a question as a command would send it, prepared and not sent.

Law: nothing is kept. The session is in memory, and searches are made on a copy of the index.
"""

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from lamina.cli.context_view import (
    describe_plan_preview,
    describe_preview,
    render_plan_preview,
    render_preview,
)
from lamina.cli.runner import Mode, RunOptions, refuse_ignored
from lamina.cli.script import (
    EditedWorkspace,
    Script,
    ScriptClock,
    ScriptTurn,
    read_script,
    scripted_reply,
)
from lamina.errors import UsageError
from lamina.runners.preview import PlanPreview, Preview
from lamina.session.session import Session
from lamina.sources.attachments import Attachable
from lamina.stores.memory import MemoryStore
from lamina.values.item import AttachmentSpec
from lamina.values.note import Scope
from lamina.values.settings import Settings
from lamina.wiring import open_session
from lamina.wiring.index import LazyIndex
from lamina.wiring.runners import preview_question
from lamina.workspace.folder import FolderWorkspace


class ContextOptions(Struct, frozen=True, kw_only=True):
    question: str | None
    workspace: Path
    attach: tuple[str, ...]
    essential: tuple[str, ...]
    system: str
    target: str | None
    settings: Settings
    script: Path | None
    agent: str | None = None
    project: str | None = None
    active: str | None = None
    mode: Mode = "agent"
    files: bool = False
    scope: Scope = Scope()


async def show_context(request: ContextOptions, as_json: bool, wire: bool, full: bool) -> str:
    """The text that the command prints.

    Raises:
        UsageError: what was asked for does not go together.
        BudgetError: it does not fit.
    """
    refuse_ignored(RunOptions(mode=request.mode, files=request.files, scope=request.scope))
    script = read_script(request.script) if request.script else None
    folder, index = FolderWorkspace(request.workspace, watch=False), LazyIndex(keep=False)
    stage = _Stage(request, script, folder)
    try:
        async with await stage.open(index) as session:
            preview = await stage.play(session)
            if isinstance(preview, PlanPreview):
                if not (wire or as_json):
                    return render_plan_preview(preview, full=full)
                return _as_json(preview.body if wire else describe_plan_preview(preview))
            if not (wire or as_json):
                return render_preview(session, preview, full=full)
            return _as_json(preview.turn.request() if wire else describe_preview(preview))
    finally:
        await index.aclose()
        await folder.aclose()


def _as_json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


class _Stage:
    """Where a script is played, and then the question put."""

    def __init__(
        self, request: ContextOptions, script: Script | None, folder: FolderWorkspace
    ) -> None:
        self._request = request
        self._script = script or Script(turns=())
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
        session = await open_session(
            system=request.system or self._script.system, target=request.target,
            workspace=self._edited or self._folder, index=index,
            settings=None if request.agent else request.settings, clock=self._clock,
            store=MemoryStore(), agent=_agent_place(request), project=request.project,
        )  # fmt: skip
        if request.agent:
            # The agent's settings hold, but for what was said here.
            await session.change(**_said(request.settings))
        return session

    async def play(self, session: Session) -> Preview | PlanPreview:
        """Plays the script, and prepares the question, or else the script's last one."""
        turns = list(self._script.turns)
        last = turns.pop() if self._request.question is None and turns else None
        for each in turns:
            self._begin(each)
            turn = await session.prepare(each.ask, attach=each.attach)
            await turn.commit(scripted_reply(each.answer))
        attach = _attached(self._request)
        if last is not None:
            self._begin(last)
            return await self._preview(session, last.ask, [*last.attach, *attach])
        if self._request.question is None:
            raise UsageError("no question was given")
        self._clock.time += 30.0
        return await self._preview(session, self._request.question, attach)

    def _begin(self, turn: ScriptTurn) -> None:
        self._clock.time += turn.pause
        if self._edited is not None:
            self._edited.edit(turn.edit)

    async def _preview(
        self, session: Session, text: str, attach: list[Attachable]
    ) -> Preview | PlanPreview:
        request = self._request
        return await preview_question(
            session, text, attach, mode=request.mode, files=request.files, scope=request.scope
        )


def _attached(request: ContextOptions) -> list[Attachable]:
    open_note = [AttachmentSpec(what=request.active, shape="active")] if request.active else []
    essential = (AttachmentSpec(what=path, essential=True) for path in request.essential)
    return [*open_note, *request.attach, *essential]


def _agent_place(request: ContextOptions) -> Path | None:
    if request.agent is None:
        if request.project is not None:
            raise UsageError(f"--project {request.project!r} needs --agent")
        return None
    from lamina.wiring.agents import find_agent

    return find_agent(request.agent, request.workspace)


def _said(settings: Settings) -> dict[str, Any]:
    return {
        field.name: value
        for field in msgspec.structs.fields(settings)
        if (value := getattr(settings, field.name)) != field.default
    }
