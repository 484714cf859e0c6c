"""Journals of sessions that are only viewed, and the outlines of their conversations, cached
while they do not change.

Laws: a cached journal is valid only while the store's own stamp is unchanged. An outline belongs
to one journal; another session with the same name gets another.
"""

from collections import OrderedDict

import anyio
import anyio.to_thread
from msgspec import Struct

from lamina.apps.views.stored_sessions import StoredSession
from lamina.apps.web.conversation.message_outline import Outline
from lamina.core.journal import Journal
from lamina.core.ports import ViewableStore

# A long session uses as much memory as its file.
KEPT_VIEWS = 8


class _View(Struct, frozen=True):
    stamp: str
    journal: Journal


class JournalViews:
    """The journals viewed last."""

    def __init__(self) -> None:
        self._views: OrderedDict[str, _View] = OrderedDict()

    async def read(self, stored: StoredSession) -> Journal:
        """
        Raises:
            UnknownSession: there is no such session.
        """
        store = stored.store
        if not isinstance(store, ViewableStore):
            return await stored.read()
        stamp = await store.stamp(stored.session)
        view = self._views.get(stored.place)
        if view is None or view.stamp != stamp:
            view = _View(stamp, await store.view(stored.session))
            self._views[stored.place] = view
            while len(self._views) > KEPT_VIEWS:
                self._views.popitem(last=False)
        self._views.move_to_end(stored.place)
        return view.journal

    def close(self) -> None:
        self._views.clear()


KEPT_OUTLINES = 16
# Fewer new entries than this are read at once; more are read off the event loop.
_FEW = 2_000


class Outlines:
    """Outlines by workspace and session."""

    def __init__(self) -> None:
        self._outlines: OrderedDict[tuple[str, str], tuple[float, Outline]] = OrderedDict()
        self._locks: dict[tuple[str, str], anyio.Lock] = {}

    async def outline(self, key: tuple[str, str], journal: Journal) -> Outline:
        """Return the current outline of a journal."""
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
