"""A runner that answers from notes: what fits a question is searched for, and sent with it."""

from collections.abc import Iterable

from lamina.ports import Providers
from lamina.runners.answer import Answer
from lamina.runners.mode import Listener, RunContext
from lamina.runners.qa import QaMode
from lamina.runners.runner import ChatRunner, Runner
from lamina.session.session import Session
from lamina.session.turn import Turn
from lamina.sources.attachments import Attachable
from lamina.sources.note_search import EVERYWHERE, TOP, WorkspaceSearch
from lamina.values.note import Scope


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
