"""What a console shows while a session is prepared: model downloads, indexing progress, and what a
folder brings."""

from typing import TYPE_CHECKING

from rich.console import Console

from lamina.apps.cli.index_progress import IndexProgress
from lamina.apps.cli.model_commands import ensure_model
from lamina.apps.cli.terminal_text import print_note

if TYPE_CHECKING:
    from lamina.apps.wiring.trust_lookup import FolderTrust


class ConsoleNotices:
    """Notices on a console. With `asks`, a person at the terminal can be asked."""

    def __init__(self, console: Console, *, asks: bool = False) -> None:
        self._console = console
        self._asks = asks

    def say(self, line: str) -> None:
        print_note(self._console, line)

    async def fetch_model(self, name: str) -> None:
        await ensure_model(name, self._console)

    async def agree(self, folder: "FolderTrust") -> bool:
        from lamina.apps.cli.trust_command import agree_to_folder

        return self._asks and await agree_to_folder(self._console, folder)

    def index_progress(self, action: str, things: str, *, at_most: bool = False) -> IndexProgress:
        return IndexProgress(self._console, action, things, at_most=at_most)
