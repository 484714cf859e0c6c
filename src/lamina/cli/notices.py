"""What is shown on a console while a session is made ready: models that are fetched, and how far
indexing is."""

from rich.console import Console

from lamina.cli.index_progress import IndexProgress
from lamina.cli.models import ensure_model


class ConsoleNotices:
    def __init__(self, console: Console) -> None:
        self._console = console

    def say(self, line: str) -> None:
        self._console.print(line, soft_wrap=True, markup=False)

    async def fetch_model(self, name: str) -> None:
        await ensure_model(name, self._console)

    def index_progress(self, action: str, things: str) -> IndexProgress:
        return IndexProgress(self._console, action, things)
