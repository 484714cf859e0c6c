"""Opening a damaged journal as a session, and going on in it as a person would."""

from pathlib import Path

from tests.adapters.providers import strict_anthropic, strict_openai
from tests.crash.sample import SESSION, open_sample
from tests.crash.scale import tally
from tests.fakes.book import SMALL, THINKER
from tests.fakes.replies import anthropic_reply, openai_reply

from lamina.adapters.stores.jsonl import JsonlStore
from lamina.engine.session.turn import Turn


def check_request(turn: Turn) -> None:
    """The vendor takes it: every call has its result, every result its call."""
    strict_openai.check(turn.request())


async def check_going_on(folder: Path, data: bytes, way: str) -> None:
    """The session opens, finishes the turn that was under way if `way` is to do so, and takes two
    more; then it opens again and nothing of what was said since is lost."""
    tally["sessions gone on with"] += 1
    path = JsonlStore(folder).path_of(SESSION)
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    async with await open_sample(folder) as session:
        before = session.entries
        turn = await session.current_turn()
        if turn and turn.pending_calls:
            turn = await turn.resume({call.id: "found" for call in turn.pending_calls})
        if turn and way == "current_turn":
            check_request(turn)
            await turn.commit(openai_reply("late", input=9))
        turn = await session.prepare("And now?", target=SMALL.name)
        check_request(turn)
        turn = await turn.commit(openai_reply(None, input=9, calls=[("new1", "find")]))
        turn = await turn.resume({"new1": "found"})
        check_request(turn)
        await turn.commit(openai_reply("so it is", input=9))
        turn = await session.prepare("With thinking?", target=THINKER.name)
        strict_anthropic.check(turn.request())
        await turn.commit(anthropic_reply("yes"))
        made = session.entries[len(before) :]
        state = session.state
    assert path.read_bytes().startswith(data)
    async with await open_sample(folder) as session:
        assert session.entries[-len(made) :] == made
        assert session.state.envelope.cached == state.envelope.cached
        assert session.state.leaf == state.leaf
