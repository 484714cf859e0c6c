"""What the chat and its commands share: one session, one person, and what goes along with every
message."""

from abc import ABC, abstractmethod
from pathlib import Path

from lamina.apps.cli.screen import Screen
from lamina.apps.views.session_items import ItemOverview
from lamina.core.ports import WorkspaceSource
from lamina.core.values.entry import MessageEntry
from lamina.engine.runners.runner import ChatRunner


class Conversation(ABC):
    """`attached` stays attached until it is taken away: paths, and whether they are essential."""

    def __init__(
        self,
        runner: ChatRunner,
        screen: Screen,
        *,
        workspace: WorkspaceSource,
        root: Path,
        attached: dict[str, bool] | None = None,
        active: str | None = None,
    ) -> None:
        self.runner = runner
        self.session = runner.session
        self.screen = screen
        self.workspace = workspace
        self.root = root
        self.attached = attached if attached is not None else {}
        # What was taken away, and does not go along again with a question that is edited.
        self.detached: set[str] = set()
        # The note that the person has open: its pictures go along.
        self.active = active
        self.members = ItemOverview(runner)
        # What stands in the next line already, to be edited.
        self.offered = ""
        self.leaving = False
        self.exit_code = 0

    def fail(self, problem: str) -> None:
        """Says what went wrong; where nobody watches, the exit code says so as well."""
        self.screen.fail(problem)
        if not self.screen.live:
            self.exit_code = 1

    @abstractmethod
    async def ask_instead(self, question: MessageEntry, text: str) -> None:
        """Asks a question otherwise, in its place."""

    @abstractmethod
    async def answer_again(self, answer: str | None, target: str | None) -> None:
        """Asks for an answer again, the last one if none is named."""

    @abstractmethod
    async def go_on(self) -> None:
        """Goes on with a turn that was left in the middle."""
