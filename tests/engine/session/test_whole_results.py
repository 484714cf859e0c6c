"""Results of tools that were cut or shortened before they were first sent.

Issue 16, B.11: what was cut off was in no journal; it is kept whole, and a person can read it back.
"""

import pytest
from tests.engine.runners.scenes import Scene
from tests.engine.sources.note_scenes import PlanScene
from tests.fakes.providers import calling, saying
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, run, words
from tests.fakes.store import FakeStore, StoreFailed
from tests.fakes.summarizer import require_sound
from tests.fakes.tools import tool

from lamina.adapters.tools.result_limits import cut_output
from lamina.core.audit.kept_results import find_result, whole_results
from lamina.core.codec import digest_bytes
from lamina.core.values.entry import PLANNED, MessageEntry, ResultEntry
from lamina.core.values.message import ToolResult
from lamina.core.values.tool import ToolOutput
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn
from lamina.errors import JournalError, UsageError

LONG = "begin " + words(2_000, "tide") + " end"


class BlobStore(FakeStore):
    """Remembers which blobs were there at each write, and can lose them."""

    def __init__(self) -> None:
        super().__init__()
        self.put: list[str] = []

    async def put_blob(self, data: bytes) -> str:
        if self.failing:
            raise StoreFailed
        digest = await super().put_blob(data)
        self.put.append(digest)
        return digest

    def lose(self) -> None:
        self._blobs.clear()


async def called(session: Session, *calls: str) -> Turn:
    turn = await session.prepare("What of the tide?")
    return await turn.commit(openai_reply(None, calls=[(call, "find") for call in calls]))


def test_what_is_shortened_to_fit_is_kept_whole_and_read_back() -> None:
    async def body() -> None:
        world = World()
        world.store = BlobStore()
        session = await world.open(window=1_000, output_reserve=100)
        turn = await called(session, "c1", "c2")
        turn = await turn.resume({"c1": LONG, "c2": "short"})
        assert "tokens removed to fit the context window" in str(turn.request())
        digest = digest_bytes(LONG.encode())
        (entry,) = [e for e in session.entries if isinstance(e, MessageEntry) and e.whole_results]
        assert entry.whole_results == {"c1": digest}
        assert world.store.put == [digest]
        assert await session.read_result("c1") == LONG
        assert await session.read_result(digest[:12]) == LONG
        assert await session.read_result("c2") == "short"
        with pytest.raises(UsageError, match=r"no result 'c3' here; .*shortened: c1"):
            await session.read_result("c3")
        await turn.commit(openai_reply("Low."))
        await require_sound(world, session)
        # A copy has it too, and so has a session that is opened again.
        fork = await session.fork()
        assert await fork.read_result("c1") == LONG
        again = await world.open(session.id)
        assert await again.read_result("c1") == LONG

    run(body())


def test_what_fits_is_kept_once_where_it_stands() -> None:
    async def body() -> None:
        world = World()
        world.store = BlobStore()
        session = await world.open()
        turn = await called(session, "c1")
        await turn.resume({"c1": LONG})
        assert world.store.put == []
        assert whole_results(session.entries) == {}
        assert await session.read_result("c1") == LONG

    run(body())


def test_what_a_tool_cuts_by_itself_is_kept_whole_too() -> None:
    async def body() -> None:
        world = World()
        world.store = BlobStore()
        session = await world.open()
        await called(session, "c1", "c2")
        output = cut_output(LONG, 200)
        assert len(output.text) <= 200
        result = ToolResult(call_id="c1", name="find", text=output.text)
        await session.keep_result(result, whole=output.whole)
        (kept,) = [entry for entry in session.entries if isinstance(entry, ResultEntry)]
        assert (kept.result.text, kept.whole) == (output.text, digest_bytes(LONG.encode()))
        assert await session.read_result("c1") == LONG
        # The message that answers all calls repeats the result, and where the whole of it is.
        session = await world.open(session.id)
        again = await session.current_turn()
        assert again is not None
        await again.resume([session.state.turn.results["c1"], {"call_id": "c2", "text": "short"}])
        (entry,) = [e for e in session.entries if isinstance(e, MessageEntry) and e.whole_results]
        assert entry.whole_results == {"c1": kept.whole}
        assert session.state.turn.whole_results == {}

    run(body())


