"""What a state remembers, told a second way: by looking through all of its entries at once.

The fold keeps these things as it goes. Each law here says what one of them has to be, in terms of
the whole path, so that a field that is reset too early or too late is found out.
"""

from collections.abc import Sequence

from hypothesis import example, given, reject
from hypothesis import strategies as st
from tests.strategies import (
    WORLD,
    _request_fields,
    entries_after,
    opening,
    states_along,
    thorough,
)

from lamina.core.journal import TOOLS_JOIN, State
from lamina.core.values.entry import (
    Entry,
    ForgetEntry,
    MessageEntry,
    PinEntry,
    ReplyEntry,
    RequestEntry,
    SettingsEntry,
    TransformEntry,
)
from lamina.core.values.envelope import Envelope
from lamina.core.values.item import ItemId
from lamina.core.values.message import Message, Text
from lamina.core.values.patch import (
    CompactionApply,
    Patch,
    PatchOp,
    SystemPartSet,
    op_name,
    op_reason,
)
from lamina.core.values.settings import Settings
from lamina.core.values.usage import Usage
from lamina.errors import InvalidPatch


class Path:
    """A path that is written by hand or drawn, entry by entry."""

    def __init__(self) -> None:
        self.entries = opening()

    @property
    def states(self) -> list[State]:
        return states_along(self.entries)

    @property
    def state(self) -> State:
        return self.states[-1]

    def add(self, kind: type[Entry], **fields: object) -> None:
        number = len(self.entries)
        entry = kind(id=f"p{number}", parent=self.entries[-1].id, at=float(number), **fields)  # type: ignore[arg-type]
        self.entries.append(entry)

    def ask(self, text: str = "Q") -> None:
        message = Message(role="user", blocks=(Text(text),), id=f"q{len(self.entries)}")
        self.add(MessageEntry, message=message)

    def answer(self, text: str = "A") -> None:
        message = Message(role="assistant", blocks=(Text(text),), id=f"a{len(self.entries)}")
        self.add(MessageEntry, message=message)

    def request(self, retry: bool = False) -> None:
        self.add(RequestEntry, retry=retry, **_request_fields(WORLD[:1], WORLD[2:3], 4))

    def reply(self, **fields: object) -> None:
        latest = [entry for entry in self.entries if isinstance(entry, RequestEntry)][-1]
        self.add(ReplyEntry, **({"request": latest.id, "usage": Usage(), "stop": "end"} | fields))

    def patch(self, *ops: PatchOp, transformer: str = "test") -> None:
        self.add(TransformEntry, transformer=transformer, patch=Patch(ops=ops))

    def draw(self, draw: st.DrawFn, prefix: str, most: int) -> None:
        self.entries += draw(entries_after(self.state, prefix, most=most))


@st.composite
def paths_with_an_answered_request(draw: st.DrawFn) -> list[Entry]:
    """Whatever comes before a request, while it is open, and after its answer."""
    path = Path()
    path.draw(draw, "before", 4)
    path.request()
    try:
        path.draw(draw, "open", 4)
    except InvalidPatch:
        reject()  # what was to be changed for this request alone has gone since
    open_request = path.state.requests.open
    if open_request is not None:
        path.add(ReplyEntry, request=open_request.id, usage=Usage(), stop="end")
    path.draw(draw, "after", 4)
    return path.entries


def answered_at(entries: Sequence[Entry]) -> int | None:
    """Where the request stands that was answered last."""
    replies = [entry for entry in entries if isinstance(entry, ReplyEntry)]
    places = {entry.id: place for place, entry in enumerate(entries)}
    return places[replies[-1].request] if replies else None


def since_last_sent(entries: Sequence[Entry]) -> range:
    at = answered_at(entries)
    return range(0 if at is None else at + 1, len(entries))


def moved(op: PatchOp, before: Envelope, after: Envelope) -> bool:
    """Whether the op's own part is another than it was."""
    name = op_name(op)
    if name.startswith("system_"):
        # A part without a text is not there.
        return [p for p in before.system if p.text] != [p for p in after.system if p.text]
    if name.startswith("tools_"):
        return before.tool_list != after.tool_list
    # What was appended moved nothing.
    stays = after.cached.until(len(before.cached)) == before.cached
    return not stays or before.library != after.library


