"""The laws of the design, over conversations that could be."""

from collections import Counter
from collections.abc import Iterator
from itertools import takewhile

from hypothesis import example, given
from hypothesis import strategies as st
from tests.engine.session.conversations import (
    TONE,
    Ask,
    Conversation,
    Edit,
    Moment,
    attached,
    conversations,
    modest,
    play,
    promotions,
    standing_blocks,
)
from tests.fakes.book import FakeCounter
from tests.fakes.sessions import digests, run
from tests.rebuild import rebuild_prompt, request_digests

from lamina.core.journal import path_to
from lamina.core.layers import Assembler, layout_for
from lamina.core.values.entry import RequestEntry
from lamina.core.values.message import ToolCall, ToolResult


@modest
@given(conversations)
def test_every_request_can_be_rebuilt_from_the_journal_alone(given: Conversation) -> None:
    async def body() -> None:
        player, moments = await play(given)
        loaded = list((await player.world.store.read(player.session.id)).entries.values())
        entries = {entry.id: entry for entry in loaded}
        requests = {id: entry for id, entry in entries.items() if isinstance(entry, RequestEntry)}
        assert len(requests) == len(moments)
        for moment in moments:
            path = path_to(moment.turn.id, entries)
            target = player.world.book.find(moment.turn.context.target)
            layout = layout_for(requests[moment.turn.id].promotion, target.wire, target.model)
            fresh = Assembler(FakeCounter().count, layout)
            rebuilt = tuple(segment.digest for segment in rebuild_prompt(path, fresh))
            assert rebuilt == tuple(digests(moment.turn))
            assert request_digests(requests[moment.turn.id], requests) == rebuilt

    run(body())


@modest
@given(conversations)
def test_a_session_opened_again_is_the_session_that_was_left(given: Conversation) -> None:
    async def body() -> None:
        player, _ = await play(given)
        again = await player.world.open(player.session.id)
        assert again.state == player.session.state
        assert again.entries == player.session.entries

    run(body())


@modest
@given(conversations)
def test_what_was_sent_stays_in_front_unless_a_reason_is_recorded(given: Conversation) -> None:
    async def body() -> None:
        _, moments = await play(given)
        for moment in moments:
            agreement = moment.turn.context.agreement
            if moment.last is None:
                assert agreement.first
                continue
            before, after = digests(moment.last.turn), digests(moment.turn)
            pairs = zip(before, after, strict=False)
            shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            assert agreement.segments == shared
            assert agreement.tokens == moment.turn.prompt.tokens_until(shared)
            assert agreement.tokens + agreement.reprocessed == moment.turn.prompt.tokens
            extends = shared >= moment.last.turn.prompt.cached_run()
            assert extends == (agreement.broke is None)
            assert extends or (agreement.broke and agreement.broke.reason.strip())

    run(body())


def texts_in(wire: object) -> Iterator[str]:
    """The texts of a request, whoever's form it has."""
    match wire:
        case dict():
            for name, value in wire.items():
                if isinstance(value, str) and name in ("content", "text", "system", "thinking"):
                    yield value
                else:
                    yield from texts_in(value)
        case list():
            for value in wire:
                yield from texts_in(value)
        case _:
            pass


@modest
@given(conversations)
def test_a_request_never_exceeds_its_room_and_counts_all_that_is_sent(given: Conversation) -> None:
    async def body() -> None:
        _, moments = await play(given)
        for moment in moments:
            prompt, fit = moment.turn.prompt, moment.turn.context.fit
            assert prompt.tokens * fit.calibration <= given.window - 100
            assert prompt.tokens == sum(segment.tokens for segment in prompt)
            sent = sum(len(text.split()) for text in texts_in(moment.turn.request()))
            assert sent < prompt.tokens

    run(body())


# The new version of a note was cut out with the middle of its turn; the old one still stood.
STALE = Conversation(
    steps=(
        Ask(size=1, attach=(("d.md", 5),), loops=(1,), result=5, answer=71),
        Ask(size=1, answer=1),
        Edit("d.md"),
        Ask(size=80, loops=(1,), result=5, answer=103),
        Ask(
            size=46,
            attach=(("e.md", 5), ("a.md", 5), ("d.md", 5), ("b.md", 5)),
            loops=(1,),
            result=5,
            answer=78,
        ),
        Ask(
            size=111,
            attach=(("f.md", 10), ("d.md", 5), ("e.md", 5)),
            tool_text=15,
            loops=(2, 1),
            result=60,
        ),
    ),
    window=1_500,
    attachment_limit=250,
    rules=True,
)