def test_a_turn_that_is_given_up_keeps_what_ran_whole() -> None:
    async def body() -> None:
        session = await World().open()
        await called(session, "c1", "c2")
        result = ToolResult(call_id="c1", name="find", text="begin")
        await session.keep_result(result, whole=LONG)
        await session.abandon_turn()
        assert await session.read_result("c1") == LONG
        assert find_result(session.entries[-3:], "c1").digest

    run(body())


def test_a_request_made_smaller_after_an_overflow_still_names_the_whole() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(window=1_000, output_reserve=100, compaction_keep=50)
        for number in range(5):
            turn = await session.prepare(words(40, f"q{number}"))
            await turn.commit(openai_reply(words(40)))
        turn = await called(session, "c1")
        turn = await turn.resume({"c1": LONG})
        turn = await turn.retry_smaller()
        assert await session.read_result("c1") == LONG
        path = [entry for entry in session.path if isinstance(entry, MessageEntry)]
        assert path[-1].whole_results == {"c1": digest_bytes(LONG.encode())}

    run(body())


def test_the_blob_is_there_before_the_entry_that_names_it() -> None:
    async def body() -> None:
        world = World()
        world.store = store = BlobStore()
        session = await world.open(window=1_000, output_reserve=100)
        turn = await called(session, "c1")
        entries = session.entries
        store.failing = True
        with pytest.raises(StoreFailed):
            await turn.resume({"c1": LONG})
        result = ToolResult(call_id="c1", name="find", text="begin")
        with pytest.raises(StoreFailed):
            await session.keep_result(result, whole=LONG)
        assert session.entries == entries
        store.failing = False
        await turn.resume({"c1": LONG})
        store.lose()
        with pytest.raises(JournalError):
            await session.read_result("c1")

    run(body())


def test_a_runner_keeps_the_whole_of_what_its_tools_give() -> None:
    async def body() -> None:
        async with Scene(
            calling(("c1", "find", {})), saying("Low."), tools=[tool("find")]
        ) as scene:
            scene.host.outputs["find"] = cut_output(LONG, 300)
            await scene.ask("What of the tide?")
            assert await scene.runner.session.read_result("c1") == LONG

    run(body())


def test_what_planned_tools_give_is_kept_whole_if_it_was_cut_or_had_no_room() -> None:
    async def body() -> None:
        plan = calling(("a", "find", {}), ("b", "look", {}))
        tools = [tool("find"), tool("look")]
        async with PlanScene(plan, saying("Low."), tools=tools, searches=False) as scene:
            scene.host.outputs["find"] = cut_output(LONG, 300)
            scene.host.outputs["look"] = ToolOutput(text=LONG * 40)
            await scene.ask("What of the tide?")
            calls = {call["name"]: call for call in scene.noted(PLANNED)[0]["calls"]}
            session = scene.runner.session
            assert await session.read_result(calls["find"]["id"]) == LONG
            assert await session.read_result(calls["look"]["whole"]) == LONG * 40

    run(body())


def test_a_secret_that_a_cut_would_halve_is_left_out_of_what_is_sent_and_kept() -> None:
    """Point 5 and point 11: a secret is judged in the whole of a result."""
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0B\n" * 40
    key += "-----END PRIVATE KEY-----"

    async def body() -> None:
        for kind in (Scene, PlanScene):
            store = BlobStore()
            script = calling(("c1", "find", {})), saying("Low.")
            async with kind(*script, tools=[tool("find")], store=store) as scene:
                scene.host.outputs["find"] = cut_output(f"{LONG}{key}", 1_000)
                await scene.ask("What of the tide?")
                sent = str(scene.provider.bodies)
                kept = [await store.get_blob(digest) for digest in store.put]
                assert "MIIEvQ" not in sent
                assert "[redacted" in sent
                assert not any(b"MIIEvQ" in blob for blob in kept)

    run(body())