@st.composite
def reasons_while_a_request_is_open(draw: st.DrawFn) -> list[Entry]:
    """Some patches before a request, some while it is open, some after its answer."""
    path = Path()
    for number in range(draw(st.integers(1, 4))):
        path.ask(f"Q{number}")
    for part in ("before", "open", "after"):
        for number in range(draw(st.integers(0, 2))):
            text = draw(st.sampled_from(["one", "two"]))
            path.patch(SystemPartSet(name="persona", text=text, reason=f"{part} {number}"))
        if draw(st.integers(0, 2)) == 0:
            kept, after = draw(st.integers(1, 6)), draw(st.integers(0, 2))
            op = CompactionApply(
                first_kept=kept, after=min(after, kept - 1), summary="S", reason=f"{part} cut"
            )
            path.patch(op)
        if part == "before":
            path.request()
        if part == "open":
            path.answer()
            path.reply()
    return path.entries


def reopened() -> list[Entry]:
    """A reason that is given while a request is open is for the next request to explain."""
    path = Path()
    path.ask()
    path.request()
    path.patch(SystemPartSet(name="persona", text="Another.", reason="a hook changed its mind"))
    path.answer()
    path.reply()
    return path.entries


@thorough
@given(reasons_while_a_request_is_open() | paths_with_an_answered_request())
@example(reopened())
def test_reasons_given_since_the_last_request_that_was_sent_are_kept(
    entries: list[Entry],
) -> None:
    states = states_along(entries)
    reasons: list[str] = []
    movers: list[tuple[str, bool]] = []
    cuts: list[tuple[str, int]] = []
    for place in since_last_sent(entries):
        entry = entries[place]
        if not isinstance(entry, TransformEntry):
            continue
        before, after = states[place - 1].envelope, states[place].envelope
        for op in entry.patch.ops:
            reasons += filter(None, [op_reason(op)])
            if op.needs_reason and len(entry.patch.ops) == 1:
                movers.append((op_name(op), moved(op, before, after)))
            if isinstance(op, CompactionApply):
                gone = min(op.first_kept, len(before.cached)) - max(0, op.after)
                cuts += [(op.reason, gone)] if gone > 0 else []
    assert [reason.text for reason in states[-1].requests.reasons] == reasons
    found = [(reason.op, bool(reason.moved)) for reason in states[-1].requests.reasons]
    assert set(movers) <= set(found)
    assert states[-1].requests.cuts == tuple(cuts)


@thorough
@given(paths_with_an_answered_request())
def test_what_stood_when_the_last_request_was_sent_is_kept(entries: list[Entry]) -> None:
    states, at = states_along(entries), answered_at(entries)
    assert at is not None
    replies = [entry for entry in entries if isinstance(entry, ReplyEntry)]
    assert states[-1].requests.sent == entries[at]
    assert states[-1].requests.sent_standing == states[at].library.standing
    assert states[-1].requests.sent_usage == replies[-1].usage
    later = [entry for entry in entries[at:] if isinstance(entry, RequestEntry)]
    unanswered = [entry for entry in later if entry.id != replies[-1].request]
    open_after = [e for e in unanswered if entries.index(e) > entries.index(replies[-1])]
    assert states[-1].requests.open == (open_after[-1] if open_after else None)


@thorough
@given(paths_with_an_answered_request())
def test_what_is_known_of_an_item_is_what_requests_said_of_it(entries: list[Entry]) -> None:
    states = states_along(entries)
    added: list[ItemId] = []
    latest: dict[ItemId, tuple[int, bool, int]] = {}
    for place, entry in enumerate(entries):
        if isinstance(entry, RequestEntry):
            for item in entry.context.items:
                added += [] if item.item in added else [item.item]
                turns = states[place - 1].turn_count
                latest[item.item] = (item.priority, item.essential, turns)
    known = states[-1].library.known
    assert {item: (k.priority, k.essential, k.named) for item, k in known.items()} == latest
    assert [known[item].added for item in added] == list(range(len(added)))


