"""A tool's name for the model: `server__tool`, in characters that every provider accepts.

Law: two different tools never get the same name, and a tool's name depends only on its server and
itself, so that it stays when others come and go.
"""

import re

from lamina.core.codec import digest_texts

MOST_LETTERS = 64
_CLEAN = re.compile(r"[A-Za-z0-9_-]+")
_DIGEST_LETTERS = 16


def is_exposable(name: str) -> bool:
    """Whether every provider accepts this as the name of a tool."""
    return len(name) <= MOST_LETTERS and _CLEAN.fullmatch(name) is not None


def exposed_name(server: str, tool: str) -> str:
    """The name for the model. A clean pair can be read back: its first `__` ends the server. Any
    other gets a digest and has no `__`, so that it cannot be mistaken for a clean one."""
    pair = f"{server}__{tool}"
    if _is_clean(server, tool) and len(pair) <= MOST_LETTERS:
        return pair
    words = re.sub(r"[^A-Za-z0-9-]+", "_", f"{server}_{tool}").strip("_")
    head = words[: MOST_LETTERS - _DIGEST_LETTERS - 1].rstrip("_") or "tool"
    return f"{head}_{digest_texts((server, tool))[:_DIGEST_LETTERS]}"


def _is_clean(server: str, tool: str) -> bool:
    letters = _CLEAN.fullmatch(server) and _CLEAN.fullmatch(tool)
    # Otherwise `a_` + `b` and `a` + `_b` would read the same.
    return bool(letters) and not ("__" in server or server.endswith("_") or tool.startswith("_"))
