"""One contract for everybody who answers: the embedded model and three vendors, in the same words.

What the embedded model cannot be brought to do, as calling several tools at once, is asked of the
three only.
"""

from contextlib import aclosing

import anyio
import pytest
from tests.contracts.houses import HOUSES, VENDORS, House, Town
from tests.contracts.talk import (
    CITY,
    LONG,
    Watch,
    agent_with,
    asked_in,
    calling,
    chat_with,
    messages,
    offered,
    replies,
    requests,
    require_sound,
    text_of,
)
from tests.fakes.tools import ToolHostFake, tool

from lamina.core.values.event import (
    BlockDelta,
    BlockEnded,
    BlockStarted,
    Event,
    RequestRetried,
    RequestStarted,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    UsageReported,
)
from lamina.core.values.message import Text, ToolResult
from lamina.core.values.settings import Settings
from lamina.core.values.tool import ToolOutput
from lamina.core.values.wire import CallPiece, ProgressPiece, Reply, TextPiece, ThinkingPiece
from lamina.emulators.answers import EmulatedAnswer, EmulatedCall
from lamina.errors import ProviderBusy, RequestTooLong, WindowExceeded

pytestmark = pytest.mark.anyio
everybody = pytest.mark.parametrize("name", HOUSES)
vendors = pytest.mark.parametrize("name", VENDORS)


# -- answers --------------------------------------------------------------------------------------


@everybody
async def test_an_answer_comes_in_pieces_and_the_last_is_the_whole_reply(house: House) -> None:
    house.says(EmulatedAnswer(text="The water is deep.", thinking="Let me see."))
    async with await chat_with(house) as chat:
        turn = await chat.session.prepare("How deep is it?")
        provider = await house.provider(house.known)
        async with aclosing(provider.stream(turn.request())) as stream:  # type: ignore[type-var]
            pieces = [piece async for piece in stream]
        *coming, reply = pieces
        assert isinstance(reply, Reply)
        assert not any(isinstance(piece, Reply) for piece in coming)
        assert reply.complete
        assert reply.stop
        spoken = "".join(piece.text for piece in coming if isinstance(piece, TextPiece))
        assert spoken == "".join(b.text for b in reply.blocks if isinstance(b, Text))
        assert len([piece for piece in coming if isinstance(piece, TextPiece)]) > 1
        kinds = [type(piece) for piece in coming]
        order = [ProgressPiece, ThinkingPiece, TextPiece]
        assert kinds == sorted(kinds, key=order.index)
        if house.scripted:
            assert spoken == "The water is deep."
        await turn.commit(reply)
        require_sound(chat.session)


@everybody
async def test_a_turn_is_told_from_its_request_to_its_end(house: House) -> None:
    watch = Watch()
    async with await chat_with(house) as chat:
        answer = await chat.run("Say hello.", on_event=watch)
        assert answer.ending == "answered"
        assert answer.text.strip()
        assert watch.said.strip() == answer.text.strip()
        assert isinstance(watch.events[0], RequestStarted)
        assert isinstance(watch.events[-2], UsageReported)
        assert isinstance(watch.events[-1], TurnEnded)
        assert len(watch.of(BlockStarted)) == len(watch.of(BlockEnded)) == 1
        assert [message.role for message in messages(chat.session)] == ["user", "assistant"]
        require_sound(chat.session)


# -- tools ----------------------------------------------------------------------------------------


