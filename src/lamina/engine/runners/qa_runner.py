"""A runner that answers from notes: what fits a question is searched for, and sent with it."""

from collections.abc import Iterable

from lamina.core.ports import Providers
from lamina.core.values.note import Scope
from lamina.engine.runners.answer import Answer
from lamina.engine.runners.mode import Listener, RunContext
from lamina.engine.runners.qa import QaMode
from lamina.engine.runners.runner import ChatRunner, Runner
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn
from lamina.engine.sources.attachments import Attachable
from lamina.engine.sources.note_search import EVERYWHERE, TOP, WorkspaceSearch


class QaRunner(ChatRunner):
    """Searches the notes for every question and asks once. `scope` is where it searches unless a
    question says otherwise, `top` how many passages it takes."""

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
        """Where notes are searched, unless a question says otherwise."""
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
        """Searches and asks, and gives the answer with its sources; `scope` is for this question.

        Raises:
            ProviderError: there is no answer; `resume` tries again, with what was found.
            BudgetError, PrefixMoved, HookError: as `Session.prepare`.
        """

        async def begin() -> Turn:
            await self._run.reach(target)
            return await self._qa.begin(text, attach, target, scope)

        return await self._finish(begin, on_event)
