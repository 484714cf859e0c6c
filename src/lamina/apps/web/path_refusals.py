"""Paths that are not opened, as answers over HTTP.

Law: what is not there and what may not be looked at are told alike where nothing else may be
known; what changed meanwhile is a conflict.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from lamina.adapters.files.paths import FileChanged, PathRefused, PathTaken
from lamina.apps.web.refusals import Refusal


@contextmanager
def refuse_paths(what: str) -> Iterator[None]:
    """Turns refusals of the one door into answers: `what` is what was asked for.

    Raises:
        Refusal: the path is not opened.
    """
    try:
        yield
    except FileChanged as refusal:
        raise Refusal(
            409, "file_changed", f"{refusal.detail}; read it again before you write it"
        ) from None
    except PathTaken as refusal:
        raise Refusal(409, "path_taken", refusal.detail) from None
    except PathRefused as refusal:
        if refusal.reason == "missing":
            code = f"unknown_{what.replace(' ', '_')}"
            raise Refusal(404, code, refusal.detail) from None
        raise Refusal(400, "path_refused", refusal.detail) from None
