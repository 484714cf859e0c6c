"""Whatever is said, attached and called: each request reads all that the one before it wrote."""

from itertools import pairwise
from pathlib import Path

import anyio
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec import Struct
from tests.adapters.providers.strict import JSON
from tests.adapters.providers.strict_anthropic import sign
from tests.adapters.providers.test_anthropic_wire import LONG, blocks_of
from tests.adapters.providers.vendors import anthropic, open_with

from lamina.adapters.providers.model_book import load_book
from lamina.core.values.message import ToolText
from lamina.emulators.anthropic.cache import AnthropicCache

TARGET = load_book().find(anthropic.target)
LOOK_BACK = 20


class Said(Struct, frozen=True, kw_only=True):
    """One turn: how many notes are attached, what is searched, and the steps: per call whether a
    thought and words come in front of it."""

    notes: int
    searched: bool
    steps: tuple[tuple[tuple[bool, bool], ...], ...]


turns = st.lists(
    st.builds(
        Said,
        notes=st.sampled_from([0, 1, 3, 22]),
        searched=st.booleans(),
        steps=st.lists(
            st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=18).map(tuple),
            max_size=2,
        ).map(tuple),
    ),
    min_size=2,
    max_size=4,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("notes")
    for number in range(100):
        (made / f"note{number}.md").write_text(f"Pier {number} has a crane.\n", "utf-8")
    return made


def answer(step: tuple[tuple[bool, bool], ...], name: str) -> JSON:
    content: list[JSON] = []
    for number, (thinks, speaks) in enumerate(step):
        if thinks:
            thought = f"Thought {number}."
            content.append({"type": "thinking", "thinking": thought, "signature": sign(thought)})
        if speaks:
            content.append({"type": "text", "text": f"And {number}:"})
        call = {"type": "tool_use", "id": f"{name}-{number}", "name": "clock", "input": {}}
        content.append(call)
    return anthropic.saying(content, "tool_use")


async def converse(folder: Path, said: list[Said]) -> list[JSON]:
    session = await open_with(anthropic, folder, system=LONG * 2)
    requests: list[JSON] = []
    laid = 0
    for number, each in enumerate(said):
        attach = [f"note{laid + n}.md" for n in range(each.notes)]
        laid += each.notes
        texts = [ToolText(name="search", text=f"{number} hits")] if each.searched else []
        turn = await session.prepare(f"Question {number}?", attach=attach, tool_texts=texts)
        for at, step in enumerate(each.steps):
            requests.append(turn.request())
            reply = answer(step, f"c-{number}-{at}")
            turn = await turn.commit(anthropic.send(turn.request(), reply))
            turn = await turn.resume({call.id: "noon" for call in turn.pending_calls})
        requests.append(turn.request())
        await turn.commit(anthropic.send(turn.request(), anthropic.answer("So it is.")))
    return requests


# Not shrunk: it takes minutes, and what is drawn can be read as it is.
@settings(max_examples=15, deadline=None, database=None, phases=[Phase.generate])
@given(said=turns)
def test_each_request_reads_all_that_the_one_before_it_wrote(
    folder: Path, said: list[Said]
) -> None:
    requests = anyio.run(converse, folder, said)
    cache, held = AnthropicCache(), 0
    for number, request in enumerate(requests):
        account = cache.look_up(request, TARGET, 1_000.0 + number)
        cache.begin(account)
        assert account.read == held
        held = account.read + account.written
    for before, after in pairwise(requests):
        # Also where runs of calls and of results are not counted once.
        places = [[n for n, b in enumerate(blocks_of(r)) if "cache_control" in b]
                  for r in (before, after)]  # fmt: skip
        assert len(places[1]) <= 4
        assert any(0 <= place - places[0][-1] < LOOK_BACK for place in places[1])