@modest
@given(conversations)
@example(STALE)
def test_what_is_attached_stands_in_the_request_or_is_reported(given: Conversation) -> None:
    async def body() -> None:
        _, moments = await play(given)
        for moment in moments:
            context = moment.turn.context
            blocks = set(standing_blocks(moment.turn))
            present = {item.item: item.version for item in context.items}
            for item, version in present.items():
                assert f"{item}@{version[:8]}" in blocks
            reported = {each.what for each in context.left_out}
            if not moment.resumed:
                assert moment.attached <= set(present) | reported
            assert all(each.detail for each in context.left_out)

    run(body())


@modest
@given(conversations)
def test_an_item_that_no_longer_stands_is_reported_when_it_goes(given: Conversation) -> None:
    async def body() -> None:
        _, moments = await play(given)
        for moment in moments:
            gone = set(moment.before.library.standing) - set(moment.after.library.standing)
            assert gone <= {each.what for each in moment.turn.context.left_out}

    run(body())


@modest
@given(conversations)
def test_each_version_of_an_item_stands_at_most_once(given: Conversation) -> None:
    async def body() -> None:
        _, moments = await play(given)
        for moment in moments:
            counted = Counter(standing_blocks(moment.turn))
            assert all(count == 1 for count in counted.values()), counted

    run(body())


@modest
@given(conversations)
def test_no_request_parts_a_tool_call_from_its_result(given: Conversation) -> None:
    async def body() -> None:
        _, moments = await play(given)
        for moment in moments:
            open_calls: list[str] = []
            for segment in moment.turn.prompt:
                match segment.content:
                    case ToolCall(id=call):
                        open_calls.append(call)
                    case ToolResult(call_id=call):
                        assert call in open_calls
                        open_calls.remove(call)
                    case _:
                        assert not open_calls
            assert not open_calls

    run(body())


@modest
@given(conversations)
def test_what_was_typed_is_in_the_request_untouched(given: Conversation) -> None:
    async def body() -> None:
        _, moments = await play(given)
        for moment in moments:
            said = [segment.text for segment in moment.turn.prompt if segment.role == "user"]
            if moment.resumed:
                assert any(moment.typed in text for text in said)
            else:
                assert said[-1] == moment.typed

    run(body())


@modest
@given(conversations)
def test_what_a_person_set_holds_from_the_next_turn_on(given: Conversation) -> None:
    async def body() -> None:
        _, moments = await play(given)
        for moment in moments:
            if moment.resumed:
                continue
            assert moment.pinned <= {item.item for item in moment.turn.context.items}
            assert moment.after.settings.promotion == moment.promotion
            assert next(s.text for s in moment.turn.prompt if s.layer == "L1") == moment.system

    run(body())


@modest
@given(conversations)
def test_what_is_pinned_stays_while_a_turn_goes_on(given: Conversation) -> None:
    async def body() -> None:
        _, moments = await play(given)
        for moment in moments:
            before = (
                {item.item for item in moment.before.requests.sent.context.items}
                if (moment.resumed and moment.before.requests.sent)
                else set()
            )
            stay = before & moment.before.library.pinned.keys()
            assert stay <= {item.item for item in moment.turn.context.items}

    run(body())


# Large results put the rule out of the library while the turn that named it went on.
UNRULED = Conversation(
    steps=(Ask(size=1), Ask(size=1, attach=(("f.md", 5),), loops=(3,), result=400)),
    window=900,
    rules=True,
)


@modest
@given(conversations)
@example(UNRULED)
def test_the_latest_list_of_rules_in_a_request_names_those_in_force(given: Conversation) -> None:
    async def body() -> None:
        _, moments = await play(given)
        for moment in moments:
            text = "\n".join(segment.text for segment in moment.turn.prompt)
            named = any(item.item == TONE.id for item in moment.turn.context.items)
            assert ("Rules and references in force from here on:\n- tone" in text) == named

    run(body())


@st.composite
def long_conversations(draw: st.DrawFn) -> Conversation:
    """One person at work: small turns, a few notes at hand that change now and then."""
    turns = []
    at_hand = draw(attached)
    for _ in range(40):
        if draw(st.integers(0, 7)) == 0:
            at_hand = draw(attached)
        turns.append(
            Ask(
                size=draw(st.integers(5, 40)),
                answer=draw(st.integers(5, 60)),
                attach=at_hand,
                loops=draw(st.sampled_from([(), (), (), (1,), (2, 1)])),
                result=draw(st.sampled_from([5, 30])),
            )
        )
    promotion = draw(promotions)
    return Conversation(steps=tuple(turns), window=1_500, promotion=promotion)


def broke_for_room(moment: Moment) -> bool:
    kinds = {boundary.kind for boundary in moment.turn.context.boundaries}
    return moment.turn.context.agreement.broke is not None and "window" in kinds


@modest
@given(long_conversations())
def test_over_a_long_conversation_the_window_moves_the_prefix_on_few_turns(
    given: Conversation,
) -> None:
    async def body() -> None:
        _, moments = await play(given)
        broken = sum(map(broke_for_room, moments))
        assert broken <= len(given.steps) / 3

    run(body())
