"""Answers questions about notes: a search, then one answer based on its results.

Laws: the question appears once. The results are one self-explanatory block, uncached and absent
from the next turn. The answer orders its citations by first mention, each referring to one part of
one note: both for the person, and in the journal, which stores their meaning.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from lamina.core.ports import Providers
from lamina.core.values.message import ToolText
from lamina.core.values.note import Hit, Scope
from lamina.engine.runners.answer import Answer
from lamina.engine.runners.citations import recorded_sources, render_hits, screen_hits
from lamina.engine.runners.composer import with_composer
from lamina.engine.runners.mode import Listener, RunContext, RunMode
from lamina.engine.runners.note_search_tool import name_time_range
from lamina.engine.runners.runner import ChatRunner, Runner
from lamina.engine.runners.text_room import TextRoom, prepare_smaller
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn
from lamina.engine.sources.attachments import Attachable
from lamina.engine.sources.candidates import recent_questions
from lamina.engine.sources.note_search import EVERYWHERE, TOP, WorkspaceSearch
from lamina.engine.sources.secret_screen import SecretScreen
from lamina.errors import UsageError, WindowExceeded


class QaMode(RunMode):
    """A mode that searches the notes for every question and asks once."""

    def __init__(self, run: RunContext, search: WorkspaceSearch, scope: Scope, top: int) -> None:
        if top < 1:
            raise UsageError(f"top is {top}; a search needs at least one passage")
        super().__init__(run)
        self._search = search
        self.scope = scope
        self._top = top
        self._screen = SecretScreen()

    async def begin(
        self,
        text: str,
        attach: Iterable[Attachable],
        target: str | None,
        scope: Scope | None = None,
    ) -> Turn:
        """Return the request for a question; `scope` applies only to this question."""
        run, where = self._run, self.scope if scope is None else scope
        state = run.session.state
        result = await self._search.search(
            text, scope=where, top=self._top, recent=recent_questions(state)
        )
        hits, warnings = screen_hits(self._screen, result.hits, state.settings.secrets)
        result = replace(result, hits=hits, time_range=name_time_range(where))
        await run.warn(*result.warnings, *warnings)
        attachments = await run.core.turns.read_attachments(with_composer(text, attach))
        room = TextRoom(run.session, target, text, attachments)

        async def prepare(some: tuple[Hit, ...]) -> Turn:
            # No block at all if there is no room for results: it must not claim that nothing was
            # found.
            texts: tuple[ToolText, ...] = ()
            if some or not hits:
                # Attachments have no citation number.
                must_cite = not attachments.attachments
                texts = (render_hits(some, result.time_range, must_cite=must_cite),)
            return await run.prepare(text, (), target, tool_texts=texts, attachments=attachments)

        try:
            turn, count = await prepare_smaller(prepare, room.take_hits(hits))
        except WindowExceeded:
            if hits:
                raise
            # The message that nothing was found may itself be too much.
            turn, count = await run.prepare(text, (), target, attachments=attachments), 0
        await run.rest_on(result, hits[:count], where)
        await run.note_request(turn.id)
        return turn

    async def resume(self) -> Turn:
        turn = await self._run.open_turn()
        self._run.sources = recorded_sources(self._run.session, turn) or ()
        return turn


class QaRunner(ChatRunner):
    """A runner that searches the notes for every question and asks once. `scope` is where it
    searches unless a question names another one, `top` is how many passages it uses.
    """

    def __init__(
        self,
        session: Session,
        providers: Providers,
        search: WorkspaceSearch,
        *,
        scope: Scope = EVERYWHERE,
        top: int = TOP,
    ) -> None:
        run = RunContext(session, providers)
        self._qa = QaMode(run, search, scope, top)
        Runner.__init__(self, run, self._qa)

    @property
    def scope(self) -> Scope:
        """Where notes are searched, unless a question names another scope."""
        return self._qa.scope

    @scope.setter
    def scope(self, scope: Scope) -> None:
        self._qa.scope = scope

    async def run(
        self,
        text: str,
        *,
        attach: Iterable[Attachable] = (),
        target: str | None = None,
        on_event: Listener | None = None,
        scope: Scope | None = None,
    ) -> Answer:
        """Search and ask, and return the answer with its sources; `scope` applies only to this
        question.

        Raises:
            ProviderError: there is no answer; `resume` tries again, with the same results.
            BudgetError, PrefixMoved, SpendLimit, HookError: as `Session.prepare`.
        """

        async def begin() -> Turn:
            await self._run.reach(target)
            return await self._qa.begin(text, attach, target, scope)

        return await self._finish(begin, on_event)
