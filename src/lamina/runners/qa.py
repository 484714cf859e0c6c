"""Questions about notes: a search, then one answer that rests on what it found.

Laws: the question stands once. What was found is one block that explains itself, uncached and gone
with the next turn. The journal keeps the model's own words and where they came from; the answer
that a person gets has its citations by first mention, each meaning one part of one note.
"""

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from lamina.errors import UsageError, WindowExceeded
from lamina.ports import Providers
from lamina.runners.answer import Answer, CitedSource
from lamina.runners.citations import (
    SEARCHED,
    list_sources,
    record_search,
    recorded_sources,
    render_hits,
    screen_hits,
    with_citations,
)
from lamina.runners.composer import with_composer
from lamina.runners.runner import ChatRunner, Listener
from lamina.runners.text_room import TextRoom, prepare_smaller, say_without_room
from lamina.session.session import Session
from lamina.session.turn import Turn
from lamina.sources.attachments import Attachable
from lamina.sources.candidates import recent_questions
from lamina.sources.note_search import EVERYWHERE, TOP, WorkspaceSearch
from lamina.sources.secrets import SecretScreen
from lamina.values.event import WarningIssued
from lamina.values.note import Hit, NoteSearchResult, Scope


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
        super().__init__(session, providers)
        if top < 1:
            raise UsageError(f"a search takes at least one passage, not {top}")
        self.scope = scope
        self._search = search
        self._top = top
        self._screen = SecretScreen()
        self._found: NoteSearchResult | None = None
        self._sources: tuple[CitedSource, ...] = ()
        self._record: dict[str, Any] = {}

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
            ProviderError: there is no answer; `go_on` tries again, with what was found.
            BudgetError, PrefixMoved, HookError: as `Session.prepare`.
        """
        where = self.scope if scope is None else scope
        return await self._guarded(lambda: self._look_up(text, attach, target, where), on_event)

    # -- inside ----------------------------------------------------------------------------------

    async def _take_up(self, text: str, attach: Iterable[Attachable], target: str | None) -> Turn:
        return await self._look_up(text, attach, target, self.scope)

    async def _look_up(
        self, text: str, attach: Iterable[Attachable], target: str | None, scope: Scope
    ) -> Turn:
        self._found, self._sources, self._record = None, (), {}
        state = self.session.state
        found = await self._search.search(
            text, scope=scope, top=self._top, recent=recent_questions(state)
        )
        hits, told = screen_hits(self._screen, found.hits, state.settings.secrets)
        found = replace(found, hits=hits)
        for warning in (*found.warnings, *told):
            await self._emit(WarningIssued(text=warning))
        hydrated = await self.session.turns.read_attachments(with_composer(text, attach))
        room = TextRoom(self.session, target, text, hydrated)

        async def prepare(shown: tuple[Hit, ...]) -> Turn:
            # No block at all where what was found has no room: it must not say that nothing was.
            texts = (render_hits(shown),) if shown or not hits else ()
            return await self._prepare(text, (), target, texts, hydrated)

        try:
            turn, kept = await prepare_smaller(prepare, room.take_hits(hits))
        except WindowExceeded:
            if hits:
                raise
            # To say that nothing was found may be what is too much.
            turn, kept = await self._prepare(text, (), target, (), hydrated), 0
        if kept < len(hits):
            await self._emit(WarningIssued(text=say_without_room(len(hits), kept)))
        self._found = replace(found, hits=hits[:kept], without_room=len(hits) - kept)
        self._sources = list_sources(hits[:kept])
        self._record = record_search(turn.id, scope, found, hits[:kept], self._sources)
        await self.session.note(SEARCHED, self._record)
        return turn

    async def _take_again(self) -> Turn:
        turn = await super()._take_again()
        self._found, self._record = None, {}
        self._sources = recorded_sources(self.session, turn) or ()
        return turn

    async def _send(self, turn: Turn) -> Turn:
        sent = await super()._send(turn)
        if sent.id != turn.id and self._record:
            # It was too long and made anew; what it rests on is the same.
            await self.session.note(SEARCHED, self._record | {"request": sent.id})
        return sent

    async def _work(self, turn: Turn) -> Answer:
        answer = replace(await super()._work(turn), found=self._found)
        return await with_citations(answer, self._sources, self._emit)
