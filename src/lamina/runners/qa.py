"""Questions about notes: a search, then one answer that rests on what it found.

Laws: the question stands once. What was found is one block that explains itself, uncached and gone
with the next turn. The journal keeps the model's own words and where they came from; the answer
that a person gets has its citations by first mention, each meaning one part of one note.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from lamina.errors import UsageError, WindowExceeded
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
from lamina.runners.mode import RunContext
from lamina.runners.preview import Preview
from lamina.runners.text_room import TextRoom, prepare_smaller, say_without_room
from lamina.session.turn import Turn
from lamina.sources.attachments import Attachable
from lamina.sources.candidates import recent_questions
from lamina.sources.note_search import WorkspaceSearch
from lamina.sources.secrets import SecretScreen
from lamina.values.note import Hit, NoteSearchResult, Scope


class QaMode:
    """Searches the notes for every question and asks once."""

    def __init__(self, run: RunContext, search: WorkspaceSearch, scope: Scope, top: int) -> None:
        if top < 1:
            raise UsageError(f"a search takes at least one passage, not {top}")
        self._run = run
        self._search = search
        self.scope = scope
        self._top = top
        self._screen = SecretScreen()
        self._found: NoteSearchResult | None = None
        self._sources: tuple[CitedSource, ...] = ()

    async def begin(
        self,
        text: str,
        attach: Iterable[Attachable],
        target: str | None,
        scope: Scope | None = None,
    ) -> Turn:
        """The request for a question; `scope` is for this one."""
        run, where = self._run, self.scope if scope is None else scope
        self._found, self._sources = None, ()
        state = run.session.state
        result = await self._search.search(
            text, scope=where, top=self._top, recent=recent_questions(state)
        )
        hits, warnings = screen_hits(self._screen, result.hits, state.settings.secrets)
        result = replace(result, hits=hits)
        for warning in (*result.warnings, *warnings):
            await run.warn(warning)
        attachments = await run.session.turns.read_attachments(with_composer(text, attach))
        room = TextRoom(run.session, target, text, attachments)

        async def prepare(some: tuple[Hit, ...]) -> Turn:
            # No block at all where what was found has no room: it must not say that nothing was.
            texts = (render_hits(some),) if some or not hits else ()
            return await run.prepare(text, (), target, tool_texts=texts, attachments=attachments)

        try:
            turn, count = await prepare_smaller(prepare, room.take_hits(hits))
        except WindowExceeded:
            if hits:
                raise
            # To say that nothing was found may be what is too much.
            turn, count = await run.prepare(text, (), target, attachments=attachments), 0
        if count < len(hits):
            await run.warn(say_without_room(len(hits), count))
        shown = hits[:count]
        self._found = replace(result, hits=shown, without_room=len(hits) - count)
        self._sources = list_sources(shown)
        run.notes[SEARCHED] = record_search(turn.id, where, result, shown, self._sources)
        await run.note_request(turn.id)
        return turn

    async def resume(self) -> Turn:
        turn = await self._run.open_turn()
        self._found = None
        self._sources = recorded_sources(self._run.session, turn) or ()
        return turn

    async def after(self, turn: Turn) -> Answer:
        answer = self._run.end("called" if turn.pending else "answered", turn)
        return await with_citations(
            replace(answer, found=self._found), self._sources, self._run.emit
        )

    async def preview(self, text: str, attach: Iterable[Attachable], target: str | None) -> Preview:
        turn = await self.begin(text, attach, target)
        return self._run.preview(turn, self._found)