@everybody
async def test_a_tool_is_called_and_its_result_comes_back(house: House) -> None:
    look = EmulatedCall(name="weather", arguments={"city": "Oslo"})
    house.says(EmulatedAnswer(thinking="I should look.", calls=(look,)), "It rains.")
    host = ToolHostFake(
        tool("weather", description="Tells the weather in a city.", parameters=CITY)
    )
    host.outputs["weather"] = ToolOutput(text="It rains in Oslo, 12 degrees.")
    watch = Watch()
    async with await agent_with(house, host) as agent:
        answer = await agent.run("What is the weather in Oslo?", on_event=watch)
        called = [event.call for event in watch.of(ToolStarted)]
        ran = [event.result for event in watch.of(ToolFinished)]
        # Whatever a small model calls: every call has its result, and both go back to it.
        assert called
        assert [call.id for call in called] == [result.call_id for result in ran]
        assert ran[0].text in text_of(house.bodies[1])
        assert len(replies(agent.session)) == answer.requests == len(house.bodies)
        if house.scripted:
            assert host.calls == [("weather", {"city": "Oslo"})]
            assert (answer.ending, answer.text) == ("answered", "It rains.")
            assert [row.status for row in house.rows] == [200, 200]
        assert (await agent.run("Thank you.")).ending in ("answered", "limit")
        require_sound(agent.session)


@vendors
@pytest.mark.parametrize("count", [2, 18])
async def test_calls_of_one_answer_keep_their_order_and_their_results(
    house: House, count: int
) -> None:
    names = [("depth", "berths")[number % 2] for number in range(count)]
    house.says(calling(*names), calling("depth"), "All seen.")
    host, watch = offered(), Watch()
    async with await agent_with(house, host) as agent:
        answer = await agent.run("What is there?", on_event=watch)
        assert (answer.text, answer.requests) == ("All seen.", 3)
        assert host.together == count
        said, results = messages(agent.session)[1:3]
        assert [call.name for call in said.calls] == names
        assert len({call.id for call in said.calls}) == count
        kept = [block for block in results.blocks if isinstance(block, ToolResult)]
        assert [block.call_id for block in kept] == [call.id for call in said.calls]
        assert [block.text for block in kept] == [
            f"{name} gave {{'path': 'pier {at}'}}" for at, name in enumerate(names)
        ]
        assert [row.status for row in house.rows] == [200] * 3
        require_sound(agent.session)


@vendors
async def test_a_call_is_told_while_it_is_written(house: House) -> None:
    house.says(calling("depth", "berths"), "Seen.", calling("depth", "berths"))
    async with await agent_with(house, offered()) as agent:
        watch = Watch()
        await agent.run("What is there?", on_event=watch)
        written = [started.name for started in watch.of(BlockStarted) if started.kind == "action"]
        assert written[:2] == ["depth", "berths"]
        turn = await agent.session.prepare("And now?")
        provider = await house.provider(house.known)
        async with aclosing(provider.stream(turn.request())) as stream:  # type: ignore[type-var]
            pieces = [piece async for piece in stream]
        calls = [piece for piece in pieces if isinstance(piece, CallPiece)]
        first = "".join(call.arguments for call in calls if call.index == calls[0].index)
        assert first == '{"path":"pier 0"}'


# -- what does not fit ----------------------------------------------------------------------------


@everybody
async def test_an_overflow_is_answered_by_one_compaction_and_the_question_again(
    name: str, town: Town
) -> None:
    house = town.soon_full(name)
    house.says(LONG)
    settings = Settings(compaction_keep=120, compaction_summary=60)
    watch = Watch()
    async with await chat_with(house, settings=settings) as chat:
        for number in range(3):
            boats = ", ".join(f"boat {number}{each} came in at {each}:30" for each in range(12))
            if number == 2:
                house.fails("overflow")
            answer = await chat.run(f"Note that {boats}. Say yes.", on_event=watch)
            assert answer.ending == "answered"
            # The question that was refused is the one that was answered.
            assert f"boat {number}0 came in" in text_of(house.bodies[-1])
        assert watch.of(RequestRetried)
        if house.scripted:
            assert len(watch.of(RequestRetried)) == 1
            assert [row.status for row in house.rows].count(400) == 1
        assert chat.session.compactions
        boundaries = requests(chat.session)[-1].context.boundaries
        assert [boundary.kind for boundary in boundaries] == ["compaction"]
        require_sound(chat.session)


