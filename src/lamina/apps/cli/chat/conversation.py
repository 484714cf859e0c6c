"""What the chat and its commands share: one session, one person, and what is sent with every
message."""

from abc import ABC, abstractmethod
from pathlib import Path

from lamina.apps.cli.screen import Screen
from lamina.apps.views.session_items import ItemOverview
from lamina.core.ports import WorkspaceSource
from lamina.core.values.entry import MessageEntry
from lamina.engine.runners.runner import ChatRunner


class Conversation(ABC):
    """`attached` maps paths to whether they are essential, until they are detached."""

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
        # What was detached, and is not sent again with an edited question.
        self.detached: set[str] = set()
        # The note that the person has open; its pictures are sent too.
        self.active = active
        self.members = ItemOverview(runner)
        # The text offered in the next line, for editing.
        self.offered = ""
        self.leaving = False
        self.exit_code = 0

    def fail(self, problem: str) -> None:
        """Print what went wrong; without a person watching, also set the exit code."""
        self.screen.fail(problem)
        if not self.screen.live:
            self.exit_code = 1

    @abstractmethod
    async def ask_instead(self, question: MessageEntry, text: str) -> None:
        """Replace an earlier question on a new branch."""

    @abstractmethod
    async def answer_again(self, answer: str | None, target: str | None) -> None:
        """Regenerate an answer, by default the last one."""

    @abstractmethod
    async def go_on(self) -> None:
        """Continue an interrupted turn."""
