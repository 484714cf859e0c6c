"""Journals of sessions that are only looked at, kept while they do not change.

Law: what is kept is believed only as long as the store's own stamp says so.
"""

from collections import OrderedDict

from msgspec import Struct

from lamina.apps.views.stored_session import StoredSession
from lamina.core.journal import Journal
from lamina.core.ports import ViewableStore

# A long session takes as much memory as its file.
KEPT_VIEWS = 8


class _View(Struct, frozen=True):
    stamp: str
    journal: Journal


class JournalViews:
    """The last journals that were looked at."""

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
