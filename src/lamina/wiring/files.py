"""The files of a workspace as tools for a model."""

from typing import Any

from lamina.tools.functions import FunctionTool
from lamina.workspace.actions import Actions
from lamina.workspace.folder import FolderWorkspace

FILES_PART = "files"
# Looking changes nothing, so nobody is asked.
_LOOKING = ("ls", "read", "grep")
_CHANGING = ("write", "edit", "touch", "mv", "rm", "undo")


def file_tools(workspace: FolderWorkspace) -> list[FunctionTool[..., Any]]:
    """The tools: looking is free, changing wants a person's word."""
    actions = Actions(workspace.root, on_change=workspace.mark)
    looking = [FunctionTool(getattr(actions, name), permission="free") for name in _LOOKING]
    return looking + [FunctionTool(getattr(actions, name)) for name in _CHANGING]
