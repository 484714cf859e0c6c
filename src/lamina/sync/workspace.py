"""A searchable folder of notes, without `await`."""

from pathlib import Path

from lamina.apps.wiring import opened_workspace
from lamina.apps.wiring.opened_workspace import Workspace as AsyncWorkspace
from lamina.sync.twin import Mirror, Resource, closes, opens, waits


class Workspace(Resource):
    """A searchable folder of notes; `lamina.Workspace` without `await`. Open one with
    `lamina.sync.open_workspace`; close it, or use it in `with`."""

    close = closes(AsyncWorkspace.close)
    folder: Mirror[Path] = Mirror(AsyncWorkspace.folder)
    name: Mirror[str] = Mirror(AsyncWorkspace.name)
    search = waits(AsyncWorkspace.search)
    index = waits(AsyncWorkspace.index)

    def __fspath__(self) -> str:
        return str(self.folder)


open_workspace = opens(opened_workspace.open_workspace, Workspace)
