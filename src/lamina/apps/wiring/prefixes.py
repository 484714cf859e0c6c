"""Where the sessions of this machine remember the beginnings of what they sent."""

from lamina.adapters.downloads.folders import cache_folder
from lamina.core.ports import JournalStore, SentPrefixes

PREFIX_FILE = "prefixes.sqlite"


def open_prefixes(store: JournalStore) -> SentPrefixes:
    """A file in the cache folder; with sessions that are in memory only, it is there as well."""
    own: SentPrefixes | None = getattr(store, "sent_prefixes", None)
    if own is not None:
        return own
    from lamina.adapters.stores.sent_prefixes import SentPrefixFile

    return SentPrefixFile(cache_folder() / PREFIX_FILE)
