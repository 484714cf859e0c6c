"""The files of a workspace as tools for a model."""

from typing import Any

from lamina.adapters.tools.functions import FunctionTool
from lamina.adapters.workspace.file_actions.actions import FileActions
from lamina.adapters.workspace.file_secrets import FileSecrets
from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.engine.session.session import Session

FILES_PART = "files"
# Reading changes nothing, so it needs no approval.
_LOOKING = {"ls": "ls", "read": "read", "grep": "grep", "tree": "getFileTree"}
_CHANGING = ("write", "edit", "touch", "mv", "rm", "undo")
# The parts of a session that was opened with these tools.
FILE_TOOLS = (*_LOOKING.values(), *_CHANGING)


def file_tools(workspace: FolderWorkspace, session: Session) -> list[FunctionTool[..., Any]]:
    """The file tools: reading is free, changes need approval. Secrets in files do not reach the
    model, depending on the session's settings, and it cannot overwrite what it has not seen."""
    file_secrets = FileSecrets()

    def hide(text: str) -> str:
        if session.settings.secrets != "redact":
            return text
        return file_secrets.cut(text, 0, len(text)).safe or text

    actions = FileActions(workspace.root, on_change=workspace.mark, hide=hide)
    looking = [
        FunctionTool(getattr(actions, method), name=name, permission="free")
        for method, name in _LOOKING.items()
    ]
    # The tools themselves know what may be written where.
    return looking + [FunctionTool(getattr(actions, name), writes_marks=True) for name in _CHANGING]
