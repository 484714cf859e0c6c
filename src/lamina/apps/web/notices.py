"""What a session says while it is made ready, where nobody sits at a terminal.

Law: nothing is fetched and nothing is trusted by opening a session; a person does both on pages of
their own.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from lamina.apps.views.models import path_of_model
from lamina.errors import ModelMissing

if TYPE_CHECKING:
    from lamina.apps.wiring.trust import FolderTrust


class KeptNotices:
    """Keeps what is said, for whoever opens the session."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)

    async def fetch_model(self, name: str) -> None:
        try:
            path_of_model(name)
        except ModelMissing as error:
            raise ModelMissing(
                f"the model {name} is not on this machine; fetch it under Models"
            ) from error

    async def agree(self, folder: "FolderTrust") -> bool:
        self.lines.append(folder.notice())
        return False

    def index_progress(
        self,
        action: str,  # noqa: ARG002
        things: str,  # noqa: ARG002
        *,
        at_most: bool = False,  # noqa: ARG002
    ) -> Callable[[int, int], None]:
        return lambda done, total: None  # noqa: ARG005
