"""The outlines of the conversations that were looked at last.

Law: an outline belongs to one journal; another session under the same name gets another.
"""

from collections import OrderedDict

import anyio
import anyio.to_thread

from lamina.apps.web.conversation.outline import Outline
from lamina.core.journal import Journal

KEPT_OUTLINES = 16
# Fewer new entries than this are read at once; more, beside the loop.
_FEW = 2_000


class Outlines:
    """Outlines by workspace and session."""

    def __init__(self) -> None:
        self._outlines: OrderedDict[tuple[str, str], tuple[float, Outline]] = OrderedDict()
        self._locks: dict[tuple[str, str], anyio.Lock] = {}

    async def outline(self, key: tuple[str, str], journal: Journal) -> Outline:
        """The outline of a journal as it is now."""
        async with self._locks.setdefault(key, anyio.Lock()):
            began = journal.header.at
            known = self._outlines.get(key)
            outline = known[1] if known is not None and known[0] == began else Outline()
            if outline.size > len(journal.entries):
                outline = Outline()
            if len(journal.entries) - outline.size < _FEW:
                outline.follow(journal)
            else:
                await anyio.to_thread.run_sync(outline.follow, journal)
            self._outlines[key] = (began, outline)
            self._outlines.move_to_end(key)
            while len(self._outlines) > KEPT_OUTLINES:
                self._outlines.popitem(last=False)
            return outline

    def forget(self, key: tuple[str, str]) -> None:
        self._outlines.pop(key, None)
