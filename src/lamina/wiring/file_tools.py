"""The files of a workspace as tools for a model."""

import functools
from collections.abc import Callable
from typing import Any

from lamina.errors import UsageError
from lamina.session.session import Session
from lamina.text.secrets import find_secrets, redact
from lamina.tools.functions import FunctionTool
from lamina.workspace.file_actions.actions import FileActions
from lamina.workspace.folder import FolderWorkspace

FILES_PART = "files"
# Looking changes nothing, so nobody is asked.
_LOOKING = ("ls", "read", "grep")
_CHANGING = ("write", "edit", "touch", "mv", "rm", "undo")


# What stands where a secret was left out.
_MARK = "[redacted: "


def file_tools(workspace: FolderWorkspace, session: Session) -> list[FunctionTool[..., Any]]:
    """The tools: looking is free, changing needs approval. Secrets in files do not reach the
    model, as the session's settings say, and what it has not seen it cannot write over."""
    actions = FileActions(workspace.root, on_change=workspace.mark)

    def screened(function: Callable[..., str]) -> Callable[..., str]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> str:
            text = function(*args, **kwargs)
            if session.settings.secrets != "redact":
                return text
            return redact(text, find_secrets(text))

        return run

    def guarded(function: Callable[..., str]) -> Callable[..., str]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> str:
            if any(isinstance(arg, str) and _MARK in arg for arg in (*args, *kwargs.values())):
                raise UsageError(
                    f"the text holds a mark ({_MARK}...]) where a secret was left out: change the "
                    f"parts around it with edit, so that the secret stays"
                )
            return function(*args, **kwargs)

        return run

    looking = [FunctionTool(screened(getattr(actions, n)), permission="free") for n in _LOOKING]
    return looking + [FunctionTool(guarded(getattr(actions, name))) for name in _CHANGING]
