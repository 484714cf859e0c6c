"""Finds the secrets in whole files, for any part of a file that is shown.

Law: the secrets in a part are those found in the whole file. A file is searched once per version.
"""

from threading import Lock

from lamina.core.text.secrets import SecretFinding, cut_excerpt, find_secrets
from lamina.core.values.item import Excerpt, content_version

MAX_FILES = 256


class FileSecrets:
    """A cache of the secrets in the most recently cut files. Thread-safe."""

    def __init__(self) -> None:
        self._findings: dict[str, tuple[SecretFinding, ...]] = {}
        self._lock = Lock()

    def cut(self, text: str, start: int, end: int) -> Excerpt:
        """Return part of a text, from one offset to another."""
        return cut_excerpt(text, self._find(text), start, end)

    def cut_lines(self, text: str, first: int, last: int) -> Excerpt:
        """Return lines `first` to `last` of a text, counted from 1."""
        start, end = line_span(text, first, last)
        return self.cut(text, start, end)

    def _find(self, text: str) -> tuple[SecretFinding, ...]:
        version = content_version(text)
        with self._lock:
            findings = self._findings.pop(version, None)
            if findings is None:
                findings = find_secrets(text)
            # The most recently used is at the end.
            self._findings[version] = findings
            if len(self._findings) > MAX_FILES:
                del self._findings[next(iter(self._findings))]
            return findings


def line_span(text: str, first: int, last: int) -> tuple[int, int]:
    """Return the offsets where lines begin and end in a text; missing lines are at its end."""
    start = 0
    for _ in range(first - 1):
        start = text.find("\n", start) + 1
        if not start:
            return len(text), len(text)
    end = start - 1
    for _ in range(last - first + 1):
        end = text.find("\n", end + 1)
        if end < 0:
            return start, len(text)
    return start, end
