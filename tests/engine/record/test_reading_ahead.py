"""A store behind a network is never waited for in the middle of a turn: what is looked up was read
ahead, a window at a time."""

import anyio
from tests.fakes.book import FakeBook
from tests.fakes.clock import FakeClock
from tests.fakes.network_store import NetworkStore
from tests.fakes.replies import openai_reply
from tests.fakes.workspace import FakeWorkspace

import lamina
from lamina.core.values.settings import Settings

SETTINGS = Settings(target="fake:small", window=1 << 30, output_reserve=100)


async def open_far(store: NetworkStore) -> lamina.Session:
    return await lamina.open_session(
        "s", system="You are terse.", store=store, book=FakeBook(), clock=FakeClock(),
        workspace=FakeWorkspace({"a.md": "A is noted."}), settings=SETTINGS,
    )  # fmt: skip


async def ask(session: lamina.Session, question: str, **given: list[str]) -> None:
    turn = await session.prepare(question, **given)  # type: ignore[arg-type]
    assert turn.request()["messages"][-1]["content"].endswith(question)
    await turn.commit(openai_reply(f"To {question}", input=9))


def test_a_session_far_away_is_opened_and_goes_on_without_waiting_for_an_entry() -> None:
    async def body() -> None:
        store = NetworkStore()
        async with await open_far(store) as session:
            await ask(session, "First?", attach=["a.md"])
            for number in range(60):
                await ask(session, f"What is {number}?")
        assert store.snapshots
        async with await open_far(store) as session:
            assert store.opened is not None
            far = store.opened.far
            assert len(far.near) < len(session.entries) / 2
            far.waits.clear()
        async with await open_far(store) as session:
            far = store.opened.far
            await ask(session, "And now?")
            await ask(session, "And a?", attach=["a.md"])
            assert far.waits == []
        assert len(session.envelope.cached) == 2 * 63

    anyio.run(body)
