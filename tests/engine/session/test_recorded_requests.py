"""Requests shown again: whatever was sent, what is kept and added is exactly what was recorded.

Issue 16, B.15: `CROWDED` was refused at 400 tokens although it could be sent."""

import anyio
from hypothesis import example, given
from tests.engine.session.conversations import Ask, Conversation, Player, conversations, modest
from tests.fakes.book import OTHER
from tests.rebuild import request_digests

from lamina.core.audit.rebuilt_request import RebuiltRequest, rebuild_request, wire_request
from lamina.core.audit.requests import RequestList, list_requests, recorded_digests
from lamina.core.journal import journal_of
from lamina.core.values.entry import RequestEntry

# Three results want the room of two notes that the turn brought.
CROWDED = Conversation(
    steps=(
        Ask(size=15, loops=(3,), result=60, answer=109),
        Ask(size=59, attach=(("a.md", 3),), target=OTHER.name, tool_text=15, loops=(3,),
            result=5, answer=111),
        Ask(size=118, attach=(("a.md", 3), ("e.md", 10), ("c.md", 3)), target=OTHER.name,
            tool_text=15, loops=(3,), result=60, answer=44),
    ),
    window=500,
    rules=True,
)  # fmt: skip


async def play(conversation: Conversation) -> tuple[Player, RequestList, list[RebuiltRequest]]:
    player = Player(conversation)
    await player.play()
    journal = journal_of(player.session.entries)
    requests = list_requests(journal)
    book = player.world.book
    return (
        player,
        requests,
        [rebuild_request(journal, requests, listed, book) for listed in requests.listed],
    )


@given(conversations)
@modest
@example(CROWDED)
def test_what_is_kept_and_added_is_what_was_recorded(conversation: Conversation) -> None:
    _, requests, shown = anyio.run(play, conversation)
    entries = {each.request.id: each.request for each in requests.listed}
    rebuilt: dict[str, list[str]] = {}
    for recorded in shown:
        request = recorded.listed.request
        assert recorded.problems == ()
        digests = request_digests(request, entries)
        assert recorded_digests(request, entries) == digests
        now = [change for change in recorded.changes if change.status != "removed"]
        assert tuple(each.segment.digest for each in now) == digests
        assert [each.index for each in now] == list(range(len(now)))
        rebuilt[request.id] = list(digests)
        # The other way round: what was kept and what went away is the request before.
        then = [change.segment.digest for change in recorded.changes if change.status != "added"]
        assert then == (rebuilt[request.base] if request.base else [])


@given(conversations)
@modest
def test_what_stays_is_what_the_ledger_found_when_it_was_sent(conversation: Conversation) -> None:
    _, _, shown = anyio.run(play, conversation)
    for recorded in shown:
        agreement = recorded.listed.request.context.agreement
        stays = [change.segment.tokens for change in recorded.changes if change.stays]
        assert (len(stays), sum(stays)) == (agreement.segments, agreement.tokens)
        # What stays stands in front of everything else.
        assert all(change.stays for change in recorded.changes[: len(stays)])


@given(conversations)
@modest
def test_the_wire_form_is_the_one_that_was_sent(conversation: Conversation) -> None:
    async def body() -> None:
        player, _, shown = await play(conversation)
        sent = {moment.turn.id: moment.turn.request() for moment in player.moments}
        blobs = {player.picture.digest: b"image"}
        book = player.world.book
        for recorded in shown:
            request = wire_request(recorded, book, blobs)
            encoded = book.wire(request.target).encode(request)
            if recorded.listed.request.id in sent:
                assert encoded == sent[recorded.listed.request.id]

    anyio.run(body)


@given(conversations)
@modest
def test_every_request_is_listed_once_and_answered_or_not(conversation: Conversation) -> None:
    player, requests, _ = anyio.run(play, conversation)
    made = [entry.id for entry in player.session.entries if isinstance(entry, RequestEntry)]
    assert [each.request.id for each in requests.listed] == made
    assert [each.number for each in requests.listed] == list(range(1, len(made) + 1))
    path = {entry.id for entry in player.session.path}
    for each in requests.listed:
        assert each.active is (each.request.id in path)
        assert (each.reply is None) is (each.answer is None)
    waiting = player.session.state.requests.open
    assert [each.request.id for each in requests.listed if each.open] == (
        [waiting.id] if waiting else []
    )