@vendors
async def test_an_overflow_that_stays_is_told_and_the_session_goes_on(house: House) -> None:
    house.says(LONG)
    settings = Settings(compaction_keep=120, compaction_summary=60)
    async with await chat_with(house, settings=settings) as chat:
        for number in range(4):
            await chat.run(f"Question {number}? {LONG}")
        house.fails("overflow", times=9)
        with pytest.raises((WindowExceeded, RequestTooLong)):
            await chat.run("And now?")
        house.begin()
        house.says("Well.")
        assert (await chat.run("Still there?")).text == "Well."
        assert "And now?" in asked_in(chat.session)
        require_sound(chat.session)


@vendors
async def test_throttling_is_no_overflow_however_it_sounds(house: House) -> None:
    house.says(LONG)
    watch = Watch()
    async with await chat_with(house) as chat:
        for number in range(3):
            await chat.run(f"Question {number}?")
        house.fails("throttle", times=2)
        assert (await chat.run("And now?", on_event=watch)).text == LONG
        house.fails("throttle", times=9)
        with pytest.raises(ProviderBusy):
            await chat.run("And then?", on_event=watch)
        assert not watch.of(RequestRetried)
        assert not chat.session.compactions
        require_sound(chat.session)


# -- being stopped --------------------------------------------------------------------------------


@everybody
async def test_a_stopped_answer_keeps_its_words_and_the_next_turn_goes_on(house: House) -> None:
    house.says(LONG)
    heard: list[str] = []
    async with await chat_with(house) as chat:

        async def stop(event: Event) -> None:
            if isinstance(event, BlockDelta):
                heard.append(event.text)
                if len(heard) == 5:
                    chat.abort()
                    await anyio.lowlevel.checkpoint()

        stopped = await chat.run("Tell me of all the berths in the harbour.", on_event=stop)
        assert stopped.ending == "aborted"
        assert stopped.text == "".join(heard)
        assert len(heard) == 5
        assert messages(chat.session)[-1].text == stopped.text
        house.says("Certainly.")
        with anyio.fail_after(30):
            answer = await chat.run("Go on.")
        assert answer.ending == "answered"
        assert stopped.text.strip() in text_of(house.bodies[-1])
        require_sound(chat.session)


# -- what it cost ---------------------------------------------------------------------------------


@everybody
async def test_usage_is_the_providers_own_and_the_second_turn_reads_the_cache(
    house: House,
) -> None:
    watch = Watch()
    async with await chat_with(house, system=house.persona()) as chat:
        for number in range(3):
            await chat.run(f"Where does ship {number} go?", on_event=watch)
        told = watch.of(UsageReported)
        assert all(reported.usage.input > reported.usage.cached >= 0 for reported in told)
        assert all(reported.usage.output > 0 for reported in told)
        assert all(reported.usage.cached > 0.5 * reported.usage.input for reported in told[1:])
        if house.scripted:
            assert [reported.usage.input for reported in told] == [
                row.usage.input for row in house.rows
            ]
            assert [reported.usage.cached for reported in told] == [
                row.usage.cached for row in house.rows
            ]
            assert [reported.usage.written for reported in told] == [
                row.usage.written for row in house.rows
            ]
            assert [reported.cost for reported in told] == pytest.approx(
                [r.cost for r in house.rows]
            )
        meanings = [reported.verdict.meaning for reported in told if reported.verdict]
        assert meanings[1:] == ["as_expected"] * 2
        require_sound(chat.session)


@everybody
async def test_a_system_that_changes_moves_the_prefix_and_says_why(house: House) -> None:
    watch = Watch()
    async with await chat_with(house, system=house.persona()) as chat:
        await chat.run("Where does ship 2 go?")
        name = chat.session.envelope.system[0].name
        changed = f"You are kind. {house.persona()}"
        await chat.session.set_system(name, changed, reason="they were sad")
        await chat.run("And ship 3?", on_event=watch)
        verdict = watch.of(UsageReported)[0].verdict
        assert verdict
        assert verdict.meaning == "prefix_moved"
        request = requests(chat.session)[-1]
        assert [(boundary.kind, boundary.reason) for boundary in request.context.boundaries] == [
            ("system_change", "they were sad")
        ]
        require_sound(chat.session)