@st.composite
def paths_of_a_person(draw: st.DrawFn) -> list[Entry]:
    """Two versions of one note that is pinned, forgotten, used, and left out."""
    path = Path()
    for step in draw(st.lists(st.integers(0, 5), max_size=8)):
        item = draw(st.sampled_from(WORLD[:2]))
        match step:
            case 0:
                path.add(PinEntry, item=item.id, version=item.version)
            case 1:
                path.add(PinEntry, item=item.id, pinned=False)
            case 2:
                path.add(ForgetEntry, item=item.id)
            case 3:
                path.add(SettingsEntry, settings=Settings(window=draw(st.integers(8, 9))))
            case _:
                left = [item] if draw(st.booleans()) else []
                path.add(RequestEntry, **_request_fields([] if left else [item], left, 4))
    return path.entries


@thorough
@given(paths_of_a_person() | paths_with_an_answered_request())
def test_what_is_pinned_forgotten_and_still_out_is_what_was_last_said(
    entries: list[Entry],
) -> None:
    pinned: dict[ItemId, str] = {}
    forgotten: set[ItemId] = set()
    still_out: set[ItemId] = set()
    window = Settings().window
    for entry in entries:
        match entry:
            case PinEntry(item=item, pinned=True, version=version):
                pinned[item] = version
                forgotten.discard(item)
            case PinEntry(item=item):
                pinned.pop(item, None)
            case ForgetEntry(item=item):
                forgotten.add(item)
            case SettingsEntry(settings=settings):
                still_out = still_out if settings.window == window else set()
                window = settings.window
            case RequestEntry(context=context):
                for used in context.items:
                    forgotten.discard(used.item)
                    if used.item in pinned:
                        pinned[used.item] = used.version
                still_out = {ItemId(each.what) for each in context.left_out}
            case _:
                pass
    state = states_along(entries)[-1]
    assert dict(state.library.pinned) == pinned
    assert state.library.forgotten == forgotten
    assert state.library.still_out == still_out


@thorough
@given(paths_with_an_answered_request())
def test_the_question_is_the_last_one_and_the_goal_the_first(entries: list[Entry]) -> None:
    states = states_along(entries)
    asked = [
        entry.message
        for entry in entries
        if isinstance(entry, MessageEntry) and entry.message.role == "user"
    ]
    texts = [message.text for message in asked]
    assert states[-1].turn_count == len(asked)
    assert states[-1].turn.question == (texts[-1] if texts else "")
    assert states[-1].goal == next((text for text in texts if text), "")
    later = [e for e in entries if isinstance(e, RequestEntry | MessageEntry)]
    questions = [
        entry for entry in later if isinstance(entry, RequestEntry) or entry.message in asked
    ]
    waiting = questions[-1] if questions else None
    assert states[-1].turn.asked == (
        waiting.message.id if isinstance(waiting, MessageEntry) else ""
    )


def test_a_request_that_was_refused_as_too_long_counts_until_the_next_question() -> None:
    path = Path()
    path.ask()
    path.request(retry=True)
    assert path.state.turn.retried
    path.answer()
    path.reply()
    path.request()
    assert path.state.turn.retried
    path.answer()
    path.reply()
    path.ask()
    assert not path.state.turn.retried


def test_only_joining_a_list_that_was_sent_counts_as_joining() -> None:
    path = Path()
    join = SystemPartSet(name="persona", text="x", reason="r")
    path.patch(join, transformer=TOOLS_JOIN)
    assert path.state.tool_joins == 0
    path.ask()
    path.request()
    path.patch(join, transformer=TOOLS_JOIN)
    assert path.state.tool_joins == 0
    path.answer()
    path.reply()
    path.patch(join, transformer=TOOLS_JOIN)
    path.patch(join)
    assert path.state.tool_joins == 1


def test_what_an_answer_is_called_is_that_of_the_latest() -> None:
    path = Path()
    for name in ("first", "second"):
        path.ask()
        path.request()
        path.answer()
        path.reply(provider_id=name)
        assert path.state.requests.sent_reply == name


def test_a_count_is_halved_towards_what_the_provider_says_if_that_can_be() -> None:
    path = Path()
    factors = []
    for tokens in (8, 4, 0, 400, 12, 1):
        path.ask()
        path.request()
        path.answer()
        path.reply(usage=Usage(input=tokens))
        factors.append(path.state.calibration["fake:m"])
    assert factors == [2.0, 1.5, 1.5, 1.5, 2.25, 2.25]
