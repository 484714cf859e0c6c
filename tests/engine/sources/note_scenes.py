"""Scenes in which notes are searched: questions about them, and planned turns."""

from collections.abc import Iterable, Mapping
from typing import Any

from tests.engine.runners.scenes import Scene
from tests.fakes.notes import NoteSourceFake, WordIndexFake
from tests.fakes.providers import Step

from lamina.adapters.tools.toolbox import Toolbox
from lamina.core.values.entry import CustomEntry
from lamina.engine.runners.note_search_tool import SearchTools
from lamina.engine.runners.qa import QaRunner
from lamina.engine.runners.runner import AgentRunner, PlanRunner
from lamina.engine.sources.note_search import WorkspaceSearch

NOTES = {
    "sea/harbour.md": (
        "# Berths\n\n## North\n\nThe north quay has nine berths for ferries.\n\n"
        "## South\n\nThe south quay is closed to ferries until spring.\n"
    ),
    "sea/ferry log.md": "The ferry Aurora sails at noon.\n",
    "land/trains.md": "Trains leave from platform four.\n",
}


class NoteScene(Scene):
    """A scene over notes; `kept` custom entries by their kind."""

    def __init__(
        self, *scripts: Iterable[Step], notes: Mapping[str, str] | None = None, **given: Any
    ) -> None:
        self.source = NoteSourceFake(NOTES if notes is None else notes)
        self.words = WordIndexFake()
        self.search = WorkspaceSearch(self.source, self.words)
        self.running: dict[str, Any] = given.pop("running", {})
        super().__init__(*scripts, **given)

    def noted(self, kind: str) -> list[Any]:
        """What was written down of a kind, on all branches."""
        entries = self.runner.session.entries
        return [
            entry.data for entry in entries if isinstance(entry, CustomEntry) and entry.kind == kind
        ]

    @property
    def asked(self) -> str:
        """The last user message of the last request, as the model got it."""
        messages = self.provider.bodies[-1]["messages"]
        return _text([message for message in messages if message["role"] == "user"][-1]["content"])


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(each["text"] for each in content)


class QaScene(NoteScene):
    def __init__(self, *scripts: Iterable[Step], **given: Any) -> None:
        super().__init__(*scripts, chat=True, **given)

    async def open(self, session: str = "talk") -> None:
        await super().open(session)
        self._runner = QaRunner(self.runner.session, self.providers, self.search, **self.running)


class PlanScene(NoteScene):
    """With `searches=False` there are only the tools of the host."""

    def __init__(self, *scripts: Iterable[Step], searches: bool = True, **given: Any) -> None:
        self._searches = searches
        super().__init__(*scripts, **given)

    async def open(self, session: str = "talk") -> None:
        await super().open(session)
        self._runner = PlanRunner(
            self.runner.session,
            self.providers,
            self.host,
            search=self.search if self._searches else None,
            approver=self.approver,
            **self.running,
        )


class AgentNoteScene(NoteScene):
    """An agent that can search the notes besides what its host has."""

    async def open(self, session: str = "talk") -> None:
        await super().open(session)
        self._runner = AgentRunner(
            self.runner.session,
            self.providers,
            Toolbox(self.host, SearchTools(self.search, now=self.clock.now)),
            approver=self.approver,
        )
        await self._runner.__aenter__()
