"""Starts branches: a session continues after a request without an answer, or beside an earlier
message.

Laws: a person's current choices (settings, pins, members, waiting messages) also apply on the new
branch; the conversation of the other branch stays there. Only an answered question replaces an
answered one: a repeated question without an answer leaves the session at its previous position.
"""

from collections.abc import Sequence

from lamina.core.assembly.boundary import BOUNDARY, consolidate
from lamina.core.assembly.request_draft import Page
from lamina.core.journal import State, awaits_results, laid_items, lost_results
from lamina.core.layers import Assembler, ItemVersions
from lamina.core.values.entry import (
    AdoptEntry,
    CustomEntry,
    Entry,
    ForgetEntry,
    InboxEntry,
    IncludeEntry,
    InfoEntry,
    ItemEntry,
    LabelEntry,
    LeafEntry,
    LeaveEntry,
    MessageEntry,
    ModelEntry,
    PinEntry,
    ReplyEntry,
    RequestEntry,
    SettingsEntry,
    TransformEntry,
)
from lamina.core.values.item import ItemId
from lamina.core.values.patch import op_reason
from lamina.engine.record.layouts import Layouts
from lamina.engine.record.record import Record
from lamina.errors import TurnStateError

# Fields that depend on the entry's place in the tree, not on its content.
_PLACE = ("id", "parent", "at")


def page_for_question(record: Record, layouts: Layouts) -> Page:
    """Return the page on which a new message continues. A request that was never answered is left
    as a branch of its own, and the new message becomes its sibling; the results it carried stay.

    Raises:
        TurnStateError: calls wait for their results, and can be resumed.
    """
    state = record.state
    request = state.requests.open
    if request is not None:
        before = record.state_at(record.before(request))
        leaf = request.parent if awaits_results(before) else None
        page = page_beside(record, layouts, request, leaf)
        if page.state.turn.start is not None:
            page.write(LeaveEntry)
        return page
    if awaits_results(state) and not state.turn.called_by:
        # The request that could have continued with these results is lost and cannot be resumed.
        page = record.page()
        stand_in = lost_results(state, page.next_id(), page.at)
        page.write(MessageEntry, message=stand_in.message)
        page.write(LeaveEntry)
        return page
    if awaits_results(state):
        calls = ", ".join(call.name for call in state.envelope.cached[-1].calls)
        raise TurnStateError(f"the last answer calls {calls}: give their results to turn.resume()")
    if (question := unsent_question(state)) is not None:
        # The question's request was lost in a power failure; it was never sent, and stays as a
        # branch.
        parent = record.entries[question].parent
        assert parent is not None
        since = record.since(question)
        return _page_at(parent, record, layouts, since, state.settings.target)
    return record.page()


def page_back(record: Record, layouts: Layouts) -> Page:
    """Return a page at the session's position before it repeated a question without getting an
    answer, with everything pinned, set or changed since then.
    """
    state, left = record.state, record.state.requests.left
    asked = state.requests.open.id if state.requests.open else unsent_question(state)
    since = record.since(asked) if asked else _brought_here(record)
    page = _page_at(left, record, layouts, since, state.settings.target)
    page.write(LeafEntry)
    return page


def _brought_here(record: Record) -> list[Entry]:
    """Return the choices that a person made here, if a question was to be asked again and was
    not.
    """
    left = record.state.requests.left
    path = record.path(record.state.leaf)
    came = max(i for i, e in enumerate(path) if isinstance(e, LeafEntry) and e.left == left)
    waiting = {message.text for message in record.state_at(left).inbox.values()}
    # Messages that wait here were carried over from there, and the engine's work was for this
    # branch.
    return [
        entry
        for entry in path[came + 1 :]
        if not (isinstance(entry, InboxEntry) and entry.text in waiting)
        and not (isinstance(entry, TransformEntry) and entry.transformer.startswith("lamina."))
    ]


def page_beside(
    record: Record, layouts: Layouts, request: RequestEntry, leaf: str | None = None
) -> Page:
    """Return a page in front of a request that was never answered, or at `leaf`, with everything
    pinned, set or changed since then.
    """
    since = record.since(request.id)
    return _page_at(leaf or record.before(request), record, layouts, since, request.target)


def _page_at(
    leaf: str, record: Record, layouts: Layouts, since: Sequence[Entry], target: str
) -> Page:
    """Return a page at `leaf`, with everything pinned, set or changed by the entries `since`."""
    state = record.state
    page = record.page(record.state_at(leaf))
    assembler = layouts.assembler_for(layouts.book.find(target), state.settings.promotion)
    carry_over(page, since, state.library.items, assembler)
    return page


def unsent_question(state: State) -> str | None:
    """Return the id of a question at the end that has no request; None if there is no such
    question.
    """
    cached = state.envelope.cached
    if state.turn.start is None or state.turn.start != len(cached) - 1:
        return None
    question = cached[-1]
    return question.id if question.role == "user" and question.id == state.turn.asked else None


def carry_over(
    page: Page, since: Sequence[Entry], items: ItemVersions, assembler: Assembler
) -> None:
    """Write the entries `since` the unanswered request again, for the branch of `page`."""
    for entry in since:
        if isinstance(entry, LabelEntry | InfoEntry | LeafEntry | CustomEntry):
            # These entries concern the tree, or are in no context: they apply on any branch.
            continue
        if isinstance(entry, TransformEntry) and entry.transformer == BOUNDARY:
            # Its layout was for the other branch; this one gets a layout of its own.
            reason = "; ".join(filter(None, map(op_reason, entry.patch.ops)))
            consolidate(page, assembler, reason)
            continue
        for key in _items_of(entry):
            if key not in page.state.library.items and key in items:
                page.write(ItemEntry, item=items[key])
        fields = {name: getattr(entry, name) for name in entry.__struct_fields__}
        page.write(type(entry), **{k: v for k, v in fields.items() if k not in _PLACE})
    # The next request may be left as a branch in turn; these entries are not.
    page.began_at = page.state.leaf


def _items_of(entry: Entry) -> list[tuple[ItemId, str]]:
    """Return the item versions that an entry refers to and whose contents it needs."""
    match entry:
        case PinEntry(item=item, version=version, pinned=True):
            return [(item, version)]
        case TransformEntry(patch=patch):
            return [key for op in patch.ops for key in laid_items(op)]
        case _:
            return []


def page_at(record: Record, layouts: Layouts, leaf: str) -> Page:
    """Return a page at `leaf`, an entry of any branch, where a question is asked again; without an
    answer, the session returns to its current position.
    """
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
    """Return whether an entry of the abandoned branch is a person's choice about the session."""
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
    """Return the time when the last request on the path of `state` was last sent as a prefix of
    another request; 0 if that never happened. Each use renews a cache with a limited lifetime.
    """
    sent = state.requests.sent
    if sent is None:
        return 0.0
    used_at = 0.0
    # The length of the prefix that each later request shared with it, if any.
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
