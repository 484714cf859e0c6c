"""Going on beside an earlier message, which stays with all that came of it.

Law: what a person wants of the session now (settings, pins, members, messages that wait) holds on
the new branch, too; what was said and done on the other one does not.
"""

from lamina.core.assembly.page import Page
from lamina.core.journal import State
from lamina.core.values.entry import (
    AdoptEntry,
    Entry,
    ForgetEntry,
    InboxEntry,
    IncludeEntry,
    LeafEntry,
    ModelEntry,
    PinEntry,
    ReplyEntry,
    RequestEntry,
    SettingsEntry,
)
from lamina.engine.record.branch import carry_over
from lamina.engine.record.layouts import Layouts
from lamina.engine.record.record import Record


def page_at(record: Record, layouts: Layouts, leaf: str) -> Page:
    """A page at `leaf`, an entry of any branch, where something is asked again; the session comes
    back to where it is unless that gets an answer."""
    page = record.page(record.state_at(leaf))
    now = record.state
    came_from = now.requests.left or now.leaf
    page.write(LeafEntry, warm_at=last_use(record, page.state), left=came_from)
    on_path = {entry.id for entry in record.path(leaf)}
    left = [entry for entry in record.path(now.leaf) if entry.id not in on_path]
    wishes = [entry for entry in left if _is_wish(entry, page.state, now)]
    target = layouts.book.find(now.settings.target)
    assembler = layouts.assembler_for(target, now.settings.promotion)
    carry_over(page, wishes, now.library.items, assembler)
    return page


def _is_wish(entry: Entry, then: State, now: State) -> bool:
    """Whether an entry of the branch that is left says what a person wants of the session."""
    match entry:
        case SettingsEntry() | ModelEntry() | IncludeEntry() | AdoptEntry() | PinEntry():
            return True
        case ForgetEntry(item=item):
            return item in then.library.standing
        case InboxEntry(taken=""):
            return entry.id in now.inbox
        case _:
            return False


def last_use(record: Record, state: State) -> float:
    """When the last request on the path of `state` was last sent as the beginning of another one;
    0 if it was not, since. A cache that lives for a while lives on by that."""
    sent = state.requests.sent
    if sent is None:
        return 0.0
    used_at = 0.0
    # How much of it each request after it began with, for those that began with any.
    shared = {sent.id: sent.cached_run}
    requests: dict[str, RequestEntry] = {}
    for entry in record.entries.values():
        if isinstance(entry, RequestEntry) and entry.base in shared and entry.id != sent.id:
            shared[entry.id] = min(shared[entry.base], entry.kept)
            requests[entry.id] = entry
        elif isinstance(entry, ReplyEntry):
            request = requests.get(entry.request)
            whole = request is not None and shared[request.id] >= sent.cached_run
            if request is not None and whole and request.target == sent.target:
                used_at = max(used_at, request.at)
    return used_at
