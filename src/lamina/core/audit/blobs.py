"""Which blobs a session refers to: pictures, and results of tools that were kept whole."""

from collections.abc import Iterable

from lamina.core.audit.kept_results import whole_results
from lamina.core.audit.verification import pictures_of
from lamina.core.values.entry import Entry, OpeningEntry, SessionEntry


def blobs_of(entries: Iterable[Entry]) -> frozenset[str]:
    """The digests of all blobs that entries refer to."""
    all_entries = tuple(entries)
    included = (
        item
        for entry in all_entries
        if isinstance(entry, SessionEntry | OpeningEntry)
        for item in entry.included or ()
    )
    pictures = {picture.digest for item in included for picture in item.pictures}
    return frozenset(pictures | pictures_of(all_entries) | set(whole_results(all_entries)))
